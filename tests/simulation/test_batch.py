"""Batches: the same as single runs, whoever shares the batch, on any threads."""

import inspect
import math

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from trees import Case

SERVICER = rm.load("servicer")
Q, V = rm.random_state(SERVICER, 5, 37)
V = 0.1 * V
ELBOW = SERVICER.joints[4].name


def single(robot, q, v, duration, step, **options):
    return rm.simulate(
        robot, q, v, duration, **grouped(integrator="rk4", step=step, limits="ignore", **options)
    )


def test_a_batch_is_what_single_runs_are():
    batch = rm.simulate_batch(SERVICER, Q, V, 2.0, integrator=rm.Integrator(step=0.01), record=0.5)
    assert batch.t.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert batch.q.shape == (37, 5, 15)
    assert np.array_equal(batch.q[:, 0], Q)
    for k in (0, 17, 36):
        run = single(SERVICER, Q[k], V[k], 2.0, 0.01, sample=0.5, step_to_samples=True)
        assert np.abs(batch.q[k] - run.q).max() < 1e-13
        assert np.abs(batch.v[k] - run.v).max() < 1e-13


def test_a_run_has_the_same_bits_whoever_shares_the_batch():
    whole = rm.simulate_batch(
        SERVICER, Q, V, 1.0, integrator=rm.Integrator(step=0.01), target=rm.Target(threads=2)
    )
    order = np.random.default_rng(0).permutation(37)
    shuffled = rm.simulate_batch(
        SERVICER,
        Q[order],
        V[order],
        1.0,
        integrator=rm.Integrator(step=0.01),
        target=rm.Target(threads=1),
    )
    assert np.array_equal(shuffled.q, whole.q[order])
    assert np.array_equal(shuffled.v, whole.v[order])
    for k in (3, 30):
        alone = rm.simulate_batch(SERVICER, Q[k], V[k], 1.0, integrator=rm.Integrator(step=0.01))
        assert alone.q.shape == (2, 15)
        assert np.array_equal(alone.q, whole.q[k])
    wild = V.copy()
    wild[5] = 1e8  # one that fails spoils no other
    with pytest.raises(rm.errors.SimulationError):
        rm.simulate_batch(SERVICER, Q, wild, 1.0, integrator=rm.Integrator(step=0.01))
    kept = rm.simulate_batch(
        SERVICER,
        Q,
        wild,
        1.0,
        integrator=rm.Integrator(step=0.01),
        record=rm.Record(failures="keep"),
    )
    others = np.arange(37) != 5
    assert np.array_equal(kept.ok, others)
    assert np.array_equal(kept.q[others], whole.q[others])


@pytest.mark.parametrize("seed", range(10))
def test_every_kind_of_joint_and_base(seed):
    case = Case(seed, largest=4)
    robot, q, v = case.robot, case.q, 0.3 * case.v
    if robot.nv == 0:
        pytest.skip("cannot move")
    for joint in robot.joints:
        if joint.v.stop > joint.v.start:
            robot = robot.replace_joint(joint.name, damping=0.2)
    batch = rm.simulate_batch(
        robot,
        q,
        v,
        0.2,
        integrator=rm.Integrator(step=0.02),
        torque=case.tau,
        wrenches=0.1 * case.wrenches,
    )
    run = single(robot, q, v, 0.2, 0.02, torque=case.tau, wrenches=0.1 * case.wrenches)
    assert np.abs(batch.q[-1] - run.q[-1]).max() < 1e-11 * (1 + np.abs(run.q[-1]).max())
    assert np.abs(batch.v[-1] - run.v[-1]).max() < 1e-11 * (1 + np.abs(run.v[-1]).max())


def test_order_four():
    exact = rm.simulate(
        SERVICER,
        Q[1],
        3 * V[1],
        1.0,
        integrator=rm.Integrator(rtol=1e-13, atol=1e-13),
        physics=rm.Physics(limits="ignore"),
    )
    errors = [
        np.abs(
            rm.simulate_batch(SERVICER, Q[1], 3 * V[1], 1.0, integrator=rm.Integrator(step=h)).v[-1]
            - exact.v[-1]
        ).max()
        for h in (0.02, 0.01)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.2)


