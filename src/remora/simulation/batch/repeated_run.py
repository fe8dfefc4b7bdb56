"""A run of a batch in lockstep, repeated up to some step, to find where it stopped being finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.lockstep_program import Timetable


@dataclass(frozen=True, eq=False)
class RepeatedRun:
    """A phase in lockstep, to be repeated for one run up to some step.

    Attributes:
        kernel: the program.
        rows: its inputs at the start of the phase, each `(runs, *shape)`.
        table: the timetable.
    """

    kernel: Any
    rows: list[Any]
    table: Timetable

    def after(self, row: int, steps: int) -> dict[str, Array]:
        """Return q, v, x and z of a run after so many steps, on the host."""
        table = self.table.until(steps)
        call = {"tables": table.passed(), "capacity": table.samples}
        returned = self.kernel(*(a[row : row + 1] for a in self.rows), **call)
        found = zip((o.name for o in self.kernel.interface.outputs), returned, strict=True)
        final = {n[6:]: to_host(x)[0] for n, x in found if n.startswith("final ")}
        return {name: np.asarray(final[name], dtype=float) for name in ("q", "v", "x", "z")}
