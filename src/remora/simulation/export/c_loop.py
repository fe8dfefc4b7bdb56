"""Export of a closed loop as C99: the program of a run, advanced by one step per call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import ArrayLike
from remora.codegen.export.c_test_program import write_module
from remora.codegen.export.c_text import identifier
from remora.codegen.ir.arguments import DTYPES
from remora.codegen.ir.graph import Signature
from remora.components.export.c_members import traceable
from remora.components.system import System
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.state import configuration, velocity
from remora.simulation.batch.batch import batch_phase, phase_entry
from remora.simulation.batch.batch_inputs import BatchInputs
from remora.simulation.batch.batch_phases import BatchPhase
from remora.simulation.engine.phase_dynamics import RunSettings
from remora.simulation.engine.simulate import model_of
from remora.simulation.export.loop_module import LoopModule
from remora.simulation.export.loop_program import ENDLESS, NOISE
from remora.simulation.inputs.events import Event, listed_events
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.run_settings import Physics
from remora.simulation.program.phase_entry import phase_robots

#: Where the noise of an exported loop comes from.
NOISES = ("given", "generated")


def save_loop_c(
    system: System,
    directory: str | Path,
    step: float,
    name: str | None = None,
    dtype: str = "float64",
    formulation: str | None = None,
    slip_speed: float = 1e-3,
    *,
    phases: Sequence[Phase] | None = None,
    prescribed: Mapping[str, Any] | None = None,
    locked: str | Sequence[str] = (),
    events: Sequence[Event] = (),
    noise: str = "given",
    example: tuple[ArrayLike, ArrayLike] | None = None,
) -> list[Path]:
    """Write a system, robot and components, as C99: header, source and a test program.

    `NAME_init(state, q, v)` sets the state; `NAME_step(parameters, state, noise)` advances it by
    one step, as `rm.simulate_batch` with `rk4` does with a sample at every multiple
    of the step: RK4 on the configuration manifold with compensated sums. Sampled components tick
    when they are due; events of components and `events` are located within the step, which then
    consists of several; constraints act, are switched and latch at the starts of phases. The state
    has q, v, the states and held results of all components by name, and time.

    Args:
        system: the system.
        directory: output folder; created if missing.
        step: step size, s.
        name: prefix of all C names; the robot's name by default.
        dtype: `float64` (double) or `float32` (float); time is kept as double in both.
        formulation: forward-dynamics formulation, see `rm.forward_dynamics`.
        slip_speed: regularization speed of dry friction, see `rm.dynamics.friction_forces`.
        phases: consecutive phases, as in `rm.simulate_batch`; without, the run has no end.
        prescribed: motions by joint, without phases: a `Motion`, or a function of time.
        locked: joints that are held at their position, without phases.
        events: conditions that are watched in all phases.
        noise: "given": standard normal numbers are an argument of each step; "generated": they are
            those of a batch with `state.seed` and `state.run`.
        example: q and v from which the test program starts; random ones by default.

    Returns:
        The files.
    """
    if dtype not in DTYPES:
        raise UnknownName("dtype of exported C", dtype, DTYPES)
    if noise not in NOISES:
        raise UnknownName("noise of exported C", noise, NOISES)
    is_number = isinstance(step, (int, float)) and not isinstance(step, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_number or not 0.0 < step < math.inf:
        raise InvalidValue(f"step must be a positive number of seconds, not {step!r}")
    traceable("save_loop_c", system)
    robot = system.robot
    if not robot.nv:
        raise RemoraError(
            f"robot {robot.name!r} has no degrees of freedom: there is nothing to integrate"
        )
    if not fits_straight_line(robot):
        raise RemoraError(
            f"C of a loop is written as a straight line, for at most {LARGEST_STRAIGHT_LINE} "
            f"bodies; {robot.name!r} has {len(robot.bodies)}"
        )
    parts = _parts(phases, prescribed, locked)
    model = model_of(robot, Physics(slip_speed=slip_speed, formulation=formulation))
    generated = noise == "generated"
    plan = _planned(system, parts, listed_events("events", events), model, dtype, generated)
    _refuse_repeated_noise(system, float(step), generated)
    called = identifier(name or robot.name)
    made = LoopModule(system, plan, float(step), called, dtype, generated)
    given = None
    if example is not None:
        q, v = example
        given = configuration(robot, q), velocity(robot, v)
    return write_module(made.module, made.recorded(given), directory)


def _parts(
    phases: Sequence[Phase] | None, prescribed: Mapping[str, Any] | None, locked: Any
) -> tuple[Phase, ...]:
    """Return the phases; without any there is one that does not end."""
    if phases is None:
        return (Phase(ENDLESS, prescribed=prescribed or {}, locked=locked),)
    if prescribed or locked:
        raise RemoraError("with phases, prescribed and locked joints are given in these")
    if not phases:
        raise RemoraError("phases are empty")
    return tuple(phases)


def _planned(
    system: System, phases: Sequence[Phase], events: Sequence[Event], model: RunSettings,
    dtype: str, generated: bool,
) -> list[BatchPhase]:  # fmt: skip
    """Return the phases as those of a batch, with the noise as an input if it is given."""
    robots = phase_robots(system.robot, phases)
    acting = [c.name for robot in robots for c in active_constraints(robot)]
    if acting and dtype != "float64":
        raise RemoraError(
            f"constraint {acting[0]!r} acts: float32 is too coarse to keep it; use dtype='float64'"
        )
    nothing, size = np.zeros(0), 0 if generated else system.noise_size
    own = BatchInputs(
        (), nothing, nothing, nothing, nothing, {},
        (Signature(NOISE, (size,)),) if size else (), dict(system.parameters), [],
    )  # fmt: skip
    plan: list[BatchPhase] = []
    for k, phase in enumerate(phases):
        pair = (robots[k - 1] if k else system.robot), robots[k]
        latched = {x for p in plan for x in p.entry.latches.values()}
        entry = phase_entry(system, k, phase, pair, own, latched)
        now = system.acting_on(robots[k])
        made = batch_phase(now, phase, own, model, (), (), events, entry)
        if len(phases) > 1 and made.equations.system.nz != system.nz:
            raise RemoraError(
                f"phase {k + 1} has a sampled load, which several phases in C cannot have: make it "
                "a component"
            )
        plan.append(made)
    return plan


def _refuse_repeated_noise(system: System, step: float, generated: bool) -> None:
    """Raise if a component with given noise may tick twice in one step."""
    for name, layout in system.layouts.items():
        every = layout.component.sample_time
        if not generated and layout.interface.noise and every and every < step * (1.0 - 1e-9):
            raise InvalidValue(
                f"component {name!r}: its sample_time of {every:g} s is shorter than the step of "
                f"{step:g} s, for which noise is given once; choose a shorter step, or "
                "noise='generated'"
            )
