"""A campaign equals its replays: at the end of runs that events stop, and by the same clock."""

import numpy as np
import pytest

import remora as rm
from sliders import slider

SCENARIO = """
scenario: 1
robot: slider.yaml
start: {speeds: {slide: 0.5}}
phases:
  - duration: 4
  - duration: 6
    torque: {slide: 0.1}
    until: [{time: 2.6, name: over, action: stop}, {time: 0.3, name: soon, action: record}]
integrator: {name: INTEGRATOR, step: 0.1}
"""
STUDY = """
campaign: 1
scenario: scenario.yaml
runs: 4
disperse: {start.speeds.slide: {uniform: {low: 0.1, high: 0.9}}}
outputs:
  final: {joint: slide}
  most: {joint: slide, take: max}
  path: {speed: slide, take: integral}
  soon: {event: soon}
success:
  there: {output: final, above: 1.3}
  no end: {event: over, occurs: false}
SAMPLE
"""


@pytest.mark.parametrize("sample", ["", "sample: 1"])
@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_runs_that_are_stopped_between_samples(tmp_path, sample, integrator):
    """Exact: constant force from 4 s on, and the end at 6.6 s."""
    rm.save_robot(slider(), tmp_path / "slider.yaml")
    scenario = SCENARIO.replace("INTEGRATOR", integrator)
    (tmp_path / "scenario.yaml").write_text(scenario, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(STUDY.replace("SAMPLE", sample), encoding="utf-8")
    found = rm.campaign(tmp_path / "study.yaml", tmp_path / "out", workers=0, progress=False)
    v = found["start.speeds.slide"]
    exact = 6.6 * v + 0.5 * 0.1 * 2.6**2
    assert found["end"] == pytest.approx(np.full(4, 6.6), abs=1e-12)
    assert found["soon"] == pytest.approx(np.full(4, 4.3), abs=1e-12)
    assert found["final"] == pytest.approx(exact, abs=1e-9)
    assert np.array_equal(found["most"], found["final"])
    assert np.array_equal(found["there"], (exact > 1.3).astype(float))
    assert not np.any(found["no end"])
    for k in range(4):
        run = found.replay(k)
        assert run.t[-1] == pytest.approx(found["end"][k], abs=1e-12)
        assert run.q[-1, 0] == pytest.approx(found["final"][k], abs=1e-9)
        path = np.sum(0.5 * (run.v[1:, 0] + run.v[:-1, 0]) * np.diff(run.t))
        assert path == pytest.approx(found["path"][k], abs=1e-9)
