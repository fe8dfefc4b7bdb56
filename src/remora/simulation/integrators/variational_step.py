"""Variational midpoint rule: conserves momentum to rounding, with no energy drift.

The compiled equations of `dynamics.variational_midpoint` are solved for the mean velocity w of the
step by Broyden's method, starting from the motion at constant acceleration. If constraints act, the
impulse at the start of the step is found by fixed-point iterations. Forces that depend on q
and v are evaluated at the midpoint of the step. The step size must be constant: varying it destroys
the conservation properties [HLW06, section VIII.1].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol

import numpy as np

from remora.algebra import hermite, screw
from remora.algebra.array_ops import Array
from remora.dynamics import variational_midpoint
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.loop_kinematics import active_constraints, constraint_residual
from remora.dynamics.constraints.projection import closing_momentum, project_velocity
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kinematics import twists
from remora.dynamics.state_layout import layout_of
from remora.errors import RemoraError
from remora.identity.table import Table
from remora.model.robot import Robot
from remora.model.state import integrate, log_rate, log_velocity
from remora.simulation.integrators.step_result import StepResult

#: Order of the solution.
ORDER = 2
#: Maximum number of iterations; more mean that the step is far too long.
MOST_ITERATIONS = 50
#: Corrections of this size, relative to the velocity, are rounding.
ROUNDING = 2.0 * float(np.finfo(float).eps)
#: Stagnating corrections are rounding if they are as small as this.
NEAR = 1e-10


class LoopEquations(NamedTuple):
    """Compiled functions of a robot with active constraints.

    Attributes:
        residual: q -> φ(q), `(m,)`.
        momentum: q, gap -> change of momentum that changes the rate of φ by -gap, `(nv,)`.
        velocity: q, v -> v with G v = 0, `(nv,)`.
    """

    residual: Callable[[Array], Array]
    momentum: Callable[[Array, Array], Array]
    velocity: Callable[[Array, Array], Array]


def loop_equations(robot: Robot, kernel: Callable[..., Callable[..., Any]]) -> LoopEquations:
    """Return the compiled equations of active constraints.

    Args:
        robot: the robot.
        kernel: function, names of arguments, shapes -> the function of the robot, compiled.
    """
    rows = sum(count(constraint) for constraint in active_constraints(robot))
    return LoopEquations(
        kernel(constraint_residual, ("q",)),
        kernel(closing_momentum, ("q", "gap"), {"gap": (rows,)}),
        kernel(project_velocity, ("q", "v")),
    )


class VariationalSystem(Protocol):
    """A robot in a chart about q, and its loads."""

    @property
    def robot(self) -> Robot:
        """The robot."""
        ...

    @property
    def q(self) -> Array:
        """The configuration at the start of the step, `(nq,)`."""
        ...

    @property
    def held(self) -> Collection[str]:
        """Names of joints that are prescribed or locked."""
        ...

    @property
    def loops(self) -> LoopEquations | None:
        """The equations of active constraints; None: there are none."""
        ...

    def arrival(self, u: Array) -> Array:
        """Return the configuration `(nq,)` at the start of the next step, exact to the last bit."""
        ...

    def loads(self, t: float, q: Array, v: Array) -> tuple[Array, Array, Array | None]:
        """Return actuation `(nv,)`, passive forces `(nv,)`, external wrenches `(nb, 6)` or None."""
        ...


class Equations:
    """The compiled equations of a step for one robot; each is compiled on first use.

    Attributes:
        robot: the robot.
    """

    def __init__(self, robot: Robot) -> None:
        """Store the robot; nothing is compiled yet."""
        self.robot = robot
        self._kernels: dict[tuple[str, int], Callable[..., Any]] = {}

    def slopes(self, q: Array, v: Array, wrenches: Array | None = None) -> tuple[Array, Array]:
        """Return ∂L/∂v and ∂L/∂q, with the wrenches' forces, `(nv,)`."""
        if wrenches is None:
            return self._kernel(variational_midpoint.lagrangian_slopes, "q", "v")(q, v)
        names = ("q", "v", "wrenches")
        return self._kernel(variational_midpoint.lagrangian_slopes, *names)(q, v, wrenches)

    def velocity(self, q: Array, p: Array) -> Array:
        """Return H(q)⁻¹ p `(nv,)`."""
        return self._kernel(variational_midpoint.velocity_of, "q", "p")(q, p)

    def defect(self, dq: Array, p: Array, p_m: Array, g: Array, h: Array) -> Array:
        """Return `starting_defect` `(nv,)`."""
        names = ("dq", "p", "p_m", "g", "h")
        return self._kernel(variational_midpoint.starting_defect, *names)(dq, p, p_m, g, h)

    def end(self, dq: Array, p: Array, g: Array, h: Array) -> Array:
        """Return `ending_momentum` `(nv,)`."""
        return self._kernel(variational_midpoint.ending_momentum, "dq", "p", "g", "h")(dq, p, g, h)

    def moved(self, q: Array, dq: Array) -> Array:
        """Return integrate(q, dq) `(nq,)`."""
        return self._kernel(integrate, "q", "dq")(q, dq)

    def rate(self, dq: Array, v: Array) -> Array:
        """Return log_rate(dq, v) `(..., nv)`."""
        return self._kernel(log_rate, "dq", "v")(dq, v)

    def speeds(self, dq: Array, rate: Array) -> Array:
        """Return log_velocity(dq, rate) `(..., nv)`."""
        return self._kernel(log_velocity, "dq", "rate")(dq, rate)

    def power(self, q: Array, v: Array, wrenches: Array | None) -> float:
        """Return the power of external wrenches, W."""
        if wrenches is None:
            return 0.0
        return float(np.sum(screw.power(self._kernel(twists, "q", "v")(q, v), wrenches)))

    def _kernel(self, function: Callable[..., Any], *names: str) -> Callable[..., Any]:
        key = function.__name__, len(names)
        if key not in self._kernels:
            vectors = dict.fromkeys(("p", "p_m", "g", "rate"), (self.robot.nv,))
            self._kernels[key] = compile_function(
                function, self.robot, arguments=names, shapes={**vectors, "h": ()}
            )
        return self._kernels[key]


