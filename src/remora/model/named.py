"""Tuples of named items, which can be indexed by position or by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Generic, Protocol, SupportsIndex, TypeVar, overload

from remora.errors import UnknownName


class HasName(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """Its name, unique among its kind."""
        ...


T = TypeVar("T", bound=HasName)


class Named(tuple[T, ...], Generic[T]):
    """A tuple of named items that can also be indexed by name: `robot.bodies["arm"]`.

    Attributes:
        what: what an item is called in error messages.
    """

    what: str

    def __new__(cls, items: Iterable[T], what: str) -> Named[T]:
        """Store `items`, each of them a `what`."""
        named = super().__new__(cls, items)
        named.what = what
        return named

    def __getnewargs__(self) -> tuple[tuple[T, ...], str]:
        """Return the arguments of `__new__`, for copies and pickles."""
        return tuple(self), self.what

    @property
    def names(self) -> list[str]:
        """The names in order."""
        return [item.name for item in self]

    def position(self, key: SupportsIndex | str) -> int:
        """Return the index of the item of that name, or an index after checking it.

        Raises:
            UnknownName: if there is no such item; negative indices are not accepted.
        """
        if isinstance(key, str):
            for i, item in enumerate(self):
                if item.name == key:
                    return i
            raise UnknownName(self.what, key, self.names)
        try:
            index = operator.index(key)
            if isinstance(key, bool):  # an integer to Python, a mistake here
                raise TypeError
        except TypeError:
            raise UnknownName(self.what, key, self.names) from None
        if not 0 <= index < len(self):
            known = [f"0 to {len(self) - 1}"] if self else []
            raise UnknownName(self.what, index, known)
        return index

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[T, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> T | tuple[T, ...]:
        """Return items by index, slice or name."""
        return super().__getitem__(self.position(key) if isinstance(key, str) else key)

    def __contains__(self, key: object) -> bool:
        """Tell whether the tuple has this item, or an item of that name."""
        return key in self.names if isinstance(key, str) else super().__contains__(key)
