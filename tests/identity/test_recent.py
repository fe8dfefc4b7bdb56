"""The cache of what was used last."""

from remora.identity.recent import Recent


def test_what_was_not_used_for_the_longest_time_is_dropped():
    recent = Recent(2)
    assert recent.keep("a", 1) == 1
    assert recent.keep("b", 2) == 2
    assert recent.get("a") == 1
    recent.keep("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_without_a_key_nothing_is_kept():
    recent = Recent(2)
    assert recent.keep(None, 1) == 1
    assert recent.get(None) is None
