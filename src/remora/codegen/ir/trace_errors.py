"""Tracing errors that show the line of the user's function and what to write instead."""

from __future__ import annotations

import contextlib
import linecache
import re
import threading
import traceback
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from remora.algebra.array_ops import casadi
from remora.errors import RemoraError
from remora.identity.code import is_library


class SymbolLost(RemoraError):
    """Raised where code needs the value of a symbol, known only when the kernel is called."""


_SELECT = (
    "what is compiled has no values yet: instead of if, and, or, max(), np.where or np.clip use "
    "select, less and clip of rm.algebra.array_ops, select(less(x, 0.0), a, b)"
)
_WRITE = (
    "an array of numbers cannot hold symbols: put the array together from its parts, "
    "np.concatenate([np.zeros(9), -k * v[9:]]) or rm.algebra.array_ops.stack([...])"
)
_NUMBER = (
    "float(), int(), math.sin(...), np.float64(...) and dtype=float need a value, which there is "
    "none of before the compiled function is called: use NumPy's functions (np.sin) and leave "
    "out the conversion; where symbols are written into an array of floats (tau[9:] = ...), "
    "join the parts instead: np.concatenate([a, b])"
)
_INDEX = "an index or a count must be known when the function is compiled"
_UNTRACEABLE = (
    "this function works on numbers only and cannot be traced: write it with + - * /, np.sin and "
    "the like and rm.algebra; instead of np.interp give an rm.Profile; instead of np.linalg.solve "
    "use rm.algebra.linear; leave out out=. Parameters of components are symbols, too, in exported "
    "C and where they differ from run to run"
)

#: Assignment to an element or slice of an array, or an in-place operation such as `tau += x`.
_IN_PLACE = re.compile(r"^\s*[\w.]+(\[[^=]*\]\s*[-+*/@]?=(?!=)|\s*[-+*/@]=)")


@contextlib.contextmanager
def explained() -> Generator[None]:
    """Convert exceptions in a user's function on symbols to errors that say where and why.

    Inside, `float()` of a symbol raises; otherwise it would be NaN and comparisons silently false.

    Raises:
        RemoraError: with file, line, the text of the line, and what to write instead.
    """
    with _no_numbers_of_symbols():
        try:
            yield
        except RemoraError as error:
            if not isinstance(error, SymbolLost):
                raise
            raise _explanation(error) from error
        except Exception as error:
            raise _explanation(error) from error


def traced_fault(error: Exception) -> str | None:
    """Return where and why a function failed on symbols, and a remedy; None if there is none."""
    if not getattr(_tracing, "depth", 0):
        return None
    where = _users_line(error)
    reason, advice = _reason(error, "" if where is None else where[1])
    if not advice:
        return None
    place = "" if where is None else f" ({where[0]}: `{where[1]}`)"
    return f"{reason}{place}; {advice}"


def _explanation(error: Exception) -> Exception:
    """Return the error for an exception; the exception itself if it is not from user code."""
    where = _users_line(error)
    text = "" if where is None else where[1]
    reason, advice = _reason(error, text)
    if where is None and not advice:
        return error
    place = "the function cannot be compiled" if where is None else where[0]
    shown, hint = f" `{text}`" if text else "", f"; {advice}" if advice else ""
    return RemoraError(f"{place}:{shown} {reason}{hint}")


def _reason(error: Exception, line: str) -> tuple[str, str]:
    """Return the cause and the remedy for an error, from the error and its source line."""
    text, writes = str(error), _IN_PLACE.match(line) is not None
    # NumPy raises its own error if an element of an array cannot be converted
    if isinstance(error, SymbolLost) or isinstance(error.__cause__, SymbolLost):
        if writes:
            return "writes symbols into an array of numbers", _WRITE
        return "converts a symbol to a number", _NUMBER
    if isinstance(error, RuntimeError) and "truth value" in text:
        return "uses a symbol as a condition", _SELECT
    if isinstance(error, RuntimeError) and "to_int" in text:
        return "uses a symbol as an integer", _INDEX
    if isinstance(error, TypeError) and re.search(r"dtype\('O'\)|ufunc|object arrays", text):
        if writes:
            return "writes symbols into an array of numbers", _WRITE
        return "passes symbols to a function for numbers", _UNTRACEABLE
    return f"raised {type(error).__name__}: {_short(text)}", ""


def _users_line(error: Exception) -> tuple[str, str] | None:
    """Return the innermost line outside libraries: `file, line 3, in law`, and its text."""
    found = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if not is_library(str(frame.f_globals.get("__name__", ""))):
            code = frame.f_code
            text = linecache.getline(code.co_filename, number, frame.f_globals).strip()
            found = f"{code.co_filename}, line {number}, in {code.co_name}", text
    return found


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:197]}..."


# Values of symbols --------------------------------------------------------------------------------

_tracing = threading.local()
_lock = threading.RLock()
_users = 0
_plain: Callable[[Any], float] = casadi.SX.__float__
_plain_dispatch: Callable[..., Any] = casadi.SX.__array_function__
_JOINING: tuple[Any, ...] = (
    np.stack, np.concatenate, np.hstack, np.vstack, np.dstack, np.column_stack, np.append,
    np.atleast_1d, np.atleast_2d, np.broadcast_to, np.reshape, np.ravel,
)  # fmt: skip


def _float(symbol: Any) -> float:
    if getattr(_tracing, "depth", 0) and not symbol.is_constant():
        raise SymbolLost("a symbol is converted to a number")
    return _plain(symbol)


def _dispatched(
    symbol: Any, function: Any, types: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """Join single symbols as NumPy joins numbers; CasADi knows some of these functions only."""
    if getattr(_tracing, "depth", 0) and function in _JOINING:
        return function(*(_as_arrays(x) for x in arguments), **named)
    return _plain_dispatch(symbol, function, types, arguments, named)


def _as_arrays(x: Any) -> Any:
    """Return nested lists with arrays `()` of objects in place of symbols."""
    if isinstance(x, casadi.SX):
        found = np.empty((), dtype=object)
        found[()] = x
        return found
    return type(x)(_as_arrays(part) for part in x) if type(x) in (list, tuple) else x


@contextlib.contextmanager
def _no_numbers_of_symbols() -> Generator[None]:
    """Make `float()` of a symbol raise in this thread; other threads are not affected."""
    global _users
    with _lock:
        _users += 1
        casadi.SX.__float__ = _float
        casadi.SX.__array_function__ = _dispatched
    _tracing.depth = getattr(_tracing, "depth", 0) + 1
    try:
        yield
    finally:
        _tracing.depth -= 1
        with _lock:
            _users -= 1
            if not _users:
                casadi.SX.__float__ = _plain
                casadi.SX.__array_function__ = _plain_dispatch
