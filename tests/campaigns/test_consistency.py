"""NIS over a campaign: the verdict on a filter in the result and in the report."""

import numpy as np
import pytest

import remora as rm
from remora.estimation import consistency

SCENARIO = """
scenario: 1
robot: vt18_satellite
seed: 3
start: {speeds: {J1: 0.1}}
components:
  - {type: rate_gyro, name: gyro, frame: body_1, sample_time: 0.1, noise: 1.0e-3, drift: 1.0e-4}
  - {type: star_tracker, name: tracker, frame: body_1, sample_time: 0.1, noise: 1.0e-3}
  - {type: attitude_filter, name: filter, rate_noise: 1.0e-3, drift: 1.0e-4, every: 5,
     attitude_noise: NOISE, bias_deviation: 0.01, sample_time: 0.1}
phases: [{duration: 10}]
integrator: {name: rk4, step: 0.1}
output: {sample: 0.1}
"""
STUDY = """
campaign: 1
scenario: filter.yaml
runs: 200
seed: 9
disperse:
  gyro.bias[0]: {normal: {std: 0.01}}
  gyro.bias[1]: {normal: {std: 0.01}}
  gyro.bias[2]: {normal: {std: 0.01}}
outputs:
  nis: {signal: filter.nis}
bands:
  nis of the filter: {signal: filter.nis, freedoms: 3}
  rate: {signal: gyro.rate}
"""


@pytest.mark.parametrize(("noise", "good"), [("1.0e-3", True), ("2.0e-3", False)])
def test_the_nis_of_a_campaign(noise, good, tmp_path):
    """With the noise of the sensor it is consistent; with twice the noise it is not."""
    (tmp_path / "filter.yaml").write_text(SCENARIO.replace("NOISE", noise))
    (tmp_path / "study.yaml").write_text(STUDY)
    campaign = rm.campaign(tmp_path / "study.yaml", tmp_path / "out", workers=0, progress=False)
    found = campaign.consistency("nis of the filter")
    values = campaign["nis of the filter"]
    seen = values.any(axis=0)
    assert set(np.diff(np.flatnonzero(seen))) == {5}
    by_hand = consistency(values[:, seen], 3)
    assert np.array_equal(found.mean, by_hand.mean)
    assert (found.low, found.high) == (by_hand.low, by_hand.high)
    assert found.consistent == good, str(found)
    assert campaign.consistency_times("nis of the filter") == pytest.approx(campaign.t[seen])
    page = rm.campaign_report(campaign, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Consistency of filters" in page
    assert f"nis of the filter: {found}" in page
    with pytest.raises(rm.errors.UnknownName, match="nis of the filter"):
        campaign.consistency("rate")
