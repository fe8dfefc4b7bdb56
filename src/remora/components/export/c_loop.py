"""Export of a closed loop as C99: the robot with all components, one RK4 step per call."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from remora.algebra.array_ops import Array, total_and_rest
from remora.codegen.export.c_module import (
    Function,
    Member,
    Module,
    Struct,
    Values,
    constants,
    traced,
)
from remora.codegen.export.c_module_test_program import RecordedCalls, write_module
from remora.codegen.export.c_step import (
    LAST,
    STAGE,
    SteppedModule,
    Update,
    clock_members,
    step_functions,
    with_step,
)
from remora.codegen.export.c_text import identifier
from remora.codegen.ir.arguments import DTYPES
from remora.components.evaluation import Instant
from remora.components.export.c_members import (
    continuous_members,
    discrete_members,
    joint_places,
    members_of,
    noise_members,
    parameter_struct,
    result_members,
    traceable,
    vector,
)
from remora.components.system import ScheduledUpdate, System
from remora.dynamics.forces.equations_of_motion import PassiveParameters, actuation
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.dynamics.refusals import refuse_constraints
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.state import increment, integrate, log_rate, random_state

#: Number of recorded steps in the test program.
STEPS = 60
#: Largest deviation of a sample time from a multiple of the step, relative.
MULTIPLE = 1e-9

_Given = dict[str, dict[str, Array]]


def save_loop_c(
    system: System,
    directory: str | Path,
    step: float,
    name: str | None = None,
    dtype: str = "float64",
    formulation: str | None = None,
    slip_speed: float = 1e-3,
) -> list[Path]:
    """Write a system, robot and components, as C99: header, source and a test program.

    `NAME_init(state, q, v)` sets the state; `NAME_step(parameters, state, noise)` advances it by
    one step of RK4 as `rm.simulate(system, integrator="rk4", limits="ignore")` does: the
    configuration moves on its manifold, sums are compensated, and sampled components tick at the
    starts of steps. The state has q, v, the states and held results of all components by name, and
    time as a step count.

    Args:
        system: the system; without events.
        directory: output folder; created if missing.
        step: step size, s; sample times, offsets and delays must be multiples of it.
        name: prefix of all C names; the robot's name by default.
        dtype: `float64` (double) or `float32` (float); time is kept as double in both.
        formulation: forward-dynamics formulation, see `rm.forward_dynamics`.
        slip_speed: regularization speed of dry friction, see `rm.friction_forces`.

    Returns:
        The files.
    """
    if dtype not in DTYPES:
        raise UnknownName("dtype of exported C", dtype, DTYPES)
    is_number = isinstance(step, (int, float)) and not isinstance(step, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_number or not 0.0 < step < math.inf:
        raise InvalidValue(f"step must be a positive number of seconds, not {step!r}")
    traceable("save_loop_c", system)
    robot = system.robot
    refuse_constraints(robot, "save_loop_c")
    if system.events:
        listed = ", ".join(map(str, system.events))
        raise RemoraError(
            f"a loop with events cannot be written as C, since its steps are fixed: {listed}; "
            "write the components one by one with save_component_c"
        )
    if system.breaks:
        names = [n for n, own in system.layouts.items() if own.interface.breaks and not own.sampled]
        raise RemoraError(
            f"the steps of a loop in C cannot end at the breaks of {', '.join(names)}: give these "
            "components a sample_time"
        )
    if not robot.nv:
        raise RemoraError(
            f"robot {robot.name!r} has no degrees of freedom: there is nothing to integrate"
        )
    if not fits_straight_line(robot):
        raise RemoraError(
            f"C of a loop is written as a straight line, for at most {LARGEST_STRAIGHT_LINE} "
            f"bodies; {robot.name!r} has {len(robot.bodies)}"
        )
    if not 0.0 <= slip_speed < math.inf:
        raise InvalidValue(f"slip_speed must be finite and not negative, not {slip_speed!r}")
    called = identifier(name or robot.name)
    export = _LoopExport(system, float(step), called, dtype, formulation, slip_speed)
    return write_module(export.module, export.recorded(), directory)


class _LoopExport:
    """Structs and functions of a closed loop."""

    def __init__(
        self,
        system: System,
        step: float,
        name: str,
        dtype: str,
        formulation: str | None,
        slip_speed: float,
    ) -> None:
        """Trace the blocks of a step."""
        self._system, self._step, self._formulation = system, step, formulation
        self._passive = PassiveParameters(slip_speed)
        layouts = {f"{n}.": layout for n, layout in system.layouts.items()}
        nq, nv, nx = system.robot.nq, system.robot.nv, system.nx
        self._x = [m for p, layout in layouts.items() for m in continuous_members(layout, p)]
        self._z: list[Member] = []
        for prefix, layout in layouts.items():
            self._z += discrete_members(layout, prefix)
            self._z += result_members(layout, prefix) if layout.sampled else []
        self._noise = [m for p, layout in layouts.items() for m in noise_members(layout, p)]
        self._schedule = system.schedule if self._z else ()
        self._updates = [self._update(k, u) for k, u in enumerate(self._schedule)]
        motion = [Member("q", (nq,), "configuration"), Member("v", (nv,), "velocity")]
        rests = [Member("rest_q", (nq,)), Member("rest_v", (nv,))]
        rests += [Member("rest_x", (nx,))] if nx else []
        rests = [Member(m.name, m.shape, "compensation term") for m in rests]
        stage = [
            Member("q", (nq,)),
            *(Member(k, (nv,)) for k in ("u", "v", "ku", "kv", "au", "av")),
        ]
        stage += [Member(k, (nx,)) for k in ("x", "kx", "ax")] if nx else []
        state = (*motion, *self._x, *self._z, *rests, *clock_members(self._updates))
        structs = [
            parameter_struct(system, {n: f"{n}." for n in system.components}),
            Struct("state", state, "State of the loop."),
            Struct("noise", tuple(self._noise),
                   "Noise: independent standard normal numbers, new ones for each step."),
            Struct("stage", (*STAGE, *stage), "A stage of the Runge-Kutta method.", local=True),
        ]  # fmt: skip
        kept = tuple(s for s in structs if s is not None and s.members)
        self._structs = {s.role: s for s in kept}
        components = ", ".join(system.components) or "none"
        about = (
            f"Robot {system.robot.name}, components: {components}.",
            *joint_places(system.robot),
        )
        blocks = Module(name, dtype, kept, tuple(self._blocks()), about)
        sizes = {"q": nq, "v": nv}
        functions = step_functions(blocks, self._updates, step, sizes)
        self.module = with_step(blocks, functions)

    def _update(self, k: int, update: ScheduledUpdate) -> Update:
        """Return a scheduled update in steps, or raise."""
        who = ", ".join(map(repr, update.names))
        first = "offset" if update.kind == "tick" else "offset + delay"
        counts: list[int] = []
        for what, value in (("sample_time", update.sample_time), (first, update.offset)):
            count = value / self._step
            near = round(count)
            whole = abs(count - near) <= MULTIPLE * max(1.0, count) and near < 2**32
            if not whole or (near == 0 and value > 0.0):
                raise InvalidValue(
                    f"component {who}: {what} is {value:g} s, no multiple of the step of "
                    f"{self._step:g} s; choose a step that divides it"
                )
            counts.append(near)
        return Update(
            f"update_{k}", counts[0], counts[1], f"{update.kind} of {', '.join(update.names)}"
        )

    # Blocks -------------------------------------------------------------------------------------

    def _blocks(self) -> list[Function]:
        everything = ("parameters", "state", "noise", "stage")
        x, z = self._initial()
        rests = {k: np.zeros(m.shape) for k, m in self._members("state").items()
                 if k.startswith("rest_") and m.note == "compensation term"}  # fmt: skip
        found = [
            self._block("prepare", self._prepare, ("state", "stage"), "stage"),
            self._block("rates", self._rates, ("parameters", "state", "stage"), "stage"),
            self._block("finish", self._finish, ("state", "stage"), "state"),
        ]
        for k, update in enumerate(self._schedule):

            def change(given: _Given, update: ScheduledUpdate = update) -> Values:
                return {"state": members_of(self._z, self._changed(given, update))}

            found.append(self._block(f"update_{k}", change, everything, "state"))
        graph = constants("state", x | z | rests)
        return [Function("initial", ("state",), ("state",), graph, local=True), *found]

    def _members(self, role: str) -> dict[str, Member]:
        return {m.name: m for m in self._structs[role].members}

    def _block(
        self, name: str, function: Callable[[_Given], Values], roles: tuple[str, ...], write: str
    ) -> Function:
        readable = [self._structs[r] for r in roles if r in self._structs]
        graph = traced(readable, function)
        return Function(name, roles, (write,), graph, local=True)

    def _initial(self) -> tuple[dict[str, Array], dict[str, Array]]:
        system = self._system
        return members_of(self._x, system.initial_x), members_of(self._z, system.initial_z)

    def _with_parameters(self, given: _Given) -> System:
        return self._system.with_parameters(given.get("parameters", {}))

    def _changed(self, given: _Given, update: ScheduledUpdate) -> Array:
        """Return z after an update."""
        state = given["state"]
        now = Instant(
            self._with_parameters(given), given["stage"]["t"], state["q"], state["v"],
            vector(self._x, state), vector(self._z, state),
        )  # fmt: skip
        if update.kind == "release":
            return now.released(update.names)
        return now.ticked(update.names, vector(self._noise, given.get("noise", {})))

    def _prepare(self, given: _Given) -> Values:
        """Return the state of a stage, and the weighted sum of the rates before it."""
        state, stage, robot = given["state"], given["stage"], self._system.robot
        ahead, before = stage["ahead"], stage["before"]
        u = ahead * stage["ku"]
        found = {
            "u": u, "q": integrate(robot, state["q"], u), "v": state["v"] + ahead * stage["kv"],
            "au": stage["au"] + before * stage["ku"], "av": stage["av"] + before * stage["kv"],
        }  # fmt: skip
        if self._x:
            x = vector(self._x, state)
            found |= {"x": x + ahead * stage["kx"], "ax": stage["ax"] + before * stage["kx"]}
        return {"stage": found}

    def _rates(self, given: _Given) -> Values:
        """Return the rates of u, v and x at a stage."""
        stage, system = given["stage"], self._with_parameters(given)
        q, v, robot = stage["q"], stage["v"], system.robot
        z = vector(self._z, given["state"])
        now = Instant(system, stage["t"], q, v, stage.get("x", np.zeros(0)), z)
        tau, wrenches = now.loads()
        tau = np.zeros(robot.nv) if tau is None else tau
        vdot, _ = actuation(robot, q, v, tau, wrenches, formulation=self._formulation,
                            passive=self._passive)  # fmt: skip
        found = {"ku": log_rate(robot, stage["u"], v), "kv": vdot}
        return {"stage": found | ({"kx": now.derivative()} if self._x else {})}

    def _finish(self, given: _Given) -> Values:
        """Return the state after the step, by compensated summation."""
        state, stage, robot = given["state"], given["stage"], self._system.robot
        last = LAST * self._step
        u, dv = stage["au"] + last * stage["ku"], stage["av"] + last * stage["kv"]
        change = increment(robot, state["q"], u) + state["rest_q"]
        q, rest_q = total_and_rest(state["q"], change)
        v, rest_v = total_and_rest(state["v"], dv + state["rest_v"])
        found = {"q": q, "v": v, "rest_q": rest_q, "rest_v": rest_v}
        if self._x:
            dx = stage["ax"] + last * stage["kx"] + state["rest_x"]
            x, found["rest_x"] = total_and_rest(vector(self._x, state), dx)
            found |= members_of(self._x, x)
        return {"state": found}

    # Recorded steps for the test program --------------------------------------------------------

    def recorded(self) -> RecordedCalls:
        """Return steps from a random state with random noise."""
        rng = np.random.default_rng(0)
        q, v = random_state(self._system.robot, rng)
        starts = {k: x.astype(self.module.dtype) for k, x in (("q", q), ("v", 0.1 * v))}
        noise = [
            {m.name: np.asarray(rng.normal(size=m.shape), self.module.dtype) for m in self._noise}
            for _ in range(STEPS)
        ]
        return SteppedModule(self.module, self._updates, self._step).recorded(starts, noise)
