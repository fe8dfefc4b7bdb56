"""VT18, section 4: figures 5 and 6 as facts, and the same motion by Pinocchio and by MuJoCo.

The peers also move a branched robot with revolute, prismatic and spherical joints.
"""

import importlib.util
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import simpson, solve_ivp

import remora as rm
from peers import mujoco_model, pinocchio_model
from plain_settings import grouped
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion, screw
from remora.dynamics.joint_arrays import LoadedState
from remora.dynamics.maximal.newton_euler import system

TIGHT = {"rtol": 2.22e-14, "atol": 1e-14}


@dataclass(frozen=True)
class Case:
    """A robot that starts from rest and gets pulses size · sin(t - start)."""

    robot: rm.Robot
    pulses: tuple  # (joint, start, stop, size), s and N m or N
    duration: float
    angles: tuple = ()  # (joint, rad), where not zero

    @cached_property
    def start(self):
        q = rm.neutral(self.robot)
        for name, angle in self.angles:
            q[self.robot.joints[name].q] = angle
        return q, np.zeros(self.robot.nv)

    @cached_property
    def torque(self):
        return {
            name: rm.Pulse(a, b, lambda t, a=a, size=size: np.multiply(size, np.sin(t - a)))
            for name, a, b, size in self.pulses
        }

    @cached_property
    def segments(self):
        """Intervals within which the torque is smooth, and the torque there as tau(t)."""
        times = sorted({0.0, self.duration, *(float(t) for p in self.pulses for t in p[1:3])})
        return [(a, b, self.tau(a, b)) for a, b in pairwise(times)]

    def tau(self, start, stop):
        acting = [p for p in self.pulses if p[1] <= start and stop <= p[2]]

        def at(t):
            tau = np.zeros(self.robot.nv)
            for name, a, _, size in acting:
                tau[self.robot.joints[name].v] = np.multiply(size, np.sin(t - a))
            return tau

        return at if acting else None

    def run(self, integrator="dop853", formulation="articulated", **options):
        return rm.simulate(
            self.robot,
            *self.start,
            self.duration,
            **grouped(
                torque=self.torque,
                limits="ignore",
                integrator=integrator,
                formulation=formulation,
                **TIGHT,
                **options,
            ),
        )

    def end(self):
        run = self.run()
        return run.q[-1], run.v[-1]


SATELLITE = Case(
    rm.load("vt18_satellite"),
    (("J1", 2, 5, 0.5), ("J2", 10, 12, 0.5), ("J3", 20, 22, 0.5)),  # eqs. 77, 78
    70.0,
)
TWO_ARM = Case(
    rm.load("vt18_two_arm"),
    (
        ("J1", 1, 3, 0.1), ("J2", 1, 3, 0.08), ("J3", 2, 3, 0.02), ("J7", 1, 3, -0.05),
        ("J5", 2, 3, (4e-4, -6e-4, 5e-4)), ("J8", 5, 6, 0.02), ("J9", 5, 6, 0.01),
        ("J10", 5, 7, (-2e-4, 3e-4, 4e-4)),
    ),
    12.0,
    (("J2", 0.5), ("J4", -0.9), ("J7", -0.4), ("J9", 0.8)),
)  # fmt: skip
FORMULATIONS = ("newton_euler", "decoupled", "articulated")
RUNS = list(product(("dopri5", "dop853"), FORMULATIONS))
KEPT = ("center_of_mass", "linear_momentum", "angular_momentum")


@cache
def satellite(integrator, formulation):
    return SATELLITE.run(integrator, formulation)


def largest(kept):
    """Largest relative drift of what nothing outside changes."""
    return max(getattr(kept, name).relative for name in KEPT)


def apart(robot, one, other):
    """Largest difference of two states, of q in its tangent space and of v."""
    moved = np.abs(rm.difference(robot, one[0], other[0])).max()
    return max(moved, np.abs(one[1] - other[1]).max())


