"""Noise of the components at a tick of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.noise import normals, stream_number
from remora.components.system import System


def tick_noise(system: System, names: Sequence[str], seed: int, run: int, tick: int) -> Array:
    """Return the standard normal numbers of all components at a tick, `(nn,)`.

    Those of a component depend on the seed, the run, the component's name and the number of its
    tick alone; they are zero for components that do not tick.

    Args:
        system: the system.
        names: components that tick.
        seed: of the study.
        run: index of the run in the study.
        tick: number of the tick, 0 at the first.
    """
    noise: Array = np.zeros(system.noise_size)
    for name in names:
        place = system.layouts[name].noise
        count = place.stop - place.start
        if count:
            noise[place] = normals(seed, run, stream_number(name), tick, count)
    return noise
