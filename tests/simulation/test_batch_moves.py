"""Moves in batches start where the joints are, and are those of single runs."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.algebra.array_ops import asarray, casadi
from remora.simulation.inputs.moves import Move, through

ROBOT = rm.load("vt18_satellite")
Q, V = rm.neutral(ROBOT), np.zeros(ROBOT.nv)
PHASES = [
    rm.Phase(
        1.0, own_clock=True, locked=["J3"],
        prescribed={"J1": Move.to(0.4, 0.1, 0.9), "J2": Move.through([0.3, 1.0], [0.2, -0.1])},
    ),
    rm.Phase(
        1.0, own_clock=True, locked=["J2"],
        prescribed={"J1": Move.to(0.1, 0.0, 0.6), "J3": Move.sine(0.1, 2.0, -np.pi / 2)},
    ),
]  # fmt: skip


def test_a_batch_moves_as_a_single_run():
    q = Q.copy()
    q[8:11] = 0.1, -0.2, 0.3
    mass = np.array([9.0, 12.0])
    options = {"integrator": "rk4", "step": 0.05, "sample": 0.5}
    batch = rm.simulate_batch(
        ROBOT, q, V, **grouped(True, phases=PHASES, parameters={"body_2.mass": mass}, **options)
    )
    for k in range(2):
        robot = ROBOT.replace_body("body_2", mass=mass[k])
        run = rm.simulate(robot, q, V, **grouped(phases=PHASES, step_to_samples=True, **options))
        last = run.q[-1]
        assert np.abs(batch.q[k, -1] - last).max() < 1e-12
        assert np.abs(batch[k].q[-1] - last).max() < 1e-12


def test_what_is_not_known_before_the_run_is_refused():
    starts = np.tile(Q, (2, 1))
    starts[1, 8] = 0.1
    with pytest.raises(rm.RemoraError, match=r"'J1' in 'phase 1'.*differs from run to run"):
        rm.simulate_batch(ROBOT, starts, V, PHASES, integrator=rm.Integrator(step=0.1))
    free = [rm.Phase(0.5), *PHASES]
    with pytest.raises(rm.RemoraError, match=r"'J1' in 'phase 2'.*not known before the run"):
        rm.simulate_batch(ROBOT, Q, V, free, integrator=rm.Integrator(step=0.1), runs=1)
    turned = rm.Event(lambda t, q, v: q[8] - 0.2, "turned", "next")
    early = [rm.Phase(1.0, prescribed=PHASES[0].prescribed, own_clock=True, events=[turned])]
    with pytest.raises(rm.RemoraError, match=r"'J1' in 'phase 2'.*events that end it"):
        rm.simulate_batch(
            ROBOT, Q, V, [*early, PHASES[1]], integrator=rm.Integrator(step=0.1), runs=1
        )


@pytest.mark.parametrize("t", [-0.5, 0.0, 0.2, 0.5, 0.9, 1.0, 1.5])
def test_a_spline_is_the_same_on_symbols(t):
    motion = through([0.0, 0.5, 1.0], [[0.0, 1.0], [0.3, 0.5], [-0.2, 0.1]])
    symbol = casadi.SX.sym("t")
    made = motion.traced(asarray(symbol).reshape(()))
    column = casadi.vertcat(*[x for part in made for x in part.tolist()])
    found = np.asarray(casadi.Function("f", [symbol], [column])(t)).reshape(3, 2)
    assert np.abs(found[:2] - motion(t)[:2]).max() < 1e-14
    if t not in (0.0, 0.5, 1.0):  # where the acceleration jumps, or is taken from the other side
        assert np.abs(found[2] - motion(t)[2]).max() < 1e-12
