"""`rm.simulate_assembly`: runs of assemblies with black boxes, and of robots whose modules dock.

Both are robots, and their runs are those of `rm.simulate`. This file gives it what is theirs: loads
and motions that black boxes report at the ticks of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.docking.modular_robot import ModularRobot
from remora.dynamics.assembly.joined_robot import joined_robot, mounted_on
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.sensor_reading import SensorReading
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.arguments import count, number, positive
from remora.model.numbers import finite
from remora.simulation.docking_run import Ticks, simulate_modules
from remora.simulation.engine.simulate import simulate
from remora.simulation.inputs.loads import ZeroOrderHold
from remora.simulation.integrators.table import INTEGRATORS
from remora.simulation.module_changes import Change
from remora.simulation.recording.quantities import signal_columns
from remora.simulation.recording.recording import Recording

#: Forces of a run: (t, q, v) -> tau.
Torque = Callable[[float, Array, Array], ArrayLike]
#: Further arguments of `rm.simulate` that these runs take.
SETTINGS = ("atol", "limits", "max_step", "max_steps", "note", "rtol", "saturate",
            "slip_speed", "stops")  # fmt: skip


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
    integrator: str = "rk4",
    **settings: Any,
) -> Recording:
    """Simulate an assembly with black boxes, or a modular robot whose modules dock and undock.

    The run is one of `rm.simulate`, with a sample at every tick. Joint damping, friction, springs
    and limits are those of the robots.

    A black box is asked at every tick; its answer is held until the next. What it was told and
    what it answered are signals of the recording: `run.signals["payload.twist"]`, of its base, and
    `run.signals["payload.wrench"]`, that of its predecessor on it, both in its base frame.

    A dock is a `fixed` constraint of the recording's robot, by the name of the docked module;
    `run.switches` has its impulses, `run.active("module")` tells when it is closed.

    Args:
        assembly: robots and black boxes, which are recordings or live programs; or a modular robot.
        q: configuration at the start, `(nq,)`.
        v: velocity at the start, `(nv,)`.
        duration: s; a multiple of 1/rate.
        rate: ticks per second, at which black boxes are asked and `torque` is called, Hz.
        torque: (t, q, v) -> tau `(nv,)`, held between ticks; None: no forces.
        steps: integration steps between two ticks, of a method with fixed steps.
        changes: of a modular robot: `rm.Attach`, `rm.Detach` and `rm.Swap`, made at ticks; those of
            one tick in the order given.
        start: initial time, s.
        integrator: see `rm.simulate`.
        **settings: further arguments of `rm.simulate`: `rtol`, `atol`, `max_step`, `max_steps`,
            `limits`, `stops`, `saturate`, `slip_speed`, `note`.

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
    for name in settings:
        if name not in SETTINGS:
            raise UnknownName("setting of rm.simulate_assembly", name, SETTINGS)
    if integrator not in INTEGRATORS:
        raise UnknownName("integrator", integrator, INTEGRATORS)
    fixed = INTEGRATORS[integrator].error_order == 0
    settings |= {"integrator": integrator, "step": 1.0 / (rate * steps) if fixed else None}
    ticks = Ticks(times, 1.0 / rate, settings)
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


#: A sample is at a tick, not before it, if it is nearer than this part of the period.
SAME_TICK = 1e-6


class _Exchange:
    """What a black box was told and what it answered, tick by tick."""

    def __init__(self, name: str, box: BlackBox) -> None:
        self.name, self.box = name, box
        self._times: list[float] = []
        self._twists: list[Array] = []
        self._wrenches: list[Array] = []

    def read(self, t: ArrayLike, twist: Array | None) -> SensorReading:
        """Return the reading at a tick."""
        reading = self.box.read(self.name, t, twist)
        if twist is not None:
            self._times.append(float(np.asarray(t)))
            self._twists.append(twist)
            self._wrenches.append(self.box.wrench(self.name, reading))
        return reading

    @property
    def wrench(self) -> Array:
        """The last wrench of the predecessor on the black box, `(6,)`."""
        return self._wrenches[-1]

    def signals(self, times: Array) -> dict[str, Array]:
        """Return the signals at the times of samples, each held from its tick on."""
        if not self._times:
            return {}
        last = np.searchsorted(self._times, times, side="right") - 1
        found = {"twist": self._twists, "wrench": self._wrenches}
        return {f"{self.name}.{key}": np.array(rows)[last] for key, rows in found.items()}


