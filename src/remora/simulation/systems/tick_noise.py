"""Noise of the components at a tick of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.noise import normals, stream_number
from remora.components.system import System
from remora.errors import RemoraError


def noise_streams(system: System) -> dict[str, int]:
    """Return the stream of random numbers of each component with noise, by name.

    Raises:
        RemoraError: if two names happen to have the same stream.
    """
    found: dict[int, str] = {}
    for name, layout in system.layouts.items():
        if layout.interface.noise:
            stream = stream_number(name)
            if stream in found:
                raise RemoraError(
                    f"components {found[stream]!r} and {name!r} would have the same noise: rename "
                    "one of them"
                )
            found[stream] = name
    return {name: stream for stream, name in found.items()}


def tick_noise(
    system: System, streams: Mapping[str, int], names: Sequence[str], seed: int, run: int, tick: int
) -> Array:
    """Return the standard normal numbers of all components at a tick, `(nn,)`.

    Those of a component depend on the seed, the run, the component's name and the number of its
    tick alone; they are zero for components that do not tick.

    Args:
        system: the system.
        streams: streams of the components with noise, see `noise_streams`.
        names: components that tick.
        seed: of the study.
        run: index of the run in the study.
        tick: number of the tick, 0 at the first.
    """
    noise: Array = np.zeros(system.noise_size)
    for name in names:
        if name in streams:
            place = system.layouts[name].noise
            noise[place] = normals(seed, run, streams[name], tick, place.stop - place.start)
    return noise
