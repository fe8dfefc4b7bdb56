"""A recording: what follows from the samples, by name, between samples; what it must keep."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import pose
from remora.model.state import log_rate
from remora.simulation.recording.conservation import conservation, outside_forces
from remora.simulation.recording.quantities import QUANTITIES, RECORDED, by_phase, column, described
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.recorder import Recorder
from trees import Case


def recorder_of(robot, n=40, seed=3, wrenches=True, **options):
    """Random states, forces and wrenches: no motion, but everything a sample can hold."""
    rng = np.random.default_rng(seed)
    q, v = rm.random_state(robot, rng, batch=(n,))
    recorder = Recorder(robot, {"step": 0.01}, **options)
    for i in range(n):
        W = rng.normal(size=(len(robot.bodies), 6)) if wrenches else None
        tau, passive = rng.normal(size=(2, robot.nv))
        recorder.append(0.01 * i, q[i], v[i], tau, passive, W, rng.normal(size=3), i // 10)
    return recorder


def motion(robot, q, v, duration, step, torque, substeps=1):
    """A plain Runge-Kutta run of fourth order in the tangent at each step's start."""
    fast = rm.compile(robot)
    recorder = Recorder(robot, {})
    work = np.zeros(3)
    zero = np.zeros(robot.nv)
    h = step / substeps
    lost = lambda v: rm.dynamics.friction_forces(robot, v)  # noqa: E731

    def rate(q0, t, y):
        u, v = y[: robot.nv], y[robot.nv : 2 * robot.nv]
        x = rm.integrate(robot, q0, u)
        tau, loss = torque(t, x, v), lost(v)
        vdot = fast.forward_dynamics(x, v, tau + loss)
        return np.concatenate([log_rate(robot, u, v), vdot, [tau @ v, 0.0, loss @ v]])

    count = round(duration / step)
    for i in range(count + 1):
        t = i * step
        recorder.append(t, q, v, torque(t, q, v), lost(v), None, work, 0)
        for k in range(substeps if i < count else 0):
            y = np.concatenate([zero, v, work])
            at = t + k * h
            a = rate(q, at, y)
            b = rate(q, at + h / 2, y + h / 2 * a)
            c = rate(q, at + h / 2, y + h / 2 * b)
            d = rate(q, at + h, y + h * c)
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
            u, v, work = np.split(y, [robot.nv, 2 * robot.nv])
            q = rm.normalize(robot, rm.integrate(robot, q, u))
    recorder.finish("complete")
    return recorder.recording()


@pytest.fixture(scope="module")
def satellite():
    return rm.load("vt18_satellite")


@pytest.fixture(scope="module")
def swing(satellite):
    """The satellite turning freely while its arm is driven."""
    q, v = rm.random_state(satellite, 5)

    def torque(t, q, v):
        tau = np.zeros(satellite.nv)
        tau[6:] = [2.0 * np.sin(t), -1.0, 0.5 * np.cos(3.0 * t)]
        return tau

    return motion(satellite, q, 0.3 * v, 2.0, 0.02, torque, substeps=4)


DIRECT = {
    "vdot": lambda r, q, v, f, w: rm.forward_dynamics(r, q, v, f, w, "composite"),
    "reactions": lambda r, q, v, f, w: rm.reaction_wrenches(r, q, v, f, w, "composite"),
    "momentum": lambda r, q, v, f, w: rm.momentum(r, q, v),
    "centroidal_momentum": lambda r, q, v, f, w: rm.dynamics.centroidal_momentum(r, q, v),
    "kinetic_energy": lambda r, q, v, f, w: rm.kinetic_energy(r, q, v),
    "potential_energy": lambda r, q, v, f, w: rm.potential_energy(r, q),
    "energy": lambda r, q, v, f, w: rm.kinetic_energy(r, q, v) + rm.potential_energy(r, q),
    "com": lambda r, q, v, f, w: rm.center_of_mass(r, q),
    "poses": lambda r, q, v, f, w: rm.poses(r, q),
    "twists": lambda r, q, v, f, w: rm.twists(r, q, v),
    "positions": lambda r, q, v, f, w: of_frames(r, q, pose.translation),
    "quaternions": lambda r, q, v, f, w: of_frames(r, q, pose.rotation),
    "euler_angles": lambda r, q, v, f, w: of_frames(r, q, pose.to_rpy),
}


