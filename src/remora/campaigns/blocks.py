"""Blocks: consecutive runs of a study, simulated in one batch."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.campaigns import targets
from remora.campaigns.study import Study
from remora.errors import SimulationError
from remora.simulation.batch.batch import simulate_batch
from remora.simulation.batch.result import OUTCOMES
from remora.simulation.engine.simulate import simulate
from remora.simulation.recording.recording import Recording

#: Memory that the samples of a block may take, bytes.
MEMORY = 256 << 20
#: Smallest and largest number of runs of a block.
SMALLEST, LARGEST = 64, 16_384
#: Reasons why a run did not succeed; the index is stored.
REASONS = (*dict.fromkeys(OUTCOMES), "impossible")


class Block(NamedTuple):
    """The results of consecutive runs.

    Attributes:
        start: index of the first run.
        columns: numbers by name, `(n,)`: dispersions, outputs, criteria (0 or 1), `ok`, `outcome`
            (index in REASONS), `end`, `success`.
        bands: numbers at all samples by name, `(n, samples)`.
    """

    start: int
    columns: dict[str, Array]
    bands: dict[str, Array]


def block_size(study: Study, wanted: int | None = None) -> int:
    """Return the number of runs of a block, such that its samples fit into memory."""
    if wanted is not None:
        return wanted
    robot = study.system.robot
    each = robot.nq + robot.nv + sum(math.prod(s) for s, _ in study.system.signals.values())
    each *= 8 * len(study.options["sample"]) * 4  # samples, their masks, and what is made of them
    size = 2 ** int(math.log2(max(SMALLEST, min(LARGEST, MEMORY // max(each, 1)))))
    return max(1, min(size, study.runs))


def run_block(study: Study, start: int, stop: int, threads: int = 1, target: str = "cpu") -> Block:
    """Simulate the runs `start` to `stop - 1` and return what the study asks of them."""
    values, inputs = study.inputs(start, stop)
    needed = {q.told.signal for q in (*(o.quantity for o in study.outputs.values()),
                                      *study.bands.values())}  # fmt: skip
    batch = simulate_batch(
        study.system, inputs.q, inputs.v, phases=study.scenario.phases,
        parameters=inputs.parameters or None, signals=[name for name in needed if name],
        seed=study.seed, run=np.arange(start, stop), failures="keep", progress=False,
        threads=threads, target=target, **study.options,
    )  # fmt: skip
    if batch.status != "complete":
        raise KeyboardInterrupt
    outputs = {name: own.of(batch) for name, own in study.outputs.items()}
    holds = {name: own.holds(outputs, batch) for name, own in study.success.items()}
    success = np.logical_and.reduce([batch.ok, *holds.values()])
    codes = np.array([REASONS.index(str(x)) for x in batch.outcome], float)
    impossible = ~batch.ok & ~np.isfinite(batch.q[:, 0]).all(axis=-1)
    columns = {
        **values,
        **outputs,
        **{name: x.astype(float) for name, x in holds.items()},
        "ok": batch.ok.astype(float),
        "outcome": np.where(impossible, float(len(REASONS) - 1), codes),
        "end": np.asarray(batch.end, float),
        "success": success.astype(float),
    }
    return Block(start, columns, {name: own.of(batch) for name, own in study.bands.items()})


def replay(study: Study, run: int, sample: float | None = None) -> Recording:
    """Simulate one run of a study and return it as an ordinary recording.

    Args:
        study: the study.
        run: index of the run.
        sample: s between samples; default: those of the study, at which steps end as in the study.

    Raises:
        SimulationError: if the run cannot be finished, as in the study; it holds the recording.
    """
    _, inputs = study.inputs(run, run + 1)
    system, q, v = targets.single(study.system, inputs)
    options = {k: x for k, x in study.scenario.options.items() if k not in ("seed", "run")}
    options |= {"step": study.options["step"], "integrator": study.options["integrator"]}
    options |= {"limits": "ignore", "sample": study.options["sample"], "step_to_samples": True}
    if sample is not None:
        options |= {"sample": sample, "step_to_samples": False}
    try:
        return simulate(
            system, q, v, phases=study.scenario.phases, seed=study.seed, run=run,
            note=f"run {run} of study {study.name!r}", progress=False, **options,
        )  # fmt: skip
    except SimulationError as error:
        raise SimulationError(f"run {run}: {error}", error.time, error.recording) from None
