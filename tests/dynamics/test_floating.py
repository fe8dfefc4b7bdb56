"""A base that floats: generalized Jacobian, floating inverse dynamics, centroidal quantities."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion
from remora.errors import RemoraError
from trees import Case

FORWARD = [name for name, row in rm.dynamics.FORMULATIONS.items() if row.hybrid is not None]


@pytest.mark.parametrize("seed", [0, 8, 16])
def test_generalized_jacobian_rate_by_differentiation(seed):
    c = Case(seed, largest=7, base="free")
    robot, q, v = c.state
    target = len(robot.bodies) - 1
    rate = rate_along_motion(
        robot, lambda q, v: rm.generalized_jacobian(robot, q, target, (0.1, 0.2, 0.3)), q, v, 0 * v
    )
    assert_close(
        rm.dynamics.generalized_jacobian_rate(robot, q, v, target, (0.1, 0.2, 0.3)),
        rate,
        rtol=1e-11,
    )


@pytest.mark.parametrize("seed", range(8))
def test_floating_inverse_dynamics_is_inverse_dynamics_with_a_free_base(seed):
    c = Case(seed, largest=10)
    robot, q, v = c.state
    base = robot.joints[0].v.stop
    if base == 0:
        with pytest.raises(RemoraError, match="use inverse_dynamics"):
            rm.dynamics.floating_inverse_dynamics(robot, q, v, c.vdot)
        return
    tau, vdot0 = rm.dynamics.floating_inverse_dynamics(robot, q, v, c.vdot[base:], c.wrenches)
    whole = np.concatenate([vdot0, c.vdot[base:]])
    back = rm.inverse_dynamics(robot, q, v, whole, c.wrenches)
    assert_close(back, np.concatenate([np.zeros(base), tau]), rtol=1e-11)


def test_centroidal_quantities():
    c = Case(0, largest=9, base="free")
    robot, q, v = c.state
    h = rm.dynamics.centroidal_momentum(robot, q, v)
    assert_close(rm.dynamics.centroidal_momentum_matrix(robot, q) @ v, h)
    com = rm.center_of_mass(robot, q)
    assert_close(h[3:], rm.momentum(robot, q, v)[3:] - np.cross(com, h[:3]))
    # all joints locked, the base spinning: angular momentum is the locked inertia times ω
    spin = np.zeros(robot.nv)
    spin[:3] = [0.3, -0.2, 0.5]
    omega = rm.algebra.quaternion.rotate(rm.poses(robot, q)[0, :4], spin[:3])
    assert_close(
        rm.dynamics.centroidal_momentum(robot, q, spin)[3:],
        rm.dynamics.locked_inertia(robot, q) @ omega,
    )
