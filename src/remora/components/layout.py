"""Layout of the states of a system's components in two vectors: continuous and discrete.

The continuous states of all components are one vector x. The discrete vector z holds, component by
component: discrete states, results that wait for their delay to pass (newest first), and the
results that are in effect. The *results* of a sampled component are its outputs and the numbers of
its actions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra.array_ops import Array, asarray, concatenate
from remora.components.actions import Action
from remora.components.component import Component, Interface


def unpacked(shapes: Mapping[str, tuple[int, ...]], flat: Array) -> dict[str, Array]:
    """Return the arrays by name of a vector `(..., n)`."""
    found: dict[str, Array] = {}
    start = 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape)
        found[name] = flat[..., start:stop].reshape((*flat.shape[:-1], *shape))
        start = stop
    return found


def packed(shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]) -> Array:
    """Return arrays by name as one vector `(..., n)`."""
    parts: list[Array] = []
    for name, shape in shapes.items():
        value = asarray(values[name])
        batch = value.shape[: value.ndim - len(shape)]
        parts.append(value.reshape((*batch, math.prod(shape))))
    return concatenate(parts) if parts else np.zeros(0)


@dataclass(frozen=True, eq=False)
class ComponentLayout:
    """Places of one component in x and z.

    Attributes:
        component: the component.
        interface: its interface.
        actions: its actions, with numbers of an example state: their targets and sizes.
        x: slice of its continuous states in x.
        discrete: slice of its discrete states in z.
        waiting: slice of its delayed results in z, `queue` vectors.
        effective: slice of its results in effect in z.
        queue: number of results that wait at the same time.
        noise: slice of its noise in the vector of all noise.
    """

    component: Component
    interface: Interface
    actions: tuple[Action, ...]
    x: slice
    discrete: slice
    waiting: slice
    effective: slice
    queue: int
    noise: slice

    @property
    def sampled(self) -> bool:
        """Whether the component is sampled."""
        return self.component.sample_time is not None

    @property
    def continuous_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the continuous states."""
        return {k: s.shape for k, s in self.interface.continuous.items()}

    @property
    def discrete_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the discrete states."""
        return {k: s.shape for k, s in self.interface.discrete.items()}

    @property
    def output_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the outputs."""
        return {k: s.shape for k, s in self.interface.outputs.items()}

    @property
    def noise_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the noise."""
        return {k: (n,) for k, n in self.interface.noise.items()}

    def results(self, outputs: Mapping[str, Array], actions: Sequence[Action]) -> Array:
        """Return outputs and actions as one vector."""
        return concatenate([packed(self.output_shapes, outputs), *(a.numbers() for a in actions)])

    def outputs_of(self, results: Array) -> dict[str, Array]:
        """Return the outputs in a vector of results."""
        return unpacked(self.output_shapes, results)

    def actions_of(self, results: Array) -> list[Action]:
        """Return the actions in a vector of results."""
        start = sum(math.prod(s) for s in self.output_shapes.values())
        found: list[Action] = []
        for action in self.actions:
            stop = start + action.numbers().shape[-1]
            found.append(action.with_numbers(results[..., start:stop]))
            start = stop
        return found


def delay_in_ticks(component: Component) -> int:
    """Return the delay of a sampled component in sample times if it is a multiple, otherwise 0."""
    assert component.sample_time is not None
    count = component.delay / component.sample_time
    near = round(count)
    return near if near and abs(count - near) <= 1e-9 * near else 0


def component_layout(
    component: Component,
    interface: Interface,
    actions: Sequence[Action],
    x: int,
    z: int,
    noise: int,
) -> ComponentLayout:
    """Return the layout of a component whose parts begin at these places of x, z and the noise."""
    own = [s.initial.size for s in interface.continuous.values()]
    kept = sum(s.initial.size for s in interface.discrete.values())
    size, queue = 0, 0
    if component.sample_time is not None:
        size = sum(s.size for s in interface.outputs.values())
        size += sum(a.numbers().shape[-1] for a in actions)
        whole = delay_in_ticks(component)
        queue = whole or math.ceil(component.delay / component.sample_time)
    waiting = z + kept
    effective = waiting + queue * size
    return ComponentLayout(
        component, interface, tuple(actions), slice(x, x + sum(own)), slice(z, waiting),
        slice(waiting, effective), slice(effective, effective + size), queue,
        slice(noise, noise + sum(interface.noise.values())),
    )  # fmt: skip
