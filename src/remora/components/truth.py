"""What control laws know of the true state: parts of it that no sensor measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from remora.components.component import Component
from remora.components.feedthrough import Dependence, Element, dependence
from remora.components.signals import STATE
from remora.identity.code import is_library
from remora.model.joints import kind
from remora.model.robot import Robot

if TYPE_CHECKING:
    from remora.components.system import System


def truth_read_by(system: System) -> dict[str, tuple[str, ...]]:
    """Return the parts of the true state on which control laws depend, by component.

    Control laws are components that use the design, and a user's own components that act on the
    robot. What an estimate passes on in its outputs q and v belongs to those that read it. What
    comes from other components is not followed further. Parts that are read while any constraint
    acts are included.

    Args:
        system: the system.
    """
    robot, names = system.robot, _parts(system.robot)
    on = [c.name for c in robot.constraints if c.active]
    idle = robot.with_active(off=on)
    switched = [idle.with_active(on=[c.name]) for c in robot.constraints]
    every = idle.with_active(on=robot.constraints.names)
    found: dict[str, set[Element]] = {}
    for acting in dict.fromkeys((robot, idle, *switched, every)):
        now = system.acting_on(acting)
        dependences = {
            name: dependence(
                now.robot_of(c), name, c, now.layouts[name].interface, now.design, thorough=True
            )
            for name, c in now.components.items() if _is_law(c) or c.estimates_state
        }  # fmt: skip
        for name in dependences:
            found.setdefault(name, set()).update(_truth(now, name, dependences))
    return {
        name: tuple(dict.fromkeys(names[element] for element in sorted(read)))
        for name, read in found.items() if read
    }  # fmt: skip


def _is_law(component: Component) -> bool:
    kind = type(component)
    return component.uses_design or (
        kind.act is not Component.act and not is_library(kind.__module__)
    )


def _truth(system: System, name: str, dependences: Mapping[str, Dependence]) -> set[Element]:
    """Return the elements of the true state on which a component depends."""
    seen: set[tuple[str, Element]] = set()
    start = dependences[name]
    left = [(name, element) for element in (start.rest if start.elements else start.read)]
    truth: set[Element] = set()
    while left:
        here = owner, element = left.pop()
        if here in seen:
            continue
        seen.add(here)
        if element[0] in STATE:
            truth.add(element)
        else:
            left += _estimated(system, owner, element, dependences)
    return truth


def _estimated(
    system: System, name: str, element: Element, dependences: Mapping[str, Dependence]
) -> list[tuple[str, Element]]:
    """Return from what an estimate computes an element of an input; nothing for other inputs.

    The coordinates of a free joint's position contain its attitude; a true position that
    `StateEstimate` passes on brings nothing of the true attitude along.
    """
    group, _, key = element[0].partition(".")
    source = system.connections.get(f"{name}.{key}") if group == "inputs" else None
    if not isinstance(source, str):
        return []
    other, _, output = source.partition(".")
    own = dependences.get(other)
    if own is None or output not in own.elements:
        return []
    parts, names = own.elements[output][element[1]], _parts(system.robot)
    joint, _, what = names[output, element[1]].rpartition(" ")
    separates = getattr(system.components[other], "separates_position", False)
    left_out = f"{joint} attitude" if separates and what == "position" else ""
    return [(other, x) for x in parts if names.get(x) != left_out]


def _parts(robot: Robot) -> dict[Element, str]:
    """Return the name of the part of the state to which each element of q and v belongs."""
    found: dict[Element, str] = {}
    for joint in robot.joints:
        row, q, v = kind(joint), range(robot.nq)[joint.q], range(robot.nv)[joint.v]
        turns = q[row.quaternion] if row.quaternion is not None else ()
        for i in q:
            found["q", i] = f"{joint.name} {'attitude' if i in turns else 'position'}"
        for k, i in enumerate(v):
            what = "speed" if row.quaternion is None else "rate" if k < 3 else "velocity"
            found["v", i] = f"{joint.name} {what}"
    return found
