"""What cannot be solved is refused by the reference and by kernels alike."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import linear
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.errors import InvalidValue


def light(mass, arm=1e6):
    """A free base of some mass that carries a heavy arm."""
    b = rm.Builder("light")
    b.body("base", mass=mass, com=(0, 0, 0), inertia=np.full(3, mass))
    b.joint("root", "free", None, "base")
    b.body("arm", mass=arm, com=(0.3, 0.2, 0.1), inertia=np.full(3, arm))
    b.joint("elbow", "revolute", "base", "arm", xyz=(0.1, 0.2, 0.3), axis=(0.0, 0.6, 0.8))
    return b.build()


SOLVERS = {
    "articulated": (rm.forward_dynamics, {"formulation": "articulated"}),
    "composite": (rm.forward_dynamics, {"formulation": "composite"}),
    "newton_euler": (rm.forward_dynamics, {"formulation": "newton_euler"}),
    "decoupled": (rm.forward_dynamics, {"formulation": "decoupled"}),
    "derivatives": (rm.dynamics.forward_dynamics_derivatives, {}),
}


def verdict(call):
    """Return whether something is found, and what."""
    try:
        found = call()
    except InvalidValue:
        return False, None
    parts = found if isinstance(found, tuple) else (found,)
    return all(np.isfinite(x).all() for x in parts), parts


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mass", [1e-12, 1e-3, 1.0])
def test_the_kernel_has_the_verdict_of_the_reference(mass, solver):
    robot, (function, fixed) = light(mass), SOLVERS[solver]
    kernel = rm.compile(function, robot, fixed=fixed)
    for seed in range(5):
        q, v = rm.random_state(robot, seed)
        state = q, v, np.ones(robot.nv)
        expected, _ = verdict(lambda state=state: function(robot, *state, **fixed))
        alone, _ = verdict(lambda state=state: kernel(*state))
        shared, _ = verdict(lambda state=state: tuple(x[1] for x in both(kernel, state)))
        assert alone == shared == expected


def both(kernel, state):
    """Return results of a batch of two."""
    results = kernel(*(np.stack([x, x]) for x in state))
    return results if isinstance(results, tuple) else (results,)


def test_a_base_of_next_to_nothing_is_refused():
    robot = light(1e-12)
    q, v = rm.random_state(robot, 0)
    with pytest.raises(InvalidValue, match="'root'"):
        rm.forward_dynamics(robot, q, v, np.ones(robot.nv))
    result = rm.compile(rm.forward_dynamics, robot)(q, v, np.ones(robot.nv))
    assert not np.isfinite(result).all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of steps that fail
def test_simulations_refuse_it():
    robot = light(1e-12)
    q, v = rm.random_state(robot, 0)
    with pytest.raises(rm.errors.SimulationError):
        rm.simulate(
            robot, q, v, duration=0.1, torque=np.ones(robot.nv), record=rm.Record(progress=False)
        )
    batch = rm.simulate_batch(
        robot,
        q,
        v,
        0.1,
        integrator=rm.Integrator(step=0.05),
        torque=np.ones(robot.nv),
        record=rm.Record(failures="keep", progress=False),
    )
    assert not batch.ok.any()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_compiled_solutions_of_singular_systems_are_not_finite(n):
    kernel = Kernel(linear.solve, [Signature("A", (n, n)), Signature("B", (n, 1))], "solve")
    A = np.eye(n) + 0.1
    b = np.ones((n, 1))
    np.testing.assert_allclose(kernel(A, b), np.linalg.solve(A, b), rtol=1e-12)
    for bad in (np.zeros((n, n)), np.full((n, n), np.nan), A * np.r_[0.0, np.ones(n - 1)]):
        assert not np.isfinite(kernel(bad, b)).all()
        with pytest.raises(InvalidValue, match="singular"):
            linear.solve(bad, b)


def test_nan_goes_in_and_comes_out():
    robot = light(1.0)
    q, v = rm.random_state(robot, 0)
    q[-1] = np.nan
    assert np.isnan(rm.compile(rm.forward_dynamics, robot)(q, v, np.ones(robot.nv))).any()


def test_what_is_singular_whatever_the_state_is_refused_when_it_is_compiled():
    def function(x):
        return linear.solve(np.zeros((2, 2)) + 0.0 * x[..., :1, None], np.eye(2))

    with pytest.raises(InvalidValue, match="singular"):
        Kernel(function, [Signature("x", (2,))], "nothing")
