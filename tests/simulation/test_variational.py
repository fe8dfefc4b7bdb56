"""The variational midpoint rule: order two, momentum to rounding, energy without drift."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import remora as rm
from numeric import assert_close, configuration_rate
from remora.algebra import pose, quaternion, screw
from remora.algebra.array_ops import concatenate
from remora.errors import RemoraError
from remora.model.joints import kind
from remora.model.state import increment, log_velocity
from remora.simulation.integrators import variational_step

STIFFNESS = 5.0


def spring_forces(robot, q):
    """Springs at all joints but the base, towards zero: they do not turn free joints."""
    parts = []
    for i, joint in enumerate(robot.joints):
        own, row = q[..., joint.q], kind(joint)
        if joint.mimic is not None or row.nv == 0:
            continue
        if i == 0 or joint.kind == "spherical":
            parts.append(np.zeros((*q.shape[:-1], row.nv)))
        elif joint.kind == "free":
            back = quaternion.rotate(quaternion.conjugate(own[..., :4]), pose.translation(own))
            parts.append(concatenate([0.0 * back, -STIFFNESS * back]))
        else:
            parts.append(-STIFFNESS * own)
    return concatenate(parts)


def spring_energy(robot, q):
    total = 0.0
    for joint in robot.joints[1:]:
        own = q[joint.q]
        if joint.kind == "free":
            own = pose.translation(own)
        if joint.kind != "spherical" and joint.mimic is None:
            total += 0.5 * STIFFNESS * own @ own
    return total


class System:
    """A robot moved as a driver moves it: sums that lose nothing."""

    held, loops = (), None

    def __init__(self, robot, q, v, springs=False, push=None):
        self.robot, self.q, self.v, self.t = robot, q, v, 0.0
        self.work, self.rest, self.calls = np.zeros(3), np.zeros_like(q), 0
        self._push, zero = push, np.zeros(robot.nv)
        self._zero = zero
        mimics = any(j.mimic is not None for j in robot.joints)
        formulation = "composite" if mimics else "articulated"
        self._forward = {
            pushed: rm.compile(
                rm.forward_dynamics, robot, arguments=("q", "v", "tau", *["wrenches"] * pushed),
                fixed={"formulation": formulation},
            )
            for pushed in (False, True)[: 1 + (push is not None)]
        }  # fmt: skip
        self._move = rm.compile(increment, robot)
        self._springs = rm.compile(spring_forces, robot) if springs else (lambda q: zero)

    def loads(self, t, q, v):
        self.calls += 1
        if self._push is None:
            return self._zero, self._springs(q), None
        return self._push(t, q, v)

    def rates(self, t, q, v):
        """v, v̇ and powers."""
        tau, passive, wrenches = self.loads(t, q, v)
        if wrenches is None:
            return v, self._forward[False](q, v, tau + passive), [tau @ v, 0.0, passive @ v]
        power = np.sum(screw.power(rm.twists(self.robot, q, v), wrenches))
        return (
            v, self._forward[True](q, v, tau + passive, wrenches), [tau @ v, power, passive @ v]
        )  # fmt: skip

    def arrival(self, u):
        return self.q + (self._move(self.q, u) + self.rest)

    def attempt(self, h):
        n = self.robot.nv
        y = np.concatenate([np.zeros(n), self.v, self.work])
        rate = np.concatenate(self.rates(self.t, self.q, self.v))
        return variational_step.attempt(self, self.t, y, rate, h, np.ones_like(y))

    def step(self, h):
        made, n = self.attempt(h), self.robot.nv
        assert made.error == 0.0
        change = self._move(self.q, made.change[:n].copy()) + self.rest
        total = self.q + change
        self.q, self.rest = total, change - (total - self.q)
        self.v, self.work = self.v + made.change[n : 2 * n], self.work + made.change[2 * n :]
        self.t += h

    def energy(self):
        kinetic = rm.kinetic_energy(self.robot, self.q, self.v)
        return float(kinetic + rm.potential_energy(self.robot, self.q))


def every_kind(gravity=(0.0, 0.0, 0.0)):
    """A free base that carries one joint of each kind, two of them in a row."""
    rng = np.random.default_rng(8)
    builder = rm.Builder("all", gravity=gravity)
    builder.body("bus", mass=8, com=rng.normal(size=3) * 0.1, inertia=(2, 3, 4))
    builder.joint("bus_joint", "free", None, "bus")
    before = "bus"
    for i, (name, row) in enumerate(rm.JOINT_TYPES.items()):
        builder.body(name, mass=1 + 0.1 * i, com=rng.normal(size=3) * 0.2, inertia=(0.3, 0.4, 0.5))
        axes = [rng.normal(size=3) if k < row.axes else None for k in range(2)]
        builder.joint(
            f"{name}_joint", name, before, name, xyz=rng.normal(size=3) * 0.3,
            rpy=rng.normal(size=3), axis=axes[0], axis2=axes[1],
            pitch=0.2 if name == "helical" else 0.0,
        )  # fmt: skip
        before = name if i % 2 == 0 else "bus"
    return builder.build()


ALL = every_kind()


def start(robot, seed=1, speed=0.3):
    """A state near the neutral one."""
    rng = np.random.default_rng(seed)
    q = rm.integrate(robot, rm.neutral(robot), 0.2 * rng.normal(size=robot.nv))
    return q, speed * rng.normal(size=robot.nv)


# Order -------------------------------------------------------------------------------------------


def pushed(robot, seed=5):
    """Loads that depend on time, configuration and velocity; wrenches on all bodies."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, robot.nv))
    f = rng.normal(size=(len(robot.bodies), 6))

    def loads(t, q, v):
        tau = a * math.cos(2.0 * t) + 0.3 * b * q[-1]
        return tau, -0.4 * v - 0.5 * spring_forces(robot, q), f * (1.0 + math.sin(t) + 0.2 * v[0])

    return loads


