"""Export of one component of a system as C99: structs, `init`, and `update` or `derivative`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.export.c_module import (
    Function,
    Member,
    Module,
    Struct,
    Values,
    constants,
    read_elements,
    traced,
)
from remora.codegen.export.c_test_program import RecordedCalls, write_module
from remora.codegen.export.c_text import identifier
from remora.codegen.ir.arguments import DTYPES
from remora.codegen.ir.trace import is_tuple
from remora.codegen.kernel import Kernel
from remora.components.component_instant import ComponentInstant
from remora.components.export.c_members import (
    at_place,
    continuous_members,
    discrete_members,
    joint_places,
    members_of,
    noise_members,
    parameter_struct,
    result_members,
    traceable,
    unused,
    vector,
)
from remora.components.layout import delay_in_ticks
from remora.components.signals import STATE
from remora.components.system import System
from remora.errors import RemoraError, UnknownName
from remora.model.state import random_state

#: Number of recorded calls in the test program.
CALLS = 50
#: Most elements of q and v that are listed in a comment.
MOST_ELEMENTS = 8
#: Order of the arguments of every function.
ARGUMENTS = ("parameters", "state", "inputs", "outputs", "derivatives", "events", "robot_state")

#: Members of the inputs that describe the robot; left out if they are not read.
_ROBOT = ("t", "q", "v")
#: Values by role and member.
_Given = dict[str, dict[str, Array]]


def save_component_c(
    system: System,
    component: str,
    directory: str | Path,
    name: str | None = None,
    dtype: str = "float64",
) -> list[Path]:
    """Write one component of a system as C99: header, source and a test program.

    A sampled component becomes `NAME_init(state)` and `NAME_update(parameters, state, inputs,
    outputs)`, one tick; with a delay that is no multiple of the sample time, `NAME_release` lets
    delayed results take effect. A continuous component becomes `NAME_output`, `NAME_derivative`,
    `NAME_crossings` and one `NAME_reset_EVENT` per event that resets states. Structs that would be
    empty are left out, and so are t, q and v if the component does not read them. The robot's
    numbers are compiled in; initial states are those of the present parameters.

    Args:
        system: the system.
        component: name of the component in it.
        directory: output folder; created if missing.
        name: prefix of all C names; the component's name by default.
        dtype: `float64` (double) or `float32` (float).

    Returns:
        The files.
    """
    traceable("save_component_c", system, [component])
    if dtype not in DTYPES:
        raise UnknownName("dtype of exported C", dtype, DTYPES)
    export = _ComponentExport(system, component, identifier(name or component), dtype)
    return write_module(export.module, export.recorded(), directory)


class _ComponentExport:
    """Structs and functions of one component."""

    def __init__(self, system: System, component: str, name: str, dtype: str) -> None:
        """Trace the component's methods."""
        self._system, self._component = system, component
        self._layout = layout = system.layouts[component]
        self._sampled, robot = layout.sampled, system.robot
        interface = layout.interface
        self._continuous = continuous_members(layout)
        self._discrete = discrete_members(layout)
        self._results = result_members(layout)
        inputs = [Member("t", (), "time, s")]
        for key, size, what in (("q", robot.nq, "configuration"), ("v", robot.nv, "velocity")):
            estimated = self._estimated(key)
            inputs.append(Member(key, (size,), estimated or f"{what} of the robot"))
        self._signals: dict[str, str] = {}
        for key, signal in interface.inputs.items():
            if self._estimated(key):
                self._signals[key] = key
                continue
            taken = {*_ROBOT, *self._signals.values()}
            self._signals[key] = own = unused(f"input_{key}" if key in _ROBOT else key, taken)
            inputs.append(Member(own, signal.shape, self._source(key, signal.unit)))
        taken = {m.name for m in inputs}
        self._noise = [Member(unused(m.name, taken), m.shape, m.note)
                       for m in noise_members(layout, "noise_")]  # fmt: skip
        inputs += self._noise
        state = [*self._continuous, *self._discrete]
        rates = [Member(m.name, m.shape, _per_second(m.note)) for m in self._continuous]
        events = [Member(key, (), f"zero crossing, {c.action}")
                  for key, c in interface.events.items()]  # fmt: skip
        motion = [Member("q", (robot.nq,)), Member("v", (robot.nv,))]
        structs = [
            parameter_struct(system, {component: ""}),
            Struct("state", tuple(state), "State between calls."),
            Struct("inputs", tuple(inputs), "What it reads."),
            Struct("outputs", tuple(self._results), "Outputs and actions."),
            Struct("derivatives", tuple(rates), "Time derivatives of the continuous states."),
            Struct("events", tuple(events), "Event functions."),
            Struct("robot_state", tuple(motion), "State of the robot after an event."),
        ]
        self._structs = {s.role: s for s in structs if s is not None and s.members}
        functions = self._update() if self._sampled else self._continuously()
        if not functions:
            raise RemoraError(
                f"component {component!r} has no outputs, actions, states or events: there is "
                "nothing to write as C"
            )
        self.module = self._assembled(name, dtype, functions)

    def _estimated(self, key: str) -> str:
        """Return the source of q or v if it is an input, otherwise an empty string."""
        uses = self._layout.component.uses_design and key in STATE
        return self._source(key, "") if uses and key in self._layout.interface.inputs else ""

    def _source(self, key: str, unit: str) -> str:
        """Return unit and source of an input."""
        source = self._system.connections[f"{self._component}.{key}"]
        origin = (
            f"from {source}" if isinstance(source, str) else f"constant here: {source.tolist()}"
        )
        return ", ".join(x for x in (unit, origin) if x)

    def _assembled(self, name: str, dtype: str, functions: list[Function]) -> Module:
        """Return the module, without members and structs that are never used."""
        graphs = [f.graph for f in functions if f.graph is not None]
        read = read_elements(graphs)
        written = {s.name for g in graphs for s in g.outputs}
        kept: list[Struct] = []
        for struct in self._structs.values():
            members = struct.members
            if struct.role == "inputs":
                own = {m.name for m in members} - {*_ROBOT}
                members = tuple(
                    m if m.name in own else _with_elements(m, read[f"inputs.{m.name}"])
                    for m in members if m.name in own or f"inputs.{m.name}" in read
                )  # fmt: skip
            elif struct.role == "robot_state":
                members = tuple(m for m in members if f"robot_state.{m.name}" in written)
            if members:
                kept.append(Struct(struct.role, members, struct.note, struct.initial, struct.local))
        initial, moves = self._initial(), bool({"inputs.q", "inputs.v"} & read.keys())
        if initial:
            functions = [
                Function("init", ("state",), ("state",), constants("state", initial),
                         notes=("Set the state to its initial values.",)),
                *functions,
            ]  # fmt: skip
        return Module(name, dtype, tuple(kept), tuple(functions), self._about(moves))

    def _about(self, moves: bool) -> tuple[str, ...]:
        """Return comment lines; `moves`: whether it reads q or v."""
        layout, component = self._layout, self._layout.component
        kind = type(component).__name__
        lines = [
            f"Component {self._component!r} ({kind}) of a system of {self._system.robot.name}."
        ]
        if component.sample_time is not None:
            first = (
                f", the first {component.offset:g} s after the start" if component.offset else ""
            )
            lines.append(f"Call update every {component.sample_time:g} s{first}.")
            lines.append("Hold its outputs in between; they are zero before the first call.")
        if self._noise:
            lines.append(
                "Noise: the inputs noise_... are independent standard normal numbers, new ones"
            )
            lines.append("for every tick; set them to zero where real sensors provide the noise.")
        if layout.queue and delay_in_ticks(component):
            lines.append(f"Outputs are those of {layout.queue} calls before: delay of "
                         f"{component.delay:g} s.")  # fmt: skip
        elif layout.queue and self._results:
            lines.append(f"Call release {component.delay:g} s after every update: its results "
                         "take effect then.")  # fmt: skip
        return (*lines, *(joint_places(self._system.robot) if moves else ()))

    def _initial(self) -> dict[str, Array]:
        """Return the initial values of the state by member."""
        interface = self._layout.interface
        found = {k: s.initial for part in (interface.continuous, interface.discrete)
                 for k, s in part.items()}  # fmt: skip
        return {m.name: found.get(m.name, np.zeros(m.shape))
                for m in (*self._continuous, *self._discrete)}  # fmt: skip

    # What the component sees ------------------------------------------------------------------

    def _seen(self, given: _Given) -> ComponentInstant:
        """Return the component at the values of the structs' members."""
        inputs, state = given["inputs"], given.get("state", {})
        name, own = self._component, self._layout
        changed = {f"{name}.{key}": value for key, value in given.get("parameters", {}).items()}
        x = at_place(own.x, vector(self._continuous, state), self._system.nx)
        part = vector(self._discrete, state)
        z = at_place(slice(own.discrete.start, own.waiting.stop), part, self._system.nz)
        return ComponentInstant(
            self._system.with_parameters(changed), name, inputs["t"], inputs["q"], inputs["v"],
            x, z, {key: inputs[own] for key, own in self._signals.items()},
        )  # fmt: skip

    def _function(
        self,
        name: str,
        function: Callable[[_Given], Values],
        arguments: Sequence[str],
        writes: Sequence[str],
        *notes: str,
    ) -> Function:
        readable = [s for r, s in self._structs.items() if r in ("parameters", "state", "inputs")]
        graph = traced(readable, function)
        own = tuple(role for role in ARGUMENTS if role in arguments)
        return Function(name, own, tuple(writes), graph, notes=notes)

    # Sampled ------------------------------------------------------------------------------------

    def _changed(self, z: Array) -> dict[str, Array]:
        own = self._layout
        return members_of(self._discrete, z[own.discrete.start : own.waiting.stop])

    def _in_effect(self, z: Array) -> dict[str, Array]:
        return members_of(self._results, z[self._layout.effective])

    def _update(self) -> list[Function]:
        if not self._results and not self._discrete:
            return []
        component = self._layout.component
        later = bool(self._layout.queue and self._results) and not delay_in_ticks(component)

        def update(given: _Given) -> Values:
            noise = vector(self._noise, given["inputs"])
            all_noise = at_place(self._layout.noise, noise, self._system.noise_size)
            z = self._seen(given).ticked([self._component], all_noise)
            after = {"state": self._changed(z)}
            return after if later else after | {"outputs": self._in_effect(z)}

        def release(given: _Given) -> Values:
            return {"outputs": self._in_effect(self._seen(given).released([self._component]))}

        writes = ("state",) if later else ("state", "outputs")
        found = [
            self._function("update", update, ("parameters", "inputs", *writes), writes, "One tick.")
        ]
        if later:
            why = "The delay of the oldest results has passed: they become the outputs."
            found.append(
                self._function("release", release, ("state", "outputs"), ("outputs",), why)
            )
        return found

    # Continuous ---------------------------------------------------------------------------------

    def _continuously(self) -> list[Function]:
        def output(given: _Given) -> Values:
            return {"outputs": members_of(self._results, self._seen(given).results())}

        def derivative(given: _Given) -> Values:
            return {"derivatives": self._seen(given).derivative_of(self._component)}

        def crossings(given: _Given) -> Values:
            return {"events": self._seen(given).event_functions()}

        read = ("parameters", "state", "inputs")
        found: list[Function] = []
        for name, function, role, why in (
            ("output", output, "outputs", "Outputs and actions at a time."),
            ("derivative", derivative, "derivatives", "Derivatives of the continuous states."),
            ("crossings", crossings, "events", "Event functions: their zero crossings are events."),
        ):
            if role in self._structs:
                found.append(self._function(name, function, (*read, role), (role,), why))
        for event, crossing in self._layout.interface.events.items():
            if crossing.action == "reset":
                found.append(self._reset(event, {f.name for f in found}))
        return found

    def _reset(self, event: str, taken: set[str]) -> Function:
        def reset(given: _Given) -> Values:
            own, before = self._layout, self._seen(given)
            q, v, x, z = before.reset(self._component, event)
            state = members_of(self._continuous, x[own.x]) | self._changed(z)
            moved = {k: new for k, new, old in (("q", q, before.q), ("v", v, before.v))
                     if new is not old}  # fmt: skip
            after = {"state": state} if state else {}
            return after | ({"robot_state": moved} if moved else {})

        roles = ("parameters", "state", "inputs", "robot_state")
        name = identifier(f"reset_{event}", taken)
        made = self._function(name, reset, roles, ("state", "robot_state"))
        assert made.graph is not None
        moves = any(s.name.startswith("robot_state.") for s in made.graph.outputs)
        return Function(
            made.name, roles if moves else roles[:3], made.writes, made.graph,
            notes=(f"Set the states to those after the event {event!r}.",),
        )  # fmt: skip

    # Recorded calls for the test program ------------------------------------------------------

    def recorded(self) -> RecordedCalls:
        """Return calls with random inputs; a sampled component carries its state along."""
        module, machine = self.module, _ModuleState(self.module)
        names = [f.name for f in module.functions]
        local = tuple(module.roles)
        begin = [module.call("init", local)] if "init" in names else []
        calls = [n for n in names if n != "init"]
        recorded = RecordedCalls(begin, [module.call(n, local) for n in calls])
        if begin:
            machine.call("init")
        rng = np.random.default_rng(0)
        for k in range(CALLS):
            given = {"inputs": self._drawn(k, rng)} if "inputs" in module.roles else {}
            if not self._sampled and "state" in module.roles:
                given["state"] = {m.name: np.asarray(rng.normal(size=m.shape), module.dtype)
                                  for m in module.roles["state"].members}  # fmt: skip
            for role, values in given.items():
                machine.values[role] |= values
            for name in calls:
                machine.call(name)
            recorded.given.append(given)
            roles = [r for r in module.roles if r not in ("parameters", "inputs")]
            recorded.expected.append({role: machine.copy(role) for role in roles})
        return recorded

    def _drawn(self, k: int, rng: np.random.Generator) -> dict[str, Array]:
        """Return random inputs of a tick."""
        component, robot = self._layout.component, self._system.robot
        q, v = random_state(robot, rng)
        t = component.offset + k * (component.sample_time or 0.1)
        known = {"t": np.array(t), "q": q, "v": v}
        return {
            m.name: np.asarray(known.get(m.name, rng.normal(size=m.shape)), self.module.dtype)
            for m in self.module.roles["inputs"].members
        }


