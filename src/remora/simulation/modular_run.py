"""Simulation of a modular robot whose modules dock, undock and are swapped during the run.

Modules are compiled once, before the run. Steps are those of fourth-order Runge-Kutta on the group
(Munthe-Kaas), as in `hardware_loop`; the bases of docked modules follow their carriers exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.assembly.docking.modular_robot import ModularRobot
from remora.errors import InvalidValue, SimulationError
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import integrate, log_rate, normalize
from remora.simulation.module_changes import Attach, Change, Detach, Docking, ModuleChange, Swap


@dataclass(frozen=True, eq=False)
class ModularRun:
    """The result of a run of a modular robot, sampled at its ticks; at a change, after it.

    Attributes:
        robot: what was simulated, with the docks of the start.
        t: times, `(n,)`, s.
        q: configurations, `(n, nq)`.
        v: velocities, `(n, nv)`.
        carriers: by module, the name of the module that it is docked to at each sample, or an empty
            string, `(n,)`.
        changes: what docked and undocked, in order.
        pending: changes whose condition never came true.
    """

    robot: ModularRobot
    t: Array
    q: Array
    v: Array
    carriers: dict[str, Array]
    changes: tuple[ModuleChange, ...]
    pending: tuple[Change, ...]


def simulate_modules(
    robot: ModularRobot,
    q: ArrayLike,
    v: ArrayLike,
    ticks: int,
    rate: float,
    torque: Callable[[float, Array, Array], ArrayLike] | None,
    steps: int,
    changes: Sequence[Change],
) -> ModularRun:
    """Simulate a modular robot; the arguments are those of `simulate_assembly`."""
    changes = tuple(changes)
    _check(changes, ticks / rate)
    docking = Docking(robot, q, v, changes)
    network = docking.network
    groups = _groups(robot)
    waiting = list(changes)
    t_all, q_all, v_all = list[float](), list[Array](), list[Array]()
    carriers: dict[str, list[str]] = {name: [] for name in robot.modules}
    for k in range(ticks + 1):
        t = k / rate
        network.synchronize()
        due = [change for change in waiting if _due(change, t, network.q, network.v)]
        for change in due:
            docking.apply(t, change)
            waiting.remove(change)
        if due:
            network.synchronize()
        q, v = network.q.copy(), network.v.copy()
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
            raise SimulationError("the motion is not finite: use a higher rate or more steps", t)
        t_all.append(t)
        q_all.append(q)
        v_all.append(v)
        for name, rows in carriers.items():
            rows.append(docking.links[name].parent if name in docking.links else "")
        if k == ticks:
            break
        tau = np.zeros(robot.nv) if torque is None else finite("tau", torque(t, q, v), robot.nv)
        for _ in range(steps):
            q, v = _step(network.forward_dynamics, groups, q, v, tau, 1.0 / (rate * steps))
        network.q[:], network.v[:] = q, v
    return ModularRun(
        robot, np.array(t_all), np.array(q_all), np.array(v_all),
        {name: np.array(rows) for name, rows in carriers.items()},
        tuple(docking.done), tuple(waiting),
    )  # fmt: skip


def _check(changes: Sequence[object], duration: float) -> None:
    for change in changes:
        if not isinstance(change, (Attach, Detach, Swap)):
            raise InvalidValue(
                f"changes must be Attach, Detach or Swap, not {type(change).__name__}"
            )
        if not callable(change.when) and not 0.0 <= change.when <= duration:
            raise InvalidValue(
                f"change of {change.module!r} at t = {change.when!r} s: the run is from 0 to "
                f"{duration:.9g} s"
            )


def _due(change: Change, t: float, q: Array, v: Array) -> bool:
    if callable(change.when):
        return bool(change.when(t, q.copy(), v.copy()))
    return t >= change.when * (1.0 - 1e-12)


@dataclass(frozen=True)
class _Group:
    """Equal modules, whose coordinates are moved together: indices `(n, nq_i)` and `(n, nv_i)`."""

    robot: Robot
    q: Array
    v: Array


def _groups(robot: ModularRobot) -> list[_Group]:
    alike: dict[int, list[str]] = {}
    for name, module in robot.modules.items():
        alike.setdefault(id(module), []).append(name)
    found: list[_Group] = []
    for names in alike.values():
        q = _indices([robot.q_of(name) for name in names])
        v = _indices([robot.v_of(name) for name in names])
        found.append(_Group(robot.modules[names[0]], q, v))
    return found


def _indices(slices: list[slice]) -> Array:
    return np.array([range(s.start, s.stop) for s in slices], dtype=int)


def _step(
    dynamics: Callable[[Array, Array, Array], Array],
    groups: list[_Group],
    q: Array,
    v: Array,
    tau: Array,
    h: float,
) -> tuple[Array, Array]:
    """Return the state after one step of RK4 in the chart q(t) = q exp(u)."""

    def moved(u: Array) -> Array:
        here = np.empty_like(q)
        for g in groups:
            here[g.q] = integrate(g.robot, q[g.q], u[g.v])
        return here

    def rates(u: Array, v: Array) -> tuple[Array, Array]:
        turned = np.empty_like(v)
        for g in groups:
            turned[g.v] = log_rate(g.robot, u[g.v], v[g.v])
        return turned, dynamics(moved(u), v, tau)

    u1, a1 = rates(np.zeros_like(v), v)
    u2, a2 = rates(0.5 * h * u1, v + 0.5 * h * a1)
    u3, a3 = rates(0.5 * h * u2, v + 0.5 * h * a2)
    u4, a4 = rates(h * u3, v + h * a3)
    end = moved(h / 6.0 * (u1 + 2.0 * u2 + 2.0 * u3 + u4))
    for g in groups:
        end[g.q] = normalize(g.robot, end[g.q])
    return end, v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