def of_frames(robot, q, part):
    names = [*robot.bodies.names, *robot.frames.names]
    return np.stack([part(rm.frame_pose(robot, q, name)) for name in names])


def follower():
    return (
        rm.Builder("gripper", gravity=(0.0, 0.0, -2.0))
        .body("palm", mass=2.0, inertia=(0.1, 0.2, 0.2))
        .joint("base", "free", None, "palm")
        .body("left", mass=0.3, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.02))
        .joint("left_hinge", "revolute", "palm", "left", xyz=(0, 0.1, 0), axis=(0, 0, 1))
        .body("right", mass=0.3, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.02))
        .joint(
            "right_hinge", "revolute", "palm", "right", xyz=(0, -0.1, 0), axis=(0, 0, 1),
            mimic=("left_hinge", -1.0, 0.2),
        )
        .frame("tip", "right", xyz=(0.2, 0, 0))
        .build()
    )  # fmt: skip


# A robot whose joints show every kind, one with a follower, one too large to compile whole.
ROBOTS = {
    "satellite": lambda: rm.load("vt18_satellite"),
    "tree": lambda: Case(9, largest=5, base="free").robot,
    "planar base": lambda: Case(3, largest=6, base="planar").robot,
    "follower": follower,
    "large": lambda: rm.random_robot(7, bodies=24, kinds=("revolute",), base="free"),
}


@pytest.mark.parametrize("wrenches", [True, False])
@pytest.mark.parametrize("name", ROBOTS)
def test_derived_quantities_are_those_of_single_states(name, wrenches):
    robot = ROBOTS[name]()
    run = recorder_of(robot, n=7, wrenches=wrenches).recording()
    assert set(DIRECT) == set(QUANTITIES)
    for quantity, direct in DIRECT.items():
        values = getattr(run, quantity)
        assert values.shape == (7, *QUANTITIES[quantity].shape(robot))
        for i in range(len(run)):
            W = run.wrenches[i] if wrenches else None
            force = run.tau[i] + run.passive[i]
            expected = direct(robot, run.q[i], run.v[i], force, W)
            # forward dynamics solves with the inertia
            assert_close(values[i], expected, 1e-10 if quantity in ("vdot", "reactions") else 1e-12)
        assert getattr(run, quantity) is values
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.0


def test_a_large_robot_gives_nan_for_samples_that_are_not_finite():
    robot = ROBOTS["large"]()
    recorder = Recorder(robot, {})
    q, v = rm.random_state(robot, 1)
    z = np.zeros(robot.nv)
    for t, speed in ((0.0, v), (1.0, np.full(robot.nv, np.nan)), (2.0, v)):
        recorder.append(t, q, speed, z, z, None, np.zeros(3), 0)
    momentum = recorder.recording().momentum
    assert np.isnan(momentum[1]).all()
    assert np.array_equal(momentum[0], momentum[2])


@pytest.mark.parametrize("name", ["satellite", "tree", "follower"])
def test_every_number_has_a_name_and_a_unit(name):
    robot = ROBOTS[name]()
    for quantity in (*RECORDED, *QUANTITIES):
        labels = described(robot, quantity)
        assert len(labels) == np.prod(column(quantity).shape(robot), dtype=int)
        assert len({label for label, _ in labels}) == len(labels)
        assert all(unit for _, unit in labels)