class _ModuleState:
    """The structs of a module as arrays, on which its functions work as in C.

    Attributes:
        values: by role and member.
    """

    def __init__(self, module: Module) -> None:
        """Start with zeros, and with the initial values of structs that have them."""
        kinds = {"": module.dtype, "double": "float64"}
        self._module = module
        self.values: dict[str, dict[str, Array]] = {}
        for struct in module.structs:
            own = {m.name: np.zeros(m.shape, kinds.get(m.c_type, m.c_type.removesuffix("_t")))
                   for m in struct.members}  # fmt: skip
            for name, value in (struct.initial or {}).items():
                own[name] = np.asarray(value, own[name].dtype)
            self.values[struct.role] = own
        # without fused products and sums, as the exported C
        self._kernels = {
            f.name: Kernel.from_graph(f.graph, f.name, module.dtype, fma=False)
            for f in module.functions
            if f.graph is not None
        }

    def call(self, function: str) -> None:
        """Call a function that has a graph."""
        kernel = self._kernels[function]
        read: list[Array] = []
        for signature in kernel.inputs:
            role, _, name = signature.name.partition(".")
            # members that nothing reads are left out of the structs
            absent = np.zeros(signature.shape, kernel.dtype)
            read.append(self.values.get(role, {}).get(name, absent))
        returned: Any = kernel(*read)
        results: Sequence[Array] = returned if is_tuple(returned) else (returned,)
        for signature, result in zip(kernel.outputs, results, strict=True):
            role, _, name = signature.name.partition(".")
            self.values[role][name] = result

    def copy(self, role: str) -> dict[str, Array]:
        """Return a copy of the members of a struct."""
        return {name: np.array(value) for name, value in self.values[role].items()}


def _with_elements(member: Member, elements: Sequence[int]) -> Member:
    """Return a member whose comment lists the elements that are read, if they are few."""
    if not member.shape or len(elements) > MOST_ELEMENTS:
        return member
    note = f"{member.note}; reads {', '.join(f'{member.name}[{i}]' for i in elements)}"
    return Member(member.name, member.shape, note)


def _per_second(unit: str) -> str:
    return f"{unit or '1'} per second"