# Figures 5 and 6 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("integrator", "formulation"), RUNS)
def test_drift_of_centre_of_mass_and_momentum(integrator, formulation):
    run = satellite(integrator, formulation)
    kept = run.conservation()
    assert run.t[-1] == 70.0
    assert largest(kept) < 1e-13
    assert kept.linear_momentum.scale == pytest.approx(0.92061, rel=1e-4)
    assert kept.angular_momentum.scale == pytest.approx(5.691, rel=1e-3)
    assert kept.center_of_mass.scale == pytest.approx(4.02244, rel=1e-4)
    assert kept.quaternion < 1e-15
    assert kept.dual_quaternion < 1e-15


@pytest.mark.parametrize(("integrator", "formulation"), RUNS)
def test_kinetic_energy_is_constant_between_pulses_and_equals_the_work(integrator, formulation):
    run = satellite(integrator, formulation)
    energy = run.kinetic_energy
    assert not np.any(energy[run.t <= 2.0])
    for start, stop, level in (
        (5, 10, 0.0188217734),
        (12, 20, 0.0361905882),
        (22, 70, 0.0464686295),
    ):
        part = energy[(run.t >= start) & (run.t <= stop)]
        assert np.ptp(part) < 1e-12 * part[0]
        assert part[0] == pytest.approx(level, rel=1e-8)
    assert np.abs(energy - run.work[:, 0]).max() < 2e-12 * energy[-1]
    assert not np.any(run.work[:, 1:])


def test_work_is_torque_times_speed():
    """By Simpson's rule over the speeds at 601 times of each pulse."""
    times = {name: np.linspace(a, b, 601) for name, a, b, _ in SATELLITE.pulses}
    run = SATELLITE.run(sample=np.concatenate(list(times.values())), step_to_samples=True)
    total = 0.0
    for name, ts in times.items():
        at = np.searchsorted(run.t, ts)
        assert np.array_equal(run.t[at], ts)
        total += simpson(0.5 * np.sin(ts - ts[0]) * run.joint(name).v[at].reshape(-1), x=ts)
    assert run.work[-1, 0] == pytest.approx(total, rel=1e-9)
    assert run.kinetic_energy[-1] == pytest.approx(total, rel=1e-9)


def test_condition_number_of_s():
    """S is 47 by 47: four bodies of eight components, three joints of five reactions."""
    run = satellite("dopri5", "newton_euler")
    states = zip(run.q[::20], run.v[::20], run.tau[::20], strict=True)
    matrices = [system(SATELLITE.robot, LoadedState(*state)).dense()[0] for state in states]
    found = np.linalg.cond(np.array(matrices))
    assert matrices[0].shape == (47, 47)
    assert found[0] == pytest.approx(891.80047, rel=1e-7)
    assert 756.0 < found.min() < 758.0
    assert found.max() < 891.9


@pytest.mark.parametrize(("integrator", "formulation"), RUNS)
def test_formulations_and_integrators_end_at_the_same_angles(integrator, formulation):
    run, reference = satellite(integrator, formulation), satellite("dop853", "articulated")
    assert np.abs(run.q[-1] - reference.q[-1]).max() < 1e-11
    assert np.abs(run.v[-1] - reference.v[-1]).max() < 1e-13
    assert np.degrees(run.q[-1, 8:]) == pytest.approx([222.718295, -14.593557, 133.944077])