def test_parameters_of_the_robot_differ_from_run_to_run():
    name = SERVICER.bodies[4].name
    mass = np.linspace(2.0, 9.0, 11)
    batch = rm.simulate_batch(
        SERVICER,
        Q[0],
        V[0],
        1.0,
        integrator=rm.Integrator(step=0.01),
        runs=rm.Runs(parameters={f"{name}.mass": mass}),
    )
    assert batch.q.shape == (11, 2, 15)
    energy = batch.evaluate(rm.kinetic_energy)
    tool = batch.evaluate(rm.frame_pose, frame="tool")
    assert energy.shape == (11, 2)
    assert tool.shape == (11, 2, 8)
    for k in (0, 7):
        robot = SERVICER.replace_body(name, mass=mass[k])
        run = single(robot, Q[0], V[0], 1.0, 0.01)
        assert np.abs(batch.q[k, -1] - run.q[-1]).max() < 1e-13
        assert energy[k, -1] == pytest.approx(
            rm.kinetic_energy(robot, run.q[-1], run.v[-1]), rel=1e-12
        )


def test_laws_with_inputs_of_their_own():
    gains = np.linspace(0.0, 5.0, 6)
    goal = np.tile(Q[0, 8:], (6, 1))
    goal[:, 2] += 0.1

    def law(t, q, v, gain, goal):
        pull = gain * (goal - q[8:]) - 2.0 * v[6:] + 0.1 * np.sin(3.0 * t)
        return np.concatenate([np.zeros(6), pull])

    inputs = {"gain": gains[:, None], "goal": goal}
    batch = rm.simulate_batch(
        SERVICER,
        Q[0],
        V[0],
        1.0,
        integrator=rm.Integrator(step=0.01),
        torque=law,
        runs=rm.Runs(inputs=inputs),
    )
    for k in (0, 5):
        run = single(
            SERVICER, Q[0], V[0], 1.0, 0.01,
            torque=lambda t, q, v, k=k: law(t, q, v, gains[k], goal[k]),
        )  # fmt: skip
        assert np.abs(batch.q[k, -1] - run.q[-1]).max() < 1e-13


def test_torques_by_joint_and_for_each_run():
    name = SERVICER.joints[3].name
    tau = np.zeros((4, 13))
    tau[:, 8] = [0.0, 1.0, 2.0, 3.0]
    own = rm.simulate_batch(
        SERVICER, Q[0], V[0], 1.0, integrator=rm.Integrator(step=0.01), torque=tau
    )
    same = rm.simulate_batch(
        SERVICER, Q[:4], V[:4], 1.0, integrator=rm.Integrator(step=0.01), torque={name: 2.0}
    )
    law = rm.simulate_batch(
        SERVICER,
        Q[0],
        V[0],
        1.0,
        integrator=rm.Integrator(step=0.01),
        torque={name: lambda t, q, v: 1.0 + 0.0 * q[8] + 1.0},
    )
    assert own.q.shape == (4, 2, 15)
    assert same.q.shape == (4, 2, 15)
    assert np.abs(own.q[2] - law.q).max() < 1e-14
    assert np.abs(same.q[0] - law.q).max() < 1e-14


def test_breaks_are_stepped_on():
    builder = rm.Builder("mass").body("mass", mass=2, inertia=(1, 1, 1))
    robot = builder.joint("slide", "prismatic", None, "mass").build()
    select, less = rm.algebra.array_ops.select, rm.algebra.array_ops.less

    def pulse(t, q, v):
        on = select(less(0.33, t), 1.0, 0.0) * select(less(t, 0.77), 1.0, 0.0)
        return np.array([3.0 * on.item() if hasattr(on, "item") else 3.0 * on])

    batch = rm.simulate_batch(
        robot,
        [0.0],
        [0.0],
        2.0,
        integrator=rm.Integrator(step=0.1, breaks=[0.33, 0.77]),
        torque=pulse,
        record=[1.0],
    )
    assert batch.t.tolist() == [0.0, 1.0, 2.0]
    assert batch.v[-1, 0] == pytest.approx(1.5 * 0.44, rel=1e-13)
    assert batch.q[-1, 0] == pytest.approx(0.5 * 1.5 * 0.44**2 + 0.66 * 1.23, rel=1e-13)


def test_single_precision():
    exact = rm.simulate_batch(SERVICER, Q, V, 1.0, integrator=rm.Integrator(step=0.01))
    single = rm.simulate_batch(
        SERVICER, Q, V, 1.0, integrator=rm.Integrator(step=0.01), target=rm.Target(dtype="float32")
    )
    assert single.q.dtype == np.float32
    assert np.abs(single.q - exact.q).max() < 2e-5


