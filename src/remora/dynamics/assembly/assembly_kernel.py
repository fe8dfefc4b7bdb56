"""The dynamics of an assembly as one function, with what black boxes report as its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.assembly import Assembly
from remora.dynamics.assembly.black_box import BlackBox
from remora.dynamics.assembly.placed_parts import Part
from remora.dynamics.assembly.sensor_reading import PointReading, SensorReading
from remora.errors import RemoraError, UnknownName

#: The functions, and the name of their third argument.
FUNCTIONS = {"inverse_dynamics": "vdot", "forward_dynamics": "tau"}


def assembly_kernel(
    assembly: Assembly, function: str = "inverse_dynamics", dtype: str = "float64"
) -> Kernel:
    """Return the dynamics of an assembly as a kernel, to be called or saved as C.

    Its arguments are q, v, and vdot or tau; then for every black box `box` what its sensors read:
    `box.wrench` (but for a root), and of every point in use, here `arm`, `box.arm.twist`,
    `box.arm.rate` and, where gravity is added to the rate, `box.arm.pose`. In C, dots are
    underscores.

    Args:
        assembly: robots and black boxes.
        function: `inverse_dynamics` or `forward_dynamics`.
        dtype: `float64` or `float32`.
    """
    if function not in FUNCTIONS:
        raise UnknownName("function of an assembly", function, FUNCTIONS)
    inputs = {"q": assembly.nq, "v": assembly.nv, FUNCTIONS[function]: assembly.nv}
    boxes: list[Part] = []
    for part in assembly.parts:
        if part.black_box is not None:
            boxes.append(part)
            inputs |= _arguments(assembly, part)
        elif part.module is None:
            raise RemoraError(
                f"subsystem {part.name!r} is not a robot or black box: it is not compiled"
            )
    names = [name for name, size in inputs.items() if size]

    def dynamics(*arrays: Array) -> Array:
        given: dict[str, Array] = dict(zip(names, arrays, strict=True))
        other = assembly
        for part in boxes:
            other = other.swap(part.name, _reporting(part, given))
        state: list[Any] = [given.get(name, np.zeros(0)) for name in list(inputs)[:3]]
        return getattr(other, function)(*state, t=0.0)

    signatures = [Signature(name, (inputs[name],)) for name in names]
    return Kernel(dynamics, signatures, function, dtype)


def _arguments(assembly: Assembly, part: Part) -> dict[str, int]:
    """Return the arguments that a black box has, with their sizes."""
    box = part.black_box
    assert box is not None
    sizes = {} if part.parent < 0 else {f"{part.name}.wrench": 6}
    for point in part.points:
        sizes |= {f"{part.name}.{point}.twist": 6, f"{part.name}.{point}.rate": 6}
        if np.any(assembly.gravity != 0.0) and not box.accelerometer:
            sizes[f"{part.name}.{point}.pose"] = 8
    return sizes


def _reporting(part: Part, given: dict[str, Array]) -> BlackBox:
    """Return the black box with a source that reports arguments."""
    points = {
        point: PointReading(
            given[f"{part.name}.{point}.twist"], given[f"{part.name}.{point}.rate"],
            given.get(f"{part.name}.{point}.pose"),
        )
        for point in part.points
    }  # fmt: skip
    reading = SensorReading(given.get(f"{part.name}.wrench"), points)
    box = part.black_box
    assert box is not None
    return BlackBox(lambda t, base: reading, part.points, box.sensor, box.accelerometer)
