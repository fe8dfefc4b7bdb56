"""Members of the structs of exported C: parameters, states, results and noise of a component."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array, concatenate
from remora.codegen.export.c_module import Member, Struct
from remora.components.actions import Action, GeneralizedForce, JointForce
from remora.components.component import parameters
from remora.components.layout import ComponentLayout, packed, unpacked
from remora.components.run_signals import EventSignals, PhaseSignals
from remora.components.system import System
from remora.errors import RemoraError, UnknownName
from remora.model.robot import Robot

#: Name of the results that wait for their delay to pass.
WAITING = "waiting results"


def traceable(who: str, system: System, names: Sequence[str] | None = None) -> None:
    """Raise unless these components of a system, or all, exist and can be traced."""
    if not isinstance(system, System):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RemoraError(f"{who} takes an rm.System first, not {type(system).__name__}")
    for name in system.components if names is None else names:
        if name not in system.components:
            raise UnknownName("component of the system", name, system.components)
        if name in system.untraceable:
            raise RemoraError(
                f"component {name!r} cannot be written as C: {system.untraceable[name]}"
            )
        if isinstance(system.components[name], (PhaseSignals, EventSignals)):
            raise RemoraError(
                "phases and events of a run as signals are not part of exported C: in a loop, "
                f"connect what reads {name!r} to numbers"
            )
        if name in system.reads_phase:
            raise RemoraError(
                f"component {name!r} reads the phase of the run, which exported C does not have: "
                "give it an input instead"
            )
        interface = system.layouts[name].interface
        states = {**interface.continuous, **interface.discrete}
        arrays = {k: x.initial for k, x in states.items()} | parameters(system.components[name])
        for key, value in arrays.items():
            if not value.size:
                raise RemoraError(
                    f"component {name!r} cannot be written as C: {key!r} has no numbers, shape "
                    f"{value.shape}, and C has no empty arrays"
                )


def parameter_struct(system: System, prefixes: Mapping[str, str]) -> Struct | None:
    """Return the struct of the parameters of components, with their values; None: there are none.

    Args:
        system: the system.
        prefixes: components, and what is put in front of the names of their parameters.
    """
    values = {
        f"{prefix}{key}": value
        for name, prefix in prefixes.items()
        for key, value in parameters(system.components[name]).items()
    }
    members = tuple(Member(key, value.shape) for key, value in values.items())
    return Struct("parameters", members, "Parameters.", values) if members else None


def result_members(layout: ComponentLayout, prefix: str = "") -> list[Member]:
    """Return the outputs and actions of a component, in the order of its results."""
    interface = layout.interface
    found = [Member(prefix + k, s.shape, s.unit) for k, s in interface.outputs.items()]
    taken = {*interface.outputs, *interface.continuous, *interface.discrete}
    for action in layout.actions:
        name, note = _action(action)
        own = unused(name, taken)
        taken.add(own)
        shape = action.numbers().shape
        found.append(Member(prefix + own, () if shape == (1,) else shape, note))
    return found


def unused(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken: `name`, `name_2`, `name_3`, ..."""
    own, count = name, 2
    while own in taken:
        own, count = f"{name}_{count}", count + 1
    return own


def _action(action: Action) -> tuple[str, str]:
    """Return name and description of an action."""
    if isinstance(action, JointForce):
        return f"force_{action.joint}", f"force on joint {action.joint}, N m or N"
    if isinstance(action, GeneralizedForce):
        return "generalized_force", "forces on all degrees of freedom, N m or N"
    axes = "inertial axes" if action.axes == "inertial" else "its own axes"
    return f"wrench_{action.frame}", f"force, then torque on {action.frame}, {axes}, N and N m"


def continuous_members(layout: ComponentLayout, prefix: str = "") -> list[Member]:
    """Return the continuous states of a component."""
    return [Member(prefix + k, s.shape, s.unit) for k, s in layout.interface.continuous.items()]


def discrete_members(layout: ComponentLayout, prefix: str = "") -> list[Member]:
    """Return the discrete states and the delayed results of a component, in the order of z."""
    found = [Member(prefix + k, s.shape, s.unit) for k, s in layout.interface.discrete.items()]
    size = layout.effective.stop - layout.effective.start
    if layout.queue and size:
        note = "results that wait for the delay to pass, newest first"
        found.append(Member(prefix + WAITING, (layout.queue, size), note))
    return found


def noise_members(layout: ComponentLayout, prefix: str) -> list[Member]:
    """Return the random numbers of a component."""
    note = "independent standard normal numbers of this tick"
    return [Member(prefix + k, (n,), note) for k, n in layout.interface.noise.items()]


def joint_places(robot: Robot) -> list[str]:
    """Return comment lines that list the places of the joints in q and v."""
    lines: list[str] = []
    for what in ("q", "v"):
        parts: list[str] = []
        for joint in robot.joints:
            place: slice = getattr(joint, what)
            first, last = int(place.start), int(place.stop) - 1
            if first <= last:
                parts.append(f"{joint.name} {first}" + (f"-{last}" if last > first else ""))
        lines += textwrap.wrap(f"{what}: {', '.join(parts)}.", 90, subsequent_indent="   ")
    return lines


def vector(members: Sequence[Member], values: Mapping[str, Array]) -> Array:
    """Return members of a struct as one vector."""
    return packed({m.name: m.shape for m in members}, values)


def members_of(members: Sequence[Member], flat: Array) -> dict[str, Array]:
    """Return a vector as members of a struct."""
    return unpacked({m.name: m.shape for m in members}, flat)


def at_place(place: slice, part: Array, size: int) -> Array:
    """Return a vector of zeros with one part set."""
    start, stop = int(place.start), int(place.stop)
    return concatenate([np.zeros(start), part, np.zeros(size - stop)])
