"""What control laws know of the true state: parts of it that no sensor measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from remora.algebra.array_ops import Array
from remora.components.component import Component
from remora.components.feedthrough import Dependence, Element
from remora.components.signals import STATE
from remora.model.joints import kind
from remora.model.robot import Robot

#: Components with what they depend on, by name.
Traced = Mapping[str, tuple[Component, Dependence]]


def truth_read_by(
    robot: Robot, connections: Mapping[str, str | Array], traced: Callable[[Robot], Traced]
) -> dict[str, tuple[str, ...]]:
    """Return the parts of the true state on which control laws depend, by component.

    What an estimate passes on in its outputs q and v belongs to those that read it. What comes from
    other components is not followed further. Parts that are read while any constraint acts are
    included.

    Args:
        robot: the robot.
        connections: source of every input.
        traced: robot -> laws and estimates on this robot, with the constraints that act.
    """
    on = [c.name for c in robot.constraints if c.active]
    idle = robot.with_active(off=on)
    switched = [idle.with_active(on=[c.name]) for c in robot.constraints]
    every = idle.with_active(on=robot.constraints.names)
    names, found = _parts(robot), dict[str, set[Element]]()
    for acting in dict.fromkeys((robot, idle, *switched, every)):
        parts = traced(acting)
        for name in parts:
            found.setdefault(name, set()).update(_truth(name, parts, connections, names))
    return {
        name: tuple(dict.fromkeys(names[element] for element in sorted(read)))
        for name, read in found.items() if read
    }  # fmt: skip


def laws(
    components: Mapping[str, Component], connections: Mapping[str, str | Array]
) -> frozenset[str]:
    """Return the names of the control laws, as far as can be told.

    They are the components that use the design, and those of users that act on the robot, or whose
    outputs go, also through others, to what acts. A law ends such a path: what goes to it comes
    from sensors.

    Args:
        components: the components by name.
        connections: source of every input.
    """
    found = {name for name, c in components.items() if c.uses_design}
    left = [name for name, c in components.items() if _acts(c) and not c.uses_design]
    commanding = set(left)
    while left:
        target = left.pop()
        for connected, source in connections.items():
            if connected.partition(".")[0] == target and isinstance(source, str):
                name = source.partition(".")[0]
                if name not in commanding and not components[name].uses_design:
                    commanding.add(name)
                    left.append(name)
    return frozenset(found | {n for n in commanding if not _is_ours(components[n])})


def _acts(component: Component) -> bool:
    return type(component).act is not Component.act


def _is_ours(component: Component) -> bool:
    return type(component).__module__.partition(".")[0] == __name__.partition(".")[0]


def _truth(
    name: str, parts: Traced, connections: Mapping[str, str | Array], names: Mapping[Element, str]
) -> set[Element]:
    """Return the elements of the true state on which a component depends."""
    seen: set[tuple[str, Element]] = set()
    start = parts[name][1]
    left = [(name, element) for element in (start.rest if start.elements else start.read)]
    truth: set[Element] = set()
    while left:
        here = owner, element = left.pop()
        if here in seen:
            continue
        seen.add(here)
        group, _, key = element[0].partition(".")
        source = connections.get(f"{owner}.{key}") if group == "inputs" else None
        if element[0] in STATE:
            truth.add(element)
        elif isinstance(source, str):
            left += _estimated(source, element[1], parts, names)
    return truth


def _estimated(
    source: str, index: int, parts: Traced, names: Mapping[Element, str]
) -> list[tuple[str, Element]]:
    """Return from what an estimate computes an element of q or v; nothing for other sources.

    The coordinates of a free joint's position contain its attitude; a true position that
    `StateEstimate` passes on brings nothing of the true attitude along.
    """
    name, _, output = source.partition(".")
    if name not in parts or output not in parts[name][1].elements:
        return []
    component, own = parts[name]
    joint, _, what = names[output, index].rpartition(" ")
    separates = getattr(component, "separates_position", False)
    left_out = f"{joint} attitude" if separates and what == "position" else ""
    return [(name, x) for x in own.elements[output][index] if names.get(x) != left_out]


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