def reference(system, stop):
    """q, v and work at the end by SciPy's DOP853, on the coordinates themselves."""
    robot, nq, nv = system.robot, system.robot.nq, system.robot.nv

    def rates(t, x):
        q, v = rm.normalize(robot, x[:nq]), x[nq : nq + nv]
        _, vdot, powers = system.rates(t, q, v)
        return np.concatenate([configuration_rate(robot, q, v), vdot, powers])

    x = np.concatenate([system.q, system.v, system.work])
    x = solve_ivp(rates, (0.0, stop), x, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    return rm.normalize(robot, x[:nq]), x[nq : nq + nv], x[nq + nv :]


@pytest.mark.parametrize("loaded", [False, True])
def test_order_two(loaded):
    """With gravity; and with loads that depend on everything, of which work is of order two too."""
    robot = every_kind(gravity=(1.0, -2.0, 3.0))
    push = pushed(robot) if loaded else None
    q, v = start(robot)
    stop, errors = 0.4, []
    exact_q, exact_v, exact_work = reference(System(robot, q, v, push=push), stop)
    for n in (8, 16, 32):
        system = System(robot, q, v, push=push)
        for _ in range(n):
            system.step(stop / n)
        errors.append(
            [
                np.abs(rm.difference(robot, exact_q, system.q)).max(),
                np.abs(system.v - exact_v).max(),
                *np.abs(system.work - exact_work)[: 3 if loaded else 0],
            ]
        )
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders[-1] > 1.8) & (orders[-1] < 2.2)), orders
    assert np.max(errors[-1]) < 0.05


def test_between_the_ends():
    """Zero and the change at the ends, errors of order h² between, and v the velocity of q."""
    robot = ALL
    push = pushed(robot)
    q, v = start(robot)
    n, errors = robot.nv, []
    for h in (0.1, 0.05, 0.025):
        system = System(robot, q, v, push=push)
        made = system.attempt(h)
        x = np.array([0.0, 0.3, 0.5, 1.0])
        y = made.dense(x)
        assert_close(y[0], 0.0 * y[0], 1e-14)
        assert_close(y[-1], made.change, 1e-14)
        exact = reference(system, 0.5 * h)
        errors.append(
            [
                np.abs(rm.difference(robot, exact[0], rm.integrate(robot, q, y[2, :n]))).max(),
                np.abs(v + y[2, n : 2 * n] - exact[1]).max(),
                np.abs(y[2, 2 * n :] - exact[2]).max(),
            ]
        )
        d = 1e-5  # the rate of u between the ends
        u = made.dense(np.array([0.3 - d, 0.3 + d]))[:, :n]
        speeds = log_velocity(robot, y[1, :n], (u[1] - u[0]) / (2.0 * d * h))
        assert_close(v + y[1, n : 2 * n], speeds, 1e-8)
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders[-1] > [2.6, 1.7, 1.7]), orders


