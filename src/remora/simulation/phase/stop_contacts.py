"""Contact of joints with the elastic stops at their limits, during a phase."""

from __future__ import annotations

import functools
from collections.abc import Collection

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.forces.passive_forces import stop_overlaps, stop_rates
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.kernels.kernel_memory import kernel
from remora.model.robot import Robot


class StopContacts:
    """The stops of a robot, and which of them are touched.

    Attributes:
        count: number of stops; 0 without stiffness.
        contact: 1 for each stop that is touched during a step, 0 otherwise, `(count,)`.
    """

    def __init__(self, robot: Robot, stiffness: float, q: Array) -> None:
        """Count the stops; none is touched yet.

        Args:
            robot: the robot.
            stiffness: N m/rad or N/m; 0: there are no stops.
            q: a configuration, `(nq,)`.
        """
        self._robot, self._stiffness = robot, stiffness
        self.count = stop_overlaps(robot, q).size if stiffness > 0.0 else 0
        self.contact = np.zeros(self.count)

    @functools.cached_property
    def _map(self) -> tuple[Array, Array, Array, Array]:
        """Indices of the stops' coordinates and speeds, their factors, and δ at q = 0."""
        nothing, still = np.zeros(self._robot.nq), np.zeros(self._robot.nv)
        offset = stop_overlaps(self._robot, nothing)
        by_q = stop_overlaps(self._robot, np.eye(self._robot.nq)) - offset
        by_v = stop_rates(self._robot, np.eye(self._robot.nv)) - stop_rates(self._robot, still)
        places, speeds = np.argmax(np.abs(by_q), axis=0), np.argmax(np.abs(by_v), axis=0)
        return places, speeds, by_v[speeds, np.arange(self.count)], offset

    def overlaps(self, q: Array) -> Array:
        """Return the penetration of each stop, `(..., count)`; positive beyond the limit."""
        places, _, factor, offset = self._map
        return factor * q[..., places] + offset

    def frequency(self, q: Array, held: Collection[str]) -> float:
        """Return the highest frequency of the robot on the stops that it touches, rad/s.

        ω² is the largest eigenvalue of k J H⁻¹ Jᵀ, with δ̇ = J v, over what is not held.
        """
        robot, touched = self._robot, np.flatnonzero(self.contact)
        _, speeds, factor, _ = self._map
        J = np.zeros((touched.size, robot.nv))
        J[np.arange(touched.size), speeds[touched]] = factor[touched]
        places = [i for name in held for i in range(robot.nv)[robot.joints[name].v]]
        H: Array = kernel(mass_matrix, robot, ("q",))(q)
        H, J = np.delete(np.delete(H, places, 0), places, 1), np.delete(J, places, 1)
        felt = J @ np.linalg.solve(H, J.T)
        return float(np.sqrt(self._stiffness * np.linalg.eigvalsh(felt)[-1]))
