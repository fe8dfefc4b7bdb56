"""Outputs of studies and sizes of blocks, without simulation."""

import numpy as np
import pytest

import remora as rm
from remora.campaigns.blocks import SHORTEST, block_size
from remora.campaigns.outputs import BlockSamples, output
from remora.campaigns.study_schema import OutputFile, QuantityFile
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
    fired = np.array([[[0.0]], [[1.0]]])
    times = np.array([[np.nan], [1.7]])
    events = BatchEvents(("far",), np.array([0, 1]), times, fired, times)
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
    made = output(SYSTEM, "x", OutputFile(speed="J1", take="integral"))
    assert made.quantity.unit == made.quantity.shown_unit == "rad"
    assert output(SYSTEM, "x", OutputFile(joint="J1", take="integral")).quantity.unit == "rad s"
    with pytest.raises(rm.InvalidValue, match="unit of an integral"):
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
    with pytest.raises(rm.ModelError) as refused:
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
