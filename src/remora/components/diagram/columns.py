"""Columns of a diagram: components after those whose outputs they read, in a readable order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

#: Sources of a component's inputs by component, in both directions.
Links = Mapping[str, Sequence[str]]


def columns(
    names: Sequence[str], sources: Links, acting: Sequence[str], delayed: Sequence[str]
) -> list[list[str]]:
    """Return the names of components by column, from left to right.

    A component stands to the right of its sources, except along one connection of every cycle, from
    a component with a delay if there is one.
    Those that act on the robot and feed no other stand in the last column, next to it; the others
    stand as far right as their readers allow.

    Args:
        names: the components.
        sources: of each component, those whose outputs it reads.
        acting: the components that act on the robot.
        delayed: the components with a delay.
    """
    forward = _without_cycles(names, sources, delayed)
    rank: dict[str, int] = {}

    def ranked(name: str) -> int:
        if name not in rank:
            rank[name] = 1 + max((ranked(s) for s in forward[name]), default=-1)
        return rank[name]

    last = max((ranked(n) for n in names), default=0)
    readers = {n: [m for m in names if n in forward[m]] for n in names}
    for name in sorted(names, key=lambda n: -rank[n]):
        if readers[name]:
            rank[name] = min(rank[m] for m in readers[name]) - 1
        elif name in acting:
            rank[name] = last
    made: list[list[str]] = [[n for n in names if rank[n] == k] for k in range(last + 1)]
    for left, right in itertools.pairwise(made):
        place = {n: i for i, n in enumerate(left)}
        right.sort(key=lambda n: _middle([place[s] for s in sources[n] if s in place], len(left)))
    return [column for column in made if column]


def _middle(places: Sequence[int], otherwise: int) -> float:
    return sum(places) / len(places) if places else float(otherwise)


def _without_cycles(
    names: Sequence[str], sources: Links, delayed: Sequence[str]
) -> dict[str, list[str]]:
    """Return the sources without those that close a cycle; those with a delay come last."""
    forward: dict[str, list[str]] = {n: [] for n in names}

    def reaches(start: str, goal: str) -> bool:
        return start == goal or any(reaches(s, goal) for s in forward[start])

    links = [(name, s) for name in names for s in dict.fromkeys(sources[name])]
    for name, source in sorted(links, key=lambda link: link[1] in delayed):
        if not reaches(source, name):
            forward[name].append(source)
    return forward
