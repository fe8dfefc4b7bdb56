"""Simulation of an assembly with hardware in the loop: twists out, wrenches in, at a stated rate.

Black boxes are recordings or live programs. At every tick each of them gets the time and the twist
of its base and answers with a reading, which is held until the next tick (zero-order hold). Between
ticks the known parts are integrated by fourth-order Runge-Kutta steps on the group
(Munthe-Kaas).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.docking.modular_robot import ModularRobot
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.sensor_reading import SensorReading
from remora.errors import InvalidValue, RemoraError, SimulationError
from remora.model.arguments import count, positive
from remora.model.numbers import finite
from remora.model.state import integrate, log_rate, normalize
from remora.simulation.modular_run import ModularRun, simulate_modules
from remora.simulation.module_changes import Change

#: Forces of a run: (t, q, v) -> tau.
Torque = Callable[[float, Array, Array], ArrayLike]


@dataclass(frozen=True, eq=False)
class HardwareRun:
    """The result of a run with hardware in the loop, sampled at its ticks.

    Attributes:
        assembly: what was simulated.
        t: times, `(n,)`, s.
        q: configurations, `(n, nq)`.
        v: velocities, `(n, nv)`.
        twists: by black box, twists that were sent to it, `(n, 6)`; not of a root.
        wrenches: by black box, wrenches of its predecessor on it, `(n, 6)`; not of a root.
    """

    assembly: Assembly
    t: Array
    q: Array
    v: Array
    twists: dict[str, Array]
    wrenches: dict[str, Array]


class _Held:
    """A black box between two ticks: it answers with its last reading."""

    def __init__(self, name: str, box: BlackBox) -> None:
        self.name, self.box, self.due = name, box, True
        self.reading = SensorReading()
        self.twists: list[Any] = []
        self.wrenches: list[Any] = []

    def __call__(self, t: ArrayLike, twist: Array | None) -> SensorReading:
        if self.due:
            self.due = False
            self.reading = self.box.read(self.name, t, twist)
            if twist is not None:
                self.twists.append(twist)
                self.wrenches.append(self.box.wrench(self.name, self.reading))
        return self.reading

    def part(self) -> BlackBox:
        """Return the black box of the run; ages were checked at the tick."""
        return dataclasses.replace(self.box, source=self, max_age=None)


@overload
def simulate_assembly(
    assembly: Assembly,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    rate: float,
    torque: Torque | None = None,
    steps: int = 1,
) -> HardwareRun: ...
@overload
def simulate_assembly(
    assembly: ModularRobot,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    rate: float,
    torque: Torque | None = None,
    steps: int = 1,
    changes: Sequence[Change] = (),
) -> ModularRun: ...
def simulate_assembly(
    assembly: Assembly | ModularRobot,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    rate: float,
    torque: Torque | None = None,
    steps: int = 1,
    changes: Sequence[Change] = (),
) -> HardwareRun | ModularRun:
    """Simulate an assembly with black boxes, or a modular robot whose modules dock and undock.

    Args:
        assembly: robots and black boxes, which are recordings or live programs; or a modular robot.
        q: configuration at t = 0, `(nq,)`.
        v: velocity at t = 0, `(nv,)`.
        duration: s; a multiple of 1/rate.
        rate: ticks per second, at which black boxes are asked and `torque` is called, Hz.
        torque: (t, q, v) -> tau `(nv,)`, held between ticks; None: no forces.
        steps: integration steps between two ticks.
        changes: of a modular robot: `rm.Attach`, `rm.Detach` and `rm.Swap`, made at ticks; those of
            one tick in the order given.

    Raises:
        InvalidValue: if the duration is no multiple of the period, or black boxes refuse.
        SimulationError: if the motion is not finite any more.
    """
    ticks = _ticks(duration, rate, steps)
    if isinstance(assembly, ModularRobot):
        return simulate_modules(assembly, q, v, ticks, rate, torque, steps, changes)
    if changes:
        raise RemoraError(
            "the modules of an Assembly do not change during a run: use an rm.ModularRobot, whose "
            "modules dock and undock"
        )
    q, v = finite("q", q, assembly.nq), finite("v", v, assembly.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise InvalidValue("one state at a time: q (nq,) and v (nv,)")
    held = {p.name: _Held(p.name, p.black_box) for p in assembly.parts if p.black_box is not None}
    loop = assembly
    for name, box in held.items():
        loop = loop.swap(name, box.part())
    robots = _robots(loop)
    t_all, q_all, v_all = [0.0], [q], [v]
    for k in range(ticks):
        t = k / rate
        for box in held.values():
            box.due = True
        tau = (
            np.zeros(assembly.nv) if torque is None else finite("tau", torque(t, q, v), assembly.nv)
        )
        for i in range(steps):
            q, v = _step(loop, robots, t + i / (rate * steps), q, v, tau, 1.0 / (rate * steps))
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
            raise SimulationError("the motion is not finite: use a higher rate or more steps", t)
        t_all.append((k + 1) / rate)
        q_all.append(q)
        v_all.append(v)
    twists = {name: np.array(box.twists) for name, box in held.items() if box.twists}
    wrenches = {name: np.array(box.wrenches) for name, box in held.items() if box.wrenches}
    return HardwareRun(
        assembly, np.array(t_all), np.array(q_all), np.array(v_all), twists, wrenches
    )


def _ticks(duration: float, rate: float, steps: int) -> int:
    """Return the number of periods of a run."""
    duration, rate, steps = (
        positive("duration", duration),
        positive("rate", rate),
        count("steps", steps),
    )
    ticks = round(duration * rate)
    if ticks < 1 or abs(ticks / rate - duration) > 1e-9 * duration:
        raise InvalidValue(
            f"duration={duration!r} s must be a positive multiple of the period 1/rate at "
            f"rate={rate!r} Hz"
        )
    return ticks


def _robots(assembly: Assembly) -> list[Part]:
    for part in assembly.parts:
        if part.module is None and part.black_box is None:
            raise RemoraError(
                f"subsystem {part.name!r} ({type(part.subsystem).__name__}) is not a robot: "
                "how its "
                "coordinates follow from its speeds is not known"
            )
    return [part for part in assembly.parts if part.module is not None]


def _step(
    assembly: Assembly,
    robots: list[Part],
    t: float,
    q: Array,
    v: Array,
    tau: Array,
    h: float,
) -> tuple[Array, Array]:
    """Return the state after one step of RK4 in the chart q(t) = q exp(u)."""

    def rates(u: Array, v: Array) -> tuple[Array, Array]:
        here = _each(robots, lambda p: integrate(p.subsystem, q[p.q], u[p.v]))
        turned = _each(robots, lambda p: log_rate(p.subsystem, u[p.v], v[p.v]))
        return turned, assembly.forward_dynamics(here, v, tau, t=t)

    zero = np.zeros_like(v)
    u1, a1 = rates(zero, v)
    u2, a2 = rates(0.5 * h * u1, v + 0.5 * h * a1)
    u3, a3 = rates(0.5 * h * u2, v + 0.5 * h * a2)
    u4, a4 = rates(h * u3, v + h * a3)
    u = h / 6.0 * (u1 + 2.0 * u2 + 2.0 * u3 + u4)
    v = v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return _each(
        robots, lambda p: normalize(p.subsystem, integrate(p.subsystem, q[p.q], u[p.v]))
    ), v


def _each(robots: list[Part], part: Callable[[Part], Array]) -> Array:
    return concatenate([part(p) for p in robots]) if robots else np.zeros(0)
