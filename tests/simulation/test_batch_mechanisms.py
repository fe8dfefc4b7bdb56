"""Batches of closed mechanisms: mimic joints in a loop."""

import numpy as np

import remora as rm
from flat_captures import close


def gripper():
    """Return a floating gripper whose right finger mimics the left one, joined by a rod."""
    make = rm.Builder("gripper").body("palm", mass=3.0, inertia=(0.2, 0.3, 0.4))
    make.joint("base", "free", None, "palm")
    for name, side in (("left", 1.0), ("right", -1.0)):
        make.body(name, mass=0.4, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.02))
        mimic = {} if side > 0.0 else {"mimic": ("left", -1.0, 0.0)}
        make.joint(
            name, "revolute", "palm", name, xyz=(0.2, 0.1 * side, 0), axis=(0, 0, 1), **mimic
        )
    make.body("slider", mass=0.5, inertia=(0.01, 0.01, 0.01))
    make.joint("slider", "prismatic", "palm", "slider", axis=(1, 0, 0))
    make.rod("link", "slider", "left", 0.3, child_xyz=(0.15, 0, 0))
    return make.build()


def compared(robot, runs, step, tolerance):
    """Return a batch from random consistent states, compared with its last run alone."""
    rng, states = np.random.default_rng(0), []
    for _ in range(runs):
        q = rm.neutral(robot)
        states.append(rm.close_loops(robot, q, 0.1 * rng.normal(size=robot.nv)))
    q, v = (np.array(part) for part in zip(*states, strict=True))
    batch = rm.simulate_batch(
        robot, q, v, 10 * step, integrator=rm.Integrator(step=step), record=5 * step
    )
    assert batch.ok.all()
    h = batch.evaluate(rm.momentum)
    assert np.abs(h - h[:, :1]).max() < tolerance * np.abs(h).max()
    assert np.abs(rm.loops.constraint_residual(robot, batch.q)).max() < 1e-13
    G = rm.loops.constraint_jacobian(robot, batch.q)
    assert np.abs(np.einsum("...ij,...j->...i", G, batch.v)).max() < 1e-12
    run = batch[runs - 1]
    assert close(batch.q[-1, -1], run.q[-1])
    assert close(batch.v[-1, -1], run.v[-1])
    return batch


def test_a_mimic_joint_in_a_loop_moves_in_batches_as_alone():
    compared(gripper(), 3, 0.02, 1e-12)
