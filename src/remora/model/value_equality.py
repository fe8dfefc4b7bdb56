"""The base class of a robot's parts: compared by value, and immutable in copies and pickles."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np

from remora.algebra.array_ops import is_array, is_symbolic
from remora.identity.digest import digest_or_none
from remora.model.numbers import frozen
from remora.model.robot_fields import FIELDS, Field


class ByValue:
    """A part of a robot: a frozen dataclass whose fields are listed in the field table.

    Two parts are equal if all their numbers and names are equal bit for bit. A part with symbols is
    equal only to itself.

    Attributes:
        part: its key in the field table.
    """

    part: ClassVar[str]

    def __post_init__(self) -> None:
        """Copy arrays that others could write to."""
        for name, value in list(vars(self).items()):
            if is_array(value):
                object.__setattr__(self, name, frozen(value))

    @functools.cached_property
    def identity(self) -> str | None:
        """Digest of all compared fields; None if it holds symbols."""
        return digest_or_none(digested_parts(self, "compared"))

    @functools.cached_property
    def seen_identity(self) -> str | None:
        """Digest of all fields that equations may depend on; None if it holds symbols."""
        return digest_or_none(digested_parts(self, "seen"))

    def __eq__(self, other: object) -> bool:
        """Tell whether two parts of a robot are the same by value."""
        if self is other:
            return True
        if type(self) is not type(other) or not isinstance(other, ByValue):
            return NotImplemented
        return self.identity is not None and self.identity == other.identity

    def __hash__(self) -> int:
        """Return a hash that equal parts share."""
        return hash(self.identity) if self.identity is not None else id(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickling, without cached values."""
        own: Any = self
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(own)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields, with all arrays read-only again."""
        for name, value in state.items():
            object.__setattr__(self, name, frozen(value) if is_array(value) else value)

    def __copy__(self) -> Any:
        """Return itself: it is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return itself: it and its fields are immutable."""
        return self


def digested_parts(item: Any, which: str) -> tuple[Any, ...]:
    """Return a part as nested tuples of names and values that can be digested.

    Args:
        item: a robot or a part of one.
        which: which fields: `seen` by equations, or `compared`.
    """
    chosen = [row for row in FIELDS[item.part] if getattr(row, which)]
    return (item.part, *((row.name, _value(getattr(item, row.name), row, which)) for row in chosen))


def _value(value: Any, row: Field, which: str) -> Any:
    if value is None:
        return None
    if row.holds == "part":
        return digested_parts(value, which)
    if row.holds == "parts":
        return tuple(digested_parts(item, which) for item in value)
    if row.holds == "numbers":
        array = np.asarray(value)
        return array if is_symbolic(array) else np.asarray(array, dtype=float)
    if row.holds in ("body", "joint", "end"):
        return int(value)
    return value
