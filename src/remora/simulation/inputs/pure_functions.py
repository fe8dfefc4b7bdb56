"""Which functions of users can be compiled into a run: pure ones that can be traced.

A function of a user may do anything: count its calls, read a file, return something else each time.
Traced, it would be called once and its result repeated. Compiled are therefore only functions whose
code shows that they are pure: arithmetic on their argument, constants and numbers that they
capture, and NumPy's elementwise functions. Numbers that a function captures from outside can still
be changed during a run; whoever compiles it compares them, see `captured`.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from remora.codegen.ir.graph import Signature, interpret
from remora.codegen.ir.trace import trace
from remora.simulation.inputs.moves import Sine

#: Operations that change something, or define or import other code.
_IMPURE = (
    "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_NAME",
    "DELETE_", "IMPORT_", "YIELD_VALUE", "RETURN_GENERATOR", "MAKE_FUNCTION", "LOAD_BUILD_CLASS",
    "LOAD_CLOSURE", "SETUP_", "BEFORE_WITH", "RAISE_VARARGS", "GET_AITER", "GET_AWAITABLE",
)  # fmt: skip
_NUMBERS = (bool, int, float, np.floating, np.integer)
#: A traced function must agree with its calls to this relative error.
AGREEMENT = 1e-12


def is_pure(function: object) -> bool:
    """Return whether the code of a function shows that it has no side effects and no memory."""
    if isinstance(function, Sine):
        return True
    if type(function) is not types.FunctionType or function.__dict__:
        return False
    operations = list(dis.get_instructions(function.__code__))
    if any(operation.opname.startswith(_IMPURE) for operation in operations):
        return False
    outside, read = _outside(function), _globals_of(function.__code__)
    if outside is None or any(name not in outside for name in read):
        return False
    attributes = [o.argval for o in operations if o.opname in ("LOAD_ATTR", "LOAD_METHOD")]
    return all(_is_elementwise(getattr(np, name, None)) for name in attributes)


@functools.lru_cache(maxsize=256)
def _globals_of(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that code looks up outside of its function."""
    looked_up = dis.get_instructions(code)
    return tuple(sorted({o.argval for o in looked_up if o.opname in ("LOAD_GLOBAL", "LOAD_NAME")}))


class CapturedNumbers:
    """The numbers that a pure function captures from outside, looked up at each call."""

    def __init__(self, function: object) -> None:
        """Note where the numbers are."""
        self._function, self._cells, self._globals = function, (), dict[str, Any]()
        self._names: tuple[str, ...] = ()
        if isinstance(function, types.FunctionType):
            self._cells, self._globals = function.__closure__ or (), function.__globals__
            self._names = _globals_of(function.__code__)

    def __call__(self) -> tuple[Any, ...]:
        """Return the numbers, and other objects that it names."""
        if not isinstance(self._function, types.FunctionType):
            return ()
        cells, own = [cell.cell_contents for cell in self._cells], self._function
        named = tuple((own.__kwdefaults__ or {}).items())
        outside = [self._globals.get(n) for n in self._names]
        return (*cells, *outside, own.__code__, own.__defaults__, named)


def _outside(function: types.FunctionType) -> dict[str, Any] | None:
    """Return what a function reads from outside, by name; None if that is not only plain values."""
    found: dict[str, Any] = {}
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            return None
    for name in _globals_of(code):
        if name in function.__globals__:
            found[name] = function.__globals__[name]
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    found |= {f"default {k}": x for k, x in enumerate(defaults)}
    plain = all(isinstance(x, _NUMBERS) or x is np or _is_elementwise(x) for x in found.values())
    return found if plain else None


def _is_elementwise(x: object) -> bool:
    return isinstance(x, (np.ufunc, float))


def can_be_traced(function: Callable[[Any], Any], times: tuple[float, float]) -> bool:
    """Return whether a pure function of time accepts a symbol, and then means the same.

    Args:
        function: the function.
        times: two times at which it is compared with its trace, s.
    """
    try:
        traced = trace(function, [Signature("t", ())])
        for t in times:
            called = np.asarray(function(t), dtype=float)
            here = np.concatenate([x.ravel() for x in interpret(traced, [np.asarray(t)])])
            if called.size != here.size:
                return False
            if not np.allclose(here, called.ravel(), rtol=AGREEMENT, atol=AGREEMENT):
                return False
    except Exception:  # whatever a user's function raises: it is called by the run loop instead
        return False
    return True