@pytest.mark.parametrize("formulation", ["newton_euler", "decoupled"])
def test_every_bodys_velocity_as_a_state(formulation):
    """As Algorithm 1 has it: x = (q_{1/I}, Γ, y), by SciPy's RK45, the formulas of ode45.

    y holds the twists of the bodies about their centres of mass for `newton_euler`; for
    `decoupled` their angular velocities and, in inertial axes, the velocities of the centres.
    """
    robot, body_axes = SATELLITE.robot, formulation == "newton_euler"
    to_com = np.array([pose.from_translation(body.com) for body in robot.bodies])
    mass = np.array([body.mass for body in robot.bodies])[:, None]
    inertia = np.array([body.inertia for body in robot.bodies])
    fast = rm.compile(robot)
    forward = rm.compile(rm.forward_dynamics, robot, fixed={"formulation": formulation})

    def at_com(x):
        """Return q, the bodies' attitudes, and their twists about the centres of mass."""
        q, y = rm.normalize(robot, x[:11]), x[11:].reshape(4, 6)
        r = fast.poses(q)[:, :4]
        v = y[:, 3:] if body_axes else quaternion.rotate(quaternion.conjugate(r), y[:, 3:])
        return q, r, np.concatenate([y[:, :3], v], axis=1)

    def rate(t, x, tau):
        q, r, own = at_com(x)
        v = fast.joint_speeds(q, screw.adjoint(to_com, own))  # eq. 47
        vdot = forward(q, v, np.zeros(9) if tau is None else tau(t))
        ydot = screw.adjoint_inverse(to_com, fast.accelerations(q, v, vdot))
        if not body_axes:
            ydot[:, 3:] = quaternion.rotate(r, ydot[:, 3:] + np.cross(own[:, :3], own[:, 3:]))
        qdot = np.concatenate([0.5 * dq.mul(q[:8], dq.pure(v[:6])), v[6:]])
        return np.concatenate([qdot, ydot.reshape(-1)])

    def drift(x):
        q, r, own = at_com(x)
        P = quaternion.rotate(r, mass * own[:, 3:])
        spin = quaternion.rotate(r, np.einsum("bij,bj->bi", inertia, own[:, :3]))
        places = pose.translation(dq.mul(fast.poses(q), to_com))
        L = spin + np.cross(places, P)
        away = fast.center_of_mass(q) - fast.center_of_mass(SATELLITE.start[0])
        return [np.linalg.norm(u) for u in (away, P.sum(axis=0), L.sum(axis=0))]

    x, drifts = np.concatenate([SATELLITE.start[0], np.zeros(24)]), []
    for a, b, tau in SATELLITE.segments:
        solution = solve_ivp(rate, (a, b), x, "RK45", args=(tau,), rtol=2.23e-14, atol=1e-14)
        drifts += [drift(x) for x in solution.y.T[::5]]
        x = solution.y[:, -1]
    found = np.max(drifts, axis=0)
    assert np.all(found < (1e-13, 5e-13, 2e-12))  # m, N s, N m s
    assert x[8:11] == pytest.approx(SATELLITE.end()[0][8:], abs=1e-11)


def test_the_state_decides_what_drifts():
    """docs/pictures/vt18_drift.py at a coarse tolerance, where truncation stands out of rounding.

    Runge-Kutta methods keep linear invariants: with velocities in inertial axes that is the linear
    momentum, whatever the formulation; a dual velocity is in body axes, where it drifts.
    """
    path = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "vt18_drift.py"
    spec = importlib.util.spec_from_file_location("vt18_drift", path)
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    study.RTOL = study.ATOL = 1e-7
    q, _ = rm.random_state(SATELLITE.robot, 0)
    found = {name: study.drifts(name, q)[0] for name in study.STATES}
    dual, body = found["VT18"], found["decoupled joints, body axes"]
    for name in ("decoupled joints", "decoupled"):
        assert found[name][1] < 1e-14 < 1e-8 < dual[1]
    assert found["decoupled"][0] < 1e-14 < 1e-8 < dual[0]  # r_i is linear, too
    assert body == pytest.approx(dual, rel=1e-5)  # the same state: the same truncation error


# Peers --------------------------------------------------------------------------------------------