def equations(robot: Robot) -> Equations:
    """Return the compiled equations of a robot without its constraints, cached."""
    return _equations(robot, Table.changes)


@functools.lru_cache(maxsize=8)
def _equations(robot: Robot, changes: int) -> Equations:
    active = [constraint.name for constraint in active_constraints(robot)]
    return Equations(robot.with_active(off=active) if active else robot)


def attempt(
    system: VariationalSystem,
    t: float,
    y: Array,
    rate: Array,
    h: float,
    scale: Array,
    again: bool = False,
) -> StepResult:
    """Return one step; it has no error estimate, but an infinite error if no w is found.

    The work of the loads is integrated by the midpoint rule: h times the power at q_m, w. In
    between, u is the Hermite cubic and v the velocity of that motion.

    Args:
        system: the robot in a chart about q.
        t: time, s.
        y: state [u, v, work], `(2 nv + 3,)`, with u = 0.
        rate: system.rates(t, y).
        h: step size, s.
        scale: unused.
        again: unused.
    """
    if system.held:
        names = ", ".join(map(repr, system.held))
        raise RemoraError(
            f"the variational integrator cannot hold or prescribe joints ({names}); choose another "
            "integrator"
        )
    layout = layout_of(system.robot)
    v, power = y[layout.v].copy(), rate[layout.work]
    code = equations(system.robot)
    p, _ = code.slopes(system.q, v)
    with np.errstate(all="ignore"):  # from diverging iterations
        found = _closed(system, code, t, p, v + 0.5 * h * rate[layout.v], h)
    if found is None:
        zero = np.zeros_like(y)
        return StepResult(zero, math.inf, functools.partial(_at_rest, zero), lambda: zero)
    p, (w, g, works) = found
    dq = h * w
    q1, p1 = system.arrival(dq), code.end(dq, p, g, np.asarray(h, dtype=float))
    v1 = code.velocity(q1, p1)
    v1 = v1 + code.velocity(q1, p1 - code.slopes(q1, v1)[0])  # one refinement: less rounding error
    if system.loops is not None:
        v1 = system.loops.velocity(q1, v1)
    work = h * works

    def dense(theta: Array) -> Array:
        x, last = theta[:, None], code.rate(dq, v1)
        u, speed = h * hermite.value(x, w, v, last), hermite.rate(x, w, v, last)
        done = x * (work + (1.0 - x) * (h * power - work))
        return np.concatenate([u, code.speeds(u, speed) - v, done], axis=-1)

    def fastest() -> Array:
        speed, gain = np.abs([v, w, v1]), np.abs([rate[layout.v], (v1 - v) / h])
        return np.concatenate([speed.max(axis=0), 2.0 * gain.max(axis=0), np.abs(works)])

    return StepResult(np.concatenate([dq, v1 - v, work]), 0.0, dense, fastest)


