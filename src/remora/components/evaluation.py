"""Evaluation of a system at one instant: signals, loads, derivatives, ticks, event functions.

Pure functions of time, robot state, continuous states x and discrete states z, on numbers or
symbols: single runs, batches and exported code all use these.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from remora.algebra.array_ops import (
    Array,
    asarray,
    casadi,
    concatenate,
    is_symbolic,
    noting_waypoints,
)
from remora.codegen.ir.trace_errors import traced_fault
from remora.components.actions import Action, listed, loads, same_targets
from remora.components.context import DESIGN, Context, Kinematics, Values, as_told
from remora.components.layout import ComponentLayout, delay_in_ticks, packed, unpacked
from remora.components.returned_values import NO_NOISE, checked
from remora.components.signals import STATE, Signal
from remora.dynamics.kernels.parameters import value_of
from remora.errors import RemoraError, SingularMatrix

if TYPE_CHECKING:
    from remora.components.system import System


class Instant:
    """A system at one time and state.

    Attributes:
        system: the system; its robot and parameters may hold symbols.
        t: time, s.
        clock: time that conditions of the phase receive, s.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        x: continuous states of the components, `(..., nx)`.
        z: discrete states, `(..., nz)`.
    """

    def __init__(
        self, system: System, t: Any, q: Array, v: Array, x: Array, z: Array, clock: Any = None
    ) -> None:
        """Store the state; without a clock of the phase it is the time."""
        self.system, self.q, self.v, self.x, self.z = system, q, v, x, z
        self.t = asarray(t)
        self.clock = self.t if clock is None else asarray(clock)
        self._kinematics = self._design = Kinematics(system.robot, q, v)
        if system.design is not system.robot:
            self._design = Kinematics(system.design, q, v)

    def context(
        self, layout: ComponentLayout, signals: Mapping[str, Array], noise: Array | None = None
    ) -> Context:
        """Return the context of a component, given the signals known so far."""
        name = self.system.name_of(layout)
        inputs = self._inputs(name, layout, signals)
        own = {} if noise is None else unpacked(layout.noise_shapes, noise)
        phase = self.system.phase_place
        who = f"of component {name!r}"
        computes, design = self._kinematics, self._design
        if layout.component.uses_design:
            computes = design = as_told(self._design, inputs)
        return Context(
            computes, design, self.t,
            Values(f"continuous state {who}",
                   unpacked(layout.continuous_shapes, self.x[..., layout.x])),
            Values(f"discrete state {who}",
                   unpacked(layout.discrete_shapes, self.z[..., layout.discrete])),
            Values(f"input {who}", inputs),
            Values(f"noise {who}", own, NO_NOISE if noise is None else ""),
            self.clock, None if phase is None else lambda: self.z[..., phase],
        )  # fmt: skip

    def _inputs(
        self, name: str, layout: ComponentLayout, signals: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the inputs of a component, given the signals known so far."""
        inputs: dict[str, Array] = {}
        for key, signal in layout.interface.inputs.items():
            source = self.system.connections[f"{name}.{key}"]
            if isinstance(source, str):
                inputs[key] = signals[source] if source in signals else self._unknown(key, signal)
            else:
                inputs[key] = source
        return inputs

    def _unknown(self, key: str, signal: Signal) -> Array:
        """Return a placeholder for an input that the outputs being evaluated do not depend on."""
        if key in STATE:
            return self.q if key == "q" else self.v
        if key.startswith(DESIGN):
            return value_of(self.system.design, key.removeprefix(DESIGN))
        return np.zeros(signal.shape)

    @functools.cached_property
    def signals(self) -> dict[str, Array]:
        """All signals by name, `"component.output"`."""
        found: dict[str, Array] = {}
        for name, layout in self.system.layouts.items():
            if layout.sampled:
                own = layout.outputs_of(self.z[..., layout.effective])
                found |= {f"{name}.{key}": value for key, value in own.items()}
        for name, outputs in self.system.order:
            layout = self.system.layouts[name]
            values = self._outputs(name, self.context(layout, found))
            self._refuse_unordered(name, outputs, found)
            found |= {f"{name}.{key}": values[key] for key in outputs}
        return found

    def _refuse_unordered(
        self, name: str, outputs: Sequence[str], known: Mapping[str, Array]
    ) -> None:
        """Raise if outputs in symbols depend on signals that are evaluated after them.

        The order is that for the robot and the parameters of which the system was made.
        """
        layout, system = self.system.layouts[name], self.system
        if not is_symbolic(self.q):
            return
        later: dict[str, Array] = {}
        for key, signal in layout.interface.inputs.items():
            source = system.connections[f"{name}.{key}"]
            if isinstance(source, str) and source not in known and signal.size:
                later[source] = asarray(casadi.SX.sym(source, signal.size)).reshape(signal.shape)
        if not later:
            return
        with noting_waypoints():  # these are of no use to anybody
            values = self._outputs(name, self.context(layout, {**known, **later}))
        for output, source in itertools.product(outputs, later):
            result = casadi.SX(casadi.vertcat(*asarray(values[output]).ravel().tolist()))
            if casadi.depends_on(result, casadi.vertcat(*later[source].ravel().tolist())):
                raise RemoraError(
                    f"output {output!r} of component {name!r} depends on {source!r} here, but not "
                    "for the robot and the parameters of which the System was made: make the "
                    "System of those with which it runs"
                )

    def recorded(self) -> dict[str, Array]:
        """Return all signals and states by name, see `System.signals`."""
        found = dict(self.signals)
        for name, layout in self.system.layouts.items():
            states = unpacked(layout.continuous_shapes, self.x[..., layout.x])
            states |= unpacked(layout.discrete_shapes, self.z[..., layout.discrete])
            found |= {f"{name}.{key}": value for key, value in states.items()}
        return found

    def _outputs(self, name: str, at: Context) -> dict[str, Array]:
        layout, who = self.system.layouts[name], f"outputs of component {name!r}"
        return checked(who, layout.output_shapes, _called(who, layout.component.outputs, at))

    def actions(self) -> list[Action]:
        """Return the actions of all components."""
        return [action for name in self.system.layouts for action in self.actions_of(name)]

    def actions_of(self, name: str) -> list[Action]:
        """Return the actions of one component."""
        layout = self.system.layouts[name]
        if layout.sampled:
            return layout.actions_of(self.z[..., layout.effective])
        return self._acted(name, self.context(layout, self.signals))

    def _acted(self, name: str, at: Context) -> list[Action]:
        """Return what `act` of a component returns, or raise if its targets have changed."""
        layout, who = self.system.layouts[name], f"act of component {name!r}"
        found = listed(who, _called(who, layout.component.act, at))
        same_targets(who, layout.actions, found)
        return found

    def loads(self) -> tuple[Array | None, Array | None]:
        """Return generalized forces `(..., nv)` and wrenches `(..., nb, 6)`; None: there are none.

        See `actions.loads`.
        """
        needed = self.actions()
        return loads(self.system.robot, self._kinematics, needed)

    def derivative(self) -> Array:
        """Return the rates of x, `(..., nx)`."""
        parts = [
            packed(layout.continuous_shapes, self.derivative_of(name))
            for name, layout in self.system.layouts.items()
            if layout.continuous_shapes
        ]
        return concatenate(parts) if parts else np.zeros(0)

    def derivative_of(self, name: str) -> dict[str, Array]:
        """Return the rates of one component's continuous states, by name."""
        layout, who = self.system.layouts[name], f"derivative of component {name!r}"
        at = self.context(layout, self.signals)
        return checked(who, layout.continuous_shapes, _called(who, layout.component.derivative, at))

    def crossings(self) -> Array:
        """Return the event functions in the order of `System.events`, `(..., ne)`."""
        parts: list[Array] = []
        for name, layout in self.system.layouts.items():
            shapes = dict.fromkeys(layout.interface.events, ())
            if shapes:
                who = f"crossings of component {name!r}"
                at = self.context(layout, self.signals)
                returned = _called(who, layout.component.crossings, at)
                parts.append(packed(shapes, checked(who, shapes, returned)))
        return concatenate(parts) if parts else np.zeros(0)

    # Changes of z -------------------------------------------------------------------------------

    def released(self, names: Sequence[str]) -> Array:
        """Return z after the delays of some components have passed: their results take effect."""
        z = self.z
        for name in names:
            layout = self.system.layouts[name]
            size = layout.effective.stop - layout.effective.start
            oldest = z[..., layout.waiting.stop - size : layout.waiting.stop]
            z = _replaced(z, layout.effective, oldest)
        return z

    def ticked(self, names: Sequence[str], noise: Array) -> Array:
        """Return z after a tick of some components.

        First the outputs of all of them are computed, each after those on which it depends; then
        delayed outputs, actions and next discrete states, from the signals of this tick.

        Args:
            names: names of sampled components with the same ticks.
            noise: standard normal numbers of all components, `(..., nn)`.
        """
        layouts = {name: self.system.layouts[name] for name in names}
        # results whose delay is a multiple of the sample time take effect at a tick
        whole = [n for n, own in layouts.items() if own.queue and delay_in_ticks(own.component)]
        now = self._with_z(self.released(whole)) if whole else self
        outputs: dict[str, dict[str, Array]] = {}
        for name, keys in self.system.sampled_order:
            if name not in layouts or layouts[name].queue:
                continue
            layout = layouts[name]
            at = now.context(layout, now.signals, noise[..., layout.noise])
            values = now._outputs(name, at)
            held = layout.outputs_of(now.z[..., layout.effective])
            own = outputs[name] = held | outputs.get(name, {}) | {k: values[k] for k in keys}
            start = layout.effective.start
            place = slice(start, start + sum(s.size for s in layout.interface.outputs.values()))
            now = now._with_z(_replaced(now.z, place, packed(layout.output_shapes, own)))
        z = now.z
        for name, layout in layouts.items():
            at = now.context(layout, now.signals, noise[..., layout.noise])
            own = outputs[name] if name in outputs else now._outputs(name, at)
            results = layout.results(own, now._acted(name, at))
            who, shapes = f"update of component {name!r}", layout.discrete_shapes
            if shapes:
                after = checked(who, shapes, _called(who, layout.component.update, at))
                z = _replaced(z, layout.discrete, packed(shapes, after))
            if layout.queue:
                size = layout.effective.stop - layout.effective.start
                older = z[..., layout.waiting.start : layout.waiting.stop - size]
                z = _replaced(z, layout.waiting, concatenate([results, older]))
            else:
                z = _replaced(z, layout.effective, results)
        return z

    def _with_z(self, z: Array) -> Self:
        """Return the same instant with other discrete states."""
        new = object.__new__(type(self))  # copy.copy takes several times as long
        vars(new).update(vars(self), z=z)
        vars(new).pop("signals", None)
        return new

    def reset(self, component: str, event: str) -> tuple[Array, Array, Array, Array]:
        """Return q, v, x and z after an event of a component."""
        layout, robot = self.system.layouts[component], self.system.robot
        own = layout.continuous_shapes | layout.discrete_shapes
        shapes = own | {"q": (robot.nq,), "v": (robot.nv,)}
        who, at = f"reset of component {component!r}", self.context(layout, self.signals)
        returned = _called(who, layout.component.reset, at, event)
        values = checked(who, shapes, returned, partial=True)
        x = _replaced(self.x, layout.x, self._mixed(layout.continuous_shapes, layout.x, self.x,
                                                    values))  # fmt: skip
        z = _replaced(self.z, layout.discrete, self._mixed(layout.discrete_shapes, layout.discrete,
                                                           self.z, values))  # fmt: skip
        return values.get("q", self.q), values.get("v", self.v), x, z

    @staticmethod
    def _mixed(
        shapes: Mapping[str, tuple[int, ...]],
        place: slice,
        flat: Array,
        values: Mapping[str, Array],
    ) -> Array:
        before = unpacked(shapes, flat[..., place])
        return packed(shapes, {k: values.get(k, before[k]) for k in shapes})


def _called(who: str, method: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a method of a component returns; other errors than ours name the component."""
    try:
        return method(*arguments)
    except SingularMatrix as error:  # raised by the algebra, which knows no components
        raise SingularMatrix(f"{who}: {error}") from error
    except RemoraError:
        raise
    except Exception as error:
        told = traced_fault(error) or f"raised {type(error).__name__}: {error}"
        raise RemoraError(f"{who} {told}") from error


def _replaced(flat: Array, place: slice, part: Array) -> Array:
    """Return a vector with one part replaced."""
    if place.stop == place.start:
        return flat
    return concatenate([flat[..., : place.start], part, flat[..., place.stop :]])