# What is kept ------------------------------------------------------------------------------------


def momentum_errors(system, h, steps, every):
    """The largest relative change of linear and angular momentum.

    Relative to the momenta of the bodies, and for the angular one to their lever arms, too.
    """
    robot = system.robot
    momentum = rm.compile(rm.momentum, robot)
    first = momentum(system.q, system.v)
    linear = sum(
        b.mass * np.linalg.norm(xi[3:] + np.cross(xi[:3], b.com))
        for b, xi in zip(robot.bodies, rm.twists(robot, system.q, system.v), strict=True)
    )
    worst = np.zeros(2)
    for k in range(steps):
        system.step(h)
        if k % every == 0 or k == steps - 1:
            off = momentum(system.q, system.v) - first
            reach = np.linalg.norm(rm.center_of_mass(robot, system.q))
            angular = np.linalg.norm(first[3:]) + reach * linear
            sizes = np.linalg.norm(off[:3]) / linear, np.linalg.norm(off[3:]) / angular
            worst = np.maximum(worst, sizes)
    return worst


def test_momentum_of_the_satellite_is_kept_to_rounding():
    robot = rm.load("vt18_satellite")
    system = System(robot, *rm.random_state(robot, 1))
    worst = momentum_errors(system, 0.05, 10_000, 100)
    assert np.all(worst < 3e-14), worst


def test_momentum_is_kept_with_every_kind_of_joint():
    system = System(ALL, *start(ALL), springs=True)
    worst = momentum_errors(system, 0.05, 10_000, 100)
    assert np.all(worst < 6e-14), worst


def runge_kutta(system, h):
    """One step of the classical method on the coordinates."""
    robot, n = system.robot, system.robot.nq

    def rates(x):
        v = x[n:]
        return np.concatenate(
            [configuration_rate(robot, x[:n], v), system.rates(0.0, x[:n].copy(), v.copy())[1]]
        )

    x = np.concatenate([system.q, system.v])
    k1 = rates(x)
    k2 = rates(x + 0.5 * h * k1)
    k3 = rates(x + 0.5 * h * k2)
    k4 = rates(x + h * k3)
    x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    system.q, system.v = rm.normalize(robot, x[:n]), x[n:]


def energies(system, move, steps):
    """The energy, relative to its first value, after each step."""
    kinetic = rm.compile(rm.kinetic_energy, system.robot)
    found = []
    for _ in range(steps):
        energy = float(kinetic(system.q, system.v)) + spring_energy(system.robot, system.q)
        found.append(energy)
        move()
    return np.array(found) / found[0] - 1.0


