"""Connections between components: sources of inputs, evaluation order, algebraic loops."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.component import Component, Interface
from remora.components.context import DESIGN
from remora.components.signals import ANY_UNIT, Signal, same_unit
from remora.dynamics.kernels.parameter_checks import parameter_faults
from remora.dynamics.kernels.parameters import of_constraint, parameter
from remora.errors import Fault, InvalidValue, RemoraError
from remora.model.numbers import finite
from remora.model.robot import Robot

Interfaces = Mapping[str, Interface]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or the known names."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(names)}" if names else "; there are none"


#: Units of the numbers of a body; those of joints depend on the joint.
UNITS_OF_BODY = {"mass": "kg", "com": "m", "inertia": "kg m²"}


def own_sources(interfaces: Interfaces) -> dict[str, Any]:
    """Return the sources of inputs that name one themselves, see `Signal.source`."""
    return {
        f"{name}.{key}": signal.source
        for name, interface in interfaces.items()
        for key, signal in interface.inputs.items() if signal.source is not None
    }  # fmt: skip


def state_inputs(
    design: Robot, components: Mapping[str, Component], interfaces: Interfaces,
    connect: Mapping[str, Any], faults: list[Fault],
) -> tuple[dict[str, Interface], dict[str, Any]]:  # fmt: skip
    """Return the interfaces with inputs for what is estimated, and the sources left to connect.

    Components that use the design compute with the true state, unless an output is connected to
    their `q` or `v`, or a component estimates the state. The source `"robot.q"` is the true state.
    Likewise an output that is connected to `design.flange.mass` is this number of the design.

    Args:
        design: the robot with which these components compute.
        components: the components by name.
        interfaces: their interfaces.
        connect: sources that are given.
        faults: faults are appended.
    """
    outputs = {f"{name}.{key}" for name, own in interfaces.items() for key in own.outputs}
    estimates = [name for name, component in components.items() if component.estimates_state]
    made, left = dict(interfaces), dict(connect)
    for name, component in components.items():
        if not component.uses_design:
            continue
        added: dict[str, Signal] = {}
        wanted = bool(estimates) and not component.estimates_state
        for key, size in (("q", design.nq), ("v", design.nv)):
            source = connect.get(f"{name}.{key}")
            if isinstance(source, str) and source == f"robot.{key}" and source not in outputs:
                del left[f"{name}.{key}"]
            elif source is not None or wanted:
                added[key] = Signal(size)
        for target, source in connect.items():
            owner, _, key = str(target).partition(".")
            if owner == name and key.startswith(DESIGN):
                try:
                    added[key] = _number(design, key, source)
                except RemoraError as error:
                    faults.append(Fault(f"connection to {target!r}", str(error)))
                    left.pop(target, None)
        made[name] = with_estimates(interfaces[name], added)
    return made, left


def with_estimates(interface: Interface, added: Mapping[str, Signal]) -> Interface:
    """Return an interface with further inputs: the state, and numbers of the design."""
    return replace(interface, inputs={**interface.inputs, **added}) if added else interface


def _number(design: Robot, key: str, source: Any) -> Signal:
    """Return the signal of a number of the design; raise if it is impossible."""
    name = key.removeprefix(DESIGN)
    signature, number = parameter(design, name)[0], name.rpartition(".")[2]
    if of_constraint(design, name):
        raise InvalidValue("the constraints of the design are those of the robot")
    if not isinstance(source, str):
        value = finite(name, source).astype(float)
        if value.shape in ((), signature.shape):
            value = np.broadcast_to(value, signature.shape)
            faults = parameter_faults(design, name, value)
            if faults:
                raise InvalidValue("; ".join(map(str, faults)))
    return Signal(signature.shape, UNITS_OF_BODY.get(number, ANY_UNIT))


def sources(
    interfaces: Interfaces, connect: Mapping[str, Any], faults: list[Fault],
    explicit: Collection[str] = (),
) -> dict[str, str | Array]:  # fmt: skip
    """Return the source of every input, `"component.input"`: a signal's name, or numbers.

    An input that is not connected explicitly takes the only output of the same name (of several,
    the only one of its shape and unit), then its default. Faults are appended.

    Args:
        interfaces: the interfaces by component.
        connect: sources that are given.
        faults: faults are appended.
        explicit: components whose outputs are sources only where they are given.
    """
    outputs = {f"{c}.{k}": s for c, i in interfaces.items() for k, s in i.outputs.items()}
    inputs = {f"{c}.{k}": s for c, i in interfaces.items() for k, s in i.inputs.items()}
    found: dict[str, str | Array] = {}
    for target, source in connect.items():
        if target not in inputs:
            why = f"there is no such input{suggestion(str(target), inputs)}"
            faults.append(Fault(f"connection to {target!r}", why))
        elif isinstance(source, str):
            if source not in outputs:
                why = f"there is no output {source!r}{suggestion(source, outputs)}"
                faults.append(Fault(f"connection to {target!r}", why))
            else:
                found[target] = source
        else:
            _constant(target, inputs[target], source, found, faults)
    given = {t for t in connect if t in inputs}
    for target, signal in inputs.items():
        if target in given:
            continue
        component, _, name = target.partition(".")
        same = [
            o
            for o in outputs
            if o.partition(".")[2] == name and o.partition(".")[0] not in (component, *explicit)
        ]
        fitting = [o for o in same if outputs[o].shape == signal.shape
                   and same_unit(outputs[o].unit, signal.unit)]  # fmt: skip
        same = fitting or same
        if len(same) == 1:
            found[target] = same[0]
        elif len(same) > 1:
            why = f"has {len(same)} possible sources: connect it to one of {', '.join(same)}"
            faults.append(Fault(f"input {target!r}", why))
        elif signal.default is not None:
            found[target] = np.asarray(signal.default, dtype=float)
        else:
            why = (
                f"nothing provides it{suggestion(name, outputs)}; connect an output, "
                f"connect={{{target!r}: 'component.output'}}, or a number"
            )
            faults.append(Fault(f"input {target!r}", why))
    for target, source in found.items():
        if isinstance(source, str):
            _compare(target, inputs[target], source, outputs[source], faults)
    return {t: found[t] for t in inputs if t in found}


def _constant(
    target: str, signal: Signal, source: Any, found: dict[str, str | Array], faults: list[Fault]
) -> None:
    """Take numbers as the source of an input."""
    try:
        value = np.asarray(source, dtype=float)
    except (TypeError, ValueError):
        why = f"the source must be 'component.output' or numbers, not {source!r}"
        faults.append(Fault(f"connection to {target!r}", why))
        return
    if value.shape not in ((), signal.shape) or not np.all(np.isfinite(value)):
        why = f"needs finite numbers of shape {signal.shape}, not {source!r}"
        faults.append(Fault(f"connection to {target!r}", why))
        return
    found[target] = np.broadcast_to(value, signal.shape).copy()


def _compare(target: str, wanted: Signal, source: str, given: Signal, faults: list[Fault]) -> None:
    """Report a connection of different shapes or units."""
    if wanted.shape != given.shape:
        why = f"has shape {wanted.shape}, its source {source!r} has {given.shape}"
        faults.append(Fault(f"input {target!r}", why))
    if ANY_UNIT not in (wanted.unit, given.unit) and not same_unit(wanted.unit, given.unit):
        why = f"is in {wanted.unit or '1'}, its source {source!r} in {given.unit or '1'}"
        faults.append(Fault(f"input {target!r}", why))


#: (component, its name) -> which inputs each output depends on directly.
Feedthrough = Callable[[str], Mapping[str, frozenset[str]]]


def evaluation_order(
    components: Mapping[str, Component],
    interfaces: Interfaces,
    connections: Mapping[str, str | Array],
    feedthrough: Feedthrough,
    faults: list[Fault],
) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
    """Return the order of all outputs, and of the ticks of sampled components.

    An output that depends directly on an input comes after that input's source. A cycle of such
    dependencies is an algebraic loop and becomes a fault.

    Returns:
        Pairs (component, outputs), and the names of sampled components in the order of their ticks.
    """
    depends: dict[str, set[str]] = {}
    for name, interface in interfaces.items():
        component = components[name]
        direct = feedthrough(name)
        for output in interface.outputs:
            needs: set[str] = set()
            if not (component.sample_time is not None and component.delay > 0.0):
                for key in direct[output]:
                    source = connections.get(f"{name}.{key}")
                    if isinstance(source, str):
                        needs.add(source)
            depends[f"{name}.{output}"] = needs
    order, loop = _sorted(depends)
    if loop:
        shown = " -> ".join(loop)
        faults.append(
            Fault("algebraic loop", f"{shown}; give one of these components a sample_time and a "
                  "delay, or a state")
        )  # fmt: skip
        return [], []
    pairs: list[tuple[str, tuple[str, ...]]] = []
    for signal in order:
        name, _, output = signal.partition(".")
        if pairs and pairs[-1][0] == name:
            pairs[-1] = name, (*pairs[-1][1], output)
        else:
            pairs.append((name, (output,)))
    return pairs, _tick_order(components, interfaces, connections, depends, order, faults)


def _tick_order(
    components: Mapping[str, Component],
    interfaces: Interfaces,
    connections: Mapping[str, str | Array],
    depends: Mapping[str, set[str]],
    order: Sequence[str],
    faults: list[Fault],
) -> list[str]:
    """Return the sampled components in the order in which they tick at the same time.

    A component ticks after the sampled sources of its outputs. If possible it also ticks after the
    sources of what its actions and its next discrete states depend on; where components read each
    other, this holds for those that tick together, see `Instant.ticked`.

    Args:
        components: the components by name.
        interfaces: their interfaces.
        connections: source of every input.
        depends: the signals on which each output depends directly.
        order: all outputs, each after those on which it depends.
        faults: faults are appended.
    """
    sampled = [n for n, c in components.items() if c.sample_time is not None]
    timing = {n: (components[n].sample_time, components[n].offset) for n in sampled}
    reached: dict[str, set[str]] = {}  # sampled components whose results a signal depends on
    for signal in order:
        name = signal.partition(".")[0]
        through = (reached[source] for source in depends[signal])
        reached[signal] = {name} if name in timing else set().union(*through)
    before: dict[str, set[str]] = {}
    read: dict[str, set[str]] = {}
    for name in sampled:
        mine = (f"{name}.{key}" for key in interfaces[name].outputs)
        before[name] = {n for out in mine for s in depends[out] for n in reached[s]} - {name}
        used = (connections.get(f"{name}.{key}") for key in interfaces[name].inputs)
        read[name] = {n for s in used if isinstance(s, str) for n in reached[s]} - {name}
    ticks: list[str] = []
    while len(ticks) < len(sampled):
        left = [n for n in sampled if n not in ticks]
        now = timing[ticks[-1]] if ticks else None
        waits = {n: [m for m in before[n] if m in left] for n in left}
        apart = {n: [m for m in waits[n] if timing[m] != timing[n]] for n in left}
        late = {n: [m for m in read[n] if m in left] for n in left}
        late_apart = {n: [m for m in late[n] if timing[m] != timing[n]] for n in left}
        chosen = min(left, key=lambda n: (
            len(apart[n]) > 0, len(waits[n]) > 0, len(late[n]) > 0 and timing[n] != now,
            len(late_apart[n]) > 0, len(late[n]) > 0, timing[n] != now,
        ))  # fmt: skip
        ticks.append(chosen)
    group: dict[str, int] = {}
    for k, name in enumerate(ticks):
        same = k > 0 and timing[ticks[k - 1]] == timing[name]
        group[name] = group[ticks[k - 1]] if same else k
    for name in ticks:
        for other in sorted(before[name]):
            if group[other] > group[name]:
                why = (
                    f"its outputs and those of {other!r} depend on each other at the same tick, "
                    "with different sample times or offsets: make two components of one of them"
                )
                faults.append(Fault(f"component {name!r}", why))
    return ticks


def _sorted(depends: Mapping[str, set[str]]) -> tuple[list[str], Sequence[str]]:
    """Return the signals after all they depend on, and the names along a cycle, if there is one."""
    done: list[str] = []
    state: dict[str, int] = {}
    loop: list[str] = []

    def visit(signal: str, path: list[str]) -> None:
        if state.get(signal) == 2 or loop:
            return
        if state.get(signal) == 1:
            loop.extend([*path[path.index(signal) :], signal])
            return
        state[signal] = 1
        for source in sorted(depends[signal]):
            visit(source, [*path, signal])
        state[signal] = 2
        done.append(signal)

    for signal in depends:
        visit(signal, [])
    return done, loop[::-1]