def test_long_batches_stay_unit():
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 1, 8)
    batch = rm.simulate_batch(
        robot, q, 0.2 * v, 200.0, integrator=rm.Integrator(step=0.01)
    )  # 20,000 steps
    r, d = batch.q[..., :4], batch.q[..., 4:8]
    assert np.abs(np.sum(r * r, axis=-1) - 1.0).max() < 2e-15
    assert np.abs(np.sum(r * d, axis=-1)).max() < 1e-14 * (1 + np.abs(d).max())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"step": 0.0}, "step must be positive"),
        ({"target": "tpu"}, "no target named 'tpu'; known: cpu, cuda"),
        ({"failures": "hide"}, "no failures named 'hide'"),
        ({"dtype": "float16"}, "no dtype named 'float16'"),
        ({"torque": np.zeros(5)}, r"torque must have shape \(..., 13\), not \(5,\)"),
        ({"torque": lambda t, q, v: q}, r"torque must have shape \(13,\), not \(15,\)"),
        ({"torque": np.full(13, np.nan)}, "torque"),
        ({"parameters": {"nose.mass": 1.0}}, "no parameter named 'nose.mass'"),
        ({"parameters": {"bus.mass": np.zeros((2, 3))}}, "do not broadcast"),
        ({"inputs": {"q": np.zeros(37)}}, "an input cannot be called 'q'"),
        ({"inputs": {"step size": np.zeros(37)}}, "named as an argument .* 'step size'"),
        ({"inputs": {"gain": np.zeros(5)}}, "must have the runs' batch shape"),
        ({"torque": {"nose": 1.0}}, "no joint named 'nose'"),
        ({"torque": {"base": 1.0}}, r"torque of 'base' must have shape \(6,\), not \(\)"),
        ({"sample": -1.0}, "sample must be a positive number"),
    ],
)
def test_what_does_not_fit_is_refused(options, text):
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate_batch(
            SERVICER, Q, V, **grouped(True, **{"duration": 1.0, "step": 0.01, **options})
        )


def test_a_law_that_asks_for_values_is_refused():
    def law(t, q, v):
        return np.ones(13) if q[8] > 0.0 else np.zeros(13)

    with pytest.raises(rm.RemoraError, match="uses a symbol as a condition"):
        rm.simulate_batch(SERVICER, Q, V, 1.0, integrator=rm.Integrator(step=0.01), torque=law)


@pytest.mark.parametrize("kind", ["linear", "hold", "cubic"])
def test_profiles_and_pulses_are_compiled_and_stepped_on(kind):
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 2)
    v = 0.1 * v
    torque = {
        "J1": rm.Pulse(0.21, 0.83, lambda t: np.sqrt(t)),
        "J2": rm.Profile([0.1, 0.34, 0.77, 0.9], [1.0, -2.0, 0.5, 1.0], kind),
        "J3": rm.Pulse(0.4, 0.5, 3.0),
    }
    batch = rm.simulate_batch(robot, q, v, 1.0, integrator=rm.Integrator(step=0.01), torque=torque)
    run = rm.simulate(
        robot, q, v, 1.0, torque=torque, integrator=rm.Integrator(rtol=1e-12, atol=1e-12)
    )
    assert np.abs(batch.q[-1] - run.q[-1]).max() < 1e-9  # RK4 at 10 ms
    assert np.abs(batch.v[-1] - run.v[-1]).max() < 1e-9


def test_functions_get_the_inputs_they_ask_for():
    names = [j.name for j in SERVICER.joints[1:3]]
    torque = {names[0]: lambda t, q, v, a: a * v[6], names[1]: lambda t, q, v: -v[7]}
    batch = rm.simulate_batch(
        SERVICER,
        Q[0],
        V[0],
        0.1,
        integrator=rm.Integrator(step=0.01),
        torque=torque,
        runs=rm.Runs(inputs={"a": np.zeros(3)}),
    )
    assert np.array_equal(batch.q[0], batch.q[2])


