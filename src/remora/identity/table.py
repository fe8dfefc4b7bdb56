"""Tables of rows that users may replace or extend, such as `FORMULATIONS`.

Results compiled with one row must not be reused with another. A counter of the changes of all
tables lets a cache detect by one comparison that it may be out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Table(dict[K, V]):
    """A dictionary of rows.

    Attributes:
        changes: number of changes of any table so far.
    """

    changes: ClassVar[int] = 0

    def __init__(self, rows: Mapping[K, V]) -> None:
        """Keep the library's own rows."""
        super().__init__(rows)
        self._own = dict(rows)
        self._replaced: tuple[int, dict[K, V]] = (-1, {})

    def is_own(self, key: K) -> bool:
        """Tell whether the row of a key is still the library's own, or none as before."""
        return self.get(key) is self._own.get(key)

    def replaced(self) -> dict[K, V]:
        """Return the rows that are not the library's own: what they do may change at any time."""
        if self._replaced[0] != Table.changes:
            found = {key: row for key, row in self.items() if not self.is_own(key)}
            self._replaced = Table.changes, found
        return self._replaced[1]


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    def changing(self: Table[Any, Any], *arguments: Any, **named: Any) -> Any:
        Table.changes += 1
        return method(self, *arguments, **named)

    return changing


for _name in (
    "__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update",
):  # fmt: skip
    setattr(Table, _name, _counted(getattr(dict, _name)))
