"""Two arms from Denavit-Hartenberg tables; moving one disturbs the other.

Each arm has three revolute joints in the classic convention: a shoulder with a twist of 90 degrees,
then two parallel pitch joints with a link of 1 m each.
"""

import numpy as np

import remora as rm
from remora.algebra import pose

np.set_printoptions(precision=4, suppress=True)


def arm(side: str, y: float) -> list[rm.DHLink]:
    """Return the DH rows of one arm, mounted at (0.6, y, 0) m with its first axis along x."""
    mount = pose.from_xyz_rpy((0.6, y, 0.0), (0.0, np.pi / 2, 0.0))
    rod = {"com": (-0.5, 0.0, 0.0), "inertia": (0.02, 0.7, 0.7)}  # DH frame: at the far end
    return [
        rm.DHLink(
            f"{side}_shoulder", d=0.2, alpha=np.pi / 2, mass=6.0, inertia=(0.05, 0.05, 0.05),
            parent="bus", mount=mount,
        ),
        rm.DHLink(f"{side}_upper", a=1.0, mass=8.0, lower=-2.0, upper=2.0, **rod),
        rm.DHLink(f"{side}_lower", a=1.0, mass=8.0, lower=-2.5, upper=2.5, **rod),
    ]  # fmt: skip


def main() -> None:
    robot = rm.from_dh(
        [*arm("left", 0.4), *arm("right", -0.4)],
        convention="classic",
        name="two arms",
        base_name="bus",
        base_mass=300.0,
        base_inertia=(60.0, 60.0, 60.0),
    )
    print(robot)
    print(
        "bodies mounted on the bus:", [robot.bodies[i].name for i in rm.topology.children(robot, 0)]
    )
    print("ends of the branches:    ", [robot.bodies[i].name for i in rm.topology.leaves(robot)])

    q = rm.neutral(robot)
    for side in ("left", "right"):
        q[robot.joints[f"{side}_upper_joint"].q] = np.radians(60.0)
        q[robot.joints[f"{side}_lower_joint"].q] = np.radians(-40.0)
    print("\nhands (the last DH frames), inertial axes")
    for side in ("left", "right"):
        x = rm.frame_pose(robot, q, f"{side}_lower_dh")
        print(f"  {side:5s}", pose.translation(x), "m")
    print("centre of mass", rm.center_of_mass(robot, q), "m")

    u = np.zeros(robot.nv)
    u[robot.joints["left_upper_joint"].v] = np.radians(10.0)
    print("\nthe left arm's upper joint turns at 10 deg/s, nothing else is driven:")
    for side in ("left", "right"):
        hand = f"{side}_lower_dh"
        held = rm.frame_twist(robot, q, u, hand)
        floating = rm.generalized_jacobian(robot, q, hand) @ u[6:]
        print(f"  {side:5s} hand, base held    ", 1e3 * held[3:], "mm/s")
        print(f"  {side:5s} hand, base floating", 1e3 * floating[3:], "mm/s")


if __name__ == "__main__":
    main()