@pytest.mark.parametrize(("dtype", "start", "step"), [
    ("float32", 0.0, 0.01), ("float32", 0.0, 0.1), ("float64", 1e6, 0.01), ("float64", 1e4, 1e-3),
])  # fmt: skip
def test_impulses_are_whole_whatever_the_precision_of_time(dtype, start, step):
    builder = rm.Builder("mass").body("mass", mass=2, inertia=(1, 1, 1))
    robot = builder.joint("slide", "prismatic", None, "mass").build()
    pulse = {"slide": rm.Pulse(start + 0.3, start + 1.1, 1.0)}
    options = {"step": step, "torque": pulse, "start": start, "dtype": dtype}
    batch = rm.simulate_batch(robot, [0.0], [0.0], 2.0, **grouped(True, **options))
    assert batch.v[-1, 0] == pytest.approx(0.4, rel=1e-6 if dtype == "float32" else 1e-9)


def test_a_batch_of_no_time_and_parameters_that_broadcast():
    batch = rm.simulate_batch(SERVICER, Q[:3], V[:3], 0.0, integrator=rm.Integrator(step=0.01))
    assert batch.t.shape == (1,)
    assert batch.q.shape == (3, 1, 15)
    name = f"{SERVICER.bodies[4].name}.mass"
    many = rm.simulate_batch(
        SERVICER,
        np.broadcast_to(Q[:3], (4, 3, 15)),
        V[:3],
        0.1,
        integrator=rm.Integrator(step=0.01),
        runs=rm.Runs(parameters={name: np.array([2.0, 3.0, 4.0])}),
    )
    assert many.evaluate(rm.kinetic_energy).shape == (4, 3, 2)
    with pytest.raises(rm.RemoraError, match="threads"):
        rm.simulate_batch(
            SERVICER, Q, V, 1.0, integrator=rm.Integrator(step=0.01), target=rm.Target(threads=-3)
        )


# Late times ---------------------------------------------------------------------------------------

LATE = 1e6  # s, where float32 is 0.06 s apart


def sway(t, q, v, rate):
    return np.concatenate([np.zeros(6), 0.1 * np.sin(rate * t) * np.ones(7)])


LATE_LOADS = {
    "function": {"torque": lambda t, q, v: -0.1 * v + 0.1 * np.cos(5.0 * t)},
    "with inputs": {"torque": sway, "inputs": {"rate": 3.0 + np.arange(37) / 8.0}},
    "pulse": {"torque": {ELBOW: rm.Pulse(LATE + 0.013, LATE + 0.4, 0.5)}},
    "profile": {
        "torque": {ELBOW: rm.Profile([LATE, LATE + 0.171, LATE + 0.5], [0.0, 0.9, -0.3], "linear")}
    },
    "wrenches": {
        "wrenches": lambda t, q, v: 0.1 * np.cos(7.0 * t) * np.ones((len(SERVICER.bodies), 6))
    },
}


@pytest.mark.parametrize("load", LATE_LOADS)
def test_the_time_is_double_in_single_precision(load):
    options = {"step": 0.01, "start": LATE, "sample": 0.1, **LATE_LOADS[load]}
    exact = rm.simulate_batch(SERVICER, Q, V, 0.5, **grouped(True, **options))
    single = rm.simulate_batch(SERVICER, Q, V, 0.5, **grouped(True, **options, dtype="float32"))
    still = rm.simulate_batch(
        SERVICER, Q, V, 0.5, integrator=rm.Integrator(step=0.01), start=LATE, record=0.1
    )
    assert single.v.dtype == np.float32
    assert np.abs(exact.v - still.v).max() > 0.01  # what acts can be seen
    assert np.abs(single.v - exact.v).max() < 2e-5 * (1.0 + np.abs(exact.v).max())


# Numbers of the robot that are impossible ---------------------------------------------------------

ARM = SERVICER.bodies[4].name


def numbers(name, bad, place=(3,)):
    """The robot's own number for 8 runs, one of them with another."""
    owner, _, field = name.rpartition(".")
    if owner:
        parts = SERVICER.bodies if owner in SERVICER.bodies else SERVICER.joints
        one = getattr(parts[owner], field)
    else:
        parts = SERVICER.joints if field == "placement" else SERVICER.bodies
        one = np.stack([getattr(part, field) for part in parts])
    values = np.broadcast_to(one, (8, *np.shape(one))).copy()
    values[place] = bad
    return values


