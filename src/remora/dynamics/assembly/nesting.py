"""Nested assemblies: their subsystems become parts of the outer one, named `outer/inner`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from remora.dynamics.assembly.connection import Connection
from remora.errors import RemoraError


class NestedAssembly(Protocol):
    """What nesting reads of an assembly."""

    @property
    def subsystems(self) -> Mapping[str, Any]:
        """Its subsystems by name."""
        ...

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Its connections."""
        ...

    @property
    def root(self) -> str:
        """Name of the root subsystem."""
        ...


def flattened(
    subsystems: Mapping[str, Any], connections: Sequence[Connection]
) -> tuple[dict[str, Any], list[Connection]]:
    """Return subsystems and connections with nested assemblies taken apart.

    A connection to a nested assembly `wing` goes to its root, one from it names a point as
    `arm/tool`: point `tool` of its subsystem `arm`.
    """
    flat: dict[str, Any] = {}
    links: list[Connection] = []
    inner: dict[str, NestedAssembly] = {}
    for name, subsystem in subsystems.items():
        if not _is_assembly(subsystem):
            flat[name] = subsystem
            continue
        inner[name] = subsystem
        flat.update({f"{name}/{part}": item for part, item in subsystem.subsystems.items()})
        for link in subsystem.connections:
            ends = {"child": f"{name}/{link.child}", "parent": f"{name}/{link.parent}"}
            links.append(_changed(link, **ends))
    for link in connections:
        if link.child in inner:
            link = _changed(link, child=f"{link.child}/{inner[link.child].root}")
        if link.parent in inner:
            part, _, point = link.at.rpartition("/")
            if not part:
                raise RemoraError(
                    f"subsystem {link.parent!r} is an assembly; name the connection point of "
                    f"{link.child!r} as 'subsystem/point', not {link.at!r}"
                )
            link = _changed(link, parent=f"{link.parent}/{part}", at=point)
        links.append(link)
    return flat, links


def _is_assembly(subsystem: Any) -> bool:
    return hasattr(subsystem, "parts") and hasattr(subsystem, "connections")


def _changed(link: Connection, **changes: str) -> Connection:
    now: dict[str, Any] = {f.name: getattr(link, f.name) for f in dataclasses.fields(link)}
    now.update(changes)
    return Connection(**now)