def test_every_kind_of_joint_has_names():
    for row in rm.JOINT_TYPES.values():
        assert len(row.freedoms) == row.nv
        assert len(row.coordinates) == row.nq
        assert len({freedom.name for freedom in row.freedoms}) == row.nv
        for freedom in row.freedoms:  # speeds of bodies are wx and vx, their forces tx and fx
            force = {"w": "t", "v": "f"}.get(freedom.name[:1], freedom.name[:1])
            assert freedom.force_name == f"{force}{freedom.name[1:]}"


def test_joints_by_name(satellite):
    run = recorder_of(satellite).recording()
    joint = run.joint("J2")
    assert np.array_equal(joint.q, run.q[:, 9])
    assert np.array_equal(joint.v, run.v[:, 7])
    assert np.array_equal(joint.vdot, run.vdot[:, 7])
    assert np.array_equal(joint.torque, run.tau[:, 7])
    assert np.array_equal(joint.force, joint.torque)
    assert np.array_equal(joint.passive, run.passive[:, 7])
    assert np.array_equal(joint.power, run.tau[:, 7] * run.v[:, 7])
    assert np.array_equal(joint.reaction, run.reactions[:, 2])
    assert run.joint("base").q.shape == (40, 8)
    assert run.joint("base").torque.shape == (40, 6)
    with pytest.raises(rm.errors.UnknownName, match=r"joint named 'elbow'.*J2"):
        run.joint("elbow")


def test_bodies_and_frames_by_name(satellite):
    run = recorder_of(satellite).recording()
    for name in ("end_effector", "body_3"):
        view = run.frame(name)
        for i in range(len(run)):
            x = rm.frame_pose(satellite, run.q[i], name)
            assert_close(view.pose[i], x)
            assert_close(view.twist[i], rm.frame_twist(satellite, run.q[i], run.v[i], name))
            assert_close(view.position[i], pose.translation(x))
            assert_close(view.orientation[i], x[:4])
    assert np.array_equal(run.frame("body_3").wrench, run.wrenches[:, 2])
    with pytest.raises(rm.errors.UnknownName, match="body_1"):
        run.frame("end_effector").wrench  # noqa: B018
    assert np.all(recorder_of(satellite, wrenches=False).recording().frame("body_3").wrench == 0.0)


def test_a_joint_and_a_body_may_share_a_name():
    robot = (
        rm.Builder("same")
        .body("arm", mass=1, inertia=(1, 1, 1))
        .joint("arm", "revolute", None, "arm")
        .frame("ground", None, xyz=(1, 2, 3))
        .build()
    )
    run = recorder_of(robot, n=3).recording()
    assert np.array_equal(run.joint("arm").q, run.q[:, 0])
    assert run.frame_pose("arm").shape == (3, 8)
    assert run.frame("arm").pose.shape == (3, 8)
    assert np.array_equal(run.frame("ground").position, np.tile([1.0, 2.0, 3.0], (3, 1)))
    assert np.all(run.frame("ground").twist == 0.0)


def test_a_follower_moves_with_its_leader_and_has_no_forces_of_its_own():
    run = recorder_of(follower(), n=5).recording()
    assert_close(run.joint("right_hinge").q, -run.joint("left_hinge").q + 0.2)
    assert_close(run.joint("right_hinge").v, -run.joint("left_hinge").v)
    assert_close(run.joint("right_hinge").vdot, -run.joint("left_hinge").vdot)
    for force in ("torque", "passive", "power"):
        with pytest.raises(rm.RemoraError, match="mimics 'left_hinge'"):
            getattr(run.joint("right_hinge"), force)


def test_between_samples(satellite, swing):
    """Halving the distance of samples leaves a 16th of the error of q, an 8th of that of v."""

    def error(every):
        columns = {name: rows[::every] for name, rows in swing.columns.items()}
        q, v = Recording(satellite, {}, columns).at(swing.t[:97])
        away = rm.difference(satellite, swing.q[:97], q), v - swing.v[:97]
        return np.array([np.max(np.abs(x)) for x in away])

    assert np.all(error(2) < [1e-5, 3e-4])
    assert abs(np.log2(error(4)[0] / error(2)[0]) - 4.0) < 0.5
    assert 2.0 < np.log2(error(8)[1] / error(4)[1]) < 4.0  # in the middle v is better than that
    q, v = swing.at(swing.t)
    assert_close(rm.difference(satellite, swing.q, q), np.zeros_like(v), 1e-14)
    assert np.array_equal(v, swing.v)
    q, v = swing.at(0.5)
    assert (q.shape, v.shape) == ((satellite.nq,), (satellite.nv,))
    for t in (-0.1, 2.1):
        with pytest.raises(rm.errors.InvalidValue, match="from 0 s to 2 s"):
            swing.at(t)


