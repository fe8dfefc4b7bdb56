"""Runs with the reduced model: the base velocity follows from momentum conservation.

The six base speeds are not part of the integrated state [FPG11, eqs. 18, 19]; momentum is then
conserved exactly for any step size.
"""

from __future__ import annotations

import functools

import numpy as np

from remora.algebra.array_ops import Array, is_symbolic
from remora.codegen.kernel import Kernel
from remora.dynamics.forces.equations_of_motion import reduced_rates_near
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.lagrangian.reduced import base_velocity
from remora.dynamics.momentum import momentum
from remora.dynamics.refusals import require_free_base
from remora.errors import InvalidValue, RemoraError, SimulationError, UnknownName
from remora.model.robot import Robot
from remora.simulation.engine.phase_dynamics import PhaseDynamics, RunSettings
from remora.simulation.inputs.phases import Phase

#: Available models.
MODELS = ("full", "reduced")
#: Integrators that need the rates only.
EXPLICIT = ("dop853", "dopri5", "rk4")


def with_model(
    model: RunSettings, name: str, integrator: str, phases: tuple[Phase, ...], q: Array, v: Array
) -> RunSettings:
    """Return the model of a run by name: `full`, or `reduced` with its initial momentum.

    Raises:
        RemoraError: if momentum would not be constant, or an option is not supported.
    """
    if name not in MODELS:
        raise UnknownName("model", name, MODELS)
    if name == "full":
        return model
    _refuse_unsuitable(model.robot)
    if model.system is not None:
        raise RemoraError(
            "model='reduced' has no components: simulate the system with model='full', or the "
            "robot alone with torque="
        )
    if integrator not in EXPLICIT:
        raise RemoraError(
            f"model='reduced' goes with {', '.join(EXPLICIT)}, not with integrator={integrator!r}"
        )
    for phase in phases:
        if phase.base_wrench is not None or phase.wrenches is not None:
            raise RemoraError("model='reduced' is for robots that no external wrench pushes")
        if phase.prescribed or phase.locked:
            raise RemoraError("model='reduced' has no prescribed or locked joints")
    return model._replace(momentum=tuple(momentum(model.robot, q, v).tolist()))


def phase_dynamics(model: RunSettings, phase: Phase, start: float, q: Array) -> PhaseDynamics:
    """Return the rates of one phase of a run, with the full or the reduced model."""
    made = PhaseDynamics if model.momentum is None else ReducedPhaseDynamics
    return made(model, phase, start, q)


class ReducedPhaseDynamics(PhaseDynamics):
    """The rates of y in one phase of a run, with the base velocity from momentum."""

    def __init__(self, model: RunSettings, phase: Phase, start: float, q: Array) -> None:
        """Initialize and compile; see `PhaseDynamics`."""
        super().__init__(model, phase, start, q)
        self._momentum = np.array(model.momentum)

    def set_held(self, t: float, q: Array, v: Array) -> None:
        """Set the base velocity from momentum, in place."""
        v[:6] = self._base_velocity(q, v[6:], self._momentum)

    def rates(self, t: float, y: Array) -> Array:
        """Return the rate of y, `(2 nv + 3,)`."""
        layout = self._layout
        q, v = self.q, y[layout.v]
        if self._sees_state:
            q, v = self.place(y[layout.u]), v.copy()
            self.set_held(t, q, v)
        tau, _ = self._given(t, q, v, y[layout.extra])
        return self._reduced_rates(self.q, y, tau, self._momentum)

    def jacobian(self, t: float, y: Array) -> Array:
        """Raise: implicit methods support the full model only."""
        raise SimulationError("model='reduced' has no Jacobian for implicit integrators", t)

    def _given(self, t: float, q: Array, v: Array, x: Array) -> tuple[Array, Array | None]:
        tau, wrenches = super()._given(t, q, v, x)
        if np.any(tau[:6]):
            raise SimulationError(
                "model='reduced' is for a base that is not driven, but there is torque on it", t
            )
        return tau, wrenches

    @functools.cached_property
    def _base_velocity(self) -> Kernel:
        return kernel(base_velocity, self.robot, ("q", "joint_speeds", "momentum"))

    @functools.cached_property
    def _reduced_rates(self) -> Kernel:
        size = {"y": (self._layout.size,)}
        names = ("q", "y", "tau", "momentum")
        return kernel(reduced_rates_near, self.robot, names, size, passive=self.model.passive)


def _refuse_unsuitable(robot: Robot) -> None:
    """Raise if the momentum of a robot is not constant, or if it has no joints."""
    require_free_base(robot)
    if not is_symbolic(robot.gravity) and np.any(robot.gravity):
        raise InvalidValue(f"robot {robot.name!r} is under gravity: its momentum is not constant")
    base = robot.joints[0]
    if np.any(base.damping) or np.any(base.friction):
        raise InvalidValue(
            f"the base joint {base.name!r} of robot {robot.name!r} has damping or friction: its "
            "momentum is not constant"
        )
    if robot.nv == 6:
        raise InvalidValue(f"robot {robot.name!r} has no joints besides its base")
