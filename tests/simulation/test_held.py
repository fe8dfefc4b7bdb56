"""Joints that follow a motion or are locked, and what their drives give for it."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.simulation.inputs.moves import Move

VT18 = rm.load("vt18_satellite")
Q, V = rm.neutral(VT18), np.zeros(9)


def apart(a, b):
    dq = np.abs(rm.difference(a.robot, a.q[-1], b.q[-1])).max()
    return max(dq, np.abs(a.v[-1] - b.v[-1]).max())


def swing(t):
    return 0.4 * (1.0 - np.cos(0.7 * t))


def test_moves_have_the_rates_of_their_positions():
    """Differences of q and v; of a quintic from rest to rest, and of a sine."""
    move, h = rm.Motion.between(1.0, 4.0, 0.2, -0.7), 1e-5
    wave = Move.sine(0.3, 2.0, 0.7).begin(np.array([0.4]))
    assert wave(0.0)[0] == pytest.approx([0.4])
    assert wave(np.pi / 4 - 0.35)[0] == pytest.approx([0.7 - 0.3 * np.sin(0.7)])
    for motion in (move, wave):
        for t in (0.5, 1.0, 1.8, 2.5, 3.3, 4.0, 5.0):
            before, now, after = (motion(t + s) for s in (-h, 0.0, h))
            assert np.allclose(now[1], (after[0] - before[0]) / (2 * h), atol=1e-9)
            assert np.allclose(now[2], (after[1] - before[1]) / (2 * h), atol=2e-5)
    assert np.allclose([move(1.0)[0], move(2.5)[0], move(4.0)[0]], [[0.2], [-0.25], [-0.7]])


def test_a_prescribed_joint_is_where_it_should_be_and_momentum_stays():
    run = rm.simulate(
        VT18, Q, V, 10.0, prescribed={"J2": swing}, integrator=rm.Integrator(rtol=1e-12, atol=1e-13)
    )
    t = run.t
    assert np.abs(run.joint("J2").q - 0.4 * (1 - np.cos(0.7 * t))).max() < 1e-14
    assert np.abs(run.joint("J2").v - 0.28 * np.sin(0.7 * t)).max() < 1e-14
    assert np.abs(run.joint("J2").vdot - 0.196 * np.cos(0.7 * t)).max() < 1e-12
    found = run.conservation()
    assert found.linear_momentum.relative < 1e-11
    assert found.angular_momentum.relative < 1e-11
    assert found.energy.relative < 1e-10
    assert np.abs(run.joint("J2").torque).max() > 0.1


@pytest.mark.parametrize("formulation", ["articulated", "composite", "newton_euler", "decoupled"])
def test_replayed_with_the_recorded_actuation_the_run_is_the_same(formulation):
    """The recorded torque, as a profile through closely spaced samples, makes the same motion."""
    first = rm.simulate(
        VT18,
        Q,
        V,
        3.0,
        prescribed={"J2": swing},
        locked=["J3"],
        record=0.01,
        integrator=rm.Integrator(step_to_samples=True, rtol=1e-12),
        physics=rm.Physics(formulation=formulation),
    )
    profile = rm.Profile(first.t, first.tau, kind="cubic")
    again = rm.simulate(
        VT18, Q, V, 3.0, torque=profile, integrator=rm.Integrator(rtol=1e-12), record=0.01
    )
    assert (
        np.abs(first.joint("J2").q - again.joint("J2").q).max() < 2e-7
    )  # the profile's own error: h^3/..
    # without a profile between: inverse dynamics of the prescribed motion is the torque exactly
    for k in range(0, len(first), 37):
        tau = rm.inverse_dynamics(VT18, first.q[k], first.v[k], first.vdot[k])
        assert np.abs(tau - first.tau[k]).max() < 1e-11


def test_the_error_of_the_replay_is_that_of_the_profile():
    errors = []
    for interval in (0.1, 0.05, 0.025):
        first = rm.simulate(
            VT18,
            Q,
            V,
            2.0,
            prescribed={"J2": swing},
            record=interval,
            integrator=rm.Integrator(step_to_samples=True, rtol=1e-12),
        )
        profile = rm.Profile(first.t, first.tau, kind="linear")
        again = rm.simulate(VT18, Q, V, 2.0, torque=profile, integrator=rm.Integrator(rtol=1e-12))
        errors.append(apart(first, again))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.2)


def test_a_locked_joint_stays_and_the_robot_moves_as_if_it_were_welded():
    rng = np.random.default_rng(3)
    q, v = Q.copy(), rng.normal(size=9) * 0.2
    q[9], v[7] = 0.6, 0.0
    run = rm.simulate(VT18, q, v, 5.0, locked=["J2"], integrator=rm.Integrator(rtol=1e-12))
    assert np.abs(run.joint("J2").q - 0.6).max() == 0.0
    welded = (
        rm.Builder("welded")
        .body("body_1", mass=10, inertia=(50, 50, 50))
        .joint("base", "free", None, "body_1")
        .body("body_2", mass=5, com=(0, 0, 1.5), inertia=(2, 2, 1))
        .joint("J1", "revolute", "body_1", "body_2", xyz=(0, 0, 2), axis=(0, 0, 1))
        .body("body_3", mass=5, com=(1.5, 0, 0), inertia=(1, 2, 2))
        .joint("J2", "fixed", "body_2", "body_3", xyz=(0, 0, 3), rpy=(np.pi / 2, 0, 0.0))
        .body("body_4", mass=5, com=(1.5, 0, 0), inertia=(1, 2, 2))
        .joint("J3", "revolute", "body_3", "body_4", xyz=(3, 0, 0), axis=(0, 0, 1))
        .build()
    )
    # J2 turned by 0.6 about its own z, after the 90 degrees about x
    joint = VT18.joints["J2"]
    from remora.model.joints import relative_pose

    welded = welded.replace_joint("J2", placement=relative_pose(joint, q))
    other = rm.simulate(
        welded, np.delete(q, 9), np.delete(v, 7), 5.0, integrator=rm.Integrator(rtol=1e-12)
    )
    assert np.abs(np.delete(run.q[-1], 9) - other.q[-1]).max() < 1e-11
    assert np.abs(np.delete(run.v[-1], 7) - other.v[-1]).max() < 1e-11


def test_a_spherical_joint_can_be_prescribed():
    robot = rm.random_robot(11, bodies=3, kinds=("spherical",), base="free")
    name = next(j.name for j in robot.joints if j.kind == "spherical")
    from remora.algebra import quaternion

    axis = np.array([0.0, 0.6, 0.8])
    q = rm.neutral(robot)
    v = np.zeros(robot.nv)
    v[robot.joints[name].v] = 0.5 * axis
    motion = rm.Motion(lambda t: (quaternion.exp(0.25 * t * axis), 0.5 * axis, 0.0 * axis))
    run = rm.simulate(
        robot, q, v, 4.0, prescribed={name: motion}, integrator=rm.Integrator(rtol=1e-11)
    )
    assert np.abs(run.joint(name).q[-1] - quaternion.exp(1.0 * axis)).max() < 1e-12
    assert run.conservation().angular_momentum.relative < 1e-9
    assert run.conservation().energy.relative < 1e-9


def test_phases_hold_and_let_go():
    """Unfold a joint, hold it, let it go: the base turns back and forth by its share."""
    phases = [
        rm.Phase(4.0, prescribed={"J2": rm.Motion.between(0.0, 4.0, 0.0, 1.2)}, locked=["J3"]),
        rm.Phase(2.0, locked=["J2", "J3"], name="hold"),
        rm.Phase(4.0, locked=["J3"],
                 prescribed={"J2": rm.Motion.between(0.0, 4.0, 1.2, 0.0)}, own_clock=True),
    ]  # fmt: skip
    run = rm.simulate(VT18, Q, V, phases, integrator=rm.Integrator(rtol=1e-12, atol=1e-13))
    assert run.t[-1] == 10.0
    hold = run.phase == 1
    assert np.abs(run.joint("J2").q[hold] - 1.2).max() < 1e-12
    assert np.abs(run.v[-1]).max() < 1e-10  # at rest again
    assert np.abs(rm.difference(VT18, run.q[0], run.q[-1])).max() < 1e-9  # planar: it comes back
    assert run.conservation().energy.relative < 1e-9


def test_locking_a_moving_joint_is_an_impulse_that_keeps_momentum():
    v = np.zeros(9)
    v[6:] = 0.5, -0.3, 0.2
    run = rm.simulate(
        VT18,
        Q,
        v,
        [rm.Phase(1.0), rm.Phase(1.0, locked=["J2"], impulse=True)],
        integrator=rm.Integrator(rtol=1e-12),
    )
    assert [e.name for e in run.events] == ["impulse"]
    found = run.conservation()
    assert found.angular_momentum.relative < 1e-10
    assert found.energy.relative < 1e-10  # with the work of the impulse
    jump = np.flatnonzero(np.diff(run.t) == 0.0)
    assert len(jump) == 1
    assert run.kinetic_energy[jump[0] + 1] < run.kinetic_energy[jump[0]]
    assert np.all(run.joint("J2").v[jump[0] + 1 :] == 0.0)


# Contradictions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prescribed": {"J2": swing}, "locked": ["J2"]}, "both locked and prescribed"),
        ({"prescribed": {"J2": lambda t: 0.3 + 0.1 * t**2}}, "0.3 rad or m from where"),
        ({"prescribed": {"J2": lambda t: 0.1 * t}}, r"moves at \[0.0\], its motion begins with"),
        (
            {"prescribed": {"J2": swing}, "torque": {"J2": 1.0}},
            "its torque is computed and cannot be an input",
        ),
        ({"prescribed": {"J2": lambda t: (0.1 * t**2, 0.3 * t, 0.2)}}, "says v = "),
        ({"prescribed": {"J2": lambda t: (0.1 * t**2, 0.2 * t, 0.3)}}, "says vdot = "),
        ({"prescribed": {"J9": swing}}, "no joint named 'J9'; known: base, J1, J2, J3"),
        ({"locked": ["J9"]}, "no joint named 'J9'"),
        ({"prescribed": {"J2": 0.3}}, "must be prescribed by a Motion or a function"),
        ({"prescribed": {"J2": lambda t: (0.0, 0.0)}}, r"gives q, or \(q, v, vdot\), not 2"),
        ({"prescribed": {"J2": lambda t: ([0.0, 0], [0.0, 0], [0.0, 0])}}, "must be 1 numbers"),
    ],
)
def test_contradictions_are_refused(options, text):
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate(VT18, Q, V, 5.0, **grouped(**options))


def test_a_motion_that_becomes_nan_stops_the_run_and_says_when():
    def motion(t):
        x = 0.0 if t < 1.5 else np.nan
        return 0.1 * t**2 + x, 0.2 * t, 0.2

    with pytest.raises(rm.errors.SimulationError, match="q of the prescribed joint 'J2'") as caught:
        rm.simulate(
            VT18, Q, V, 2.0, prescribed={"J2": motion}, integrator=rm.Integrator(max_step=0.1)
        )
    assert 1.3 < caught.value.time <= 1.6
    assert len(caught.value.recording) > 10


def test_a_torque_on_a_joint_that_mimics_is_refused():
    builder = rm.Builder("pair").body("a", mass=1, inertia=(1, 1, 1))
    builder = builder.joint("ja", "revolute", None, "a").body("b", mass=1, inertia=(1, 1, 1))
    robot = builder.joint("jb", "revolute", "a", "b", mimic=("ja", -1.5, 0.0)).build()
    with pytest.raises(rm.RemoraError, match="mimics 'ja': give the torque to that one"):
        rm.simulate(robot, [0.0], [0.0], 1.0, torque={"jb": 1.0})
    with pytest.raises(rm.RemoraError, match="mimics 'ja': give the torque to that one"):
        rm.simulate_batch(
            robot, [0.0], [0.0], 1.0, integrator=rm.Integrator(step=0.01), torque={"jb": 1.0}
        )


# Motions that are none ----------------------------------------------------------------------------


def kinked(t):
    """Velocity 0.2 until 1 s, then -0.3."""
    return (0.2 * t, 0.2, 0.0) if t < 1.0 else (0.2 - 0.3 * (t - 1.0), -0.3, 0.0)


def displaced(t):
    return (0.1 * t**2 + (0.01 if t >= 1.0 else 0.0), 0.2 * t, 0.2)


@pytest.mark.parametrize("method", [{}, {"integrator": "rk4", "step": 0.1}, {"max_step": 0.03}])
@pytest.mark.parametrize("breaks", [(), (1.0,)])
def test_jumps_are_refused_wherever_they_are(breaks, method):
    """Declared as breaks or not: a velocity that jumps needs an impulse."""
    v = V.copy()
    v[7] = 0.2
    text = r"velocity of the motion of joint 'J2' jumps from \[0.2\] to \[-0.3\] at t = 1 s"
    with pytest.raises(rm.errors.SimulationError, match=text) as caught:
        rm.simulate(
            VT18, Q, v, 3.0, **grouped(prescribed={"J2": rm.Motion(kinked, breaks)}, **method)
        )
    assert caught.value.time == pytest.approx(1.0, abs=1e-9)
    text = r"motion of joint 'J2' jumps from q = \[0.1\] to \[0.11\] at t = 1 s"
    with pytest.raises(rm.errors.SimulationError, match=text):
        rm.simulate(
            VT18, Q, V, 3.0, **grouped(prescribed={"J2": rm.Motion(displaced, breaks)}, **method)
        )


def test_a_jump_at_a_break_of_the_run_or_of_another_load_is_refused():
    v = V.copy()
    v[7] = 0.2
    other = {"J1": rm.Pulse(0.3, 1.0, 0.1)}
    for options in ({"breaks": [1.0]}, {"torque": other}):
        with pytest.raises(rm.errors.SimulationError, match=r"jumps from \[0.2\] to \[-0.3\]"):
            rm.simulate(VT18, Q, v, 3.0, **grouped(prescribed={"J2": kinked}, **options))


def test_rates_are_checked_along_the_run():
    """Right in the middle of the run, where one look was taken, and wrong elsewhere."""

    def motion(t):
        extra = 0.05 * np.sin(np.pi * (t - 2.0)) ** 2 if t > 2.5 else 0.05
        return 0.1 * t**2, 0.2 * t + (extra if t > 2.5 else 0.05) - 0.05, 0.2

    with pytest.raises(
        rm.errors.SimulationError, match=r"motion of joint 'J2' says v.* = "
    ) as caught:
        rm.simulate(VT18, Q, V, 4.0, prescribed={"J2": motion})
    assert 2.4 < caught.value.time < 3.1


def test_accelerations_may_jump():
    """Constant acceleration, then none, declared as a break or not."""

    def ramp(t):
        s = min(t, 1.0)
        return 0.1 * s**2 + 0.2 * (t - s), 0.2 * s, 0.2 if t < 1.0 else 0.0

    for breaks in ((), (1.0,)):
        run = rm.simulate(
            VT18,
            Q,
            V,
            2.0,
            prescribed={"J2": rm.Motion(ramp, breaks)},
            integrator=rm.Integrator(rtol=1e-11),
        )
        assert run.joint("J2").q[-1] == pytest.approx(0.3, abs=1e-12)
        assert run.conservation().angular_momentum.relative < 1e-8


def test_rotations_are_checked_as_rotations():
    """About a turning axis the angular velocity is not the rate of any coordinates."""
    from remora.algebra import quaternion

    robot = rm.random_robot(11, bodies=3, kinds=("spherical",), base="free")
    name = next(j.name for j in robot.joints if j.kind == "spherical")
    x, z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])

    def turning(t, length=1.0, drift=0.0):
        first, second = quaternion.exp(0.35 * t * z), quaternion.exp(0.5 * t * x)
        back = quaternion.rotate(quaternion.conjugate(second), z)
        omega = 0.7 * back + x
        rate = 0.7 * np.cross(back, x)
        return length * quaternion.mul(first, second), omega + drift * z, rate

    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[robot.joints[name].v] = turning(0.0)[1]
    for options in ({}, {"integrator": "rk4", "step": 0.2}):
        run = rm.simulate(
            robot, q, v, 3.0, **grouped(prescribed={name: rm.Motion(turning)}, **options)
        )
        assert run.status == "complete"
    for length in (17.0, 1.0 + 1e-6):
        text = f"joint '{name}' must be a unit quaternion.*of length {length:.9g}"
        with pytest.raises(rm.RemoraError, match=text):
            rm.simulate(
                robot, q, v, 3.0, prescribed={name: rm.Motion(lambda t, k=length: turning(t, k))}
            )

    def growing(t):
        return turning(t, 1.0 + max(t - 1.0, 0.0) ** 2)

    with pytest.raises(rm.errors.SimulationError, match="unit quaternion") as caught:
        rm.simulate(
            robot,
            q,
            v,
            1.5,
            prescribed={name: rm.Motion(growing)},
            integrator=rm.Integrator(max_step=0.1),
        )
    assert 0.9 < caught.value.time < 1.2


def test_a_prescribed_base_must_be_a_unit_dual_quaternion():
    q8 = rm.neutral(VT18)[:8]

    def base(t):
        q = q8.copy()
        q[4] = 0.01 * max(t - 0.5, 0.0) ** 2  # not orthogonal to the real part
        return q, np.zeros(6), np.zeros(6)

    with pytest.raises(rm.errors.SimulationError, match=r"'base' must be a unit dual quaternion"):
        rm.simulate(
            VT18,
            Q,
            V,
            1.0,
            prescribed={"base": rm.Motion(base)},
            integrator=rm.Integrator(max_step=0.1),
        )


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rm.Motion(5), "a function of the time, not 5"),
        (lambda: rm.Motion(swing, breaks=["a"]), "breaks of a motion must be finite times"),
        (lambda: rm.Motion(swing, breaks=[np.nan]), "breaks of a motion must be finite times"),
        (lambda: rm.Motion(lambda t: 1.0 / t), "raised ZeroDivisionError at t = 0"),
        (lambda: rm.Motion(lambda t: "a"), "cannot be differentiated"),
        (lambda: rm.Motion.between(0.0, 1.0, [0.0, 0.0], [1.0] * 3), "differ in shape"),
        (lambda: rm.Motion.between("a", 1.0, 0.0, 1.0), "start must be a number"),
        (lambda: rm.Motion.between(0.0, 1.0, 0.0, np.nan), "q1 of a motion must be finite"),
        (lambda: rm.Motion.between(0.0, 1.0, "a", 1.0), "q0 of a motion must be numbers"),
    ],
)
def test_wrong_motions_are_refused(make, text):
    with pytest.raises(rm.RemoraError, match=text):
        make()
