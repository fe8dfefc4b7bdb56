"""What control laws know of the true state: parts of it that no sensor measures."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra.array_ops import Array
from remora.components.component import Component
from remora.components.feedthrough import Dependence, Element
from remora.components.signals import STATE
from remora.model.joints import kind
from remora.model.robot import Robot


def truth_read_by(
    robot: Robot, components: Mapping[str, Component], connections: Mapping[str, str | Array],
    dependences: Mapping[str, Dependence],
) -> dict[str, tuple[str, ...]]:  # fmt: skip
    """Return the parts of the true state on which components depend, by component.

    For components that use the design. An estimate of q and v belongs to those that read it; what
    comes from other components is not followed further.

    Args:
        robot: the robot.
        components: the components by name.
        connections: source of every input.
        dependences: of the components.
    """
    names = _parts(robot)
    found: dict[str, tuple[str, ...]] = {}
    for name, component in components.items():
        if not component.uses_design or dependences[name].elements:
            continue
        seen: set[tuple[str, Element]] = set()
        left = [(name, element) for element in dependences[name].read]
        truth: set[Element] = set()
        while left:
            here = owner, element = left.pop()
            if here in seen:
                continue
            seen.add(here)
            if element[0] in STATE:
                truth.add(element)
            else:
                left += _estimated(owner, element, names, connections, dependences)
        if truth:
            found[name] = tuple(dict.fromkeys(names[element] for element in sorted(truth)))
    return found


def _estimated(
    name: str, element: Element, names: Mapping[Element, str],
    connections: Mapping[str, str | Array], dependences: Mapping[str, Dependence],
) -> list[tuple[str, Element]]:  # fmt: skip
    """Return from what an estimate computes an element of an input; nothing for other inputs.

    The coordinates of a free joint's position contain its attitude; a true position needs the true
    attitude to be read, but brings nothing of it into the estimate.
    """
    group, _, key = element[0].partition(".")
    source = connections.get(f"{name}.{key}") if group == "inputs" else None
    if not isinstance(source, str):
        return []
    other, _, output = source.partition(".")
    parts = dependences[other].elements.get(output)
    if parts is None:
        return []
    own = names[output, element[1]]
    joint, _, what = own.rpartition(" ")
    left_out = f"{joint} attitude" if what == "position" else ""
    return [(other, x) for x in parts[element[1]] if names.get(x) != left_out]


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
