"""Outputs of studies and sizes of blocks, without simulation."""

from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.campaigns.blocks import SHORTEST, block_size
from remora.campaigns.outputs import MOTIONS, BlockSamples, Criterion, first_capture, output
from remora.campaigns.study_schema import CriterionFile, OutputFile, QuantityFile
from remora.simulation.batch.result import Batch, BatchEvents, FinalStates

ROBOT = rm.load("vt18_satellite")
SYSTEM = rm.System(ROBOT)
T = np.array([0.0, 0.5, 2.0, 3.0])
J1 = ROBOT.joints["J1"]


@pytest.fixture
def samples():
    """Return two runs of which J1 turns at 0.1 and 0.2 rad/s; the second ends after 2.5 s."""
    q = np.tile(rm.neutral(ROBOT), (2, T.size, 1))
    v = np.zeros((2, T.size, ROBOT.nv))
    v[..., J1.v] = np.array([0.1, 0.2])[:, None, None]
    q[..., J1.q] = v[..., J1.v] * T[:, None]
    last, end = q[:, -1].copy(), np.array([3.0, 2.5])
    last[:, J1.q] = v[:, -1, J1.v] * end[:, None]
    final = FinalStates(end, last, v[:, -1].copy(), {})
    q[1, 3], v[1, 3] = np.nan, np.nan
    fired = np.array([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    times = np.array([[0.9, np.nan], [1.2, 1.7]])
    first = np.array([[np.nan, 0.9], [1.7, 1.2]])
    events = BatchEvents(("far", "near"), np.array([1, 2]), times, fired, first)
    return BlockSamples(
        Batch(ROBOT, T, q, v, {}, np.ones(2, bool), "complete", SYSTEM, end=end, final=final,
              events=events)
    )  # fmt: skip


def taken(samples, **told):
    return output(SYSTEM, "x", OutputFile.model_validate(told, context=ROBOT)).of(samples)


def test_what_is_taken_of_the_samples(samples):
    for take, wanted in (
        ("final", [0.3, 0.5]),
        ("max", [0.3, 0.5]),
        ("min", [0.0, 0.0]),
        ("mean", [0.1375, 1.0 / 4]),
    ):
        assert taken(samples, joint="J1", take=take) == pytest.approx(wanted, abs=1e-15)


def test_integrals_end_with_the_run(samples):
    assert taken(samples, speed="J1", take="integral") == pytest.approx([0.3, 0.5])
    assert taken(samples, joint="J1", take="integral") == pytest.approx([0.45, 0.625])
    made = output(SYSTEM, "x", OutputFile(speed="J1", take="integral"))
    assert made.quantity.unit == made.quantity.shown_unit == "rad"
    assert output(SYSTEM, "x", OutputFile(joint="J1", take="integral")).quantity.unit == "rad s"
    with pytest.raises(rm.errors.InvalidValue, match="unit of an integral"):
        output(SYSTEM, "x", OutputFile(speed="J1", take="integral", unit="deg/s"))


def test_angles_are_shown_in_the_unit_of_their_heading(samples):
    for told, unit, factor in (
        ({"joint": "J1", "unit": "deg"}, "deg", 180.0 / np.pi),
        ({"speed": "J1", "unit": "deg/s"}, "deg/s", 180.0 / np.pi),
        ({"joint": "J1", "unit": "rad"}, "rad", 1.0),
    ):
        made = output(SYSTEM, "x", OutputFile.model_validate(told, context=ROBOT)).quantity
        assert made.shown_unit == unit
        assert made.shown(np.array([0.3, -2.0])) == pytest.approx([0.3 * factor, -2.0 * factor])


def test_a_number_at_a_time_and_criteria_on_either_side(samples):
    assert taken(samples, joint="J1", at=0.5) == pytest.approx([0.05, 0.1], abs=1e-15)
    assert taken(samples, joint="J1", minus=0.5) == pytest.approx([-0.2, 0.0], abs=1e-15)
    first = taken(samples, event="far")
    assert np.isnan(first[0])
    assert first[1] == 1.7
    assert taken(samples, event="near").tolist() == [0.9, 1.2]
    x = {"x": np.array([0.1, 0.3, np.nan])}
    for told, holds in (
        ({"above": 0.2}, [False, True, False]),
        ({"below": 0.2}, [True, False, False]),
        ({"above": 0.05, "below": 0.2}, [True, False, False]),
    ):
        criterion = Criterion("c", CriterionFile.model_validate({"output": "x", **told}))
        assert criterion.holds(x, samples).tolist() == holds
    for occurs in (True, False):
        criterion = Criterion("c", CriterionFile.model_validate({"event": "far", "occurs": occurs}))
        assert criterion.holds({}, samples).tolist() == [not occurs, occurs]


def test_motions_of_frames_are_in_inertial_axes():
    """Against differences of pose; the body is turned, so that its own axes are others."""
    q, v = rm.random_state(ROBOT, 4)
    h = 1e-6
    ends = [rm.integrate(ROBOT, q, s * h * v) for s in (-0.5, 0.5)]
    before, after = (rm.frame_pose(ROBOT, x, "body_3") for x in ends)
    speed = (rm.algebra.pose.translation(after) - rm.algebra.pose.translation(before)) / h
    assert np.allclose(MOTIONS["velocity"](ROBOT, q, v, "body_3"), speed, atol=1e-7)
    R = [rm.algebra.pose.to_rotation_matrix(x) for x in (before, after)]
    W = (R[1] - R[0]) @ (R[0] + R[1]).T / (2 * h)
    rate = MOTIONS["angular_velocity"](ROBOT, q, v, "body_3")
    assert np.allclose(rate, [W[2, 1], W[0, 2], W[1, 0]], atol=1e-7)


def test_numbers_of_a_capture_are_those_of_the_first_one():
    pull = np.array([[3.0, 0, 4, 1, 2, 2], [0, 0, 1.0, 0, 0, 7], [0, 0, 0, 0, 0, 0]])
    one = SimpleNamespace(
        activated=("grip",),
        t=np.array([1.0, np.nan, np.nan]),
        impulses={"grip": pull},
        energy_loss=np.array([0.5, np.nan, np.nan]),
    )
    two = SimpleNamespace(
        activated=("grip", "other"),
        t=np.array([4.0, 5.0, np.nan]),
        impulses={"grip": pull},
        energy_loss=np.array([9.0, 0.7, np.nan]),
    )
    batch = SimpleNamespace(q=np.zeros((3, 4, 1)), switches=(one, two))  # fmt: skip
    for what, numbers in (
        ("time", [1.0, 5.0]),
        ("impulse", [5.0, 1.0]),
        ("angular_impulse", [3.0, 7.0]),
        ("energy_loss", [0.5, 0.7]),
    ):
        found = first_capture(batch, "grip", what)
        assert found[:2] == pytest.approx(numbers)
        assert np.isnan(found[2])


def test_runs_without_the_given_event_have_no_number(samples):
    found = taken(samples, joint="J1", given="far")
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(0.5)


STUDY = """
campaign: 1
scenario: vt18
runs: 5
seed: 3
disperse:
  start.{where}omega[1]: {{normal: {{std: 0.1}}}}
  start.{where}rpy[0]: {{uniform: {{low: -1, high: 1}}}}
outputs: {{angle: {{joint: J1{given}}}}}
"""


def written(tmp_path, **parts):
    file = tmp_path / "study.yaml"
    file.write_text(STUDY.format(**{"where": "base.", "given": "", **parts}), encoding="utf-8")
    return file


def test_a_base_by_the_name_of_its_joint(tmp_path):
    name = ROBOT.joints[0].name
    study = rm.load_study(written(tmp_path, where=f"bases.{name}."))
    values, inputs = study.inputs(0, 5)
    assert np.array_equal(inputs.v[:, 1], values[f"start.bases.{name}.omega[1]"])
    turned = rm.algebra.pose.to_rpy(inputs.q[:, :8])
    assert np.allclose(turned[:, 0], values[f"start.bases.{name}.rpy[0]"])


def test_a_dispersed_product_of_inertia_is_in_both_places(tmp_path):
    file = written(tmp_path)
    told = file.read_text(encoding="utf-8").replace("start.base.omega[1]", "body_2.inertia[0,1]")
    file.write_text(told, encoding="utf-8")
    values, inputs = rm.load_study(file).inputs(0, 5)
    inertia, drawn = inputs.parameters["body_2.inertia"], values["body_2.inertia[0,1]"]
    assert np.ptp(drawn) > 0.0
    assert np.array_equal(inertia[:, 0, 1], drawn)
    assert np.array_equal(inertia[:, 1, 0], drawn)
    assert np.array_equal(inertia[:, 2], np.tile(ROBOT.bodies["body_2"].inertia[2], (5, 1)))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"where": "bases.none."}, "no joint named 'none'"),
        ({"where": "bases.J1."}, "is revolute, not free"),
        ({"where": "bases."}, "start.bases.JOINT.omega"),
        ({"given": ", given: none"}, "no event named 'none'"),
    ],
)
def test_what_is_not_there_is_named(parts, words, tmp_path):
    with pytest.raises(rm.errors.ModelError) as refused:
        rm.load_study(written(tmp_path, **parts))
    assert words in str(refused.value)


def test_every_worker_gets_several_blocks(tmp_path):
    file = written(tmp_path)
    large = rm.load_study(file, runs=1_000_000)
    assert block_size(large, workers=2) == block_size(large)
    some = rm.load_study(file, runs=20_000)
    assert some.runs / block_size(some, workers=4) >= 4 * 5
    assert block_size(some, workers=1000) == SHORTEST
    assert block_size(rm.load_study(file), workers=2) == 5
    assert block_size(some, 7, workers=2) == 7


@pytest.mark.parametrize("minus", ["-70 deg", ["5 deg", 1.0], -1.25, "2 deg/s"])
def test_a_desired_value_in_degrees_is_stored_in_rad(minus):
    told = QuantityFile(joint="elbow", minus=minus).model_dump()["minus"]  # warnings are errors
    rad = {"-70 deg": -np.radians(70), -1.25: -1.25, "2 deg/s": np.radians(2)}
    assert np.array_equal(told, rad[minus] if not isinstance(minus, list) else [np.radians(5), 1.0])
