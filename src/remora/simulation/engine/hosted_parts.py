"""What Python computes in the program of a single run, see `HostedPart`.

Steps of implicit and variational methods; everything that components compute where one of them
cannot be traced, or the robot is large, whose forward dynamics is a kernel of its own; conditions
of events and motions that cannot be traced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.noise import standard_normals
from remora.components.system import ScheduledUpdate
from remora.dynamics.state_layout import layout_of
from remora.errors import SimulationError
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.engine.resets import state_after_reset
from remora.simulation.inputs.events import EventMonitor
from remora.simulation.integrators.step_result import StepResult
from remora.simulation.integrators.table import Method
from remora.simulation.program.event_search import (
    AT_FINE_NODES,
    AT_NODES,
    EVENTS,
    FINE_NODES,
    NODES,
    RESET,
    dense_output,
)
from remora.simulation.program.run_blocks import MEASURE, RECORD, UPDATE
from remora.simulation.program.run_equations import FORWARD_DYNAMICS
from remora.simulation.program.run_program import CHECK_MOTIONS, CHECK_STABLE, DENSE, STEP
from remora.simulation.program.step_blocks import LOADS, MOTIONS

#: Part of a step over which the slope of an event function is found.
AHEAD = 1e-5


class HostStep(NamedTuple):
    """What a step gives the program; y = [u, v, x, work], see `run_blocks`.

    Attributes:
        change: y(t + h) - y(t), `(ny,)`.
        error: error estimate in units of the tolerance, `(1,)`.
        fastest: largest absolute rates of y in the step, `(ny,)`.
    """

    change: Array
    error: Array
    fastest: Array


class HostedParts:
    """The functions that the program of a phase calls."""

    def __init__(
        self, system: PhaseDynamics, integrator: Method, watch: EventMonitor,
        order: Sequence[int], degree: int,
    ) -> None:  # fmt: skip
        """Initialize.

        Args:
            system: equations of the phase.
            integrator: the method.
            watch: the conditions of the phase.
            order: their indices there, in the order of the program.
            degree: of the dense output of a step.
        """
        self._system, self._integrator, self._watch = system, integrator, watch
        self._order = np.array([k for k in order if k < watch.events], dtype=int)
        layout = self._layout = layout_of(system.robot, system.nx)
        #: Places of the program's y in that of the integrators, [u, v, work, x].
        at = np.arange(layout.size)
        self._places = np.concatenate([at[layout.motion], at[layout.extra], at[layout.work]])
        self._degree, self._fit = degree, _fit(degree)
        self._made: StepResult | None = None
        self._dense: Array | None = None
        self._known: tuple[float, Array, Array, Array] | None = None

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions by name."""
        components = self._system.components
        found: dict[str, Callable[..., Any]] = {
            STEP: self._step, DENSE: self._coefficients, EVENTS: self._events,
            AT_NODES[0]: self._at_nodes(NODES),
            AT_FINE_NODES[0]: self._at_nodes(FINE_NODES),
            LOADS: self._loads, MOTIONS: self._motions, RECORD: self._record,
            MEASURE: self._measured,
            CHECK_MOTIONS: self._check_motions, CHECK_STABLE: self._check_stable,
        }  # fmt: skip
        if self._system.large:
            found[FORWARD_DYNAMICS] = self._system.large_dynamics
        if components is not None:
            system = components.system
            for i, update in enumerate(system.schedule):
                found[f"{UPDATE} {i}"] = self._update(update)
            for i, event in enumerate(system.events):
                if event.crossing.action == "reset":
                    found[f"{RESET} {i}"] = self._reset(i)
        return found

    # Steps ----------------------------------------------------------------------------------------

    def _step(
        self, t: Array, length: Array, fresh: Array, refused: Array, q: Array, v: Array, x: Array,
        z: Array, work: Array, rest: Array, *more: Array,
    ) -> HostStep:  # fmt: skip
        """Return one step.

        Args:
            t: time at the start of the step, `(1,)`, s.
            length: of the step, `(1,)`, s.
            fresh: 1 after a discontinuity, `(1,)`.
            refused: 1 after a rejected step, `(1,)`.
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            x: continuous states of components, `(nx,)`.
            z: discrete states, `(nz,)`.
            work: `(3,)`, J.
            rest: compensation term of q, `(nq,)`.
            *more: flags of stops in contact if there are stops; of adaptive methods, the tolerance
                of each component of y, `(ny,)`.
        """
        system, layout = self._system, self._layout
        if system.stops.count:
            system.stops.contact, more = more[0], more[1:]
        system.z = z[: system.z.size]
        system.center_chart(q, rest)
        y, begin, h = layout.at_start(v, work, x), float(t[0]), float(length[0])
        scale = np.full(layout.size, np.inf)
        if more:
            scale[self._places] = more[0]
        again = bool(fresh[0] > 0.5 or refused[0] > 0.5)
        known = self._known
        if (
            known is not None and not fresh[0] > 0.5 and known[0] == begin
            and np.array_equal(known[1], q) and np.array_equal(known[2], y)
        ):  # fmt: skip
            rate = known[3]
        else:
            rate = system.rates(begin, y)
            self._known = begin, q, y, rate
        assert self._integrator.step is not None
        made = self._integrator.step(system, begin, y, rate, h, scale, again)
        self._made, self._dense = made, None
        places = self._places
        return HostStep(made.change[places], np.array([made.error]), made.fastest()[places])

    def _loads(self, t: Array, q: Array, v: Array, x: Array, z: Array) -> tuple[Array, ...]:
        """Return generalized forces `(nv,)`, wrenches `(nb, 6)` if there are any, and rates of x.

        Args:
            t: time, `(1,)`, s.
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            x: continuous states of components, `(nx,)`.
            z: discrete states, `(nz,)`.
        """
        self._system.z = z[: self._system.z.size]
        return self._system.loads_and_rates(float(t[0]), q, v, x)

    def _coefficients(self) -> Array:
        """Return the coefficients of the dense output of the last step, `(degree, ny)`."""
        made = self._made
        assert made is not None
        if self._dense is None:
            places, fit = self._fit
            found: Array = fit @ made.dense(places)
            self._dense = found[:, self._places]
        return self._dense

    def _check_stable(self, t: Array, length: Array, q: Array, contact: Array) -> None:
        """Refuse a fixed step in which the stops that are touched make the motion grow."""
        system, stable, h = self._system, self._integrator.stable, float(length[0])
        system.stops.contact = contact
        frequency = system.stops.frequency(q, system.held)
        if h * frequency > stable:
            raise SimulationError(
                f"steps of {h:g} s are too long for the stops, which swing at {frequency:.3g} rad/s"
                f": steps of more than {stable / frequency:.2g} s are unstable; make `step` "
                "shorter, the stops softer, or use an adaptive integrator",
                float(t[0]),
            )

    # Held joints ----------------------------------------------------------------------------------

    def _motions(self, t: Array) -> tuple[Array, Array, Array]:
        """Return coordinates `(nq,)`, speeds and accelerations `(nv,)` with those of held joints.

        Args:
            t: time, `(1,)`, s.
        """
        robot, motions = self._system.robot, self._system.motions
        q, v, a = np.zeros(robot.nq), np.zeros(robot.nv), np.zeros(robot.nv)
        for name in motions.names:
            joint = robot.joints[name]
            q[joint.q], v[joint.v], a[joint.v] = motions.motion(name, float(t[0]))
        return q, v, a

    def _check_motions(self, t: Array, length: Array) -> None:
        """Raise if a motion is inconsistent or jumps in a step."""
        self._system.motions.check_step(float(t[0]), float(t[0]) + float(length[0]))

    # Events ---------------------------------------------------------------------------------------

    def _events(self, t: Array, q: Array, v: Array, x: Array, z: Array) -> Array:
        """Return the functions of events at a state, `(ne,)`."""
        self._system.z = z[: self._system.z.size]
        return self._values(float(t[0]), q, v, x)[0]

    def _values(self, t: float, q: Array, v: Array, x: Array) -> tuple[Array, Array]:
        """Return the functions of events, and whether each is a truth value."""
        values, truths = self._watch.event_values(t, self._system.given.time_of_phase(t), q, v, x)
        return values[self._order], truths[self._order]

    def _at_nodes(self, nodes: tuple[float, ...]) -> Callable[..., tuple[Array, Array]]:
        """Return the functions of events and their slopes by θ at nodes, `(m, ne)` each.

        Args:
            nodes: the places θ.
        """
        system, nv, count = self._system, self._system.robot.nv, len(nodes)
        places, ahead, basis = _places(nodes, self._degree)

        def at_nodes(
            t: Array, length: Array, q: Array, v: Array, x: Array, z: Array, dense: Array
        ) -> tuple[Array, Array]:
            system.z = z[: system.z.size]
            system.center_chart(q)
            y = basis @ dense
            there = system.place(np.ascontiguousarray(y[:, :nv]))
            when = (t + places * length).tolist()

            def seen(i: int) -> tuple[Array, Array]:
                speeds = v + y[i, nv : 2 * nv]
                system.set_held(when[i], there[i], speeds)
                return self._values(when[i], there[i], speeds, x + y[i, 2 * nv :][: x.size])

            found = [seen(i) for i in range(count)]
            values, slopes = np.array([g for g, _ in found]), np.zeros((count, self._order.size))
            for i, (g, truths) in enumerate(found):
                if not np.all(truths):
                    slope = (seen(count + i)[0] - g) / ahead[i]
                    slopes[i] = np.where(truths, 0.0, slope)
            return values, slopes

        return at_nodes

    def _reset(self, i: int) -> Callable[..., tuple[Array, ...]]:
        """Return the reset of an event of a component."""
        system = self._system

        def reset(
            t: Array, q: Array, v: Array, x: Array, z: Array, work: Array
        ) -> tuple[Array, ...]:
            assert system.components is not None
            size = system.z.size
            event = system.components.system.events[i]
            *found, inner, done = state_after_reset(
                system, event, float(t[0]), q, v, x, z[:size], work
            )
            return *found, np.concatenate([inner, z[size:]]), done

        return reset

    # Updates and records --------------------------------------------------------------------------

    def _update(self, update: ScheduledUpdate) -> Callable[..., Array]:
        """Return a scheduled update of the discrete states."""
        components = self._system.components
        assert components is not None
        layouts = components.system.layouts
        drawn = [name for name in update.names if layouts[name].interface.noise]

        def updated(t: Array, q: Array, v: Array, x: Array, z: Array, *numbers: Array) -> Array:
            noise, size = np.zeros(components.system.noise_size), self._system.z.size
            if update.kind == "tick":
                for name, own in zip(drawn, numbers, strict=True):
                    place = layouts[name].noise
                    noise[place] = standard_normals(own)[: place.stop - place.start]
            after = components.updated(update, float(t[0]), q, v, x, z[:size], noise)
            return np.concatenate([after, z[size:]])

        return updated

    def _measured(self, t: Array, q: Array, v: Array, x: Array, z: Array) -> Array:
        """Return z with the true motion that components measure, see `RunEquations.with_motion`."""
        system = self._system
        assert system.components is not None
        system.z = z[: system.z.size]
        return system.with_motion(float(t[0]), q, v, x, z)

    def _record(self, t: Array, q: Array, v: Array, x: Array, work: Array, z: Array) -> Array:
        """Return a record: time, state, works, loads and signals, see `RunBlocks.record`."""
        system, now = self._system, float(t[0])
        system.z = z[: system.z.size]
        tau, lost, wrenches = system.loads_seen(now, q, v, x)
        pushed = () if wrenches is None else (wrenches.reshape(-1),)
        return np.concatenate([t, q, v, work, tau, lost, *pushed, system.signals(now, q, v, x)])


def _basis(places: Array, degree: int) -> Array:
    """Return the dense output at places θ `(m,)` of unit coefficients, `(m, degree)`."""
    basis = np.eye(degree)
    columns = [[dense_output(row[:, None], theta[None])[0][0] for theta in places] for row in basis]
    return np.array(columns).T


@functools.lru_cache
def _places(nodes: tuple[float, ...], degree: int) -> tuple[Array, Array, Array]:
    """Return nodes θ and places beside them `(2 m,)`, how far `(m,)`, and their `_basis`."""
    at = np.array(nodes)
    ahead = np.where(at > 0.5, -AHEAD, AHEAD)  # within the step
    places = np.concatenate([at, at + ahead])
    return places, ahead, _basis(places, degree)


@functools.lru_cache
def _fit(degree: int) -> tuple[Array, Array]:
    """Return places θ, and the matrix that maps the dense output there to its coefficients."""
    places = np.append(0.5 - 0.5 * np.cos(np.pi * np.arange(1, degree) / degree), 1.0)
    return places, np.linalg.inv(_basis(places, degree))