def by_pinocchio(case):
    """The final state by Pinocchio's ABA in SciPy's DOP853, in Pinocchio's own coordinates."""
    pin = pytest.importorskip("pinocchio")
    model, _, _ = pinocchio_model(case.robot)
    data, layout = model.createData(), rm.layouts.pinocchio(case.robot, model)

    def coordinate_rates(q, v):
        for joint in model.joints.tolist()[1:]:
            x, u = q[joint.idx_q :][: joint.nq], v[joint.idx_v :][: joint.nv]
            if joint.nq == joint.nv:
                yield u
                continue
            if joint.nv == 6:
                yield pin.Quaternion(x[3:]).toRotationMatrix() @ u[:3]
            xyz, w, omega = x[-4:-1], x[-1], u[-3:]
            yield 0.5 * np.append(w * omega + np.cross(xyz, omega), -xyz @ omega)

    def rate(t, x, tau):
        q, v = pin.normalize(model, x[: model.nq]), x[model.nq :]
        force = np.zeros(model.nv) if tau is None else layout.tau_to(layout.q_from(q), tau(t))
        vdot = pin.aba(model, data, q, v, force)
        return np.concatenate([*coordinate_rates(q, v), vdot])

    q, v = case.start
    x = np.concatenate([layout.q_to(q), layout.v_to(q, v)])
    for a, b, tau in case.segments:
        solution = solve_ivp(rate, (a, b), x, "DOP853", args=(tau,), rtol=1e-13, atol=1e-14)
        x = solution.y[:, -1]
    q = layout.q_from(pin.normalize(model, x[: model.nq]))
    return q, layout.v_from(q, x[model.nq :])


def by_mujoco(case, step):
    """The final state by MuJoCo's RK4."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco_model(case.robot)
    model.opt.timestep, model.opt.integrator = step, mujoco.mjtIntegrator.mjINT_RK4
    data, layout = mujoco.MjData(model), rm.layouts.mujoco(case.robot, model)
    q, v = case.start
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)

    def push(tau):
        def control(_, data):  # at every stage; nothing drives the base, so tau is ordered alike
            data.qfrc_applied[:] = tau(data.time)

        return control

    for a, b, tau in case.segments:
        data.time, data.qfrc_applied[:] = a, 0.0
        mujoco.set_mjcb_control(None if tau is None else push(tau))
        try:
            mujoco.mj_step(model, data, nstep=round((b - a) / step))
        finally:
            mujoco.set_mjcb_control(None)
    q = layout.q_from(np.array(data.qpos))
    return q, layout.v_from(q, np.array(data.qvel))


CASES = pytest.mark.parametrize("case", [SATELLITE, TWO_ARM], ids=lambda case: case.robot.name)


@CASES
def test_pinocchio_moves_it_the_same_way(case):
    assert apart(case.robot, case.end(), by_pinocchio(case)) < 1e-11


@CASES
def test_mujoco_comes_closer_with_the_fourth_power_of_its_step(case):
    ours = case.end()
    coarse, fine = (by_mujoco(case, step) for step in (0.04, 0.02))
    errors = [apart(case.robot, ours, theirs) for theirs in (coarse, fine)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.05)
    assert 1e-10 < errors[1] < 1e-9
    # what halving the step says about the rest
    left = rm.difference(case.robot, coarse[0], fine[0]) / 15.0
    better = rm.integrate(case.robot, fine[0], left), fine[1] + (fine[1] - coarse[1]) / 15.0
    assert apart(case.robot, ours, better) < 1e-11
    for step in (1e-3, 5e-4):  # the method's error is below 1e-14: what is left is rounding
        assert apart(case.robot, ours, by_mujoco(case, step)) < 2e-11


def test_a_branched_robot_keeps_momentum_and_energy():
    kept = {name: TWO_ARM.run(formulation=name).conservation() for name in FORMULATIONS}
    for found in kept.values():
        assert largest(found) < 2e-13
        assert found.energy.relative < 1e-12
    assert largest(kept["articulated"]) < 3e-14
