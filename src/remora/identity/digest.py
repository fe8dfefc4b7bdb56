"""A digest of any Python value: `digest(a) == digest(b)` only if a and b behave alike.

Values are walked, not printed: numbers by their bits, arrays by dtype, shape and bytes, objects by
class and attributes, functions by code, defaults, closure and the globals they name (see
`remora.identity.code`). Every part is hashed with a tag and its children's digests, so that
different structures have different digests. A value that cannot be compared (a symbol, an open
file, a lock, a generator) raises `NoIdentity`; it must not be cached or shared.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import operator
import pathlib
import struct
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from remora.errors import RemoraError
from remora.identity import code
from remora.identity.hashing import joined, kind_of, leaf, text
from remora.identity.sources import EQUATIONS, digest_of_modules, source_digest

#: C types may have hidden state; such objects are reduced as `pickle` does.
_WORD = struct.calcsize("P")


class NoIdentity(RemoraError, TypeError):
    """An object cannot be compared by value; the message names it and its location."""


def digest(*values: Any) -> str:
    """Return the digest of the values, 64 hexadecimal digits.

    Raises:
        NoIdentity: if one of them holds something that cannot be compared.
    """
    return encode(values).hex()


def digest_or_none(*values: Any) -> str | None:
    """Return the digest of the values, or None if one of them cannot be compared."""
    try:
        return digest(*values)
    except NoIdentity:
        return None


def code_key(*values: Any) -> str | None:
    """Return a key of code that is made of the values, such as by tracing a function; or None.

    As `digest`, with the text of Remora's source files: those of `EQUATIONS`, and those that
    functions and classes among the values reach by imports. There is none if a value cannot be
    compared, or if a function may read what is not among the values: the environment, a file, a
    clock, random numbers, or the state of a library.
    """
    walk = Walk("value", for_code=True)
    try:
        made = walk.of(values)
    except (NoIdentity, RecursionError):
        return None
    sources = source_digest(*EQUATIONS), digest_of_modules(frozenset(walk.modules))
    return text("code", made.hex(), *sources).hex()


def encode(value: Any, name: str = "value") -> bytes:
    """Return the digest of one value, 32 bytes.

    Args:
        value: anything.
        name: its name in error messages.

    Raises:
        NoIdentity: if it holds something that cannot be compared.
    """
    try:
        return Walk(name).of(value)
    except RecursionError:
        raise NoIdentity(f"{name} is nested too deeply to be compared") from None


class Walk:
    """A traversal of a value.

    Attributes:
        path: names of the parts from the value to the current position.
        for_code: whether the digest is a key of code that is made of the value, see `code_key`.
        modules: names of Remora's modules that hold functions and classes that were met.
    """

    def __init__(self, name: str, for_code: bool = False) -> None:
        """Start at a value of that name."""
        self.path, self.for_code, self.modules = [name], for_code, set[str]()
        self._open: dict[int, int] = {}
        self._done: dict[int, bytes] = {}
        self._alive: list[Any] = []  # ids are unique only while the objects live
        self._lowest = 0

    def of(self, value: Any, step: str = "") -> bytes:
        """Return the digest of the part reached by `step`, such as `.gain` or `[3]`."""
        kind = kind_of(value)
        atom = _ATOMS.get(kind)
        if atom is not None:
            return leaf(kind.__name__, atom(value))
        here = id(value)
        if here in self._done:
            return self._done[here]
        depth = len(self._open)
        if here in self._open:  # a cycle: identified by how far up it closes
            self._lowest = min(self._lowest, self._open[here])
            return leaf("cycle", b"%d" % (depth - self._open[here]))
        outside, self._lowest = self._lowest, depth
        self._open[here] = depth
        self.path.append(step)
        try:
            made = self._composed(value, kind)
        finally:
            self.path.pop()
            del self._open[here]
        if self._lowest >= depth:  # no reference to an ancestor: same digest anywhere
            self._done[here] = made
            self._alive.append(value)
        self._lowest = min(outside, self._lowest)
        return made

    def refuse(self, value: Any, why: str = "cannot be compared by value") -> NoIdentity:
        """Return the error for a part without an identity."""
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        return NoIdentity(f"{''.join(self.path)} ({kind}) {why}")

    def named(self, items: Iterable[tuple[str, Any]], step: str = ".{}") -> list[bytes]:
        """Return digests of names and values in turn."""
        return [d for n, x in items for d in (leaf("name", n.encode()), self.of(x, step.format(n)))]

    def _composed(self, value: Any, kind: type) -> bytes:
        rule = _RULES.get(kind) or code.RULES.get(kind)
        if rule is not None:
            return rule(self, value)
        if isinstance(value, type):
            return code.class_digest(self, value)
        if isinstance(value, code.BY_NAME):
            return code.named_digest(self, value)
        own = self.of(kind, ".__class__")
        for base, content in _CONTENTS:
            if isinstance(value, base):
                return joined("content", (own, content(self, value), *self._state(value)))
        if _is_plain(kind):
            return joined("object", (own, *self._state(value)))
        return joined("reduced", (own, self._reduced(value)))

    def _state(self, value: Any) -> list[bytes]:
        """Return the attributes of an object, without values cached by `cached_property`."""
        kind = kind_of(value)
        cached = {
            name
            for base in kind.__mro__
            for name, x in vars(base).items()
            if isinstance(x, functools.cached_property)
        }
        held: dict[str, Any] = getattr(value, "__dict__", {})
        found = {name: x for name, x in held.items() if name not in cached}
        for name in _slots(kind):
            if hasattr(value, name):
                found[name] = getattr(value, name)
        return self.named(sorted(found.items()))

    def _reduced(self, value: Any) -> bytes:
        """Return the digest of a C object from what `pickle` would store."""
        if any(kind.__module__.startswith("casadi") for kind in type(value).__mro__):
            return self._casadi(value)
        try:
            parts: Any = value.__reduce_ex__(4)
        except Exception:
            raise self.refuse(value) from None
        if isinstance(parts, str):
            return text("global", type(value).__module__, parts)
        lists = [list(x) if k > 2 and x is not None else x for k, x in enumerate(parts)]
        return self.of(lists)

    def _casadi(self, value: Any) -> bytes:
        if type(value).__name__ in ("DM", "Function", "Sparsity"):
            return leaf("casadi", value.serialize().encode())
        raise self.refuse(value, "is symbolic: it has no value to compare")


# Digest rules by exact type ---------------------------------------------------------------


def _integer(x: int) -> bytes:
    return b"%d" % x


_ATOMS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda x: b"",
    type(Ellipsis): lambda x: b"",
    type(NotImplemented): lambda x: b"",
    bool: _integer,
    int: _integer,
    float: lambda x: struct.pack("<d", x),
    complex: lambda x: struct.pack("<dd", x.real, x.imag),
    str: lambda x: x.encode("utf-8", "surrogatepass"),
    bytes: bytes,
    bytearray: bytes,
}


def _list(walk: Walk, value: list[Any]) -> bytes:
    return joined("list", (walk.of(x, f"[{k}]") for k, x in enumerate(value)))


def _tuple(walk: Walk, value: tuple[Any, ...]) -> bytes:
    return joined("tuple", (walk.of(x, f"[{k}]") for k, x in enumerate(value)))


def _mapping(walk: Walk, value: Any) -> bytes:
    parts = [d for k, x in value.items() for d in (walk.of(k, "{key}"), walk.of(x, f"[{k!r:.40}]"))]
    return joined("dict", parts)


def _set(walk: Walk, value: Any) -> bytes:
    return joined("set", sorted(walk.of(x, "{item}") for x in value))


def _slice(walk: Walk, value: Any) -> bytes:
    return joined("slice", (walk.of(x) for x in (value.start, value.stop, value.step)))


def _namespace(walk: Walk, value: types.SimpleNamespace) -> bytes:
    held: dict[str, Any] = vars(value)
    return joined("namespace", walk.named(sorted(held.items())))


def _dtype(dtype: np.dtype[Any]) -> str:
    return dtype.str if dtype.names is None else str(dtype.descr)


def _array(walk: Walk, value: Any) -> bytes:
    plain: Any = np.asarray(value)
    head = text("array", _dtype(plain.dtype), ",".join(map(str, plain.shape)))
    if plain.dtype.names is not None:  # padding between the fields is not part of the value
        parts = [_array(walk, plain[name]) for name in plain.dtype.names]
    elif plain.dtype.hasobject:
        parts = [walk.of(x, f"[{k}]") for k, x in enumerate(plain.ravel().tolist())]
    else:
        parts = [hashlib.sha256(plain.tobytes()).digest()]
    return joined("array", (head, *parts))


def _enum(walk: Walk, value: enum.Enum) -> bytes:
    own = walk.of(type(value), ".__class__")
    return joined("enum", (own, walk.of(value.name), walk.of(value.value)))


def _as_base(base: type) -> Callable[[Walk, Any], bytes]:
    """Return the digest rule for the content of a subclass of a built-in type."""
    atom = _ATOMS[base]
    return lambda walk, value: leaf(base.__name__, atom(base(value)))


_RULES: dict[type, Callable[[Walk, Any], bytes]] = {
    list: _list,
    tuple: _tuple,
    dict: _mapping,
    types.MappingProxyType: _mapping,
    set: _set,
    frozenset: _set,
    slice: _slice,
    range: lambda walk, x: joined("range", (walk.of(n) for n in (x.start, x.stop, x.step))),
    np.ndarray: _array,
    types.SimpleNamespace: _namespace,
    memoryview: lambda walk, x: _array(walk, np.asarray(x)),
}

#: Base types whose content is digested in addition to a subclass's attributes.
_CONTENTS: list[tuple[type, Callable[[Walk, Any], bytes]]] = [
    (enum.Enum, _enum),
    (np.ndarray, _array),
    (np.generic, lambda walk, x: _array(walk, np.asarray(x))),
    (np.dtype, lambda walk, x: text("dtype", _dtype(x))),
    (pathlib.PurePath, lambda walk, x: text("path", str(x))),
    (str, _as_base(str)),
    (int, _as_base(int)),
    (float, _as_base(float)),
    (bytes, _as_base(bytes)),
    (dict, _mapping),
    (list, _list),
    (tuple, _tuple),
    (set, _set),
    (frozenset, _set),
]


def _slots(kind: type) -> list[str]:
    """Return the names of all slots of a class, as attributes."""
    found: list[str] = []
    for base in kind.__mro__:
        given: Any = vars(base).get("__slots__", ())
        for name in (given,) if isinstance(given, str) else tuple(given):
            private = name.startswith("__") and not name.endswith("__")
            found.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _is_plain(kind: type) -> bool:
    """Tell whether instances hold only attributes, with no state in C."""
    words = len(_slots(kind))
    words += sum(operator.gt(getattr(kind, n), 0) for n in ("__dictoffset__", "__weakrefoffset__"))
    swig = any("thisown" in vars(base) for base in kind.__mro__)
    return not swig and kind.__itemsize__ == 0 and (
        kind.__basicsize__ <= object.__basicsize__ + words * _WORD
    )  # fmt: skip