def test_at_a_time_that_occurs_twice_the_later_sample_counts(satellite):
    q, v = rm.random_state(satellite, 2)
    z = np.zeros(satellite.nv)
    recorder = Recorder(satellite, {})
    for t, speed in ((0.0, 0 * v), (1.0, 0 * v), (1.0, v), (2.0, v)):
        recorder.append(t, q, speed, z, z, None, np.zeros(3), 0)
    run = recorder.recording()
    assert np.array_equal(run.at(1.0)[1], v)
    assert_close(run.at(2.0)[1], v)


def test_a_recording_does_not_change_when_samples_follow(satellite):
    recorder = recorder_of(satellite, n=5, chunk=4)
    early = recorder.recording()
    kept = early.q.copy()
    rest = recorder_of(satellite, n=30, seed=8).recording()
    for i in range(30):
        recorder.append(
            1.0 + i, rest.q[i], rest.v[i], rest.tau[i], rest.passive[i], None, rest.work[i], 1
        )
    late = recorder.recording()
    assert (len(early), len(late)) == (5, 35)
    assert np.array_equal(early.q, kept)
    assert np.array_equal(late.q[:5], kept)
    assert np.all(late.wrenches[5:] == 0.0)  # left out: zero
    for name in ("t", "vdot"):
        with pytest.raises(AttributeError):
            setattr(late, name, 0.0)
    with pytest.raises(ValueError, match="read-only"):
        late.t[0] = 1.0


def test_wrenches_may_come_later(satellite):
    recorder = recorder_of(satellite, n=6, wrenches=False, chunk=4)
    run = recorder.recording()
    assert run.wrenches is None
    with pytest.raises(rm.RemoraError, match="no external wrenches"):
        run.quantity("wrenches")
    with pytest.raises(rm.errors.UnknownName, match=r"'speed'.*vdot"):
        run.quantity("speed")
    W = np.ones((4, 6))
    recorder.append(1.0, run.q[0], run.v[0], run.tau[0], run.tau[0], W, np.zeros(3), 0)
    recorder.append(2.0, run.q[0], run.v[0], run.tau[0], run.tau[0], None, np.zeros(3), 0)
    late = recorder.recording()
    assert list(late.columns) == list(RECORDED)
    assert np.array_equal(late.wrenches[6], W)
    assert np.count_nonzero(late.wrenches) == W.size
    assert np.array_equal(late.q[:6], run.q)
    assert run.wrenches is None
    assert_close(late.vdot[:6], run.vdot)


def test_ends_are_known(satellite):
    with pytest.raises(rm.errors.UnknownName, match="complete, interrupted, failed"):
        Recorder(satellite, {}).finish("done")


def test_numpy_and_pandas(satellite):
    run = recorder_of(satellite).recording()
    arrays = run.to_numpy()
    assert list(arrays) == [*RECORDED, "vdot", "reactions", "momentum", "energy", "com"]
    assert list(run.to_numpy("q", "poses")) == ["q", "poses"]
    frame = run.to_pandas()
    units = frame.attrs["units"]
    assert frame.index.name == "t"
    assert np.array_equal(frame.index, run.t)
    for label, values, unit in (
        ("q.J2", run.q[:, 9], "rad"),
        ("q.base.rw", run.q[:, 0], "1"),
        ("v.base.wx", run.v[:, 0], "rad/s"),
        ("tau.base.fz", run.tau[:, 5], "N"),
        ("vdot.J3", run.vdot[:, 8], "rad/s²"),
        ("reactions.body_2.tz", run.reactions[:, 1, 5], "N m"),
        ("momentum.ly", run.momentum[:, 4], "N m s"),
        ("energy", run.energy, "J"),
        ("work.passive", run.work[:, 2], "J"),
        ("phase", run.phase, "1"),
    ):
        assert np.array_equal(frame[label], values)
        assert units[label] == unit
    assert set(units) == {"t", *frame.columns}
    assert list(run.to_pandas("com").columns) == ["com.x", "com.y", "com.z"]


