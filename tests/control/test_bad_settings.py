"""Every law and reference of the tables under settings, states and goals that are wrong or extreme.

Each gives an error that names what is wrong, or finite numbers: a new row of the table is covered.
"""

import dataclasses

import numpy as np
import pytest

import remora as rm
from arms import arm
from laws_on_small_robots import MADE, values
from remora.algebra import pose
from remora.components.component import TIMING

#: Names, flags and choices; what they may be is tested with each law.
CHOSEN = ("joints", "rows", "base_rows", "secondary")
#: Numbers that may be negative.
SIGNED = {"speeds", "turns", "start_point", "center", "normal", "waypoints", "orientation"}
#: Settings that no law takes.
NEVER = {
    "nan": np.nan, "infinite": np.inf, "text": "much", "complex": 1j, "empty": [],
    "ragged": [[1.0], [1.0, 2.0]], "seven": np.ones(7), "one is nan": (1.0, np.nan, 1.0),
    "nan matrix": np.full((6, 6), np.nan), "asymmetric": np.eye(6) + np.diag(np.ones(5), 1),
    "indefinite": np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]),
    "semi-definite": np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]),
}  # fmt: skip


def numbers_of(component):
    """Return the names of the numeric fields of a component."""
    found = []
    for item in dataclasses.fields(component):
        value = getattr(component, item.name)
        if item.init and item.name not in (*TIMING, *CHOSEN) and not isinstance(value, (str, bool)):
            found.append(item.name)
    return found


FIELDS = [(kind, name) for kind, (_, law, _) in MADE.items() for name in numbers_of(law)]


def finite_outputs(law, robot, q, v, inputs, t=0.1):
    found = values(law, robot, q, v, inputs, t)
    return all(np.all(np.isfinite(x)) for x in found.values())


def test_every_type_of_the_table_is_here():
    packages = ("remora.control.laws", "remora.control.references", "remora.actuators.reaction")
    laws = [name for name, row in rm.COMPONENTS.items() if row.__module__.startswith(packages)]
    assert list(MADE) == laws


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_a_number_that_makes_no_sense_is_refused(kind, name):
    robot, law, _ = MADE[kind]
    for told, bad in NEVER.items():
        with pytest.raises(rm.RemoraError) as error:
            dataclasses.replace(law, **{name: bad}).interface(robot)
        assert len(str(error.value)) > 15, told


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_zero_and_negative_numbers_are_refused_or_give_finite_outputs(kind, name):
    robot, law, inputs = MADE[kind]
    q, v = rm.random_state(robot, 3)
    for number in (0.0, -1.0):
        try:
            changed = dataclasses.replace(law, **{name: number})
            changed.interface(robot)
        except rm.RemoraError:
            continue
        assert number == 0.0 or name in SIGNED
        assert finite_outputs(changed, robot, q, v, inputs)


def goals(inputs):
    """Return inputs with half a turn, a jump to far away, and the frame's own place at zero."""
    yield inputs
    if any(key.endswith("pose") for key in inputs):
        for xyz, rpy in (
            ([0.5, 0, 0], [np.pi, 0, 0]), ([0.5, 0, 0], [0, 0, np.pi]), ([0, 0, 0], [0, 0, 0]),
            ([1e6, -1e6, 3e5], [1, 1, 1]),
        ):  # fmt: skip
            for sign in (1.0, -1.0):
                x = sign * pose.from_xyz_rpy(xyz, rpy)
                yield {key: x if key.endswith("pose") else y for key, y in inputs.items()}
    else:
        for scale in (0.0, 1e9, -1e9):
            yield {key: scale * np.asarray(x, dtype=float) for key, x in inputs.items()}


def states(robot):
    """Return an outstretched robot at rest and fast, a joint beyond its limit, a random state."""
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    some = rm.random_state(robot, 5)
    beyond = q.copy()
    beyond[-1] = 5.0
    return [(q, v), (q, 100.0 * some[1]), (beyond, v), some]


def variants(law):
    """Return a law as it is, and without and with damping."""
    yield law, None
    if "damping" in numbers_of(law) and not isinstance(law, rm.control.Admittance):
        options = {"method": "least_squares"} if isinstance(law, rm.control.DesiredReaction) else {}
        yield dataclasses.replace(law, damping=0.0, **options), False
        yield dataclasses.replace(law, damping=0.05, **options), True


@pytest.mark.parametrize("kind", MADE)
def test_singular_poses_jumps_and_half_turns_are_an_error_or_finite(kind):
    robot, law, inputs = MADE[kind]
    for own, damped in variants(law):
        for q, v in states(robot):
            for goal in goals(inputs):
                for t in (0.05,) if inputs else (0.0, 0.05, 1e9, -1.0):
                    with np.errstate(all="raise"):
                        try:
                            assert finite_outputs(own, robot, q, v, goal, t)
                        except rm.errors.SingularMatrix:
                            assert not damped  # damping bounds the solution at a singular pose


#: Laws that are made without damping there.
SINGULAR = ("resolved_rate",)


@pytest.mark.parametrize("kind", MADE)
def test_a_run_from_a_singular_pose_ends_with_finite_numbers_or_names_the_law(kind):
    robot, law, inputs = MADE[kind]
    connected = {f"{kind}.{key}": value for key, value in inputs.items()}
    system = rm.System(robot, {kind: law}, connected)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    if kind in SINGULAR:
        with pytest.raises(rm.errors.SimulationError, match=f"'{kind}'.*damping"):
            rm.simulate(system, q, v, 0.04, integrator=rm.Integrator("rk4", step=0.02))
        return
    run = rm.simulate(system, q, v, 0.04, integrator=rm.Integrator("rk4", step=0.02))
    assert np.all(np.isfinite(run.q))
    assert np.all(np.isfinite(run.v))


PD = arm(2)


@pytest.mark.parametrize("gain", ["kp", "kd"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, "much", [1.0, 2.0], [[1.0], [1.0, 2.0]]])
def test_gains_of_pd_laws(gain, bad):
    gains = {"kp": 1.0, "kd": 1.0, gain: bad}
    for make in (
        lambda: rm.control.JointPD(PD, {"j0": 0.1}, **gains, sample_time=0.1),
        lambda: rm.control.AttitudePD(PD, [1, 0, 0, 0], **gains, sample_time=0.1),
    ):
        with pytest.raises(rm.RemoraError, match=gain):
            make()


@pytest.mark.parametrize("limit", ["max_speed", "max_acceleration"])
@pytest.mark.parametrize("law", ["minimum_jerk", "trapezoidal"])
def test_durations_that_exceed_the_limits_of_a_reference_are_refused(law, limit):
    points = [[0.0, 0.0], [1.0, -2.0], [1.5, 0.0]]
    limits = {"max_speed": 0.5, limit: 0.5, "law": law}
    shortest = rm.control.JointReference(points, **limits)
    with pytest.raises(rm.RemoraError, match="at least"):
        rm.control.JointReference(points, durations=0.9 * shortest.durations, **limits)
    for scale in (1.0, 1.7):
        slower = rm.control.JointReference(points, durations=scale * shortest.durations, **limits)
        assert np.allclose(slower.ramps, scale * shortest.ramps)
        times = np.linspace(0.0, slower.durations.sum(), 501)
        for key, most in (("velocity", 0.5), ("acceleration", limits.get("max_acceleration"))):
            largest = max(np.abs(values(slower, PD, *REST, t=t)[key]).max() for t in times)
            assert most is None or largest <= most * (1 + 1e-9)


REST = rm.neutral(PD), np.zeros(PD.nv)
