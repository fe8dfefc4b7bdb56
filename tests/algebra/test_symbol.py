"""Symbols with quick operators make the expressions that CasADi's own make."""

import math
import operator
import pickle

import casadi
import numpy as np
import pytest

from remora.algebra.array_ops import arctan2, asarray, less, rounded, select, sin, sqrt
from remora.algebra.symbol import Symbol
from remora.identity.digest import NoIdentity, digest

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le,
    operator.gt, operator.ge, operator.pow,
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 2, True, math.nan, math.inf, np.float64(3.5), np.int64(2)]


def pair(name="x"):
    """Return a quick symbol and CasADi's own of the same name."""
    plain = casadi.SX.sym(name)
    quick = asarray(plain)[()]
    assert type(quick) is Symbol
    assert type(plain) is casadi.SX
    return quick, plain


@pytest.mark.parametrize("apply", OPERATORS)
def test_operators_make_the_same_expressions(apply):
    (x, plain_x), (y, plain_y) = pair("x"), pair("y")
    assert str(apply(x, y)) == str(apply(plain_x, plain_y))
    assert str(apply(x, plain_y)) == str(apply(plain_x, y)) == str(apply(plain_x, plain_y))
    for number in NUMBERS:
        assert str(apply(x, number)) == str(apply(plain_x, number))
        assert str(apply(number, x)) == str(apply(number, plain_x))
    if apply is not operator.pow:
        assert all(type(z) is Symbol for z in (apply(x, y), apply(plain_x, y), apply(x, 2.0)))


def test_functions_make_the_same_expressions():
    (x, plain_x), (y, plain_y) = pair("x"), pair("y")
    xs, ys = np.array([x, 0.5], object), np.array([y, x], object)
    made = [*sin(xs), *sqrt(ys), *arctan2(xs, ys), *rounded(xs * ys), *select(less(xs, ys), xs, 2)]
    expected = [
        casadi.sin(plain_x), casadi.sin(casadi.SX(0.5)),
        casadi.sqrt(plain_y), casadi.sqrt(plain_x),
        casadi.atan2(plain_x, plain_y), casadi.atan2(0.5, plain_x),
        casadi.copysign(product := plain_x * plain_y, product),
        casadi.copysign(half := 0.5 * plain_x, half),
        casadi.if_else(plain_x < plain_y, plain_x, 2.0),
        casadi.if_else(plain_x > 0.5, 0.5, 2.0),
    ]  # fmt: skip
    assert [str(z) for z in made] == [str(z) for z in expected]
    assert all(type(z) is Symbol for z in made)
    assert str(select(np.array([True, False]), xs, ys)) == str(np.array([x, x], object))


def test_a_symbol_is_one_of_casadi_for_everyone_else():
    x, plain = pair()
    assert isinstance(x, casadi.SX)
    assert (type(x).__module__, type(x).__name__) == (casadi.SX.__module__, "SX")
    with pytest.raises(NoIdentity, match=r"casadi\.casadi\.SX.* is symbolic"):
        digest(x)
    column = casadi.vertcat(plain, 2.0)
    assert str(x * column) == str(plain * column)
    assert str(x * np.array([1.0, 2.0])) == str(plain * np.array([1.0, 2.0]))
    with casadi.global_pickle_context():
        packed = pickle.dumps(x * x)
    with casadi.global_unpickle_context():
        assert type(pickle.loads(packed)) is casadi.SX