IMPOSSIBLE = [
    (f"{ARM}.mass", -100.0, (3,), r"mass of run \[3\] must be positive: -100.0"),
    (f"{ARM}.mass", 0.0, (3,), r"mass of run \[3\] must be positive: 0.0"),
    ("mass", -1e-3, (3, 2), rf"mass of '{SERVICER.bodies[2].name}' of run \[3\] must be pos"),
    (f"{ARM}.inertia", np.diag([1.0, 1.0, -1.0]), (3,), "must be positive semi-definite"),
    (f"{ARM}.inertia", np.diag([1.0, 1.0, 3.0]), (3,), "violates the triangle inequality"),
    (f"{ARM}.inertia", np.eye(3) + np.eye(3, k=1), (3,), "must be symmetric"),
    (f"{ELBOW}.placement", 2.0 * SERVICER.joints[4].placement, (3,), "must be a unit dual quat"),
    (f"{ELBOW}.placement", [1.0, 0, 0, 0, 0.5, 0, 0, 0], (3,), "must be a unit dual quaternion"),
    ("placement", [2.0, 0, 0, 0, 0, 0, 0, 0], (3, 1), "must be a unit dual quaternion"),
    (f"{ELBOW}.damping", -1.0, (3,), "must not be negative"),
    (f"{ELBOW}.rotor_inertia", -1.0, (3,), "must not be negative"),
    (f"{ARM}.com", 1e60, (3,), "exceeds 1e"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bad", "place", "text"), IMPOSSIBLE, ids=lambda x: str(x)[:20])
def test_impossible_numbers_of_the_robot_are_refused(name, bad, place, text):
    own = {"parameters": {name: numbers(name, bad, place)}, "step": 0.02}
    with pytest.raises(rm.errors.InvalidValue, match=text):
        rm.simulate_batch(SERVICER, Q[:8], V[:8], 0.1, **grouped(True, **own))
    kept = rm.simulate_batch(SERVICER, Q[:8], V[:8], 0.1, **grouped(True, **own, failures="keep"))
    others = np.arange(8) != 3
    assert np.array_equal(kept.ok, others)
    assert np.isnan(kept.q[3]).all()
    good = numbers(name, numbers(name, bad, place)[0][place[1:]], place)
    whole = rm.simulate_batch(
        SERVICER,
        Q[:8],
        V[:8],
        0.1,
        integrator=rm.Integrator(step=0.02),
        runs=rm.Runs(parameters={name: good}),
    )
    assert whole.ok.all()
    assert np.array_equal(kept.v[others], whole.v[others])


def test_one_impossible_number_for_all_runs():
    with pytest.raises(rm.errors.InvalidValue, match=r"mass must be positive: -100.0"):
        rm.simulate_batch(
            SERVICER,
            Q,
            V,
            0.1,
            integrator=rm.Integrator(step=0.02),
            runs=rm.Runs(parameters={f"{ARM}.mass": -100.0}),
        )
    options = {"parameters": {f"{ARM}.mass": -100.0}, "failures": "keep", "step": 0.02}
    assert not rm.simulate_batch(SERVICER, Q, V, 0.1, **grouped(True, **options)).ok.any()


def test_placements_that_are_unit_but_for_rounding_are_made_unit():
    x = SERVICER.joints[4].placement
    plain = rm.simulate_batch(
        SERVICER,
        Q[0],
        V[0],
        0.1,
        integrator=rm.Integrator(step=0.02),
        runs=rm.Runs(parameters={f"{ELBOW}.placement": x}),
    )
    near = rm.simulate_batch(
        SERVICER,
        Q[0],
        V[0],
        0.1,
        integrator=rm.Integrator(step=0.02),
        runs=rm.Runs(parameters={f"{ELBOW}.placement": (1 + 3e-7) * x}),
    )
    assert np.abs(near.v - plain.v).max() < 1e-14


# Laws that cannot be compiled ---------------------------------------------------------------------


def writes_a_slice(t, q, v):
    tau = np.zeros(SERVICER.nv)
    tau[9:] = -0.5 * v[9:]  # here
    return tau


def writes_an_element(t, q, v):
    tau = np.zeros(SERVICER.nv)
    tau[9] = -0.5 * v[9]  # here
    return tau


def adds_in_place(t, q, v):
    tau = np.zeros(SERVICER.nv)
    tau -= v  # here
    return tau


def asks_if(t, q, v):
    if v[9] > 0.0:  # here
        return -v
    return v


def chooses(t, q, v):
    return np.where(v > 0.0, -v, v)  # here


def clips(t, q, v):
    return np.clip(-v, -1.0, 1.0)  # here


def converts(t, q, v):
    return -v * np.float64(v[9])  # here


def compares_a_float(t, q, v):
    return -v if float(v[9]) > 0.0 else v  # here


def takes_a_sine(t, q, v):
    return -v * math.sin(t)  # here


def interpolates(t, q, v):
    return -v * np.interp(t, [0.0, 1.0], [0.0, 1.0])  # here


def solves(t, q, v):
    return -np.linalg.solve(np.diag(v), v)  # here


def splines(t, q, v):
    from scipy.interpolate import CubicSpline

    return -v * CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 0.0])(t)  # here


