"""Build a chain with every joint type and check its Jacobian against finite differences.

Column k of the Jacobian is the twist of the tip per unit of speed k. Finite differences of the pose
along that speed, with `rm.integrate`, give the same twist.
"""

import numpy as np

import remora as rm
from remora.algebra import dual_quaternion as dq

KINDS = list(rm.JOINT_TYPES)  # fixed, revolute, prismatic, helical, ..., spherical, free
EXTRA = {
    "helical": {"pitch": 0.05},  # m per rad
    "universal": {"axis": (1, 0, 0), "axis2": (0, 1, 0)},
}


def build() -> rm.Robot:
    """Return a base with one arm: one link per joint type, half a metre apart."""
    builder = rm.Builder("every kind").body("bus", mass=200.0, inertia=(40.0, 35.0, 30.0))
    parent = "bus"
    for kind in KINDS:
        link = f"on_{kind}"
        builder.body(link, mass=4.0, com=(0.25, 0.0, 0.0), inertia=(0.01, 0.09, 0.09))
        options = EXTRA.get(kind, {})
        builder.joint(kind, kind, parent, link, xyz=(0.5, 0.0, 0.0), **options)
        parent = link
    builder.frame("tip", parent, xyz=(0.5, 0.0, 0.0))
    return builder.build(base="free")


def difference_column(robot: rm.Robot, q: np.ndarray, k: int, h: float) -> np.ndarray:
    """Return the tip's twist per unit of speed k, by central differences."""
    e = np.eye(robot.nv)[k] * h
    ahead, behind = (rm.frame_pose(robot, rm.integrate(robot, q, s), "tip") for s in (e, -e))
    return 2.0 * dq.log(dq.mul(dq.conjugate(behind), ahead)) / (2.0 * h)


def main() -> None:
    robot = build()
    print(robot, "\n")
    q, _ = rm.random_state(robot, seed=7)
    J = rm.jacobian(robot, q, "tip")

    print(f"{'joint':12s} {'nq':>3s} {'nv':>3s}   largest entry   off differences by")
    worst = 0.0
    for joint in robot.joints:
        nq, nv = joint.q.stop - joint.q.start, joint.v.stop - joint.v.start
        if nv == 0:
            print(f"{joint.kind:12s} {nq:3d} {nv:3d}")
            continue
        columns = range(joint.v.start, joint.v.stop)
        differences = np.stack([difference_column(robot, q, k, 1e-4) for k in columns], axis=-1)
        own = J[:, joint.v]
        error = np.abs(own - differences).max()
        worst = max(worst, error)
        print(f"{joint.kind:12s} {nq:3d} {nv:3d} {np.abs(own).max():15.4f}   {error:.0e}")
    print(f"\nworst {worst:.0e}: the error of the differences (h = 1e-4), not of the Jacobian")

    try:
        rm.Builder("bad").body("bus", mass=-1.0, inertia=(1, 1, 3)).joint(
            "j", "ball", "bus", "arm"
        ).build()
    except rm.RemoraError as error:
        print("\nand what the builder says to nonsense:")
        print(error)


if __name__ == "__main__":
    main()
