"""Entry of a phase: held joints, capture, latch, release and impulses, in one run or many.

What happens at the start of a phase is written once, as statements of a program: exported C has
them in its loop; single runs and batches call them compiled, on arrays of runs. In this order:

    a held joint must be where its motion begins, and move so, or an impulse of its drive does that
    what is released pushes its bodies apart
    Newton's method puts q onto the constraints that act from now on
    an impulse removes the velocity that they forbid
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, absolute, concatenate, less, select
from remora.algebra.selections import each, flag, larger, largest, negated
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_interface import host_values
from remora.codegen.integration.statements import (
    Block,
    Cell,
    If,
    Run,
    Sample,
    Statement,
    While,
    unchanged,
    wide_run,
)
from remora.codegen.ir.graph import Signature
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.contradictions import owner
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.step_projection import start_correction
from remora.dynamics.constraints.switch_equations import (
    Velocities,
    capture_jump,
    held_jump,
    impulses_by_name,
    latched_field,
    latched_value,
    separation_jump,
)
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.kernels.kernel_memory import identity_key, remembered
from remora.dynamics.kernels.parameters import parameter
from remora.dynamics.kernels.size_policy import fits_straight_line
from remora.errors import InvalidValue, RemoraError
from remora.model.constraint import GEAR
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.simulation.inputs.phases import Phase
from remora.simulation.program.event_search import BAD_HOLD, BLOCKED, RUNNING, VIOLATED
from remora.simulation.program.run_equations import parameter_name

#: Largest violation of a constraint that begins to act, m, rad, m/s or rad/s; Newton's method
#: removes what is smaller.
CLOSED = 1e-8
#: Maximum number of Newton steps.
MOST_NEWTON_STEPS = 4
#: A Newton step shorter than this is the last one, m or rad.
ROUNDING = 1e-15
#: Largest distance of a held joint from the start of its motion, rad or m, and of its speed, rad/s
#: or m/s; relative to max(1, value).
MISMATCH = {"float64": 1e-9, "float32": 1e-4}


def phase_robots(robot: Robot, phases: Sequence[Phase]) -> list[Robot]:
    """Return the robot of each phase, without latched numbers, or raise.

    Raises:
        RemoraError: for a constraint that is unknown, already on or already off; the message names
            the phase.
    """
    found: list[Robot] = []
    for k, phase in enumerate(phases):
        try:
            robot = robot.with_active(on=phase.activate, off=phase.release)
        except RemoraError as error:
            name = phase.name or f"phase {k + 1}"
            raise InvalidValue(f"{name}: {error}") from None
        found.append(robot)
    return found


class EnteredRuns(NamedTuple):
    """Runs that have entered a phase; arrays have a leading axis of runs.

    Attributes:
        q: configurations, `(runs, nq)`.
        v: velocities, `(runs, nv)`.
        status: of each run, `(runs,)`, see `event_search`; not `RUNNING` if it cannot enter.
        faults: why not, by the index of the run.
        changed: whether q or v has changed, `(runs,)`.
        jumped: whether drives have transmitted an impulse, `(runs,)`.
        drive_work: work of that impulse, `(runs,)`, J.
        impulses: of each constraint that acted, `(runs, 6)`, see `ConstraintSwitch`.
        energy: change of the kinetic energy by constraints that act, `(runs,)`, J.
        separation_work: the same by those that are released, `(runs,)`, J.
    """

    q: Array
    v: Array
    status: Array
    faults: dict[int, str]
    changed: Array
    jumped: Array
    drive_work: Array
    impulses: dict[str, Array]
    energy: Array
    separation_work: Array


@dataclass(frozen=True, eq=False)
class PhaseEntry:
    """What happens at the start of a phase.

    Attributes:
        index: of the phase.
        phase: says what is switched and held.
        before: the robot before the phase.
        robot: the robot in it.
        parameters: names of the robot's parameters that differ by run or have latched before.
        held: joints that are prescribed or locked.
    """

    index: int
    phase: Phase
    before: Robot
    robot: Robot
    parameters: tuple[str, ...]
    held: tuple[str, ...]

    @property
    def latches(self) -> dict[str, str]:
        """By the name of a constraint that latches: the name of the parameter it sets."""
        names = self.phase.activate if self.phase.latch else ()
        return {name: f"{name}.{latched_field(self.robot, name)}" for name in names}

    @property
    def acts(self) -> bool:
        """Whether constraints act, or have acted until then."""
        return self.phase.switches or bool(active_constraints(self.robot))

    @property
    def pushes(self) -> bool:
        """Whether drives may transmit an impulse."""
        return self.phase.impulse and bool(self.held)

    @property
    def changes(self) -> bool:
        """Whether the state may change."""
        return self.acts or self.pushes

    @property
    def speeds(self) -> Velocities:
        """Separation velocities."""
        return tuple((name, tuple(x.tolist())) for name, x in self.phase.separation.items())

    @property
    def _known(self) -> tuple[str, ...]:
        """Parameters that differ by run once constraints have latched."""
        return tuple(dict.fromkeys((*self.parameters, *self.latches.values())))

    # As statements --------------------------------------------------------------------------------

    def cells(self) -> list[Signature]:
        """Return the variables of the statements besides q, v and `status`."""
        nq, nv = self.robot.nq, self.robot.nv
        found: list[Signature] = []
        if self.held:
            found += [Signature("begin q", (nq,)), Signature("begin v", (nv,))]
            found += [Cell(n, (1,), wide=True) for n in ("jumping", "drive work")]
        if self.changes:
            found += [Signature("q given", (nq,)), Signature("v given", (nv,))]
            found.append(Cell("changed", (1,), wide=True))
        rows, sizes = _sizes(self.robot)
        if self.acts:
            found.append(Signature("v before", (nv,)))
            found += [Cell(n, (1,), wide=True) for n in ("closing", "newton", "energy")]
            found += [Cell(n, (rows,), wide=True) for n in ("residual", "slip", "misfit")]
            found.append(Cell("caught", (sizes,), wide=True))
        if self.phase.separation:
            rows, sizes = _sizes(self.before)
            found += [Cell("blocked", (rows,), wide=True), Cell("pushed", (sizes,), wide=True)]
            found.append(Cell("push work", (1,), wide=True))
        return found

    def latching(self) -> list[Statement]:
        """Return the statements that let constraints take over where their bodies are."""
        names, found = [parameter_name(n) for n in self.parameters], list[Statement]()
        for constraint, to in self.latches.items():

            def latched(q: Array, *values: Array, constraint: str = constraint) -> Array:
                return latched_value(_with(self.robot, self.parameters, values), q, constraint)

            found.append(Run(Block(latched, ("q", *names), (parameter_name(to),))))
        return found

    def statements(self, dtype: str) -> list[Statement]:
        """Return the statements: q, v and `status` are changed.

        `begin q` and `begin v` are where the motions of held joints begin.
        """
        found: list[Statement] = []
        if self.changes:
            found.append(Run(Block(unchanged, ("q", "v"), ("q given", "v given"))))
        found += self._held(MISMATCH[dtype])
        if self.phase.separation:
            found.append(self._separated())
        if active_constraints(self.robot):
            found += self._captured()
        if self.changes:

            def changed(q: Array, v: Array, q0: Array, v0: Array) -> Array:
                return flag(less(0.0, _size(concatenate([q - q0, v - v0]))))

            found.append(wide_run(changed, ("q", "v", "q given", "v given"), ("changed",)))
        return found

    def _held(self, limit: float) -> list[Statement]:
        """Return what brings held joints to their motions, or finds that they must not jump."""
        if not self.held:
            return []
        robot, held, impulse = self.robot, self.held, self.phase.impulse

        def compared(q: Array, v: Array, at: Array, speed: Array, status: Array) -> Any:
            far = np.zeros(1)
            for joint in (robot.joints[n] for n in held if n in self.phase.prescribed):
                apart = kind(joint).difference(q[joint.q], at[joint.q])
                size = larger(_size(at[joint.q]), 1.0)
                far = larger(far, flag(less(limit * size, _size(apart))))
            wanted = self._placed(q, v, at, speed)[1]
            jump = flag(less(limit * larger(_size(wanted), 1.0), _size(wanted - v)))
            bad = far if impulse else larger(far, jump)
            pushed = jump * (1.0 - bad) if impulse else np.zeros(1)
            return pushed, select(less(0.5, bad), float(BAD_HOLD), status)

        reads = ("q", "v", "begin q", "begin v", "status")
        found: list[Statement] = [wide_run(compared, reads, ("jumping", "status"))]
        if self.pushes:
            names = [parameter_name(n) for n in self.parameters]

            def jump(q: Array, v: Array, speed: Array, *values: Array) -> tuple[Array, Array]:
                own = _with(self.before, self.parameters, values)
                after, work = held_jump(own, q, v, held, speed)
                return after, work.reshape((1,))

            block = wide_run(jump, ("q", "v", "begin v", *names), ("v", "drive work"))
            found.append(If("jumping", [block]))
        if self.changes:
            found.append(Run(Block(self._placed, ("q", "v", "begin q", "begin v"), ("q", "v"))))
        return found

    def _placed(self, q: Array, v: Array, at: Array, speed: Array) -> tuple[Array, Array]:
        """Return the state with held joints where their motions begin."""
        parts: list[tuple[Array, Array]] = []
        for joint in self.robot.joints:
            if joint.mimic is None and joint.v.stop > joint.v.start:
                held = joint.name in self.held
                parts.append(((at if held else q)[joint.q], (speed if held else v)[joint.v]))
        return concatenate([p[0] for p in parts]), concatenate([p[1] for p in parts])

    def _separated(self) -> Run:
        """Return the impulse through released constraints, in the directions that they held."""
        names = [parameter_name(n) for n in self.parameters]

        def apart(q: Array, v: Array, status: Array, *values: Array) -> tuple[Array, ...]:
            robot = _with(self.before, self.parameters, values)
            jump = separation_jump(robot, q, v, self.held, self.speeds)
            status = _failed(jump.misfit, BLOCKED, status)
            return jump.v, status, jump.misfit, jump.impulses, jump.energy.reshape((1,))

        writes = ("v", "status", "blocked", "pushed", "push work")
        return wide_run(apart, ("q", "v", "status", *names), writes)

    def _captured(self) -> list[Statement]:
        """Return Newton's method for q, and the impulse that removes the forbidden velocity."""
        held, first, known = self.held, self.index == 0, self._known
        names = [parameter_name(n) for n in known]
        watched = np.array(
            [float(first and c.name not in self.phase.activate)
             for c in active_constraints(self.robot) for _ in range(count(c))]
        )  # fmt: skip

        def begin(v: Array) -> tuple[Array, ...]:
            return v, np.ones(1), np.zeros(1)

        def correct(
            q: Array, v: Array, newton: Array, status: Array, residual: Array, slip: Array,
            *values: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            by = start_correction(_with(self.robot, known, values), q, v, held)
            at_start = less(newton, 0.5)
            residual = select(at_start, by.residual, residual)
            slip = select(at_start, by.slip, slip)
            off = concatenate([residual, watched * slip])
            status = select(at_start, _failed(off, VIOLATED, status), status)
            size = _size(by.dq)
            more = flag(negated(less(size, ROUNDING))) * flag(less(newton, MOST_NEWTON_STEPS - 1.5))
            after = select(less(0.0, size), by.q, q)
            return after, by.v, by.misfit, newton + 1.0, more, status, residual, slip

        def jump(q: Array, v: Array, *values: Array) -> tuple[Array, ...]:
            found = capture_jump(_with(self.robot, known, values), q, v, held)
            return found.v, found.misfit, found.impulses, found.energy.reshape((1,))

        def blocked(misfit: Array, status: Array) -> Array:
            return _failed(misfit, BLOCKED, status)

        more = "newton", "status", "residual", "slip"
        writes = "q", "v", "misfit", "newton", "closing", *more[1:]
        newton = wide_run(correct, ("q", "v before", *more, *names), writes)
        found: list[Statement] = [
            wide_run(begin, ("v",), ("v before", "closing", "newton")),
            While("closing", [newton]),
        ]
        if self.phase.switches or self.pushes:
            writes = "v", "misfit", "caught", "energy"
            found.append(wide_run(jump, ("q", "v before", *names), writes))
        return [*found, wide_run(blocked, ("misfit", "status"), ("status",))]

    # On arrays of runs ----------------------------------------------------------------------------

    def latched(self, q: Array, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the numbers that constraints take over at the start of a phase, by parameter.

        Args:
            q: configurations, `(runs, nq)`.
            values: `parameters` by name, `(runs, ...)`.
        """
        robot = of_runs(self.robot, values)
        return {to: latched_value(robot, q, name) for name, to in self.latches.items()}

    def enter(
        self,
        q: Array,
        v: Array,
        begin: tuple[Array, Array],
        values: Mapping[str, Array],
        latched: Mapping[str, Array],
        dtype: str = "float64",
    ) -> EnteredRuns:
        """Let runs enter the phase.

        Args:
            q: configurations, `(runs, nq)`.
            v: velocities, `(runs, nv)`.
            begin: states with held joints where their motions begin.
            values: `parameters` by name, `(runs, ...)`.
            latched: parameters that latch in this phase, see `latched`.
            dtype: precision of the runs.
        """
        runs = len(q)
        nothing = np.zeros((runs, 1))
        given = {"q": q, "v": v, "begin q": begin[0], "begin v": begin[1], "status": nothing}
        given |= {parameter_name(n): x for n, x in {**values, **latched}.items()}
        found = {n: np.zeros((runs, *shape)) for n, shape in self._results.items()} | given
        if self.held or self.acts:
            found |= self._performed(given, dtype)
        status = found["status"][:, 0].astype(int)
        pushed = impulses_by_name(self.before, found["pushed"]) if self.speeds else {}
        impulses = impulses_by_name(self.robot, found["caught"]) if self.phase.switches else {}
        for name, impulse in pushed.items():
            impulses[name] = impulse + impulses.get(name, 0.0 * impulse)
        faults: dict[int, str] = {}
        for k in np.flatnonzero(status != RUNNING).tolist():
            if status[k] == BAD_HOLD:
                at, speed = begin[0][k], begin[1][k]
                faults[k] = self._wrong_start(q[k], v[k], at, speed, MISMATCH[dtype])
            else:
                faults[k] = self._fault(status[k], {n: x[k] for n, x in found.items()})
        numbers = (found[n][:, 0] for n in ("drive work", "energy", "push work"))
        work, energy, apart = numbers
        return EnteredRuns(
            found["q"], found["v"], status, faults, found["changed"][:, 0] > 0.5,
            found["jumping"][:, 0] > 0.5, work, impulses, energy, apart,
        )  # fmt: skip

    @property
    def _results(self) -> dict[str, tuple[int, ...]]:
        """Shapes of what the statements compute besides q, v and `status`."""
        found = dict.fromkeys(("changed", "jumping", "drive work", "energy", "push work"), (1,))
        given = {"begin q", "begin v", "q given", "v given", "v before", "closing", "newton"}
        return found | {s.name: s.shape for s in self.cells() if s.name not in given}

    def _performed(self, given: Mapping[str, Array], dtype: str) -> dict[str, Array]:
        """Return the results of the statements, by name, `(runs, ...)`."""
        if fits_straight_line(self.robot):
            kernel = self._kernel(dtype)
            taken = [given[s.name] for s in kernel.inputs]
            names = [o.name.removeprefix("entered ") for o in kernel.outputs]
            return dict(zip(names, kernel(*taken), strict=True))
        rows: list[dict[str, Array]] = []
        for k in range(len(given["q"])):
            cells = {s.name: np.zeros(s.shape) for s in self.cells()}
            cells |= {n: x[k] for n, x in given.items()}
            _execute(self.statements(dtype), cells)
            rows.append(cells)
        names = ("q", "v", "status", *(s.name for s in self.cells()))
        return {n: np.stack([row[n] for row in rows]) for n in names} if rows else {}

    def _kernel(self, dtype: str) -> ProgramKernel:
        phase = self.phase
        settings = (
            self.index == 0, tuple(phase.activate), tuple(phase.release), phase.latch,
            self.speeds, phase.impulse, tuple(phase.prescribed), self.parameters, self.held, dtype,
        )  # fmt: skip
        short = identity_key(self.robot, id(self.before), *settings)

        def value() -> str | None:
            on = tuple(c.name for c in active_constraints(self.before))
            return value_key(_entry_program, self.robot, on, settings)

        def compiled(key: str | None) -> ProgramKernel:
            made = functools.partial(_entry_program, self, dtype)
            return ProgramKernel(made, "enter_phase", dtype, key, lanes=1)

        return remembered("entry of a phase", short, (self.before, self.robot), value, compiled)

    # Messages -------------------------------------------------------------------------------------

    def _fault(self, status: int, found: Mapping[str, Array]) -> str:
        """Return why constraints cannot act in a run; the message names them.

        Args:
            status: of the run.
            found: its cells.
        """
        if status == VIOLATED:
            return self._violated(found["residual"], found["slip"])
        if self.speeds and not float(np.max(np.abs(found["blocked"]), initial=0.0)) < CLOSED:
            names = ", ".join(map(repr, self.phase.separation))
            apart = np.max(np.abs(found["blocked"]))
            return (
                f"separation of {names}: other constraints do not let the bodies move apart like "
                f"that ({apart:.3g} m/s are left)"
            )
        row = int(np.argmax(np.abs(found["misfit"])))
        return (
            f"contradiction: prescribed or locked joints move against constraint "
            f"{owner(self.robot, row)!r}, by {np.abs(found['misfit'][row]):.3g} m/s or rad/s"
        )

    def _wrong_start(self, q: Array, v: Array, at: Array, speed: Array, limit: float) -> str:
        """Return which held joint would have to jump."""
        joints = [self.robot.joints[n] for n in self.held]
        for joint in joints:
            size = max(1.0, float(np.max(np.abs(at[joint.q]))))
            off = float(np.max(np.abs(kind(joint).difference(q[joint.q], at[joint.q]))))
            if off > limit * size and joint.name in self.phase.prescribed:
                return (
                    f"contradiction: joint {joint.name!r} is {off:.3g} rad or m from where its "
                    "prescribed motion begins"
                )
        joint = next(j for j in joints if np.max(np.abs(v[j.v] - speed[j.v])) > limit)
        return (
            f"contradiction: joint {joint.name!r} moves at {v[joint.v].tolist()}, its motion "
            f"begins with {speed[joint.v].tolist()}; to bring it there by an impulse, set "
            "impulse=True in the phase"
        )

    def _violated(self, residual: Array, slip: Array) -> str:
        """Return which constraints do not hold that must."""
        apart, new = self._beyond(residual), self.phase.activate
        if any(name in new for name in apart):
            return (
                f"constraints that are switched on are violated: {_told(apart, 'm or rad')}: bring "
                "their frames together, or set latch=True in the phase to hold the relative pose "
                "of that moment"
            )
        closing = "rm.close_loops(robot, q, v) returns the nearest state that satisfies them"
        if apart:
            return (
                f"the run begins with violated constraints: {_told(apart, 'm or rad')}; {closing}"
            )
        sliding = {name: off for name, off in self._beyond(slip).items() if name not in new}
        return (
            "the run begins with a velocity that violates constraints: "
            f"{_told(sliding, 'm/s or rad/s')}; {closing}"
        )

    def _beyond(self, values: Array) -> dict[str, float]:
        """Return the active constraints whose rows exceed `CLOSED`, with the largest value."""
        found, start = dict[str, float](), 0
        for c in active_constraints(self.robot):
            stop = start + count(c)
            off = float(np.max(np.abs(values[start:stop]), initial=0.0))
            if not off < CLOSED:
                found[c.name] = off
            start = stop
        return found


def _entry_program(entry: PhaseEntry, dtype: str) -> Program:
    """Return the program that lets a run enter a phase."""
    robot, cells = entry.robot, entry.cells()
    state: list[Signature] = [Signature("q", (robot.nq,)), Signature("v", (robot.nv,))]
    status = Cell("status", (1,), wide=True)
    begin = [s for s in cells if s.name.startswith("begin ")]
    known = dict.fromkeys((*entry.parameters, *entry.latches.values()))
    numbers = [Signature(parameter_name(n), parameter(robot, n)[0].shape) for n in known]
    wide = [s.name for s in cells if isinstance(s, Cell)]
    told: list[Statement] = [
        Sample(Block(unchanged, names, [f"entered {n}" for n in names], wide=own))
        for names, own in ((["q", "v"], False), (["status", *wide], True))
    ]
    body = [*entry.statements(dtype), *told]
    inputs = [*state, status, *begin, *numbers]
    return Program(inputs, [*state, status, *cells], body)


def _execute(body: Sequence[Statement], cells: dict[str, Array]) -> None:
    """Perform statements of one run on numbers: for robots that are too large to be compiled."""
    for s in body:
        if isinstance(s, While | If):
            while cells[s.cell][0] > 0.0:
                _execute(s.body, cells)
                if isinstance(s, If):
                    break
        elif isinstance(s, Run) and isinstance(s.block, Block):
            returned: Any = s.block.function(*[cells[n] for n in s.block.reads])
            values = host_values("entry of a phase", returned, s.block.writes)
            cells |= {n: np.asarray(x) for n, x in zip(s.block.writes, values, strict=True)}


def of_runs(robot: Robot, values: Mapping[str, Array]) -> Robot:
    """Return a robot with numbers that differ by run, by name, `(runs, ...)`."""
    for name, value in values.items():
        whole = "." not in name  # of all bodies or joints, whose axis comes first
        robot = parameter(robot, name)[1](robot, np.moveaxis(value, 1, 0) if whole else value)
    return robot


def _sizes(robot: Robot) -> tuple[int, int]:
    """Return the numbers of rows and of impulses of the active constraints."""
    active = active_constraints(robot)
    return sum(map(count, active)), sum(1 if c.kind == GEAR else 6 for c in active)


def _with(robot: Robot, names: Sequence[str], values: Sequence[Array]) -> Robot:
    """Return the robot with other numbers."""
    for name, value in zip(names, values, strict=True):
        robot = parameter(robot, name)[1](robot, value)
    return robot


def _size(x: Array) -> Array:
    """Return the largest absolute value, `(1,)`."""
    return largest(each(absolute(x))) if x.shape[0] else np.zeros(1)


def _failed(rows: Array, code: int, status: Array) -> Array:
    """Return the status of a run in which rows are violated, or NaN; the first fault counts."""
    off = [flag(negated(less(x, CLOSED))) for x in each(absolute(rows))]
    bad = (largest(off) if off else np.zeros(1)) * flag(less(status, 2.5))
    return select(less(0.5, bad), float(code), status)


def _told(values: Mapping[str, float], unit: str) -> str:
    return "; ".join(f"{name!r} by {off:.3g} {unit}" for name, off in values.items())
