"""CasADi symbols with quick operators, for tracing.

An operator of CasADi's `SX` chooses among overloads for numbers, matrices and two kinds of symbols
at every call, which takes longer than the operation. A `Symbol` is a scalar `SX` whose operators
name the operation: a seventh of the time. It is an `SX` for CasADi and for users, makes the same
expressions, and its results are again of its kind. Anything but a symbol or a number is left to
CasADi.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# CasADi ships no type stubs; declared `Any`, it does not spread unknown types to its callers.
casadi: Any = importlib.import_module("casadi")
_binary: Any = casadi.SX.binary
_unary: Any = casadi.SX.unary
#: Numbers as symbols, except zero, whose sign a dictionary does not see.
_numbers: dict[float, Any] = {}
#: Maximum number of them.
_MOST = 4096


def _operator(code: int, name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return the operator of an operation; `name` is that of CasADi's, for other operands."""
    general = getattr(casadi.SX, name)

    def operator(self: Any, other: Any) -> Any:
        kind = other.__class__
        if kind is not Symbol and kind is not casadi.SX:
            if kind is not float and kind is not int:
                return general(self, other)
            other = _number(other)
        made = _binary(code, other, self) if reflected else _binary(code, self, other)
        made.__class__ = Symbol
        return made

    return operator


def unary(code: int) -> Callable[[Any], Any]:
    """Return the function of a symbol or number that performs an operation of CasADi."""

    def function(x: Any) -> Any:
        made = _unary(code, _operand(x))
        made.__class__ = Symbol
        return made

    return function


def binary(code: int) -> Callable[[Any, Any], Any]:
    """Return the function of two symbols or numbers that performs an operation of CasADi."""

    def function(x: Any, y: Any) -> Any:
        made = _binary(code, _operand(x), _operand(y))
        made.__class__ = Symbol
        return made

    return function


def if_else(condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes` if the condition holds, otherwise `no`, as CasADi's `if_else` writes it."""
    condition = _operand(condition)
    first = _binary(casadi.OP_IF_ELSE_ZERO, condition, _operand(yes))
    second = _binary(casadi.OP_IF_ELSE_ZERO, _unary(casadi.OP_NOT, condition), _operand(no))
    made = _binary(casadi.OP_ADD, first, second)
    made.__class__ = Symbol
    return made


def as_symbol(x: Any) -> Any:
    """Return a scalar `SX` as a `Symbol`."""
    made = casadi.SX(x)
    made.__class__ = Symbol
    return made


def _operand(x: Any) -> Any:
    return x if isinstance(x, casadi.SX) else _number(float(x))


def _number(x: float) -> Any:
    if not x:
        return casadi.SX(x)
    known = _numbers.get(x)
    if known is None:
        if len(_numbers) >= _MOST:
            _numbers.clear()
        known = _numbers[x] = casadi.SX(x)
    return known


class Symbol(casadi.SX):
    """A scalar `SX` with quick operators; made by `as_symbol`."""

    __slots__ = ()
    __add__ = _operator(casadi.OP_ADD, "__add__")
    __radd__ = _operator(casadi.OP_ADD, "__radd__", reflected=True)
    __sub__ = _operator(casadi.OP_SUB, "__sub__")
    __rsub__ = _operator(casadi.OP_SUB, "__rsub__", reflected=True)
    __mul__ = _operator(casadi.OP_MUL, "__mul__")
    __rmul__ = _operator(casadi.OP_MUL, "__rmul__", reflected=True)
    __truediv__ = _operator(casadi.OP_DIV, "__truediv__")
    __rtruediv__ = _operator(casadi.OP_DIV, "__rtruediv__", reflected=True)
    __lt__ = _operator(casadi.OP_LT, "__lt__")
    __le__ = _operator(casadi.OP_LE, "__le__")
    __gt__ = _operator(casadi.OP_LT, "__gt__", reflected=True)
    __ge__ = _operator(casadi.OP_LE, "__ge__", reflected=True)
    __neg__ = unary(casadi.OP_NEG)
    # NumPy's functions call these methods of the elements of an array of objects
    sin = unary(casadi.OP_SIN)
    cos = unary(casadi.OP_COS)
    sqrt = unary(casadi.OP_SQRT)
    fabs = unary(casadi.OP_FABS)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return what pickle stores: a plain `SX`."""
        return casadi.SX, (), self.__getstate__()


# where its type is read, as in digests and messages, it is CasADi's
Symbol.__module__, Symbol.__qualname__, Symbol.__name__ = "casadi.casadi", "SX", "SX"
