"""The trees of modules: who is docked where, and an order in which parents come first.

The order is a preorder of all trees in a doubly linked list. A subtree is contiguous in it, so that
docking and undocking move one piece of the list, at a cost that the size of the moved tree
determines.
"""

from __future__ import annotations

from typing import NamedTuple

from remora.errors import RemoraError


class Seat(NamedTuple):
    """Where a module is docked.

    Attributes:
        parent: index of the module that carries it.
        port: index of the port.
    """

    parent: int
    port: int


class ModuleOrder:
    """Who is docked where.

    Attributes:
        seats: of each module; None for the root of a tree.
        children: of each module, by port.
    """

    def __init__(self, names: list[str]) -> None:
        """Make as many trees as there are modules."""
        self._names, count = names, len(names)
        self.seats: list[Seat | None] = [None] * count
        self.children: list[dict[int, int]] = [{} for _ in names]
        self._next = [*range(1, count + 1), 0]  # the last entry is the head of the list
        self._before = [count, *range(count)]

    def everything(self) -> list[int]:
        """Return all modules, parents before children."""
        head = len(self._names)
        found: list[int] = []
        i = self._next[head]
        while i != head:
            found.append(i)
            i = self._next[i]
        return found

    def tree(self, root: int) -> list[int]:
        """Return a module and all that it carries, parents before children."""
        found, i = [root], root
        for _ in range(self._size(root) - 1):
            i = self._next[i]
            found.append(i)
        return found

    def path(self, module: int) -> list[int]:
        """Return a module and those that carry it, from itself to the root."""
        found = [module]
        seat = self.seats[module]
        while seat is not None:
            found.append(seat.parent)
            seat = self.seats[seat.parent]
        return found

    def check_free(self, child: int, seat: Seat, port: str) -> None:
        """Raise unless a module can dock at a seat."""
        name, parent = self._names[child], self._names[seat.parent]
        at = self.seats[child]
        if at is not None:
            raise RemoraError(f"module {name!r} is docked already, to {self._names[at.parent]!r}")
        if child in self.path(seat.parent):
            raise RemoraError(
                f"module {name!r} cannot dock to {parent!r}, which it carries: connections form a "
                "tree"
            )
        if seat.port in self.children[seat.parent]:
            there = self._names[self.children[seat.parent][seat.port]]
            raise RemoraError(f"port {port!r} of module {parent!r} is taken by {there!r}")

    def dock(self, child: int, seat: Seat) -> None:
        """Put the tree of a module behind its new parent."""
        self._move(child, seat.parent)
        self.seats[child] = seat
        self.children[seat.parent][seat.port] = child

    def undock(self, child: int) -> None:
        """Put the tree of a module at the start of the list, as one of its own."""
        seat = self.seats[child]
        assert seat is not None
        self._move(child, len(self._names))
        self.seats[child] = None
        del self.children[seat.parent][seat.port]

    def _move(self, root: int, behind: int) -> None:
        last = self.tree(root)[-1]
        self._join(self._before[root], self._next[last])
        self._join(last, self._next[behind])
        self._join(behind, root)

    def _join(self, one: int, other: int) -> None:
        self._next[one], self._before[other] = other, one

    def _size(self, root: int) -> int:
        count, todo = 0, [root]
        while todo:
            count += 1
            todo.extend(self.children[todo.pop()].values())
        return count
