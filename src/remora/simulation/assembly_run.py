"""`rm.simulate_assembly`: runs of assemblies with black boxes, and of robots whose modules dock.

Both are robots, and their runs are those of `rm.simulate`. This file gives it what is theirs: loads
and motions that black boxes report at the ticks of the run.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.black_box import BlackBox, LiveSource
from remora.dynamics.assembly.docking.modular_robot import ModularRobot
from remora.dynamics.assembly.joined_robot import joined_robot, mounted_on
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.sensor_reading import BaseState, PointReading, SensorReading
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import InvalidValue, RemoraError, SimulationError
from remora.model.arguments import count, number, positive
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.simulation.box_exchange import BoxExchange, with_signals
from remora.simulation.docking_run import Ticks, simulate_modules
from remora.simulation.engine.simulate import simulate
from remora.simulation.inputs.loads import ZeroOrderHold
from remora.simulation.inputs.run_settings import (
    Integrator,
    Physics,
    integrator_of,
    physics_of,
)
from remora.simulation.module_changes import Change
from remora.simulation.recording.recording import Recording

#: Forces of a run: (t, q, v) -> tau.
Torque = Callable[[float, Array, Array], ArrayLike]
#: A pose that is not known, in the reports of black boxes to compiled code.
UNKNOWN: Array = np.zeros(8)


def simulate_assembly(
    assembly: Assembly | ModularRobot,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    rate: float,
    torque: Torque | None = None,
    steps: int = 1,
    changes: Sequence[Change] = (),
    *,
    start: float = 0.0,
    integrator: Integrator | str = "rk4",
    physics: Physics | None = None,
    note: str = "",
) -> Recording:
    """Simulate an assembly with black boxes, or a modular robot whose modules dock and undock.

    The run is one of `rm.simulate`, with a sample at every tick. Joint damping, friction, springs
    and limits are those of the robots.

    A black box is sampled at every tick; its reading is held until the next. It receives twist,
    rate of the twist (its mean over the last period), pose and gravity at its base. The twist and
    what it returned are signals of the recording: `run.signals["payload.twist"]`, of its base, and
    `run.signals["payload.wrench"]`, that of its predecessor on it, both in its base frame.

    A dock is a `fixed` constraint of the recording's robot, by the name of the docked module;
    `run.switches` has its impulses, `run.active("module")` is true while it is closed. After Ctrl-C
    the recording ends with the last ticks that were computed; its status is `interrupted`.

    Args:
        assembly: robots and black boxes, which are recordings or live programs; or a modular robot.
        q: configuration at the start, `(nq,)`.
        v: velocity at the start, `(nv,)`.
        duration: s; a multiple of 1/rate.
        rate: ticks per second, at which black boxes are sampled and `torque` is called, Hz.
        torque: (t, q, v) -> tau `(nv,)`, held between ticks; None: no forces.
        steps: integration steps between two ticks, of a method with fixed steps.
        changes: of a modular robot: `rm.Attach`, `rm.Detach` and `rm.Swap`, made at ticks; those of
            one tick in their order.
        start: initial time, s.
        integrator: see `rm.simulate`; the step size of fixed steps follows from `rate` and `steps`.
        physics: see `rm.simulate`.
        note: text stored with the recording, see `Record`.

    Raises:
        InvalidValue: if the duration is no multiple of the period.
        SimulationError: if the run cannot continue: a black box refuses, a module is not where it
            would dock, the motion is not finite; it holds the `time` and the `recording`.
    """
    if not isinstance(assembly, (Assembly, ModularRobot)):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = type(assembly).__name__
        raise RemoraError(f"rm.simulate_assembly takes an Assembly or a ModularRobot, not {what}")
    times = _times(duration, rate, start)
    steps = count("steps", steps)
    made, physics = integrator_of(integrator), physics_of(physics)
    if made.step is not None or made.step_to_samples or made.breaks:
        raise RemoraError(
            "steps of an assembly's run follow from its rate and steps: pass no step, breaks or "
            "step_to_samples in the Integrator"
        )
    fixed = made.method in (None, "rk4") or made.row.error_order == 0
    made = replace(
        made, step=1.0 / (rate * steps) if fixed else None, method=made.method or "rk4",
        step_to_samples=True,
    )  # fmt: skip
    ticks = Ticks(times, 1.0 / rate, made, physics, note)
    q, v = finite("q", q, assembly.nq), finite("v", v, assembly.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise InvalidValue("one state at a time: q (nq,) and v (nv,)")
    if isinstance(assembly, ModularRobot):
        return simulate_modules(assembly, q, v, ticks, torque, changes)
    if changes:
        raise RemoraError(
            "the modules of an Assembly do not change during a run: use an rm.ModularRobot, whose "
            "modules dock and undock"
        )
    for part in assembly.parts:
        if part.module is None and part.black_box is None:
            raise RemoraError(
                f"subsystem {part.name!r} ({type(part.subsystem).__name__}) is not a robot: how "
                "its coordinates follow from its speeds is not known"
            )
    if assembly.nv == 0:
        raise RemoraError("nothing in the assembly can move: its robots have no degree of freedom")
    carried = {assembly.parts[part.parent].name for part in assembly.parts if part.parent >= 0}
    boxes = [part for part in assembly.parts if part.black_box is not None]
    run = _with_carriers if any(box.name in carried for box in boxes) else _with_leaves
    return run(assembly, boxes, q, v, ticks, torque)


def _times(duration: float, rate: float, start: float) -> Array:
    """Return the times of all ticks and of the end of a run."""
    duration, rate = positive("duration", duration), positive("rate", rate)
    start = number("start", start, "0.0, in s")
    if not math.isfinite(start):
        raise InvalidValue(f"start must be a finite number of seconds, not {start}")
    ticks = round(duration * rate)
    if ticks < 1 or abs(ticks / rate - duration) > 1e-9 * duration:
        raise InvalidValue(
            f"duration={duration!r} s must be a positive multiple of the period 1/rate at "
            f"rate={rate!r} Hz"
        )
    return start + np.append(np.arange(ticks) / rate, duration)


def _simulated(
    robot: Robot, q: Array, v: Array, exchanges: Sequence[BoxExchange], ticks: Ticks, **options: Any
) -> Recording:  # fmt: skip
    """Return the recording of a run, with the signals of black boxes; also that of a failed one."""
    try:
        return with_signals(simulate(robot, q, v, **options), exchanges, ticks.period)
    except SimulationError as error:
        if isinstance(error.recording, Recording):
            error.recording = with_signals(error.recording, exchanges, ticks.period)
        raise


def _with_leaves(
    assembly: Assembly, boxes: Sequence[Part], q: Array, v: Array, ticks: Ticks,
    torque: Torque | None,
) -> Recording:  # fmt: skip
    """Simulate an assembly in which black boxes carry nothing: they are wrenches on a robot."""
    robot = joined_robot(assembly.parts, assembly.gravity, "assembly", boxes=True)
    fast, exchanges = CompiledRobot(robot), list[BoxExchange]()
    places: list[tuple[int, Array, Array, Array]] = []  # products with poses of bases as matrices
    for part in boxes:
        assert part.black_box is not None
        exchanges.append(BoxExchange(part.name, part.black_box, assembly.gravity))
        mount = mounted_on(assembly.parts, part)
        x, units = dual_quaternion.mul(mount.placement, part.placement), np.eye(6)
        ways = screw.adjoint_inverse(x, units).T, screw.adjoint(x, units).T
        places.append((mount.body, dual_quaternion.mul(np.eye(8), x), *ways))
    still, ground = np.zeros(6), dual_quaternion.identity()

    def wrenches(t: float, q: Array, v: Array) -> Array:
        twists, poses = fast.twists(q, v), fast.poses(q)
        loads: Array = np.zeros((len(robot.bodies), 6))
        for exchange, (body, pose, to_base, to_body) in zip(exchanges, places, strict=True):
            if body < 0:
                exchange.read(t, still, ground @ pose)
                continue
            exchange.read(t, to_base @ twists[body], poses[body] @ pose)
            loads[body] -= to_body @ exchange.wrench
        return loads

    held = ZeroOrderHold(wrenches, ticks.period) if boxes else None
    return _simulated(robot, q, v, exchanges, ticks, wrenches=held, **ticks.arguments(torque))


def _with_carriers(
    assembly: Assembly, boxes: Sequence[Part], q: Array, v: Array, ticks: Ticks,
    torque: Torque | None,
) -> Recording:  # fmt: skip
    """Simulate an assembly in which a black box carries other parts: it gives them their motion."""
    known, exchanges = _KnownParts(assembly, boxes), list[BoxExchange]()
    for part in boxes:
        assert part.black_box is not None
        exchanges.append(BoxExchange(part.name, part.black_box, assembly.gravity))
    bases, vdot = known.kernel(known.bases), known.kernel(known.vdot)
    report = np.zeros(known.size)

    def sampled(t: float, q: Array, v: Array) -> ArrayLike:
        for k, (part, exchange) in enumerate(zip(boxes, exchanges, strict=True)):
            # the motion of its base depends on the reports of those before it
            twist = x = None
            if part.parent >= 0:
                row = bases(q, v, report)[k].copy()
                twist, x = row[:6], row[6:] if np.any(row[6:]) else None
            reading = exchange.read(t, twist, x)
            motions = exchange.box.motions(part.name, reading, part.points, assembly.gravity)
            rows = [np.zeros(6) if twist is None else exchange.wrench]
            for name, motion in zip(part.points, motions, strict=True):
                pose = reading.points[name].pose
                rows += [*motion, UNKNOWN if pose is None else asarray(pose)]
            report[known.places[k]] = np.concatenate(rows)
        return np.zeros(assembly.nv) if torque is None else torque(t, q, v)

    def accelerations(q: Array, v: Array, tau: Array) -> Array:
        return vdot(q, v, report, tau)

    robot = joined_robot(assembly.parts, assembly.gravity, "assembly", boxes=True)
    moving, more = ticks.composed(robot, accelerations)
    run = _simulated(moving, q, v, exchanges, ticks, **{**ticks.arguments(sampled), **more})
    return replace(run, robot=robot)


class _KnownParts:
    """The sweeps over the known parts of an assembly, as functions of what its black boxes report.

    Attributes:
        places: of the report of each black box: wrench on it, then twist, rate and pose of each
            point in use, the rate with minus the acceleration of gravity; zero for no pose.
        size: of all reports together.
    """

    def __init__(self, assembly: Assembly, boxes: Sequence[Part]) -> None:
        self._names = [part.name for part in boxes]
        ends = np.cumsum([0, *(6 + 20 * len(part.points) for part in boxes)]).tolist()
        self.places = [slice(*ends[k : k + 2]) for k in range(len(boxes))]
        self.size = ends[-1]
        self._report: Array = np.zeros(self.size)
        self._received: dict[str, BaseState] = {}
        for part, place in zip(boxes, self.places, strict=True):
            source = self._source(part, place)
            assembly = assembly.swap(part.name, BlackBox(source, part.points, "actuation", True))
        self._assembly = assembly

    def _source(self, part: Part, place: slice) -> LiveSource:
        """Return a black box that reports what it has reported, and keeps what it gets."""

        def source(t: ArrayLike, base: BaseState | None) -> SensorReading:
            if base is not None:
                self._received[part.name] = base
            points: dict[str, PointReading] = {}
            for k, name in enumerate(part.points):
                row = self._report[place.start + 6 + 20 * k : place.start + 26 + 20 * k]
                points[name] = PointReading(row[:6], row[6:12], row[12:])
            wrench = self._report[place.start : place.start + 6]
            return SensorReading(None if part.parent < 0 else wrench, points)

        return source

    def kernel(self, function: Callable[..., Array]) -> Kernel:
        """Return `bases` or `vdot` in machine code."""
        nv = self._assembly.nv
        shapes = {"q": self._assembly.nq, "v": nv, "report": self.size, "tau": nv}
        names = list(inspect.signature(function).parameters)
        return Kernel(function, [Signature(n, (shapes[n],)) for n in names], "known", "float64")

    def bases(self, q: Array, v: Array, report: Array) -> Array:
        """Return twist and pose of the base of every black box, `(n, 14)`; zero for a root."""
        self._report, self._received = report, {}
        self._assembly.readings(q, v, 0.0)
        rows: list[Array] = []
        for name in self._names:
            base = self._received.get(name)
            twist = np.zeros(6) if base is None else base.twist
            x = UNKNOWN if base is None or base.pose is None else base.pose
            rows += [twist, x]
        return concatenate(rows).reshape((len(self._names), 14))

    def vdot(self, q: Array, v: Array, report: Array, tau: Array) -> Array:
        """Return the accelerations, `(nv,)`."""
        self._report = report
        return self._assembly.forward_dynamics(q, v, tau, t=0.0)
