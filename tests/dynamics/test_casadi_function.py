"""CasADi functions of a robot: the same values, and exact derivatives of any order."""

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close

ROBOT = rm.random_robot(4, bodies=4)
Q, V = rm.random_state(ROBOT, 3)
TAU = np.random.default_rng(5).normal(size=ROBOT.nv)


def dense(x):
    return np.array(casadi.DM(x))


@pytest.mark.parametrize(
    ("function", "arguments", "options"),
    [
        (rm.forward_dynamics, (Q, V, TAU), {}),
        (rm.inverse_dynamics, (Q, V, TAU), {}),
        (rm.mass_matrix, (Q,), {}),
        (rm.momentum, (Q, V), {}),
        (rm.integrate, (Q, V), {}),
        (rm.poses, (Q,), {}),
        (rm.frame_pose, (Q,), {"fixed": {"frame": 2}}),
        (rm.kinetic_energy, (Q, V), {}),
    ],
)
def test_it_has_the_values_of_the_function(function, arguments, options):
    made = rm.dynamics.casadi_function(function, ROBOT, **options)
    expected = np.asarray(function(ROBOT, *arguments, **options.get("fixed", {})))
    found = dense(made(*arguments))
    shape = expected.shape if expected.ndim == 2 else (expected.size, 1)
    assert found.shape == shape
    assert_close(found, expected.reshape(shape))
    assert made.name() == function.__name__


def test_matrices_and_arrays_of_more_axes_are_written_row_by_row():
    made = rm.dynamics.casadi_function(rm.dynamics.mass_matrix_partials, ROBOT)
    expected = rm.dynamics.mass_matrix_partials(ROBOT, Q)
    assert_close(dense(made(Q)), expected.reshape(ROBOT.nv, -1))
    wrenches = np.random.default_rng(1).normal(size=(4, 6))
    pushed = rm.dynamics.casadi_function(
        rm.forward_dynamics, ROBOT, arguments=("q", "v", "tau", "wrenches")
    )
    assert pushed.size_in(3) == (4, 6)
    expected = rm.forward_dynamics(ROBOT, Q, V, TAU, wrenches)
    assert_close(dense(pushed(Q, V, TAU, wrenches))[:, 0], expected)


def test_several_results_and_parameters_of_the_robot():
    made = rm.dynamics.casadi_function(
        rm.dynamics.forward_dynamics_derivatives, ROBOT, parameters=("mass",)
    )
    masses = np.array([body.mass for body in ROBOT.bodies])
    heavier = 1.1 * masses
    robot = ROBOT
    for body, mass in zip(ROBOT.bodies, heavier, strict=True):
        robot = robot.replace_body(body.name, mass=float(mass))
    expected = rm.dynamics.forward_dynamics_derivatives(robot, Q, V, TAU)
    for found, own in zip(made(Q, V, TAU, heavier), expected, strict=True):
        assert_close(dense(found), own)


def test_first_derivatives_are_those_along_the_tangent():
    """∂v̇/∂q of the library is along `rm.integrate`; CasADi's is by components."""
    made = rm.dynamics.casadi_function(rm.forward_dynamics, ROBOT)
    move = rm.dynamics.casadi_function(rm.integrate, ROBOT)
    dq, v, tau = (casadi.MX.sym(n, ROBOT.nv) for n in ("dq", "v", "tau"))
    vdot = made(move(Q, dq), v, tau)
    slopes = casadi.Function(
        "slopes", [dq, v, tau], [casadi.jacobian(vdot, x) for x in (dq, v, tau)]
    )
    expected = rm.dynamics.forward_dynamics_derivatives(ROBOT, Q, V, TAU)
    for found, own in zip(slopes(np.zeros(ROBOT.nv), V, TAU), expected, strict=True):
        assert_close(dense(found), own, rtol=1e-9)


def test_second_derivatives_are_those_of_the_first():
    made = rm.dynamics.casadi_function(rm.kinetic_energy, ROBOT)
    q, v = casadi.MX.sym("q", ROBOT.nq), casadi.MX.sym("v", ROBOT.nv)
    hessian = casadi.Function("H", [q, v], [casadi.hessian(made(q, v), v)[0]])
    assert_close(dense(hessian(Q, V)), rm.mass_matrix(ROBOT, Q))


def test_at_rest_and_at_the_same_place_nothing_is_nan():
    move, apart = (
        rm.dynamics.casadi_function(rm.integrate, ROBOT),
        rm.dynamics.casadi_function(rm.difference, ROBOT),
    )
    x = casadi.MX.sym("x", ROBOT.nv)
    there = apart(Q, move(Q, x))
    slope = casadi.Function("s", [x], [casadi.jacobian(there, x)])
    assert_close(dense(slope(np.zeros(ROBOT.nv))), np.eye(ROBOT.nv))
    second = casadi.Function("t", [x], [casadi.jacobian(casadi.jacobian(there, x), x)])
    assert np.all(np.isfinite(dense(second(np.zeros(ROBOT.nv)))))


def test_your_own_function_and_a_lambda():
    def speed(robot, q, v, wanted):
        return np.sum((v - wanted) ** 2, axis=-1)

    made = rm.dynamics.casadi_function(speed, ROBOT, shapes={"wanted": (ROBOT.nv,)})
    assert float(made(Q, V, 0 * V)) == pytest.approx(float(V @ V))
    short = rm.dynamics.casadi_function(lambda robot, q: 2.0 * q, ROBOT)
    assert_close(dense(short(Q))[:, 0], 2.0 * Q)


def test_refusals():
    with pytest.raises(rm.RemoraError, match="takes a function first, not a robot"):
        rm.dynamics.casadi_function(ROBOT, ROBOT)
    with pytest.raises(rm.RemoraError, match="the robot is missing"):
        rm.dynamics.casadi_function(rm.forward_dynamics, None)
    with pytest.raises(rm.RemoraError, match="needs frame when it is compiled"):
        rm.dynamics.casadi_function(rm.frame_pose, ROBOT)
    with pytest.raises(rm.errors.UnknownName, match="no parameter of forward_dynamics named 'x'"):
        rm.dynamics.casadi_function(rm.forward_dynamics, ROBOT, arguments=("q", "v", "tau", "x"))
    with pytest.raises(rm.RemoraError, match="the shape of the argument 'w'"):
        rm.dynamics.casadi_function(lambda robot, q, w: q, ROBOT)
    with pytest.raises(rm.RemoraError, match=r"float|number of a symbol"):
        rm.dynamics.casadi_function(lambda robot, q: q * float(q[0]), ROBOT)
    with pytest.raises(rm.RemoraError, match="NaN for all"):
        rm.dynamics.casadi_function(lambda robot, q: q * np.nan, ROBOT)