def test_energy_does_not_drift():
    """Its error swings, no further at the end of a long run than at its start; RK4's grows."""
    h, steps = 0.1, 6000
    system = System(ALL, *start(ALL), springs=True)
    ours = energies(system, lambda: system.step(h), steps)
    first, last = ours[: steps // 10], ours[-steps // 10 :]
    assert np.abs(ours).max() < 2e-3
    assert np.abs(last).max() < 1.5 * np.abs(first).max()
    # The motion is chaotic: where it ends, and with it the mean, depends on the rounding of the
    # processor (below 1e-4 on one, 2e-4 on another). The means differ by less than the swing.
    assert abs(last.mean() - first.mean()) < min(5e-4, np.abs(first).max())
    other = System(ALL, *start(ALL), springs=True)
    theirs = energies(other, lambda: runge_kutta(other, h), steps // 4)
    assert abs(theirs[-100:].mean()) > 2e-3  # four times as much and more, in a quarter of the time


def test_work_balances_the_energy():
    """What loads have done is what the energy has gained, to order two."""
    robot = every_kind(gravity=(1.0, -2.0, 3.0))
    off = []
    for n in (10, 20, 40):
        system = System(robot, *start(robot), push=pushed(robot))
        before = system.energy()
        for _ in range(n):
            system.step(0.4 / n)
        off.append(system.energy() - before - system.work.sum())
        assert np.all(np.abs(system.work) > 0.01)
    orders = np.log2(np.abs(np.array(off[:-1]) / off[1:]))
    assert 1.8 < orders[-1] < 2.2, off


def test_time_can_be_turned_back():
    """A step back by -h undoes a step; many undo many, but for how the motion spreads rounding."""
    robot = every_kind(gravity=(1.0, -2.0, 3.0))
    q, v = start(robot)
    for steps, rtol in ((1, 1e-13), (50, 1e-11)):
        system = System(robot, q, v, springs=True)
        for h in (0.03, -0.03):
            for _ in range(steps):
                system.step(h)
            if h > 0.0:
                assert np.abs(system.v - v).max() > 0.02
        assert np.abs(rm.difference(robot, q, system.q)).max() < rtol
        assert_close(system.v, v, rtol)


def test_a_heavy_top_keeps_what_it_must():
    """A spherical joint with gravity along z: the angular momentum about z, and the energy."""
    robot = (
        rm.Builder("top", gravity=(0, 0, -9.81))
        .body("top", mass=1.0, com=(0, 0, 0.3), inertia=(0.1, 0.1, 0.2))
        .joint("tip", "spherical", None, "top")
        .build()
    )
    q = quaternion.from_axis_angle(np.array([1.0, 0, 0]), np.asarray(0.6))
    system = System(robot, q, np.array([0.2, 0.5, 30.0]))
    first, energy = rm.momentum(robot, system.q, system.v)[5], system.energy()
    worst = np.zeros(2)
    for _ in range(3000):
        system.step(0.01)
        off = rm.momentum(robot, system.q, system.v)[5] / first - 1.0
        worst = np.maximum(worst, np.abs([off, system.energy() / energy - 1.0]))
    assert worst[0] < 2e-14
    assert worst[1] < 2e-3


# Other robots, and refusals ----------------------------------------------------------------------


def test_joints_that_mimic_others():
    builder = rm.Builder("gripper", gravity=(1, 2, -9)).body("bus", mass=10, inertia=(1, 1, 1))
    for name, mimic in (("left", None), ("right", ("left_joint", -1.5, 0.1))):
        builder.body(name, mass=1, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.2))
        builder.joint(
            f"{name}_joint", "revolute", "bus", name, xyz=(0.5, 0, 0), axis=(0, 0.6, 0.8),
            mimic=mimic, rotor_inertia=0.4,
        )  # fmt: skip
    robot = builder.build()
    q, v = rm.random_state(robot, 3)
    ends = []
    for n in (20, 40, 80):
        system = System(robot, q, v)
        for _ in range(n):
            system.step(0.5 / n)
        ends.append(np.concatenate([rm.difference(robot, q, system.q), system.v]))
        assert abs(system.energy() / System(robot, q, v).energy() - 1.0) < 4.0 / n**2
    first, second = np.abs(ends[0] - ends[1]).max(), np.abs(ends[1] - ends[2]).max()
    assert 1.8 < math.log2(first / second) < 2.2


def test_a_robot_at_rest_stays_there():
    robot = rm.load("vt18_satellite")
    q, _ = rm.random_state(robot, 2)
    system = System(robot, q, np.zeros(robot.nv))
    system.step(0.5)
    assert np.all(system.q == q)
    assert np.all(system.v == 0.0)


def test_a_robot_that_cannot_move():
    robot = (
        rm.Builder("stone")
        .body("stone", mass=1, inertia=(1, 1, 1))
        .joint("ground", "fixed", None, "stone")
        .build()
    )

    class Still:
        held, loops = (), None
        q = np.zeros(0)

        def __init__(self):
            self.robot = robot

        def arrival(self, u):
            return self.q

        def loads(self, t, q, v):
            return np.zeros(0), np.zeros(0), None

    made = variational_step.attempt(Still(), 0.0, np.zeros(3), np.zeros(3), 0.1, np.ones(3))
    assert made.error == 0.0
    assert np.all(made.change == 0.0)
    assert made.dense(np.array([0.5])).shape == (1, 3)


def test_held_joints_are_refused():
    robot = rm.load("vt18_satellite")
    system = System(robot, *rm.random_state(robot, 1))
    system.held = ("J1", "J3")
    with pytest.raises(RemoraError, match=r"'J1', 'J3'.*another integrator"):
        system.attempt(0.1)


def test_a_step_far_too_long_has_an_infinite_error():
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 1)
    made = System(robot, q, 30.0 * v).attempt(1.0)
    assert made.error == math.inf
    assert np.all(made.change == 0.0)
    assert np.all(made.dense(np.array([0.0, 0.5])) == 0.0)
