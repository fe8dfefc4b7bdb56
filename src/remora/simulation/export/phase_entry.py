"""Entry of a phase as statements: held joints, capture, latch and release in exported code.

The equations are those of single runs and of batches (`switch_equations`, `step_projection`); what
these do with arrays of runs is written here as statements of a program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra.array_ops import Array, absolute, concatenate, less, select
from remora.algebra.selections import each, flag, larger, largest, negated
from remora.codegen.integration.statements import Block, Cell, Run, Statement, While
from remora.codegen.ir.graph import Signature
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.step_projection import start_correction
from remora.dynamics.constraints.switch_equations import (
    capture_jump,
    latched_value,
    separation_jump,
)
from remora.dynamics.kernels.parameters import parameter
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.simulation.batch.batch_phases import BatchPhase
from remora.simulation.batch.held_starts import MISMATCH
from remora.simulation.engine.constraint_switching import (
    CLOSED,
    MOST_NEWTON_STEPS,
    ROUNDING,
    velocities,
)
from remora.simulation.program.event_search import BAD_HOLD, BLOCKED, VIOLATED
from remora.simulation.program.run_blocks import unchanged, wide_run
from remora.simulation.program.run_equations import parameter_name


class PhaseEntry:
    """Statements that let a run enter a phase.

    Attributes:
        phase: the phase.
    """

    def __init__(self, phase: BatchPhase, dtype: str) -> None:
        """Store the phase and the precision of the program."""
        self.phase, self._dtype = phase, dtype
        self._own, self._equations = phase.constraints, phase.equations
        self._robot = phase.equations.robot
        self._rows = sum(count(c) for c in active_constraints(self._own.robot))

    @property
    def cells(self) -> list[Signature]:
        """Variables of the statements."""
        nq, nv = self._robot.nq, self._robot.nv
        found: list[Signature] = []
        if self._equations.held:
            found += [Signature("begin q", (nq,)), Signature("begin v", (nv,))]
        if self._own.acts:
            found += [Signature("v before", (nv,)), Signature("q given", (nq,)),
                      Signature("v given", (nv,))]  # fmt: skip
            found += [Cell(n, (1,), wide=True) for n in ("closing", "newton", "misfit")]
        return found

    def statements(self) -> list[Statement]:
        """Return the statements: q, v, their compensation terms and `status` are changed."""
        found = self._held()
        return [*found, *self._switched()] if self._own.acts else found

    # Held joints ----------------------------------------------------------------------------------

    def _held(self) -> list[Statement]:
        """Return the check that held joints need not jump."""
        equations, limit = self._equations, MISMATCH[self._dtype]
        if not equations.held:
            return []

        def begin(t: Array, start: Array, anchor: Array) -> tuple[Array, Array]:
            clock = t - start if equations.own_clock else t
            q, v, _ = equations.motions(clock, anchor)
            return q, v

        def jump(q: Array, v: Array, at: Array, speed: Array, status: Array) -> Array:
            off = np.zeros(1)
            for name, motion in equations.held.items():
                joint = equations.robot.joints[name]
                pairs = [(v[joint.v] - speed[joint.v], speed[joint.v])]
                if motion is not None:
                    apart = kind(joint).difference(q[joint.q], at[joint.q])
                    pairs.append((apart, at[joint.q]))
                for difference, value in pairs:
                    size = larger(_size(value), 1.0)
                    off = larger(off, flag(less(limit * size, _size(difference))))
            return select(less(0.5, off), float(BAD_HOLD), status)

        moved = Block(begin, ("t", "phase start", "anchor"), ("begin q", "begin v"), wide=True)
        reads = ("q", "v", "begin q", "begin v", "status")
        return [Run(moved), wide_run(jump, reads, ("status",))]

    # Constraints ----------------------------------------------------------------------------------

    def _switched(self) -> list[Statement]:
        """Return what the constraints that act from now on, or no longer, change."""
        own, equations = self._own, self._equations
        held, names = own.held, [parameter_name(n) for n in own.parameters]
        found: list[Statement] = [Run(Block(unchanged, ("q", "v"), ("q given", "v given")))]
        for constraint, to in own.latches.items():

            def latched(q: Array, *values: Array, constraint: str = constraint) -> Array:
                return latched_value(_with(own.robot, own.parameters, values), q, constraint)

            found.append(Run(Block(latched, ("q", *names), (parameter_name(to),))))
        if equations.held:
            found.append(Run(Block(self._placed, ("q", "v", "begin q", "begin v"), ("q", "v"))))
        if own.phase.separation:

            def apart(q: Array, v: Array, status: Array, *values: Array) -> tuple[Array, Array]:
                robot = _with(own.before, own.parameters, values)
                jump = separation_jump(robot, q, v, held, velocities(own.phase))
                return jump.v, _failed(_size(jump.misfit), BLOCKED, status)

            found.append(wide_run(apart, ("q", "v", "status", *names), ("v", "status")))
        if active_constraints(own.robot):
            found += self._closed()

        def kept(q: Array, v: Array, q0: Array, v0: Array, *rests: Array) -> tuple[Array, ...]:
            same = _size(concatenate([q - q0, v - v0]))
            return tuple(select(less(0.0, same), 0.0 * rest, rest) for rest in rests)

        rests = ("rest q", "rest v", "rest x")
        found.append(Run(Block(kept, ("q", "v", "q given", "v given", *rests), rests)))
        return found

    def _placed(self, q: Array, v: Array, at: Array, speed: Array) -> tuple[Array, Array]:
        """Return the state with held joints where their motions begin."""
        parts: list[tuple[Array, Array]] = []
        for joint in self._robot.joints:
            if joint.mimic is None and joint.v.stop > joint.v.start:
                held = joint.name in self._equations.held
                parts.append(((at if held else q)[joint.q], (speed if held else v)[joint.v]))
        return concatenate([p[0] for p in parts]), concatenate([p[1] for p in parts])

    def _closed(self) -> list[Statement]:
        """Return Newton's method for q, and the impulse that removes the forbidden velocity."""
        own, held, first = self._own, self._own.held, self._own.index == 0
        known = tuple(dict.fromkeys((*own.parameters, *own.latches.values())))
        names = [parameter_name(n) for n in known]
        watched = np.array(
            [float(first and c.name not in own.phase.activate)
             for c in active_constraints(own.robot) for _ in range(count(c))]
        )  # fmt: skip

        def begin(v: Array) -> tuple[Array, ...]:
            return v, np.ones(1), np.zeros(1)

        def correct(
            q: Array, v: Array, newton: Array, status: Array, *values: Array
        ) -> tuple[Array, ...]:
            by = start_correction(_with(own.robot, known, values), q, v, held)
            off = larger(_size(by.residual), _size(watched * by.slip))
            off = select(less(newton, 0.5), off, 0.0)
            status = _failed(off, VIOLATED, status)
            size = _size(by.dq)
            going = less(0.0, size)
            more = flag(negated(less(size, ROUNDING))) * flag(less(newton, MOST_NEWTON_STEPS - 1.5))
            after = select(going, by.q, q)
            return after, by.v, _size(by.misfit), newton + 1.0, more, status

        def jump(q: Array, v: Array, *values: Array) -> tuple[Array, Array]:
            found = capture_jump(_with(own.robot, known, values), q, v, held)
            return found.v, _size(found.misfit)

        def blocked(misfit: Array, status: Array) -> Array:
            return _failed(misfit, BLOCKED, status)

        reads = ("q", "v before", "newton", "status", *names)
        writes = ("q", "v", "misfit", "newton", "closing", "status")
        newton = Run(Block(correct, reads, writes, wide=True))
        found: list[Statement] = [
            Run(Block(begin, ("v",), ("v before", "closing", "newton"), wide=True)),
            While("closing", [newton]),
        ]
        if own.phase.switches:
            found.append(wide_run(jump, ("q", "v before", *names), ("v", "misfit")))
        return [*found, wide_run(blocked, ("misfit", "status"), ("status",))]


def _with(robot: Robot, names: Sequence[str], values: Sequence[Array]) -> Robot:
    """Return the robot with other numbers."""
    for name, value in zip(names, values, strict=True):
        robot = parameter(robot, name)[1](robot, value)
    return robot


def _size(x: Array) -> Array:
    """Return the largest absolute value, `(1,)`."""
    return largest(each(absolute(x))) if x.shape[0] else np.zeros(1)


def _failed(size: Array, code: int, status: Array) -> Array:
    """Return the status of a run in which something is violated by `size`."""
    bad = flag(negated(less(size, CLOSED))) * flag(less(status, 2.5))
    return select(less(0.5, bad), float(code), status)
