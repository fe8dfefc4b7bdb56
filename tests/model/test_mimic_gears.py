"""Mimic joints as gears: the same motion with coordinates of their own."""

import numpy as np
import pytest

import remora as rm


def hand():
    b = rm.Builder("hand", gravity=(0.1, 0.2, -0.3))
    b.body("palm", mass=2.0, com=(0.1, 0.0, 0.0), inertia=(0.2, 0.3, 0.4))
    for k, name in enumerate(("left", "right", "thumb")):
        b.body(name, mass=0.3, com=(0.0, 0.1, 0.0), inertia=(0.02, 0.01, 0.02))
        mimic = (None, ("left", -2.0, 0.1), ("right", 0.5, 0.0))[k]
        b.joint(name, "revolute", "palm", name, xyz=(0.1 * k, 0, 0), axis=(1, 0, 0), mimic=mimic)
    return b.build()


def test_every_mimic_joint_becomes_a_gear_of_its_leader():
    robot = hand()
    geared = rm.loops.mimic_to_gears(robot)
    assert (geared.nq, geared.nv) == (robot.nq + 2, robot.nv + 2)
    assert all(joint.mimic is None for joint in geared.joints)
    assert geared.constraints.names == ["right", "thumb"]
    right, thumb = geared.constraints
    assert (right.parent, right.child, right.ratio, right.offset) == (1, 2, -2.0, 0.1)
    assert (thumb.parent, thumb.child, thumb.ratio) == (1, 3, -1.0)  # the chain is resolved
    assert rm.robot_to_yaml(geared) == rm.robot_to_yaml(rm.loops.mimic_to_gears(hand()))
    plain = rm.load("vt18_satellite")
    assert rm.loops.mimic_to_gears(plain) is plain
    taken = rm.loops.add_constraint(
        robot, "right", "rod", "left", "right", length=1.0, active=False
    )
    assert rm.loops.mimic_to_gears(taken).constraints.names == ["right", "right_gear", "thumb"]


@pytest.mark.parametrize("formulation", ["articulated", "newton_euler", "composite"])
def test_the_motion_is_that_of_the_mimic_joints(formulation):
    """v̇ of the palm and of the leader, and that of the followers times their ratios."""
    robot = hand()
    geared = rm.loops.mimic_to_gears(robot)
    q, v = rm.random_state(robot, 5)
    tau = np.cos(np.arange(robot.nv))
    left = q[8]
    full_q = np.concatenate([q, [-2.0 * left + 0.1, -left + 0.05]])
    full_v, full_tau = np.concatenate([v, [-2.0 * v[6], -v[6]]]), np.concatenate([tau, [0.0, 0.0]])
    assert np.max(np.abs(rm.loops.constraint_residual(geared, full_q))) < 1e-14
    vdot = rm.forward_dynamics(robot, q, v, tau)
    found = rm.forward_dynamics(geared, full_q, full_v, full_tau, formulation=formulation)
    expected = np.concatenate([vdot, [-2.0 * vdot[6], -vdot[6]]])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
