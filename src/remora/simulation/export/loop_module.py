"""C module of a closed loop: structs, `init`, and `step`, whose body is the program of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.export.c_module import Function, Member, Module, Struct, constants
from remora.codegen.export.c_test_program import RecordedCalls
from remora.codegen.export.c_text import SCALARS, number
from remora.codegen.integration.program_c import WORK, ProgramText, member_places
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_plan import planned
from remora.codegen.integration.statements import ForEach, Sample
from remora.components.export.c_members import (
    continuous_members,
    discrete_members,
    joint_places,
    members_of,
    noise_members,
    parameter_struct,
    result_members,
    vector,
)
from remora.components.system import System
from remora.dynamics.constraints.close_loops import close_loops
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.model.state import random_state
from remora.simulation.batch.batch_phases import BatchPhase
from remora.simulation.export.loop_program import (
    BEGINS,
    MOTION,
    NOISE,
    PHASE,
    after,
    loop_program,
    of_phase,
    steps_of,
)
from remora.simulation.program.event_conditions import EventCondition
from remora.simulation.program.event_search import FIRST
from remora.simulation.program.run_equations import input_name, parameter_name

#: Number of recorded steps in the test program.
STEPS = 60
#: Roles of the structs, in the order of the arguments.
_ROLES = ("parameters", "state", "noise", WORK)
#: Comments on members of the state, in the order in which they are listed.
NOTES = {
    "t": "time, s",
    "status": "0: the run continues; 1: an event has stopped it; others: see docs/c.md",
    PHASE: "index of the phase",
    "phase start": "start of the phase, s",
    "until": "end of the phase, s",
    "events": "number of events in the phase",
    FIRST: "time of the first occurrence, s; 1e300: none yet",
}
#: Comment on all other members.
KEPT = "for the next step"


class LoopModule:
    """Structs and functions of a closed loop.

    Attributes:
        module: the C module.
    """

    def __init__(
        self, system: System, phases: Sequence[BatchPhase], step: float, name: str, dtype: str,
        generated: bool,
    ) -> None:  # fmt: skip
        """Trace the program of a call and write it as C.

        Args:
            system: the system without what its phases add.
            phases: the phases.
            step: step size, s.
            name: prefix of all names.
            dtype: `float64` or `float32`.
            generated: whether noise is generated; otherwise it is given.
        """
        self._system, self._phases, self._step, self._dtype = system, phases, step, dtype
        self._whole = whole = phases[0].equations.system
        self._loop = loop_program(phases, step, dtype, generated)
        layouts = {f"{n}.": layout for n, layout in whole.layouts.items()}
        self._x = [m for p, own in layouts.items() for m in continuous_members(own, p)]
        self._z: list[Member] = []
        for prefix, layout in layouts.items():
            self._z += discrete_members(layout, prefix)
            self._z += result_members(layout, prefix) if layout.sampled else []
        self._noise = [] if generated else [
            m for p, layout in layouts.items() for m in noise_members(layout, p)
        ]  # fmt: skip
        counts = [steps_of(u, step) for u in whole.schedule if self._z]
        self._counts = [c for c in counts if c is not None] if self._loop.lockstep else []
        #: Members that a cell of the state is made of, by its name.
        self._members = {name: self._members_of_cell(name) for name in self._loop.state}
        first = [n for n in (*MOTION[:4], *self._latched, *MOTION[4:]) if n in self._members]
        noted = [n for base in NOTES for n in self._members if self._base(n) == base]
        then = [*noted, *(n for n in self._members if n not in first and n not in noted)]
        state = [m for n in first for m in self._members[n]]
        state += self._clock(generated)
        state += [m for n in then for m in self._members[n]]
        structs = [
            parameter_struct(system, {n: f"{n}." for n in system.components}),
            Struct("state", tuple(state), "State of the loop."),
            Struct("noise", tuple(self._noise),
                   "Noise: independent standard normal numbers, new ones for each step."),
        ]  # fmt: skip
        self._structs = {s.role: s for s in structs if s is not None and s.members}
        self.module = self._written(name)

    # Structs --------------------------------------------------------------------------------------

    @property
    def _latched(self) -> list[str]:
        """Cells with the numbers that constraints take over."""
        found = [n for p in self._phases for n in p.entry.latches.values()]
        return [parameter_name(n) for n in dict.fromkeys(found)]

    def _clock(self, generated: bool) -> list[Member]:
        """Return the members that the step itself keeps."""
        found = [Member("start", (), "time at which the run began, s", "double"),
                 Member("steps", (), "number of steps since then", "uint64_t")]  # fmt: skip
        if self._counts:
            updates = [f"{u.kind} of {', '.join(u.names)}" for u in self._whole.schedule]
            note = f"steps until the next {', '.join(updates)}"
            found.append(Member("until", (len(self._counts),), note, "uint32_t"))
        if generated and self._whole.noise_size:
            found += [Member("seed", (2,), "lower and upper 32 bits of the seed", "double"),
                      Member("run", (), "number of the run", "double")]  # fmt: skip
        return found

    def _members_of_cell(self, name: str) -> list[Member]:
        """Return the members of the state that a cell is made of."""
        cell = self._loop.signature(name)
        kind = "double" if cell.wide and self._dtype == "float32" else ""
        parts = {"x": self._x, "z": self._z}
        if name in parts:
            return parts[name]
        for k, phase in enumerate(self._phases):
            if name == of_phase(FIRST, k, len(self._phases)):
                return self._event_members(k, phase, kind)
        if not cell.size:
            return []
        notes = {"q": "configuration", "v": "velocity"} | NOTES
        notes |= {f"rest {n}": "compensation term" for n in "qvx"}
        notes |= dict.fromkeys(self._latched, "taken over by a constraint")
        base = self._base(name)
        called = name.replace("until", "phase end", 1) if base == "until" else name
        shape = () if cell.size == 1 and name not in MOTION else (cell.size,)
        own = called.removeprefix("parameter ").replace(" ", "_")
        return [Member(own, shape, notes.get(base, KEPT), kind)]

    def _base(self, name: str) -> str:
        """Return the name of a cell without its phase."""
        return name.partition(" of phase ")[0]

    def _event_members(self, k: int, phase: BatchPhase, kind: str) -> list[Member]:
        """Return the members with the first times of the events of a phase."""
        system, found = phase.equations.system, list[Member]()
        for event in system.events:
            component = system.components[event.component]
            own = str(event)
            if isinstance(component, EventCondition):
                own = component.event
            suffix = f" of phase {k}" if len(self._phases) > 1 else ""
            found.append(Member(f"{own} time{suffix}", (), NOTES[FIRST], kind))
        return found

    # Functions ------------------------------------------------------------------------------------

    def _places(self) -> dict[str, list[str]]:
        """Return the places of all cells and inputs that are in the structs."""

        def of(role: str, members: Sequence[Member]) -> list[str]:
            struct = self._structs[role]
            return [
                place for m in members
                for place in member_places(role, struct.identifiers[m.name], m.size, not m.shape)
            ]  # fmt: skip

        found = {name: of("state", own) for name, own in self._members.items()}
        state = {m.name: m for m in self._structs["state"].members}
        for name in ("seed", "run", "start"):
            if name in state:
                found[name] = of("state", [state[name]])
        if self._noise:
            found[input_name(NOISE)] = of("noise", self._noise)
        if "parameters" in self._structs:
            for m in self._structs["parameters"].members:
                found[parameter_name(m.name)] = of("parameters", [m])
        if self._loop.lockstep:
            del found["start"]  # a table here
            numbers = {"step": self._step, "count": 1.0, "keep": 0.0}
        else:
            numbers = dict(self._loop.fixed)
        return found | {name: [number(x, "float64")] for name, x in numbers.items()}

    def _written(self, name: str) -> Module:
        """Return the module."""
        structs, system, loop = self._structs, self._system, self._loop
        plan = planned(loop.program, self._dtype, fma=False)
        (each,) = (s for s in plan.body if isinstance(s, ForEach))
        roles = [role for role in _ROLES if role in (*structs, WORK)]
        text = ProgramText(plan, name, self._dtype, roles, self._places())
        body = text.lines([s for s in each.body if not isinstance(s, Sample)])
        lines = [f"{name}_{WORK} memory = {{0}};", f"{name}_{WORK} *const {WORK} = &memory;"]
        lines += [*self._before(text), *body, *self._after()]
        work = Struct(WORK, tuple(text.members), "What a step needs.", local=True)
        taken = tuple(role for role in roles if role != WORK)
        lines += [f"(void){role};" for role in taken]
        motion = "RK4" if loop.lockstep else "RK4, up to events and breaks"
        advance = Function(
            "step", taken, ("state",), body=tuple(lines),
            notes=(f"Advance by one step of {self._step:g} s: first the updates that are due, then "
                   f"{motion}.",),
        )  # fmt: skip
        about = (
            f"Robot {system.robot.name}, components: {', '.join(system.components) or 'none'}.",
            *joint_places(system.robot),
        )
        return Module(
            name, self._dtype, (*structs.values(), work),
            (*text.functions, *self._init(name), advance), about, ("stdint.h",), text.support,
        )  # fmt: skip

    def _before(self, text: ProgramText) -> list[str]:
        """Return what a step does before the program: its times and due updates."""
        h, begun = number(self._step, "float64"), "state->start + "
        if self._loop.lockstep:
            found = [f"{text.places('start')[0]} = {begun}(double)state->steps*{h};"]
            for k in range(len(self._counts)):
                due = text.places(f"due {k}")[0]
                found.append(f"{due} = state->until[{k}] == 0u ? 1.0 : 0.0;")
            return found
        (goal,), (first,) = text.places("sample time"), text.places(BEGINS)
        return [
            f"{first} = state->steps == 0u ? 1.0 : 0.0;",
            f"{goal} = {begun}((double)state->steps + 1.0)*{h};",
        ]

    def _after(self) -> list[str]:
        """Return what a step does after the program."""
        found: list[str] = []
        for k, (period, _) in enumerate(self._counts):
            place = f"state->until[{k}]"
            found.append(f"{place} = ({place} == 0u ? {period}u : {place}) - 1u;")
        return [*found, "state->steps += 1u;"]

    def _init(self, name: str) -> list[Function]:
        """Return `init` and the function that sets the initial states of components."""
        scalar, robot, whole = SCALARS[self._dtype], self._system.robot, self._whole
        values = members_of(self._x, whole.initial_x) | members_of(self._z, whole.initial_z)
        found = [Function("initial", ("state",), ("state",), constants("state", values),
                          local=True)] if values else []  # fmt: skip
        lines = [f"static const {name}_state zero = {{0}};", "int i;", "*state = zero;"]
        lines += [f"{name}_initial(state);"] if values else []
        sizes = {"q": robot.nq, "v": robot.nv}
        for own, size in sizes.items():
            lines += [f"for (i = 0; i < {size}; i++) {{", f"    state->{own}[i] = {own}[i];", "}"]
        lines += [f"state->until[{k}] = {first}u;" for k, (_, first) in enumerate(self._counts)]
        init = Function(
            "init", ("state",), ("state",), body=tuple(lines),
            more=tuple(f"const {scalar} {own}[{size}]" for own, size in sizes.items()),
            notes=(
                "Set the state at time zero; quaternions must have unit length. For another time, "
                "set", "state->start afterwards.",
            ),
        )  # fmt: skip
        return [*found, init]

    # Recorded steps for the test program ----------------------------------------------------------

    def recorded(self, example: tuple[Array, Array] | None = None) -> RecordedCalls:
        """Return steps with random noise.

        Args:
            example: q and v at the start; None: random ones.
        """
        rng, robot = np.random.default_rng(0), self._phases[0].equations.robot
        q, v = random_state(robot, rng)
        v = 0.1 * v
        if active_constraints(robot):
            q, v = close_loops(robot, q, v)
        if example is not None:
            q, v = example
        starts = {"q": q.astype(self._dtype), "v": v.astype(self._dtype)}
        name, scalar = self.module.name, SCALARS[self._dtype]
        begin: list[str] = []
        for key, value in starts.items():
            numbers = ", ".join(number(float(x), self._dtype) for x in value)
            begin.append(f"static const {scalar} {key}[{value.size}] = {{{numbers}}};")
        begin.append(f"{name}_init(&state, q, v);")
        public = tuple(r for r in self.module.roles if r != WORK)
        recorded = RecordedCalls(begin, [self.module.call("step", public)])
        noise = [
            {m.name: np.asarray(rng.normal(size=m.shape), self._dtype) for m in self._noise}
            for _ in range(STEPS)
        ]
        for own, row in zip(noise, self._run(starts, noise), strict=True):
            recorded.given.append({"noise": own} if own else {})
            recorded.expected.append({"state": row})
        return recorded

    def _run(
        self, starts: Mapping[str, Array], noise: Sequence[Mapping[str, Array]]
    ) -> Iterator[dict[str, Array]]:
        """Yield the state after each step, by machine code with the bits of the C.

        Args:
            starts: q and v.
            noise: that of each step.
        """
        loop, whole, h = self._loop, self._whole, self._step
        program = loop.program
        kernel = ProgramKernel(program, self.module.name, self._dtype, lanes=1, fma=False)
        values: dict[str, Array] = {s.name: np.zeros(s.shape) for s in program.inputs}
        values |= {**starts, "x": whole.initial_x, "z": whole.initial_z}
        values |= {parameter_name(k): x for k, x in self._system.parameters.items()}
        values |= {k: np.full(1, x) for k, x in loop.fixed.items()}
        until = np.array([first for _, first in self._counts], np.int64)
        for k, own in enumerate(noise):
            if own:
                values[input_name(NOISE)] = vector(self._noise, own)
            values[BEGINS] = np.full(1, float(k == 0))
            tables = {"sample time": [(k + 1.0) * h]}
            if loop.lockstep:
                tables = {"start": [k * h], "step": [h], "count": [1.0], "keep": [0.0]}
                tables |= {f"due {i}": [float(n == 0)] for i, n in enumerate(until)}
            dtypes = kernel.interface.dtypes(self._dtype)[0]
            given = [np.asarray(values[s.name], own)
                     for s, own in zip(program.inputs, dtypes, strict=True)]  # fmt: skip
            made: Any = kernel(*given, tables=tables, threads=1)
            names = [o.name for o in program.outputs]
            results = dict(zip(names, made if len(names) > 1 else [made], strict=True))
            values |= {name: results[after(name)][0] for name in loop.state}
            for i, (period, _) in enumerate(self._counts):
                until[i] = (until[i] or period) - 1
            row = {"start": np.zeros(()), "steps": np.array(k + 1)}
            row |= {"until": until.copy()} if self._counts else {}
            row |= {"seed": np.zeros(2), "run": np.zeros(())}
            for name, members in self._members.items():
                row |= members_of(members, values[name].reshape(-1))
            yield row
