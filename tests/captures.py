"""A servicer with one arm and a free target, for the tests of captures."""

import numpy as np

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion


def joined(kind="fixed"):
    """Return a servicer with one arm joint and a free target, with a constraint that is off."""
    builder = rm.Builder("capture").body("bus", mass=20.0, com=(0.1, 0, 0), inertia=(2, 3, 4))
    builder = builder.joint("base", "free", None, "bus")
    builder = builder.body("arm", mass=2.0, com=(0.4, 0, 0), inertia=(0.05, 0.2, 0.2))
    builder = builder.joint("shoulder", "revolute", "bus", "arm", xyz=(0.5, 0, 0), axis=(0, 0, 1))
    builder = builder.body("target", mass=8.0, com=(0.2, 0.1, 0), inertia=(0.8, 1.1, 1.3))
    builder = builder.joint("gap", "free", "bus", "target")
    builder = builder.frame("grapple", "arm", xyz=(0.8, 0, 0))
    robot = builder.frame("fixture", "target", xyz=(-0.3, 0, 0)).build()
    options = {"axis": (0, 0, 1)} if kind == "revolute" else {}
    return rm.loops.add_constraint(
        robot, "grasp", kind, "grapple", "fixture", active=False, **options
    )


def state(robot, gap=0.0, speed=(0.0, 0.0, 0.0), rate=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    """Return a moving state with the fixture `gap` in front of the grapple."""
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[8] = 0.4
    x = rm.poses(robot, q)
    grapple = dq.mul(x[1], robot.frame("grapple").placement)
    turned = pose.from_parts(quaternion.exp(0.5 * np.array(turn)), np.array([gap, 0.0, 0.0]))
    there = dq.mul(dq.mul(grapple, turned), dq.conjugate(robot.frame("fixture").placement))
    q[robot.joints["gap"].q] = dq.mul(dq.conjugate(x[0]), there)
    v[:6] = (0.02, -0.01, 0.03, 0.1, 0.0, -0.05)
    v[6], v[7:10], v[10:] = 0.05, rate, speed
    return q, v


MOVING = {"speed": (-0.2, 0.1, 0.05), "rate": (0.3, -0.2, 0.1)}
