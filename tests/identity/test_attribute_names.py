"""Attributes are no globals: a function that reads `span.stop` does not depend on `stop`."""

import types

from remora.identity.digest import digest

SOURCE = """
def stop():
    return {0}

def law(span):
    return span.stop

def ends(span):
    return stop()
"""


def module(number):
    made = types.ModuleType("laws_of_a_user")
    exec(SOURCE.format(number), vars(made))
    return made


def test_a_global_counts_only_where_it_is_read():
    one, two = module(1), module(2)
    assert digest(one.law) == digest(two.law)
    assert digest(one.ends) != digest(two.ends)
