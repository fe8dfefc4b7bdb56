"""Streams of random numbers of the components of a system."""

from __future__ import annotations

from remora.components.noise import stream_number
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
