"""One component of a system at one time, with inputs that are given instead of connected."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from remora.algebra.array_ops import Array
from remora.components.evaluation import Instant, checked
from remora.components.layout import ComponentLayout
from remora.components.system import System


class ComponentInstant(Instant):
    """A component at one time and state, apart from the others.

    Ticks, releases and resets are those of `Instant`; no other component is evaluated.
    """

    def __init__(
        self,
        system: System,
        name: str,
        t: Any,
        q: Array,
        v: Array,
        x: Array,
        z: Array,
        inputs: Mapping[str, Array],
    ) -> None:
        """Store the state.

        Args:
            system: the system; its robot and parameters may hold symbols.
            name: name of the component.
            t: time, s.
            q: configuration, `(..., nq)`.
            v: velocity, `(..., nv)`.
            x: continuous states of the system, `(..., nx)`.
            z: discrete states of the system, `(..., nz)`.
            inputs: inputs of the component, by name.
        """
        super().__init__(system, t, q, v, x, z)
        self._name, self._given = name, inputs
        self._layout = system.layouts[name]

    @functools.cached_property
    def signals(self) -> dict[str, Array]:
        """No signals: the inputs are given."""
        return {}

    def _inputs(
        self, name: str, layout: ComponentLayout, signals: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the inputs that are given."""
        return dict(self._given)

    def results(self) -> Array:
        """Return the outputs and actions of a continuous component as one vector."""
        at = self.context(self._layout, {})
        return self._layout.results(self._outputs(self._name, at), self._acted(self._name, at))

    def event_functions(self) -> dict[str, Array]:
        """Return its event functions, by name."""
        layout, who = self._layout, f"crossings of component {self._name!r}"
        shapes = dict.fromkeys(layout.interface.events, ())
        return checked(who, shapes, layout.component.crossings(self.context(layout, {})))
