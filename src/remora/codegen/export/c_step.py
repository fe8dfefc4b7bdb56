"""C module of a simulation: one Runge-Kutta step, preceded by the discrete updates that are due.

    void NAME_init(NAME_state *state, const double q[15], const double v[13]);
    void NAME_step(const NAME_parameters *parameters, NAME_state *state, const NAME_noise *noise);

The classical Runge-Kutta method of order 4 on a manifold: a stage needs the rates of the previous
stage alone. Blocks of the step are graphs; this file writes the function that calls them. Time is
start + steps·h in double precision, so that it does not drift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.export.c_module import Function, Member, Module
from remora.codegen.export.c_module_test_program import RecordedCalls
from remora.codegen.export.c_text import SCALARS, number
from remora.codegen.export.unfused_code import ModuleState

#: Times of the stages, weights of the previous rates in a stage and in the sum, in steps.
TIMES = (0.0, 0.5, 0.5, 1.0)
AHEAD = (0.0, 0.5, 0.5, 1.0)
BEFORE = (0.0, 1 / 6, 1 / 3, 1 / 3)
#: Weight of the rates of the last stage in the sum.
LAST = 1 / 6
#: Members of the state that the step itself keeps.
CLOCK = (
    Member("start", (), "time at which the run began, s", "double"),
    Member("steps", (), "number of steps since then", "uint64_t"),
)
#: Members of the struct of a stage that the step sets; blocks read them.
STAGE = (
    Member("t", (), "time, s"),
    Member("ahead", (), "weight of the previous rates in the state of the stage, s"),
    Member("before", (), "weight of the previous rates in the sum of the stages, s"),
)


@dataclass(frozen=True)
class Update:
    """A discrete update at regular steps.

    Attributes:
        block: name of the function that does it.
        period: steps between two updates.
        first: steps before the first.
        note: what it is, for comments.
    """

    block: str
    period: int
    first: int
    note: str


def clock_members(updates: Sequence[Update]) -> list[Member]:
    """Return the members of the state that the step itself keeps."""
    if not updates:
        return [*CLOCK]
    note = "steps until the next " + ", ".join(u.note for u in updates)
    return [*CLOCK, Member("until", (len(updates),), note, "uint32_t")]


def step_functions(
    module: Module, updates: Sequence[Update], step: float, given: Mapping[str, int]
) -> list[Function]:
    """Return `init` and `step` of a module with the blocks `initial`, `prepare`, `rates`, `finish`.

    Args:
        module: structs `state`, `stage` and perhaps `parameters` and `noise`, and the blocks.
        updates: discrete updates in the order in which they happen.
        step: step size, s.
        given: members of the state that are arguments of `init`, with their sizes.
    """
    scalar = SCALARS[module.dtype]
    start = [module.call("initial")]
    for name, size in given.items():
        own = module.roles["state"].identifiers[name]
        start += [f"for (i = 0; i < {size}; i++) {{", f"    state->{own}[i] = {own}[i];", "}"]
    start += ["state->start = 0.0;", "state->steps = 0u;"]
    start += [f"state->until[{k}] = {u.first}u;" for k, u in enumerate(updates)]
    init = Function(
        "init", ("state",), ("state",), body=("int i;", *start),
        more=tuple(f"const {scalar} {name}[{size}]" for name, size in given.items()),
        notes=(
            "Set the state at time zero; quaternions must have unit length. For another time, set",
            "state->start afterwards.",
        ),
    )  # fmt: skip

    def table(name: str, values: Sequence[float], dtype: str) -> str:
        kind = SCALARS[dtype]
        return f"static const {kind} {name}[4] = {{{', '.join(number(x, dtype) for x in values)}}};"

    def now(ahead: str) -> str:
        text = f"state->start + {ahead}*{number(step, 'float64')}"
        return f"stage.t = {text};" if module.dtype == "float64" else f"stage.t = (float)({text});"

    lines = [
        table("times", TIMES, "float64"),
        table("ahead", [step * x for x in AHEAD], module.dtype),
        table("before", [step * x for x in BEFORE], module.dtype),
        f"{module.name}_stage stage = {{0}};",
        "int i;",
    ]
    if updates:
        lines.append(now("(double)state->steps"))
    for k, update in enumerate(updates):
        lines += [
            f"if (state->until[{k}] == 0u) {{",
            f"    {module.call(update.block, ('stage',))} /* {update.note} */",
            f"    state->until[{k}] = {update.period}u;",
            "}",
            f"state->until[{k}] -= 1u;",
        ]
    lines += [
        "for (i = 0; i < 4; i++) {",
        "    " + now("((double)state->steps + times[i])"),
        "    stage.ahead = ahead[i];",
        "    stage.before = before[i];",
        f"    {module.call('prepare', ('stage',))}",
        f"    {module.call('rates', ('stage',))}",
        "}",
        module.call("finish", ("stage",)),
        "state->steps += 1u;",
    ]
    advance = Function(
        "step", ("parameters", "state", "noise"), ("state",), body=tuple(lines),
        notes=(f"Advance by one step of {step:g} s: first the updates that are due, then RK4.",),
    )  # fmt: skip
    return [init, advance]


class SteppedModule:
    """A module with a step function, run by this computer with the bits of the C."""

    def __init__(self, module: Module, updates: Sequence[Update], step: float) -> None:
        """Compile the blocks."""
        self._state, self._updates, self._step = ModuleState(module), updates, step
        self._module = module

    @property
    def state(self) -> dict[str, Array]:
        """The members of the state."""
        return self._state.values["state"]

    def init(self, **given: Array) -> None:
        """Set the state at time zero."""
        self._state.call("initial")
        for name, value in given.items():
            self.state[name] = np.asarray(value, self._module.dtype)
        self.state["start"], self.state["steps"] = np.array(0.0), np.array(0, np.uint64)
        if self._updates:
            self.state["until"] = np.array([u.first for u in self._updates], np.uint32)

    def step(self, noise: Mapping[str, Array] | None = None) -> None:
        """Advance by one step."""
        values, state, h = self._state.values, self.state, self._step
        values["noise"] = dict(noise or {})
        stage, start, steps = values["stage"], float(state["start"]), float(state["steps"])
        for m in self._module.roles["stage"].members:
            stage[m.name] = np.zeros(m.shape, self._module.dtype)
        stage["t"] = np.array(start + steps * h)
        for k, update in enumerate(self._updates):
            if state["until"][k] == 0:
                self._state.call(update.block)
                state["until"][k] = update.period
            state["until"][k] -= 1
        for c, ahead, before in zip(TIMES, AHEAD, BEFORE, strict=True):
            stage["t"] = np.array(start + (steps + c) * h)
            stage["ahead"], stage["before"] = np.array(h * ahead), np.array(h * before)
            self._state.call("prepare")
            self._state.call("rates")
        self._state.call("finish")
        state["steps"] = np.array(int(state["steps"]) + 1, np.uint64)

    def recorded(
        self, starts: Mapping[str, Array], noise: Sequence[Mapping[str, Array]]
    ) -> RecordedCalls:
        """Return the calls of a run for the test program.

        Args:
            starts: initial values, the arguments of `init`.
            noise: the noise of each step.
        """
        name, scalar = self._module.name, SCALARS[self._module.dtype]
        begin: list[str] = []
        for key, value in starts.items():
            numbers = ", ".join(number(float(x), self._module.dtype) for x in value)
            begin.append(f"static const {scalar} {key}[{value.size}] = {{{numbers}}};")
        begin.append(f"{name}_init(&state, {', '.join(starts)});")
        public = tuple(r for r, s in self._module.roles.items() if not s.local)
        recorded = RecordedCalls(begin, [self._module.call("step", public)])
        self.init(**starts)
        for own in noise:
            self.step(own)
            recorded.given.append({"noise": own} if own else {})
            recorded.expected.append({"state": self._state.copy("state")})
        return recorded


def with_step(module: Module, functions: Sequence[Function]) -> Module:
    """Return a module with more functions."""
    structs, own = module.structs, (*module.functions, *functions)
    return Module(module.name, module.dtype, structs, own, module.about, ("stdint.h",))
