"""What of a phase is compiled: its steps, and the loads at its samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, concatenate
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.dynamics.kernels.kernel_memory import kernel
from remora.identity.recent import Recent
from remora.model.state import integrate
from remora.simulation.compiled.advance_equations import AdvanceEquations, Bounds
from remora.simulation.compiled.compiled_steps import CompiledSteps
from remora.simulation.compiled.step_block import Samples, StepBlock
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.inputs.events import EventMonitor
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.phase.phase_loads import SmoothLoads

#: Maximum number of kernels that are kept.
MOST_KEPT = 32


class SampledLoads(NamedTuple):
    """Loads and signals at several samples.

    Attributes:
        tau: generalized forces of the drives, `(n, nv)`.
        passive: generalized forces of damping, friction, springs and stops, `(n, nv)`.
        wrenches: external, `(n, nb, 6)`, or None.
        signals: signals and states of components, `(n, ns)`.
    """

    tau: Array
    passive: Array
    wrenches: Array | None
    signals: Array


def compiled_steps(
    system: PhaseDynamics, tableau: Tableau | None, watch: EventMonitor
) -> CompiledSteps | None:
    """Return the steps of a phase in machine code; None if it cannot be compiled.

    Args:
        system: the rates.
        tableau: the integration method; None: it is not an explicit one.
        watch: event conditions.
    """
    if tableau is None or watch.events or not system.straight:
        return None
    loads = system.given.smooth
    if loads is None:
        return None
    model, stops, latched = system.model, system.stops, system.latched
    acting = None if model.system is None else latched.open_system(model.system)
    bounds = Bounds((*watch.ranges, *stops.bounds), watch.speeds)
    effort = None if system.effort is None else tuple(system.effort.tolist())

    def equations(dense: bool) -> AdvanceEquations:
        return AdvanceEquations(
            latched.robot, acting, model.formulation, model.passive, effort, stops.count,
            loads, tableau, dense, bounds, latched.names,
        )  # fmt: skip

    settings = (model.formulation, model.passive, effort, stops.count, loads.degree, loads.pushes,
                loads.placed, tableau, bounds, latched.names)  # fmt: skip
    place = kernel(integrate, latched.robot, ("q", "dq"))
    numbers = tuple(x.ravel() for x in latched.values)
    return CompiledSteps(equations, latched.robot, acting, settings, loads, place, numbers)


def loads_of_steps(system: PhaseDynamics, block: StepBlock) -> SampledLoads:
    """Return the loads and signals at the ends of steps, which were recorded with them."""
    own, t = block.loads, block.t[1:]
    signals = own.get("signals")
    if signals is None:
        signals = np.zeros((len(t), 0))
    elif system.components is not None and not np.all(np.isfinite(signals)):
        ends = block.ends()
        system.components.refuse_nan_in(signals, t, ends.q, ends.v, ends.x, system.z)
    return SampledLoads(own["tau"], own["passive"], own.get("wrenches"), signals)


def loads_at(system: PhaseDynamics, samples: Samples) -> SampledLoads:
    """Return the loads and signals at samples within compiled steps: no stop is in contact."""
    given, components = system.given, system.components
    loads = given.smooth
    assert loads is not None
    q, v, x = (np.ascontiguousarray(part) for part in (samples.q, samples.v, samples.x))
    low, high = given.bounds
    now = np.clip(samples.t, low, high)
    tau, wrenches = _given_loads(loads, now - low, now - given.offset, *given.clocks)
    signals = np.zeros((len(now), 0))
    if components is not None:
        force, push = components.loads_of_many(now, q, v, x, system.z)
        tau = tau + force
        if components.pushes:
            wrenches = push if wrenches is None else wrenches + push
        signals = components.signals_of_many(now, q, v, x, system.z)
    if system.effort is not None:
        tau = np.clip(tau, -system.effort, system.effort)
    return SampledLoads(tau, system.losses(q, v, np.zeros(system.stops.count)), wrenches, signals)


def _given_loads(
    loads: SmoothLoads, since: Array, clock: Array, low: float, high: float
) -> tuple[Array, Array | None]:
    """Return drive forces `(n, nv)` and wrenches `(n, nb, 6)` given by the user, at n times."""
    powers = since[:, None] ** np.arange(loads.degree + 1)
    torque, wrenches = loads.coefficients(low, high)
    tau = powers @ torque
    push = None if not loads.pushes else np.tensordot(powers, wrenches, 1)
    if loads.is_traced:
        traced = _pulse_kernel(loads)(clock)
        tau = tau + traced[:, : tau.shape[1]]
        if push is not None:
            push = push + traced[:, tau.shape[1] :].reshape(push.shape)
    return tau, push


def _pulse_kernel(loads: SmoothLoads) -> Kernel:
    """Return the kernel of all traced functions of time; the last ones are kept."""
    key = loads.placed, loads.captured
    known = _pulse_kernels.get(key)
    if known is not None:
        return known

    def pulses(t: Array) -> Array:
        parts = [loads.torque(t), loads.wrenches(t) if loads.pushes else None]
        shapes = [loads.torque_shape, loads.wrench_shape if loads.pushes else (0,)]
        return concatenate([
            np.zeros(shape).ravel() if part is None else part.reshape((-1,))
            for part, shape in zip(parts, shapes, strict=True)
        ])  # fmt: skip

    return _pulse_kernels.keep(key, Kernel(pulses, [Signature("t", ())], "pulses"))


_pulse_kernels: Recent[object, Kernel] = Recent(MOST_KEPT)
