"""Blocks: consecutive runs of a study, simulated in one batch."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.campaigns import targets
from remora.campaigns.outputs import BlockSamples
from remora.campaigns.study import Study
from remora.codegen.gpu import cuda_kernel
from remora.dynamics.kernels.size_policy import fits_straight_line
from remora.errors import RemoraError, SimulationError, SimulationWarning, UnknownName
from remora.simulation.batch.batch import simulate_batch
from remora.simulation.batch.result import OUTCOMES
from remora.simulation.engine.simulate import simulate
from remora.simulation.inputs.run_settings import Record, Runs, Target
from remora.simulation.recording.recording import Recording

#: Memory that the samples of a block may take, bytes.
MEMORY = 320 << 20
#: Smallest and largest number of runs of a block.
SMALLEST_BLOCK, LARGEST_BLOCK = 64, 16_384
#: Blocks that each worker gets at least, unless they had fewer runs than SHORTEST.
SHARE, SHORTEST = 5, 512
#: Reasons why a run did not succeed; the index is stored.
REASONS = (*(o for o in dict.fromkeys(OUTCOMES) if o != "interrupted"), "impossible")
#: Where blocks can be computed.
CHOICES = ("auto", "cpu", "cuda")


class Block(NamedTuple):
    """The results of consecutive runs.

    Attributes:
        start: index of the first run.
        columns: numbers by name, `(n,)`: dispersions, outputs, criteria (0 or 1), `ok`, `outcome`
            (index in REASONS), `end`, `success`.
        bands: numbers at all samples by name, `(n, samples)`.
        processor: `cpu`, or the name of the GPU that computed them: its bits differ.
    """

    start: int
    columns: dict[str, Array]
    bands: dict[str, Array]
    processor: str = "cpu"


def block_size(study: Study, wanted: int | None = None, workers: int = 1) -> int:
    """Return the number of runs of a block.

    Its samples fit into memory, and each worker gets several blocks, so that all end about at the
    same time.

    Args:
        study: the study.
        wanted: the number, if it is given.
        workers: number of workers.
    """
    if wanted is not None:
        return wanted
    share = max(SHORTEST, study.runs // (SHARE * workers)) if workers > 1 else study.runs
    robot, signals = study.system.robot, study.system.signals
    each = robot.nq + robot.nv + sum(math.prod(signals[name][0]) for name in _needed(study))
    each *= 8 * len(study.times) * 4  # samples, their masks, and what is made of them
    size = 2 ** int(
        math.log2(max(SMALLEST_BLOCK, min(LARGEST_BLOCK, MEMORY // max(each, 1), share)))
    )
    return max(1, min(size, study.runs))


def _needed(study: Study) -> list[str]:
    """Return the names of the signals that outputs and bands read."""
    read = (*(o.quantity for o in study.outputs.values()), *study.bands.values())
    return [name for name in dict.fromkeys(q.settings.signal for q in read) if name]


def target_here(study: Study, target: str) -> str:
    """Return `cuda` or `cpu`: where this process computes.

    Args:
        study: the study.
        target: `cpu`, `cuda`, or `auto`: the GPU of this machine if it has one and Remora finds it
            through CuPy.

    Raises:
        RemoraError: if `cuda` is asked for and there is no GPU.
    """
    if target not in CHOICES:
        raise UnknownName("target", target, CHOICES)
    if target == "auto":
        return "cuda" if fits_straight_line(study.system.robot) and _has_gpu() else "cpu"
    if target == "cuda":
        cuda_kernel.cupy_with_device()
    return target


@functools.cache
def _has_gpu() -> bool:
    try:
        cuda_kernel.cupy_with_device()
    except RemoraError:
        return False
    return True


def run_block(study: Study, start: int, stop: int, threads: int = 1, target: str = "cpu") -> Block:
    """Simulate the runs `start` to `stop - 1` and return their outputs and bands.

    Args:
        study: the study.
        start: first run.
        stop: last run, exclusive.
        threads: CPU threads; 0: one per core.
        target: see `target_here`.
    """
    values, inputs = study.inputs(start, stop)
    where, processor = target_here(study, target), "cpu"
    q, v, parameters = inputs.q, inputs.v, inputs.parameters
    if where == "cuda":
        cupy: Any = cuda_kernel.cupy_with_device()
        dtype = study.dtype
        q, v = cupy.asarray(q, dtype), cupy.asarray(v, dtype)
        parameters = {name: cupy.asarray(x, dtype) for name, x in parameters.items()}
        device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        processor = device["name"].decode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*joint .* starts at", SimulationWarning)  # `campaign`
        batch = simulate_batch(
            study.system, q, v, study.scenario.phases, integrator=study.integrator,
            physics=study.physics,
            record=Record(
                study.times, progress=False, signals=_needed(study), max_events=0, failures="keep"
            ),
            runs=Runs(parameters=parameters or None, seed=study.seed, index=np.arange(start, stop)),
            target=Target(where, study.dtype, threads),
        )  # fmt: skip
    if batch.status != "complete":
        raise KeyboardInterrupt
    found = BlockSamples(batch.on_host(inputs.parameters), threads)
    outputs = {name: own.of(found) for name, own in study.outputs.items()}
    holds = {name: own.holds(outputs, found) for name, own in study.success.items()}
    success = np.logical_and.reduce([batch.ok, *holds.values()])
    codes = np.array([REASONS.index(str(x)) for x in batch.outcome], float)
    impossible = ~batch.ok & ~np.isfinite(found.batch.q[:, 0]).all(axis=-1)
    columns = {
        **values,
        **outputs,
        **{name: x.astype(float) for name, x in holds.items()},
        "ok": batch.ok.astype(float),
        "outcome": np.where(impossible, float(len(REASONS) - 1), codes),
        "end": np.asarray(batch.end, float),
        "success": success.astype(float),
    }
    bands = {name: own.of(found) for name, own in study.bands.items()}
    return Block(start, columns, bands, processor)


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
    steps = replace(study.integrator, step_to_samples=sample is None)
    times = study.times if sample is None else sample
    try:
        return simulate(
            system, q, v, study.scenario.phases, integrator=steps, physics=study.physics,
            record=Record(times, note=f"run {run} of study {study.name!r}", progress=False),
            seed=(study.seed, run),
        )  # fmt: skip
    except SimulationError as error:
        raise SimulationError(f"run {run}: {error}", error.time, error.recording) from None
