"""Runs give the results that are frozen in `tests/reference`."""

import numpy as np
import pytest

import reference_runs


@pytest.mark.parametrize("name", reference_runs.CASES)
def test_results_are_those_of_the_reference(name):
    case = reference_runs.CASES[name]
    off = reference_runs.differences(case.made(), reference_runs.stored(name))
    assert {key: x for key, x in off.items() if not x <= case.tolerance} == {}


def test_every_file_is_of_a_case():
    assert {path.stem for path in reference_runs.FOLDER.iterdir()} == {*reference_runs.CASES}


def test_differences_are_found():
    reference = {"names": ["a"], "x": np.array([3.0, np.nan]), "small": np.array([1e-9])}
    found = {"names": ["b"], "x": np.array([3.0 + 3e-9, np.nan]), "small": np.array([2e-9])}
    off = reference_runs.differences(found, reference)
    assert off["names"] == np.inf
    assert off["x"] == pytest.approx(1e-9)
    assert off["small"] == pytest.approx(1e-6)
    assert reference_runs.differences({**found, "x": np.ones(2)}, reference)["x"] == np.inf
    assert reference_runs.differences({**found, "y": 1.0}, reference)["y"] == np.inf