def _at_rest(zero: Array, theta: Array) -> Array:
    return np.tile(zero, (len(theta), 1))


def _closed(
    system: VariationalSystem, code: Equations, t: float, p: Array, w: Array, h: float
) -> tuple[Array, tuple[Array, Array, Array]] | None:
    """Return the momentum with which the step ends where φ = 0, and what `_middle` finds for it.

    Each iteration removes φ at the end of the step by an impulse at its start, up to terms of order
    h. None if no step is found.
    """
    loops, last = system.loops, math.inf
    for _ in range(MOST_ITERATIONS):
        found = _middle(system, code, t, p, w, h)
        if found is None or loops is None:
            return None if found is None else (p, found)
        w = found[0]
        gap = loops.residual(system.arrival(h * w))
        size = _largest(gap)
        if size == 0.0 or (size >= 0.5 * last and size <= NEAR):
            return p, found
        last, p = size, p + loops.momentum(system.q, gap / h)
    return None


def _middle(
    system: VariationalSystem, code: Equations, t: float, p: Array, w: Array, h: float
) -> tuple[Array, Array, Array] | None:
    """Return w of the step from the momentum p, with g and powers `(3,)` at its midpoint.

    None if no w is found. Broyden's method: each correction s improves the next by its residual
    [Kel95, section 7.3]. It ends when rounding keeps s from decreasing further.
    """
    q, middle, length = system.q, t + 0.5 * h, np.asarray(h, dtype=float)
    steps: list[Array] = []
    squares: list[float] = []
    size, usual = math.inf, _largest(w)
    for _ in range(MOST_ITERATIONS):
        q_m = code.moved(q, 0.5 * h * w)
        tau, passive, wrenches = system.loads(middle, q_m, w)
        p_m, slope = code.slopes(q_m, w, wrenches)
        g = slope + tau + passive
        s = -code.velocity(q_m, code.defect(h * w, p, p_m, g, length))
        for k in range(1, len(steps)):
            s = s + steps[k] * (float(steps[k - 1] @ s) / squares[k - 1])
        if steps:
            s = s / (1.0 - float(steps[-1] @ s) / squares[-1])
        last, size, square = size, _largest(s), float(s @ s)
        if not math.isfinite(square):
            return None
        whole = max(usual, _largest(w))
        met = size <= ROUNDING * whole or square == 0.0
        if met or (size >= 0.5 * last and size <= NEAR * whole):
            works = [float(tau @ w), code.power(q_m, w, wrenches), float(passive @ w)]
            return w + s, g, np.array(works)
        w = w + s
        steps.append(s)
        squares.append(square)
    return None


def _largest(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))
