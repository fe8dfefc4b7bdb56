"""Batches of robots too large for straight-line code: the lockstep program on arrays of runs.

The loop runs in NumPy; forward dynamics of all runs is one call of a kernel made of loops over the
tree. Loads and components are evaluated run by run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array, total_and_rest
from remora.codegen.integration.program_interface import ProgramInterface
from remora.codegen.integration.statements import Cell, Output
from remora.components.evaluation import Instant
from remora.components.noise import normals, stream_number
from remora.dynamics.forces.equations_of_motion import passive_loads
from remora.dynamics.formulations import forward_dynamics
from remora.dynamics.kernels.kernel_memory import kernel
from remora.errors import RemoraError
from remora.model.state import increment, integrate, log_rate
from remora.simulation.batch.lockstep_program import table_names
from remora.simulation.integrators.tableaus import RK4
from remora.simulation.program.run_equations import RunEquations


class LargeRobotProgram:
    """The program of `lockstep_program` for large robots, called in the same way.

    Attributes:
        interface: inputs, outputs and tables.
    """

    def __init__(self, equations: RunEquations, signals: Sequence[str], nudge: float) -> None:
        """Compile the kernels.

        Args:
            equations: the equations of a run.
            signals: names of the recorded signals.
            nudge: offset from the ends of a step at which loads are evaluated, relative to time.
        """
        robot, system = equations.robot, equations.system
        if equations.parameters or equations.held or equations.formulation != "articulated":
            raise RemoraError(
                f"{robot.name!r} has {len(robot.bodies)} bodies: in a batch of so large a robot, "
                "parameters cannot differ, joints cannot be held, and the formulation is "
                "'articulated'; use rm.simulate"
            )
        self._equations, self._signals, self._nudge = equations, tuple(signals), nudge
        pushed = ("wrenches",) if equations.pushed else ()
        self._dynamics = kernel(forward_dynamics, robot, ("q", "v", "tau", *pushed))
        self._place, self._move = (kernel(f, robot, ("q", "dq")) for f in (integrate, increment))
        self._log_rate = kernel(log_rate, robot, ("dq", "v"))
        self._losses = kernel(passive_loads, robot, ("q", "v"), passive=equations.passive)
        sizes = {"q": robot.nq, "v": robot.nv, "x": system.nx, "z": system.nz}
        state = [Cell(n, (k,)) for n, k in sizes.items()]
        rests = [Cell(f"rest {n}", (sizes[n],)) for n in ("q", "v", "x")]
        ticks = [Cell(f"tick {i}", (1,), wide=True) for i in range(len(system.schedule))]
        keys = [Cell("seed", (2,), wide=True), Cell("run", (1,), wide=True)]
        clock = [Cell("phase start", (1,), wide=True)]
        data = [Cell(s.name, s.shape) for s in equations.data]
        shapes = {"sample q": (robot.nq,), "sample v": (robot.nv,)}
        shapes |= {name: system.signals[name][0] for name in signals}
        outputs = [Output(n, s, per="record", buffer="records") for n, s in shapes.items()]
        outputs += [Output(f"final {c.name}", c.shape, c.wide) for c in (*state, *rests, *ticks)]
        self.interface = ProgramInterface(
            (*state, *rests, *ticks, *keys, *clock, *data), tuple(outputs),
            tuple(table_names(system)), ("count",), ("records",),
        )  # fmt: skip

    def __call__(
        self, *arguments: Array, tables: Mapping[str, Array], capacity: int, threads: int = 1
    ) -> list[Array]:
        """Perform all runs; see `ProgramKernel`."""
        cells = {c.name: np.array(a, float) for c, a in zip(self.interface.inputs, arguments,
                                                             strict=True)}  # fmt: skip
        runs = len(cells["q"])
        records = {
            o.name: np.empty((runs, capacity, *o.shape))
            for o in self.interface.outputs if o.per == "record"
        }  # fmt: skip
        row = 0
        for m in range(len(tables["start"])):
            start, h = float(tables["start"][m]), float(tables["step"][m])
            for i in range(len(self._equations.system.schedule)):
                if tables[f"due {i}"][m] > 0.0:
                    self._update(i, start, cells)
            count = int(tables["count"][m])
            for k in range(count):
                self._step(start + k * h, h, cells, threads)
            if tables["keep"][m] > 0.0:
                self._record(start + count * h, cells, records, row)
                row += 1
        finals = [cells[o.name[6:]] for o in self.interface.outputs if o.per == "run"]
        return [*records.values(), *finals]

    def _data(self, cells: Mapping[str, Array], i: int) -> list[Array]:
        return [cells[name][i] for name in self._equations.data_names]

    def _instant(self, t: float, cells: Mapping[str, Array], i: int) -> Instant:
        q, v, x, z = (cells[name][i] for name in ("q", "v", "x", "z"))
        return self._equations.instant(np.array([t]), q, v, x, z, self._data(cells, i))

    def _step(self, t: float, h: float, cells: dict[str, Array], threads: int) -> None:
        """Make one RK4 step of all runs."""
        q, v, x = cells["q"], cells["v"], cells["x"]
        ends = self._nudge * (abs(t) + h)
        change = [np.zeros_like(v), np.zeros_like(v), np.zeros_like(x)]
        rate = [np.zeros_like(part) for part in change]
        for i, c in enumerate(RK4.c):
            ahead = h * float(RK4.a[i, i - 1]) if i else 0.0
            u, dv, dx = (ahead * part for part in rate)
            now = t + c * h + (ends if c == 0.0 else -ends if c == 1.0 else 0.0)
            rate = self._rates(now, self._place(q, u), u, v + dv, x + dx, cells, threads)
            weight = h * float(RK4.b[i])
            change = [a + weight * b for a, b in zip(change, rate, strict=True)]
        u, dv, dx = change
        moved: Array = self._move(q, u)
        cells["q"], cells["rest q"] = total_and_rest(q, moved + cells["rest q"])
        cells["v"], cells["rest v"] = total_and_rest(v, dv + cells["rest v"])
        cells["x"], cells["rest x"] = total_and_rest(x, dx + cells["rest x"])

    def _rates(
        self, t: float, q: Array, u: Array, v: Array, x: Array, cells: Mapping[str, Array],
        threads: int,
    ) -> list[Array]:  # fmt: skip
        found: list[tuple[Array, Array | None, Array]] = []
        for i in range(len(q)):
            shift = cells["phase start"][i] if self._equations.own_clock else 0.0
            now = np.array([t])
            state = q[i], v[i], x[i], cells["z"][i]
            found.append(self._equations.loads(now, now - shift, *state, self._data(cells, i)))
        tau = np.stack([part[0] for part in found]) + self._losses(q, v, threads=threads)
        pushed = [part[1] for part in found if part[1] is not None]
        wrenches = [np.stack(pushed)] if pushed else []
        vdot: Array = self._dynamics(q, v, tau, *wrenches, threads=threads)
        return [self._log_rate(u, v), vdot, np.stack([part[2] for part in found])]

    def _update(self, i: int, t: float, cells: dict[str, Array]) -> None:
        """Perform a scheduled update of all runs."""
        system = self._equations.system
        update = system.schedule[i]
        seed = [int(s) for s in cells["seed"][0]] if len(cells["seed"]) else [0, 0]
        tick = cells[f"tick {i}"]
        z: list[Array] = []
        for k in range(len(cells["q"])):
            now = self._instant(t, cells, k)
            if update.kind == "release":
                z.append(now.released(update.names))
                continue
            noise = np.zeros(system.noise_size)
            for name in update.names:
                place = system.layouts[name].noise
                if place.stop > place.start:
                    key = seed[0] + (seed[1] << 32), int(cells["run"][k, 0])
                    drawn = int(tick[k, 0]), place.stop - place.start
                    noise[place] = normals(*key, stream_number(name), *drawn)
            z.append(now.ticked(update.names, noise))
        cells["z"] = np.stack(z) if z else cells["z"]
        cells[f"tick {i}"] = tick + 1.0

    def _record(
        self, t: float, cells: Mapping[str, Array], records: Mapping[str, Array], row: int
    ) -> None:
        records["sample q"][:, row], records["sample v"][:, row] = cells["q"], cells["v"]
        if not self._signals:
            return
        for k in range(len(cells["q"])):
            now = self._instant(t, cells, k)
            values = now.recorded()
            for name in self._signals:
                records[name][k, row] = values[name]
