"""Steps that Python makes in the program of a run: implicit and variational methods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.state_layout import layout_of
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.integrators.error_scale import ErrorScale
from remora.simulation.integrators.table import Integrator
from remora.simulation.integrators.tableaus import DEGREE
from remora.simulation.program.event_search import dense_output


class HostStep(NamedTuple):
    """What a step gives the program; y = [u, v, x, work], see `run_blocks`.

    Attributes:
        change: y(t + h) - y(t), `(ny,)`.
        error: error estimate in units of the tolerance, `(1,)`.
        dense: coefficients of the dense output, `(DEGREE, ny)`.
        fastest: largest absolute rates of y in the step, `(ny,)`.
    """

    change: Array
    error: Array
    dense: Array
    fastest: Array


class HostedStep:
    """Makes steps with the equations of a phase."""

    def __init__(self, system: PhaseDynamics, integrator: Integrator) -> None:
        """Initialize.

        Args:
            system: equations of the phase.
            integrator: the method.
        """
        self._system, self._integrator = system, integrator
        layout = self._layout = layout_of(system.robot, system.nx)
        self._reach = ErrorScale(system.robot)
        #: Places of the program's y in that of the integrators, [u, v, work, x].
        at = np.arange(layout.size)
        self._order = np.concatenate([at[layout.motion], at[layout.extra], at[layout.work]])

    def __call__(
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
            *more: flags of stops in contact if there are stops; rtol and atol `(1,)` of adaptive
                methods.
        """
        system, layout = self._system, self._layout
        if system.stops.count:
            system.stops.contact, more = more[0], more[1:]
        system.z = z[: system.z.size]
        system.center_chart(q, rest)
        y, begin, h = layout.at_start(v, work, x), float(t[0]), float(length[0])
        scale = np.full(layout.size, np.inf)
        if more:
            rtol, atol = more
            scale[layout.u], scale[layout.v], scale[layout.extra] = self._reach(q), v, x
            for part in (layout.motion, layout.extra):
                scale[part] = rtol * np.abs(scale[part]) + atol
        again = bool(fresh[0] > 0.5 or refused[0] > 0.5)
        rate = system.rates(begin, y)
        made = self._integrator.step(system, begin, y, rate, h, scale, again)
        dense: Array = _FIT @ made.dense(_NODES)
        order = self._order
        return HostStep(
            made.change[order], np.array([made.error]), dense[:, order], made.fastest()[order]
        )


#: Places within a step where its dense output is evaluated, `(DEGREE,)`: Chebyshev points.
_NODES = np.append(0.5 - 0.5 * np.cos(np.pi * np.arange(1, DEGREE) / DEGREE), 1.0)


def _fit() -> Array:
    """Return the inverse of the dense output at `_NODES` of unit coefficients, `(DEGREE,) * 2`."""
    basis = np.eye(DEGREE)
    columns = [[dense_output(basis[i][:, None], theta[None])[0][0] for theta in _NODES]
               for i in range(DEGREE)]  # fmt: skip
    return np.linalg.inv(np.array(columns).T)


_FIT = _fit()