def test_pandas_and_zarr_are_not_needed_until_asked_for():
    code = (
        "import sys, remora\n"
        "from remora.simulation.storage.recorder import Recorder\n"
        "assert not {'zarr', 'pandas'} & set(sys.modules)\n"
        "import numpy as np, remora as rm\n"
        "sys.modules['zarr'] = sys.modules['pandas'] = None\n"
        "r = Recorder(rm.load('vt18_satellite'), {})\n"
        "for f in (r.recording().to_pandas, lambda: r.recording().save('nowhere')):\n"
        "    try: f()\n"
        "    except rm.RemoraError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert "pip install pandas" in done.stdout
    assert "pip install zarr" in done.stdout


# Conservation ------------------------------------------------------------------------------------


def test_a_floating_run_keeps_momentum_and_energy(satellite, swing):
    kept = swing.conservation()
    for drift in (kept.linear_momentum, kept.angular_momentum, kept.center_of_mass, kept.energy):
        assert drift.broken_by == ""
        assert drift.scale > 0.0
        assert drift.relative == drift.absolute / drift.scale < 1e-8  # Runge-Kutta, step 5 ms
    assert kept.quaternion < 1e-15
    assert kept.dual_quaternion < 1e-14
    text = str(kept)
    assert "101 samples, 2 s" in text
    assert "N m s, peak sum over the bodies" in text
    assert text.count("\n") == 7
    shown = repr(swing)
    assert "'vt18_satellite': 101 samples, 2 s, complete" in shown
    assert "linear momentum" in shown


def test_the_reported_numbers_are_the_largest_over_the_samples(satellite, swing):
    kept = swing.conservation()
    P, L, C, E = [], [], [], []
    linear, angular = [], []
    first = rm.momentum(satellite, swing.q[0], swing.v[0])
    c0 = rm.center_of_mass(satellite, swing.q[0])
    e0 = rm.kinetic_energy(satellite, swing.q[0], swing.v[0])
    kinetic = []
    for t, q, v, work in zip(swing.t, swing.q, swing.v, swing.work, strict=True):
        h = rm.momentum(satellite, q, v) - first
        P.append(np.linalg.norm(h[:3]))
        L.append(np.linalg.norm(h[3:]))
        c = rm.center_of_mass(satellite, q)
        C.append(np.linalg.norm(c - c0 - t * first[:3] / float(satellite.mass)))
        kinetic.append(rm.kinetic_energy(satellite, q, v))
        E.append(abs(kinetic[-1] - e0 - np.sum(work)))
        parts = np.zeros(2)
        for b, x, xi in zip(
            satellite.bodies, rm.poses(satellite, q), rm.twists(satellite, q, v), strict=True
        ):
            R, w = pose.to_rotation_matrix(x), xi[:3]
            p = float(b.mass) * R @ (xi[3:] + np.cross(w, b.com))
            r = pose.transform_point(x, b.com)
            parts += [np.linalg.norm(p), np.linalg.norm(R @ b.inertia @ w + np.cross(r, p))]
        linear.append(parts[0])
        angular.append(parts[1])
    size = max(
        np.linalg.norm(pose.transform_point(x, b.com) - c0)
        for b, x in zip(satellite.bodies, rm.poses(satellite, swing.q[0]), strict=True)
    )
    scale = max(linear)
    for drift, expected, of in (
        (kept.linear_momentum, max(P), scale),
        (kept.angular_momentum, max(L), max(angular)),
        (kept.center_of_mass, max(C), size),
        (kept.energy, max(E), max(kinetic)),
    ):
        # the drift itself is at the level of rounding of what it is the difference of
        assert_close(drift.absolute, expected, 1e-12, scale=of)
        assert_close(drift.scale, of)


def test_what_breaks_the_conservation_of_momentum_is_said(satellite):
    quiet = {"n": 3, "wrenches": False}
    for robot, options, reason in (
        (satellite, quiet, "forces on the base"),
        (satellite.replace(gravity=(0, 0, -1.0)), quiet, "forces on the base, gravity"),
        (satellite, {"n": 3}, "forces on the base, external wrenches"),
        (rm.load("vt18_satellite", base="fixed"), quiet, "the base is held by a fixed joint"),
    ):
        kept = recorder_of(robot, **options).recording().conservation()
        for drift in (kept.linear_momentum, kept.angular_momentum, kept.center_of_mass):
            assert drift.broken_by == reason
        assert kept.energy.broken_by == ""
        assert f"not conserved: {reason}" in str(kept)
    assert "linear" not in repr(recorder_of(satellite, **quiet).recording())


def test_a_wrong_motion_shows(satellite, swing):
    columns = dict(swing.columns)
    columns["v"] = columns["v"].copy()
    columns["v"][50, 0] += 1e-3
    columns["q"] = columns["q"].copy()
    columns["q"][20, :4] *= 1.0 + 1e-9
    kept = Recording(satellite, {}, columns).conservation()
    assert kept.angular_momentum.relative > 1e-6
    assert kept.energy.relative > 1e-7
    assert_close(kept.quaternion, 2e-9, 1e-3, scale=2e-9)


def test_losses_and_gravity_are_in_the_energy_balance():
    robot = rm.load("vt18_satellite", base="fixed", gravity=(0.0, -1.0, 0.0))
    robot = robot.replace_joint("J1", damping=20.0).replace_joint("J2", friction=0.5)
    q, v = rm.random_state(robot, 2)
    v = np.abs(v) + 2.0  # away from the kink of dry friction
    run = motion(robot, q, v, 0.3, 0.01, lambda t, q, v: np.zeros(robot.nv), substeps=5)
    energy = run.conservation().energy
    assert energy.relative < 1e-8  # Runge-Kutta
    assert run.work[-1, 2] < -0.01 * energy.scale
    assert "range of potential" in energy.compared


def test_a_single_body_and_no_sample(satellite):
    body = (
        rm.Builder("one").body("bus", mass=2, inertia=(1, 1, 1)).joint("base", "free", None, "bus")
    ).build()
    q, v = rm.random_state(body, 1)
    run = motion(body, q, 0.1 * v, 0.1, 0.05, lambda t, q, v: np.zeros(6))
    assert_close(run.conservation().center_of_mass.scale, np.sqrt(0.75))
    rest = recorder_of(satellite, n=0).recording()
    assert (len(rest), rest.duration, rest.q.shape) == (0, 0.0, (0, satellite.nq))
    assert rest.vdot.shape == (0, satellite.nv)
    assert "0 samples" in repr(rest)
    with pytest.raises(rm.RemoraError, match="nothing was recorded"):
        rest.conservation()
    with pytest.raises(rm.errors.InvalidValue, match="over no time"):
        rest.at(0.0)


def test_a_robot_without_freedoms():
    robot = (
        rm.Builder("rock")
        .body("rock", mass=2, inertia=(1, 1, 1))
        .joint("hold", "fixed", None, "rock")
    ).build()
    run = recorder_of(robot, n=3).recording()
    assert run.vdot.shape == (3, 0)
    assert_close(run.reactions[:, 0], -run.wrenches[:, 0])
    assert run.conservation().energy.relative >= 0.0


def test_every_phase_is_evaluated_with_its_own_robot():
    """Robots stand for themselves: constraints are switched at the starts of phases 2 and 4."""
    which = SimpleNamespace(of=lambda robot, columns: np.full(len(columns["t"]), robot))
    phase = np.array([0, 0, 1, 2, 2, 3, 4, 5])
    found = by_phase(which, {0: 10, 2: 12, 4: 14}, {"t": np.arange(8.0), "phase": phase})
    assert found.tolist() == [10, 10, 10, 12, 12, 12, 14, 14]


def test_opposite_forces_off_one_line_change_the_momentum():
    """Forces between two bodies cancel; their moment about the origin must, too."""
    builder = rm.Builder("pair").body("a", mass=2.0, inertia=(1, 1, 1))
    builder.joint("one", "free", None, "a").body("b", mass=2.0, inertia=(1, 1, 1))
    robot = builder.joint("two", "free", None, "b").build()
    q = rm.neutral(robot)
    q[8:] = pose.from_xyz_rpy([0.0, 1.0, 0.0], [0.0, 0.0, 0.5 * np.pi])  # x of b is y
    still = np.zeros((1, robot.nv))
    run = {"t": np.zeros(1), "tau": still, "passive": still, "momentum": np.zeros((1, 6)),
           "poses": rm.poses(robot, q)[None]}  # fmt: skip
    along = np.array([[[0.0, 3.0, 0, 0, 0, 0], [-3.0, 0, 0, 0, 0, 0]]])
    across = np.array([[[3.0, 0, 0, 0, 0, 0], [0, 3.0, 0, 0, 0, 0]]])
    held = across.copy()
    held[0, 1, 5] = -3.0  # the moment of -3 N along x at y = 1 m is 3 N m about z
    for wrenches, broken in ((along, ""), (across, "external wrenches"), (held, "")):
        assert outside_forces(robot, {**run, "wrenches": wrenches}, 1.0, 1.0) == broken


def test_errors_are_compared_with_sums_over_the_bodies():
    """Of momenta in inertial axes about the origin; of energy, with the range of the potential."""
    robot = rm.random_robot(5, bodies=4)
    q, v = rm.random_state(robot, 2, 3)
    x, twists = rm.poses(robot, q), rm.twists(robot, q, v)
    run = {
        "t": np.array([0.0, 1.0, 2.0]), "q": q, "tau": 0 * v, "passive": 0 * v,
        "work": np.zeros((3, 3)), "momentum": rm.momentum(robot, q, v),
        "com": rm.center_of_mass(robot, q), "poses": x, "twists": twists,
        "kinetic_energy": np.array([1.0, 2.0, 1.5]),
        "potential_energy": np.array([5.0, 7.0, 6.5]),
    }  # fmt: skip
    found = conservation(robot, run)
    linear, angular = np.zeros(3), np.zeros(3)
    for i, body in enumerate(robot.bodies):
        R, p = pose.to_rotation_matrix(x[:, i]), pose.translation(x[:, i])
        turn, speed = ((R @ twists[:, i, k, None])[..., 0] for k in (slice(3), slice(3, 6)))
        c = R @ body.com
        P = body.mass * (speed + np.cross(turn, c))
        spin = (R @ body.inertia @ R.transpose(0, 2, 1) @ turn[..., None])[..., 0]
        linear += np.linalg.norm(P, axis=1)
        angular += np.linalg.norm(spin + np.cross(p + c, P), axis=1)
    assert found.linear_momentum.scale == pytest.approx(linear.max(), rel=1e-12)
    assert found.angular_momentum.scale == pytest.approx(angular.max(), rel=1e-12)
    assert found.energy.scale == pytest.approx(2.0 + 2.0)
    line = run["com"][0] + run["t"][:, None] * run["momentum"][0, :3] / float(robot.mass)
    off = np.linalg.norm(run["com"] - line, axis=1).max()
    assert found.center_of_mass.absolute == pytest.approx(off, rel=1e-12)
    assert found.energy.absolute == pytest.approx(3.0)
