"""Closed mechanisms for the tests: linkages and a Stewart platform, in any orientation."""

import numpy as np

import remora as rm
from remora.algebra import pose, quaternion

BAR = {"mass": 1.5, "inertia": np.diag([0.15, 0.2, 0.3])}


def four_bar(a=1.0, b=2.5, c=2.0, d=3.0, rpy=(0.0, 0.0, 0.0), base="fixed", closing="revolute"):
    """Return a planar four-bar linkage: crank a, coupler b, rocker c on a ground of length d."""
    make = rm.Builder("four-bar")
    make.body("ground", mass=20.0, inertia=np.diag([3.0, 4.0, 5.0]))
    for name, length in (("crank", a), ("coupler", b), ("rocker", c)):
        make.body(name, com=(0.5 * length, 0.0, 0.0), **BAR)
    turned = {"axis": (0.0, 0.0, 1.0)}
    make.joint("j2", "revolute", "ground", "crank", rpy=rpy, **turned)
    make.joint("j3", "revolute", "crank", "coupler", xyz=(a, 0.0, 0.0), **turned)
    R = quaternion.to_matrix(quaternion.from_rpy(np.array(rpy)))
    make.joint("j4", "revolute", "ground", "rocker", xyz=R @ (d, 0.0, 0.0), rpy=rpy, **turned)
    axis = turned if closing == "revolute" else {}
    make.constraint(
        "pin", closing, "coupler", "rocker", parent_xyz=(b, 0.0, 0.0), child_xyz=(c, 0.0, 0.0),
        **axis,
    )  # fmt: skip
    return make.build(base=base)


def four_bar_angles(theta, a=1.0, b=2.5, c=2.0, d=3.0):
    """Return the angles of coupler and rocker to the ground for a crank angle (textbook)."""
    p = np.array([a * np.cos(theta), a * np.sin(theta)])
    r = np.array([d, 0.0]) - p
    s = np.linalg.norm(r)
    along = (b**2 - c**2 + s**2) / (2.0 * s)
    across = np.sqrt(b**2 - along**2)
    joint = p + along * r / s + across * np.array([-r[1], r[0]]) / s
    return (
        np.arctan2(*(joint - p)[::-1]),
        np.arctan2(joint[1], joint[0] - d),
    )


def stewart(base="free"):
    """Return a platform on six legs (universal, prismatic, spherical) on a spacecraft."""
    make = rm.Builder("stewart")
    make.body("bus", mass=400.0, inertia=np.diag([90.0, 80.0, 70.0]))
    make.body("platform", mass=30.0, inertia=np.diag([2.0, 2.0, 3.5]))
    make.joint("loose", "free", "bus", "platform", xyz=(0.0, 0.0, 1.0))
    below, above = _hexagon(0.8, 0.3), _hexagon(0.5, 0.75)
    for i in range(6):
        make.body(f"lower{i}", mass=1.0, com=(0.0, 0.0, 0.2), inertia=np.diag([0.02, 0.02, 0.001]))
        make.body(f"upper{i}", mass=0.8, com=(0.0, 0.0, -0.2), inertia=np.diag([0.02, 0.02, 0.001]))
        direction = above[i] + (0.0, 0.0, 1.0) - below[i]
        length = np.linalg.norm(direction)
        rpy = _pointing(direction / length)
        make.joint(
            f"hinge{i}", "universal", "bus", f"lower{i}", xyz=below[i], rpy=rpy,
            axis=(1.0, 0.0, 0.0), axis2=(0.0, 1.0, 0.0),
        )  # fmt: skip
        make.joint(
            f"slide{i}", "prismatic", f"lower{i}", f"upper{i}", xyz=(0.0, 0.0, length),
            axis=(0.0, 0.0, 1.0),
        )  # fmt: skip
        make.constraint(f"ball{i}", "spherical", f"upper{i}", "platform", child_xyz=above[i])
    return make.build(base=base)


def _hexagon(radius, half_gap):
    """Return six points in three pairs on a circle."""
    angles = [k * 2.0 * np.pi / 3.0 + s * half_gap for k in range(3) for s in (-1.0, 1.0)]
    return np.array([(radius * np.cos(t), radius * np.sin(t), 0.0) for t in angles])


def _pointing(direction):
    """Return roll and pitch that turn z to a direction."""
    x, y, z = direction
    pitch = np.arctan2(x, z)
    roll = -np.arctan2(y, np.hypot(x, z))
    R = quaternion.to_matrix(quaternion.from_rpy(np.array([roll, 0.0, 0.0])))
    Q = quaternion.to_matrix(quaternion.from_rpy(np.array([0.0, pitch, 0.0])))
    return pose.to_rpy(pose.from_rotation_matrix(Q @ R))
