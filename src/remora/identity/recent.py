"""Values that were used last, by key: the memory of kernels and of what is known of them."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A cache that drops what was not used for the longest time; the key None stands for no key."""

    def __init__(self, most: int) -> None:
        """Start empty.

        Args:
            most: maximum number of values.
        """
        self._most, self._values = most, dict[K, V]()

    def get(self, key: K | None) -> V | None:
        """Return the value of a key, or None."""
        if key is None or key not in self._values:
            return None
        self._values[key] = self._values.pop(key)  # most recently used: dropped last
        return self._values[key]

    def keep(self, key: K | None, value: V) -> V:
        """Store a value, unless there is no key, and return it."""
        if key is not None:
            self._values.pop(key, None)
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.pop(next(iter(self._values)))
        return value
