"""A few fixed seeds of the fuzzer; `make fuzz` tries new ones."""

import pytest

import fuzz


@pytest.mark.filterwarnings("ignore:joint .* beyond", "ignore:run .* beyond")
@pytest.mark.parametrize("seed", fuzz.CHOSEN)
def test_alone_in_a_batch_in_a_campaign_and_replayed(seed):
    _, found = fuzz.differences(seed)
    assert not found