def indexes(t, q, v):
    return -v * v[int(q[9])]  # here


def fails(t, q, v):
    raise KeyError("gain")  # here


@pytest.mark.parametrize(
    ("law", "reason", "advice"),
    [
        (writes_a_slice, "writes symbols into an array of numbers", "np.concatenate"),
        (writes_an_element, "writes symbols into an array of numbers", "np.concatenate"),
        (adds_in_place, "writes symbols into an array of numbers", "np.concatenate"),
        (asks_if, "uses a symbol as a condition", "select, less and clip"),
        (chooses, "uses a symbol as a condition", "select, less and clip"),
        (clips, "uses a symbol as a condition", "select, less and clip"),
        (converts, "converts a symbol to a number", "leave out the conversion"),
        (compares_a_float, "converts a symbol to a number", "leave out the conversion"),
        (takes_a_sine, "converts a symbol to a number", "NumPy's functions"),
        (interpolates, "passes symbols to a function for numbers", "rm.Profile"),
        (solves, "passes symbols to a function for numbers", "rm.algebra"),
        (splines, "converts a symbol to a number", ""),
        (indexes, "uses a symbol as an integer", "must be known"),
        (fails, "raised KeyError: 'gain'", ""),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_law_that_cannot_be_compiled_is_refused_with_its_line(law, reason, advice):
    with pytest.raises(rm.RemoraError) as caught:
        rm.simulate_batch(SERVICER, Q, V, 0.1, integrator=rm.Integrator(step=0.02), torque=law)
    text = str(caught.value)
    lines, first = inspect.getsourcelines(law)
    line = next(k for k, one in enumerate(lines) if "# here" in one)
    place = f"{__file__}, line {first + line}, in {law.__name__}: `{lines[line].strip()}` "
    assert text.startswith(place + reason)
    assert advice in text
    assert "casadi" not in text.lower()


def test_functions_to_compile_are_refused_with_their_line():
    with pytest.raises(rm.RemoraError, match=r"in writes_a_slice: `tau\[9:\] = .*np.concatenate"):
        rm.compile(lambda robot, q, v: writes_a_slice(0.0, q, v), SERVICER)


def test_a_law_that_gives_no_numbers():
    with pytest.raises(rm.RemoraError, match=r"torque must be numbers \(13,\), not str"):
        rm.simulate_batch(
            SERVICER, Q, V, 0.1, integrator=rm.Integrator(step=0.02), torque=lambda t, q, v: "none"
        )


def test_symbols_outside_of_tracing_are_casadi_s_own():
    casadi = pytest.importorskip("casadi")
    with pytest.raises(rm.RemoraError):
        rm.simulate_batch(SERVICER, Q, V, 0.1, integrator=rm.Integrator(step=0.02), torque=converts)
    assert math.isnan(float(casadi.SX.sym("x")))
    assert float(casadi.SX(2.5)) == 2.5


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_late_times_with_stops(dtype):
    """Contact is located in passes of their own, which see the time in double precision, too."""
    builder = rm.Builder("slide").body("a", mass=1.0, inertia=(1, 1, 1))
    robot = builder.joint(
        "x", "prismatic", None, "a", axis=(1, 0, 0), lower=-1.0, upper=0.2
    ).build()
    options = {"step": 0.01, "start": LATE, "stops": 200.0, "sample": 0.2}
    law = {"torque": lambda t, q, v: 8.0 * np.cos(5.0 * t) + 0.0 * v}
    exact = rm.simulate(
        robot,
        [0.0],
        [1.0],
        1.0,
        **grouped(**law, start=LATE, stops=200.0, sample=0.2, rtol=1e-10, limits="ignore"),
    )
    batch = rm.simulate_batch(
        robot,
        np.zeros((3, 1)),
        np.ones((3, 1)),
        1.0,
        **grouped(True, **options, **law, dtype=dtype),
    )
    assert exact.q.max() > 0.2
    assert np.abs(batch.v[1] - exact.v).max() < (1e-3 if dtype == "float32" else 1e-4)
