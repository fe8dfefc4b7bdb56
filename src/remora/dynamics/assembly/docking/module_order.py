"""The trees of modules: who is docked where, and an order in which parents come first."""

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
        self._names = names
        self.seats: list[Seat | None] = [None] * len(names)
        self.children: list[dict[int, int]] = [{} for _ in names]

    def everything(self) -> list[int]:
        """Return all modules, tree by tree, parents before children."""
        roots = (i for i, seat in enumerate(self.seats) if seat is None)
        return [i for root in roots for i in self.tree(root)]

    def tree(self, root: int) -> list[int]:
        """Return a module and all that it carries, in preorder."""
        order, waiting = list[int](), [root]
        while waiting:
            order.append(waiting.pop())
            waiting.extend(reversed(self.children[order[-1]].values()))
        return order

    def path(self, module: int) -> list[int]:
        """Return a module and those that carry it, from itself to the root."""
        path, seat = [module], self.seats[module]
        while seat is not None:
            path.append(seat.parent)
            seat = self.seats[seat.parent]
        return path

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
        """Mount the tree of a root module on a port, which must be free."""
        self.seats[child] = seat
        self.children[seat.parent][seat.port] = child

    def undock(self, child: int) -> None:
        """Make a docked module the root of a tree."""
        seat = self.seats[child]
        assert seat is not None
        self.seats[child] = None
        del self.children[seat.parent][seat.port]
