"""Random systems in C: phases, events, resets, noise, delays and clocks, as in a batch of one."""

from pathlib import Path

import pytest

import fuzz
import needs

#: Seeds of `fuzz.random_case` without parts that C does not have: sampled loads of several phases,
#: components that read phases or events.
SEEDS = (6, 9, 17, 20)


@needs.compiler
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_system_in_c_is_that_of_a_batch(seed, tmp_path: Path):
    assert not fuzz.in_c(fuzz.random_case(seed), tmp_path)
