"""The order of modules: parents first, subtrees contiguous, whatever docks and undocks."""

import numpy as np
import pytest

import remora as rm
from remora.dynamics.assembly.docking.module_order import ModuleOrder, Seat


def reached(order, root):
    found = [root]
    for child in order.children[root].values():
        found += reached(order, child)
    return found


def test_random_changes():
    rng = np.random.default_rng(0)
    order = ModuleOrder([f"m{k}" for k in range(30)])
    for _ in range(500):
        i, parent = (int(k) for k in rng.integers(30, size=2))
        if order.seats[i] is not None:
            order.undock(i)
        elif i not in order.path(parent):
            order.dock(i, Seat(parent, len(order.children[parent]) + 100 * int(rng.integers(1e6))))
        everything = order.everything()
        assert sorted(everything) == list(range(30))
        place = {k: n for n, k in enumerate(everything)}
        for k, seat in enumerate(order.seats):
            assert seat is None or place[seat.parent] < place[k]
            assert sorted(order.tree(k)) == sorted(reached(order, k))
            first = place[k]
            assert everything[first : first + len(order.tree(k))] == order.tree(k)


def test_refusals():
    order = ModuleOrder(["a", "b", "c"])
    order.dock(1, Seat(0, 0))
    with pytest.raises(rm.RemoraError, match="module 'b' is docked already, to 'a'"):
        order.check_free(1, Seat(2, 0), "p")
    with pytest.raises(rm.RemoraError, match="module 'a' cannot dock to 'b', which it carries"):
        order.check_free(0, Seat(1, 0), "p")
    with pytest.raises(rm.RemoraError, match="port 'p' of module 'a' is taken by 'b'"):
        order.check_free(2, Seat(0, 0), "p")