def _recorded(run: Recording, exchanges: Sequence[_Exchange], ticks: Ticks) -> Recording:
    """Return a recording with the signals of black boxes."""
    signals: dict[str, Array] = {}
    for exchange in exchanges:
        signals |= exchange.signals(run.t + SAME_TICK * ticks.period)
    for values in signals.values():
        values.flags.writeable = False
    shapes = dict.fromkeys(signals, ((6,), ""))
    return replace(
        run, columns={**run.columns, **signals},
        signal_columns={**run.signal_columns, **signal_columns(shapes)},
    )  # fmt: skip


def _with_leaves(
    assembly: Assembly, boxes: Sequence[Part], q: Array, v: Array, ticks: Ticks,
    torque: Torque | None,
) -> Recording:  # fmt: skip
    """Simulate an assembly in which black boxes carry nothing: they are wrenches on a robot."""
    robot = joined_robot(assembly.parts, assembly.gravity, "assembly", boxes=True)
    fast, exchanges = CompiledRobot(robot), list[_Exchange]()
    places: list[tuple[int, Array, Array]] = []
    for part in boxes:
        assert part.black_box is not None
        assert part.placement is not None
        exchanges.append(_Exchange(part.name, part.black_box))
        mount = mounted_on(assembly.parts, part)
        x = dual_quaternion.mul(mount.placement, part.placement)
        units = np.eye(6)
        places.append((mount.body, screw.adjoint_inverse(x, units).T, screw.adjoint(x, units).T))

    def wrenches(t: float, q: Array, v: Array) -> Array:
        twists, found = fast.twists(q, v), np.zeros((len(robot.bodies), 6))
        for exchange, (body, to_base, to_body) in zip(exchanges, places, strict=True):
            exchange.read(t, to_base @ twists[body] if body >= 0 else np.zeros(6))
            if body >= 0:
                found[body] -= to_body @ exchange.wrench
        return found

    held = ZeroOrderHold(wrenches, ticks.period) if boxes else None
    run = simulate(robot, q, v, wrenches=held, **ticks.arguments(torque))
    return _recorded(run, exchanges, ticks)


def _with_carriers(
    assembly: Assembly, boxes: Sequence[Part], q: Array, v: Array, ticks: Ticks,
    torque: Torque | None,
) -> Recording:  # fmt: skip
    """Simulate an assembly in which a black box carries other parts: it gives them their motion."""
    exchanges, asked, held = list[_Exchange](), assembly, assembly
    last: dict[str, SensorReading] = {}
    for part in boxes:
        box = part.black_box
        assert box is not None
        exchange = _Exchange(part.name, box)

        def holds(t: ArrayLike, twist: Array | None, name: str = part.name) -> SensorReading:
            return last[name]

        exchanges.append(exchange)  # it checks ages
        asked = asked.swap(part.name, replace(box, source=exchange.read, max_age=None))
        held = held.swap(part.name, replace(box, source=holds, max_age=None))

    def sampled(t: float, q: Array, v: Array) -> ArrayLike:
        last.update(asked.readings(q, v, t))
        return np.zeros(assembly.nv) if torque is None else torque(t, q, v)

    def accelerations(q: Array, v: Array, tau: Array) -> Array:
        return held.forward_dynamics(q, v, tau, t=0.0)

    robot = joined_robot(assembly.parts, assembly.gravity, "assembly", boxes=True)
    moving, more = ticks.composed(robot, accelerations)
    run = simulate(moving, q, v, **ticks.arguments(sampled), **more)
    return _recorded(replace(run, robot=robot), exchanges, ticks)
