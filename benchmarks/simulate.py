"""Benchmark of simulation against SciPy with Pinocchio and MuJoCo: one run, and large batches.

    python benchmarks/simulate.py [--runs 10000] [--duration 60] [--json FILE]
    python benchmarks/simulate.py --gpu [--json FILE]

One run: the motion of VT18, section 4, to rounding accuracy. Many runs: the free-floating servicer
with RK4 and 10 ms steps. With --gpu the batch runs on a GPU, against MuJoCo on that machine's
processor and MJX on its GPU. Rounds are interleaved, the minimum is reported, and the motions are
compared first. --json saves the results; with --gpu they go into the same file, under "gpu".
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from peer_libraries import MuJoCo, Pinocchio
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import remora as rm
from remora.algebra.array_ops import less, select, sin
from remora.cli import kernel_timing
from remora.errors import RemoraError

#: The actuation of VT18, section 4: joint, start, stop, s; torque 0.5 sin(t - start) N m.
PULSES = (("J1", 2.0, 5.0), ("J2", 10.0, 12.0), ("J3", 20.0, 22.0))
DURATION, RTOL, ATOL = 70.0, 2.22e-14, 1e-14
#: Fixed step sizes of one run and of many runs, s.
FINE, STEP = 1e-3, 1e-2
#: Standard deviation of the initial speeds of many runs (normal distribution), rad/s and m/s.
SPEED = 0.1
#: MuJoCo simulates one of this many runs; its time per step is used for all.
SLICE = 200
#: Number of steps of MJX; its time per step is used for all.
MJX_STEPS = 500
COMPARED = 50

NOTES = (
    "one run: wall time of the whole call, kernels in the cache, on one thread; Remora records"
    " every step with its torques, accelerations and work",
    "SciPy: solve_ivp(DOP853) over Pinocchio's aba (free flyer, its quaternion four plain numbers),"
    " restarted at the pulses' ends, as in Remora; which pulse acts is set beforehand, and only the"
    " states are kept",
    "MuJoCo, one run: mj_step in mujoco.rollout, its loop in C++, arrays given; the torque is that"
    " of the middle of each step, computed before the clock starts, and held over the step: that,"
    " not RK4, is why its state is off",
    "drift: the largest change of linear and angular momentum (about the inertial origin, where the"
    " robot starts), which begin at zero; all by the same function of Remora",
    "off by: the largest difference of the state at the end from that of dop853, rad, m and per s",
    "many runs: wall time of the whole call of rm.simulate_batch, start and end kept; preparation"
    " was done by an earlier call",
    f"MuJoCo, many runs: mujoco.rollout, RK4, the same model without contacts and constraints, on 1"
    f" of {SLICE} of the runs (at least 8 for each thread), its time per step taken for all; it"
    " writes every step's state",
    "per core: both with one thread",
    "MuJoCo has no float32 on the processor: the float32 rows compare with its float64",
)
GPU_NOTES = (
    "whole call: rm.simulate_batch(target='cuda') from arrays on the device to the results there,"
    " synchronized; the kernel is in memory",
    "steps alone: the same loaded kernel, launched again, synchronized",
    "MuJoCo: on the processor of the machine with the GPU, in the same run",
    f"MJX: jit of {MJX_STEPS} steps (lax.fori_loop) of vmap(mjx.step), RK4, float32, compiled"
    " ahead, its time per step taken for all; products in full precision",
)


def in_turns(
    cases: dict[str, Callable[[], Any]], rounds: int, enough: float = math.inf
) -> dict[str, float]:
    """Call all cases in interleaved rounds; return the shortest time of each, s.

    Args:
        cases: the callables, warmed up.
        rounds: number of rounds.
        enough: a case whose total time exceeds this, s, is not called a third time.
    """
    best, spent = dict.fromkeys(cases, math.inf), dict.fromkeys(cases, 0.0)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for k in range(rounds):
            for name, run in cases.items():
                if k >= 2 and spent[name] > enough:
                    continue
                start = time.perf_counter()
                run()
                took = time.perf_counter() - start
                best[name], spent[name] = min(best[name], took), spent[name] + took
                gc.collect()
    finally:
        if collecting:
            gc.enable()
    return best


def rounded(x: float, digits: int = 4) -> float:
    return float(f"{x:.{digits}g}")


def distance(robot: rm.Robot, a: tuple[Any, Any], b: tuple[Any, Any]) -> float:
    """Return the largest difference of two states, or of two batches of states."""
    (q, v), (other_q, other_v) = (tuple(np.asarray(x, float) for x in s) for s in (a, b))
    return max(
        float(np.abs(rm.difference(robot, q, other_q)).max()), float(np.abs(v - other_v).max())
    )


# One run -----------------------------------------------------------------------------------------


def torque_of(robot: rm.Robot, t: float) -> np.ndarray:
    """Return the joint torques at a time, `(nv,)`."""
    tau = np.zeros(robot.nv)
    for name, start, stop in PULSES:
        if start < t < stop:
            tau[robot.joints[name].v] = 0.5 * math.sin(t - start)
    return tau


def breaks() -> list[float]:
    return sorted({0.0, DURATION, *(t for _, *both in PULSES for t in both)})


class OneRun:
    """The same 70 s by several integrators; calls return times and states in Remora's layout."""

    def __init__(self) -> None:
        self.robot = rm.load("vt18_satellite")
        self.q, self.v = rm.neutral(self.robot), np.zeros(self.robot.nv)
        self.pulses = {
            name: rm.Pulse(a, b, lambda t, a=a: 0.5 * np.sin(t - a)) for name, a, b in PULSES
        }

    def remora(self, integrator: str, step: float | None = None) -> Any:
        return rm.simulate(
            self.robot, self.q, self.v, DURATION, torque=self.pulses,
            integrator=rm.Integrator(integrator, step, rtol=RTOL, atol=ATOL),
            record=rm.Record(progress=False),
        )  # fmt: skip

    def remora_march(self) -> Any:
        """A batch of one run."""

        def law(a: float, b: float) -> Callable[..., Any]:
            def torque(t: Any, q: Any, v: Any) -> Any:
                t = t.reshape(1)  # differences of 0-d arrays are scalars
                on = select(less(a, t), 1.0, 0.0) * select(less(t, b), 1.0, 0.0)
                return (on * 0.5 * sin(t - a)).reshape(())

            return torque

        return rm.simulate_batch(
            self.robot,
            self.q,
            self.v,
            DURATION,
            integrator=rm.Integrator(step=FINE, breaks=breaks()[1:-1]),
            torque={name: law(a, b) for name, a, b in PULSES},
            record=rm.Record(1.0, progress=False),
            target=rm.Target(threads=1),
        )

    def scipy(self) -> tuple[Callable[[], Any], Callable[[Any], tuple[Any, Any]]]:
        """Return the run, and what makes Remora's states of its result."""
        solve_ivp = importlib.import_module("scipy.integrate").solve_ivp
        peer = Pinocchio(self.robot, 1)
        model, data, aba, nq = peer.model, peer.data, peer.pin.aba, peer.layout.nq
        start = np.concatenate([peer.layout.q_to(self.q), peer.layout.v_to(self.q, self.v)])
        at = {name: peer.layout.tau_to(self.q, _one(self.robot, name)) for name, *_ in PULSES}
        rtol = max(RTOL, 100.0 * np.finfo(float).eps)  # SciPy's minimum, slightly above RTOL

        def rates(acting: list[tuple[np.ndarray, float]]) -> Callable[..., np.ndarray]:
            dy, nothing, sin = np.empty(start.size), np.zeros(model.nv), math.sin

            def f(t: float, y: np.ndarray) -> np.ndarray:
                tau = nothing
                for direction, since in acting:
                    tau = tau + (0.5 * sin(t - since)) * direction
                x, y_, z, w, vx, vy, vz, a, b, c = *y[3:7].tolist(), *y[nq : nq + 6].tolist()
                tx, ty, tz = 2 * (y_ * vz - z * vy), 2 * (z * vx - x * vz), 2 * (x * vy - y_ * vx)
                dy[:7] = (
                    vx + w * tx + y_ * tz - z * ty,
                    vy + w * ty + z * tx - x * tz,
                    vz + w * tz + x * ty - y_ * tx,
                    0.5 * (w * a + y_ * c - z * b),
                    0.5 * (w * b + z * a - x * c),
                    0.5 * (w * c + x * b - y_ * a),
                    -0.5 * (x * a + y_ * b + z * c),
                )
                dy[7:nq] = y[nq + 6 :]
                dy[nq:] = aba(model, data, y[:nq], y[nq:], tau)
                return dy.copy()

            return f

        def run() -> np.ndarray:
            y, states = start, [start[:, None]]
            for a, b in zip(breaks()[:-1], breaks()[1:], strict=True):
                acting = [(at[name], s) for name, s, e in PULSES if s <= a and b <= e]
                found = solve_ivp(rates(acting), (a, b), y, "DOP853", rtol=rtol, atol=ATOL)
                states.append(found.y[:, 1:])
                y = found.y[:, -1]
            return np.concatenate(states, axis=1).T

        def ours(y: np.ndarray) -> tuple[Any, Any]:
            q = peer.layout.q_from(y[:, :nq])
            return q, peer.layout.v_from(q, y[:, nq:])

        return run, ours

    def mujoco(self) -> tuple[Callable[[], Any], Callable[[Any], tuple[Any, Any]]]:
        """Return the run, and what makes Remora's states of its result."""
        steps = round(DURATION / FINE)
        middles = FINE * (np.arange(steps) + 0.5)
        forces = np.array([torque_of(self.robot, t) for t in middles])[None]
        runs = Rollout(self.robot, FINE, self.q[None], self.v[None], steps, 1, forces)
        return runs, lambda out: runs.states(out[0])


def _one(robot: rm.Robot, name: str) -> np.ndarray:
    """Return a torque of 1 N m at a joint."""
    tau = np.zeros(robot.nv)
    tau[robot.joints[name].v] = 1.0
    return tau


class Rollout:
    """MuJoCo's RK4 steps of many runs: its C++ loop, with preallocated arrays."""

    def __init__(
        self, robot: rm.Robot, step: float, q: np.ndarray, v: np.ndarray, steps: int, threads: int,
        forces: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.peer = peer = MuJoCo(robot, threads)
        peer.model.opt.timestep = step
        peer.model.opt.integrator = peer.mujoco.mjtIntegrator.mjINT_RK4
        lay, n = peer.layout, len(q)
        self.start = np.concatenate([np.zeros((n, 1)), lay.q_to(q), lay.v_to(q, v)], axis=1)
        self.out = np.zeros((n, steps, self.start.shape[1]))
        self.sensors = np.zeros((n, steps, 0))
        self.steps, self.forces = steps, forces
        self.spec = int(peer.mujoco.mjtState.mjSTATE_QFRC_APPLIED)
        self.pool = peer.rollout.Rollout(nthread=threads if threads > 1 else 0)
        self.data = peer.data[: max(1, threads)]

    def __call__(self) -> np.ndarray:
        self.pool.rollout(
            self.peer.model, self.data, self.start, self.forces, control_spec=self.spec,
            nstep=self.steps, state=self.out, sensordata=self.sensors,
        )  # fmt: skip
        return self.out

    def states(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Convert rows of MuJoCo's states to Remora's q and v."""
        lay = self.peer.layout
        q = lay.q_from(out[:, 1 : 1 + lay.nq])
        return q, lay.v_from(q, out[:, 1 + lay.nq :])


def momentum_drift(robot: rm.Robot, q: Any, v: Any) -> tuple[float, float]:
    """Return the largest change of linear and of angular momentum."""
    found = rm.momentum(robot, np.asarray(q), np.asarray(v))
    moved = found - found[0]
    lengths = (np.linalg.norm(moved[:, part], axis=-1) for part in (slice(0, 3), slice(3, 6)))
    linear, angular = (float(x.max()) for x in lengths)
    return linear, angular


def one_run(console: Console) -> list[dict[str, Any]]:
    """Time all integrators on the 70 s run."""
    task = OneRun()
    robot = task.robot
    cases: dict[str, Callable[[], Any]] = {
        "dop853": lambda: task.remora("dop853"),
        "dopri5": lambda: task.remora("dopri5"),
        "rk4": lambda: task.remora("rk4", step=FINE),
        "march": task.remora_march,
    }
    about = {
        "dop853": ("Remora", "simulate, dop853"),
        "dopri5": ("Remora", "simulate, dopri5"),
        "rk4": ("Remora", "simulate, rk4, 1 ms"),
        "march": ("Remora", "simulate_batch of one run, 1 ms"),
        "scipy": ("SciPy, Pinocchio", "solve_ivp DOP853, pin.aba"),
        "mujoco": ("MuJoCo", "mj_step RK4, 1 ms"),
    }
    back: dict[str, Callable[[Any], tuple[Any, Any]]] = {}
    for name in ("scipy", "mujoco"):
        try:
            cases[name], back[name] = getattr(task, name)()
        except ImportError as error:
            console.print(f"[yellow]not compared:[/] {name}: {escape(str(error))}")
    rows: dict[str, dict[str, Any]] = {}
    reference: tuple[Any, Any] | None = None
    for name, run in cases.items():  # also warms up
        with console.status(f"one run: {name}"):
            found = run()
        if name in back:
            q, v = back[name](found)
        else:
            q, v = np.asarray(found.q), np.asarray(found.v)
        steps = round(DURATION / FINE) if name == "march" else len(q) - 1
        if name == "mujoco":
            steps = len(q)
        linear, angular = momentum_drift(robot, q, v)
        reference = reference or (q[-1], v[-1])
        row: dict[str, Any] = {
            "library": about[name][0], "call": about[name][1], "steps": steps,
            "linear": rounded(linear, 2), "angular": rounded(angular, 2),
            "off": rounded(distance(robot, (q[-1], v[-1]), reference), 2) if rows else 0.0,
        }  # fmt: skip
        if name in ("dop853", "dopri5", "rk4"):
            kept = found.conservation()
            row["linear"] = rounded(kept.linear_momentum.absolute, 2)
            row["angular"] = rounded(kept.angular_momentum.absolute, 2)
            row["energy"] = rounded(kept.energy.absolute, 2)
            row["relative"] = {
                key: rounded(getattr(kept, key).relative, 2)
                for key in ("linear_momentum", "angular_momentum", "center_of_mass", "energy")
            }
        rows[name] = row
    with console.status("one run: measuring"):
        best = in_turns(cases, 12, enough=6.0)
    for name, seconds in best.items():
        rows[name] |= {"seconds": rounded(seconds), "real_time": rounded(DURATION / seconds, 3)}
    return list(rows.values())


# Many runs ---------------------------------------------------------------------------------------


def starts(robot: rm.Robot, runs: int) -> tuple[np.ndarray, np.ndarray]:
    q, v = rm.random_state(robot, 0, (runs,))
    return q, SPEED * v


def agreement(robot: rm.Robot, q: np.ndarray, v: np.ndarray, console: Console) -> dict[str, float]:
    """Compare with MuJoCo after one second; both have the truncation error of RK4."""

    def end(step: float) -> tuple[Any, Any]:
        quiet, steps = rm.Record(progress=False), rm.Integrator(step=step)
        found = rm.simulate_batch(robot, q, v, 1.0, integrator=steps, record=quiet)
        return found.q[..., -1, :], found.v[..., -1, :]

    here = end(STEP)
    error = 16.0 / 15.0 * distance(robot, here, end(STEP / 2))
    found = {"rk4_error": rounded(error, 2)}
    try:
        runs = Rollout(robot, STEP, q, v, round(1.0 / STEP), 1)
    except ImportError:
        return found
    off = distance(robot, here, runs.states(runs()[:, -1]))
    if not off <= 2.0 * error + 1e-11:
        raise SystemExit(f"MuJoCo's states are off by {off:.1e}, RK4 by {error:.1e}")
    console.print(f"after 1 s MuJoCo's states differ by {off:.1e}; RK4's error is {error:.1e}")
    return found | {"MuJoCo": rounded(off, 2)}


def mujoco_cases(
    robot: rm.Robot, runs: int, steps: int, threads: list[int]
) -> Iterator[tuple[dict[str, Any], Callable[[], Any]]]:
    """Yield MuJoCo on a subset of the runs: a description and the callable."""
    for count in threads:
        n = min(runs, max(runs // SLICE, 8 * count))
        n = max(1, n // count * count)
        call = Rollout(robot, STEP, *starts(robot, n), steps, count)
        about = {"library": "MuJoCo", "call": "rollout of mj_step, RK4", "threads": count}
        yield about | {"dtype": "float64", "runs": n, "steps": n * steps}, call


def timed(
    cases: list[tuple[dict[str, Any], Callable[[], Any]]], rounds: int, enough: float = math.inf
) -> list[dict[str, Any]]:
    """Return all cases with their times."""
    best = in_turns({str(k): run for k, (_, run) in enumerate(cases)}, rounds, enough)
    return [
        about
        | {
            "seconds": rounded(s),
            "us_per_step": rounded(1e6 * s / about["steps"]),
            "steps_per_second": rounded(about["steps"] / s),
        }
        for (about, _), s in zip(cases, best.values(), strict=True)
    ]


def remora_cases(
    robot: rm.Robot, runs: int, duration: float, threads: list[int], console: Console
) -> Iterator[tuple[dict[str, Any], Callable[[], Any]]]:
    """Yield rm.simulate_batch on the processor."""
    steps = math.ceil(duration / STEP - 1e-6)
    for dtype in ("float64", "float32"):
        q, v = (x.astype(dtype) for x in starts(robot, runs))
        for count in threads:

            def run(
                seconds: float = duration, q: Any = q, v: Any = v, count: int = count,
                dtype: str = dtype,
            ) -> Any:  # fmt: skip
                return rm.simulate_batch(
                    robot,
                    q,
                    v,
                    seconds,
                    integrator=rm.Integrator(step=STEP),
                    target=rm.Target(threads=count, dtype=dtype),
                    record=rm.Record(progress=False),
                )

            try:
                run(STEP)  # compiles, and starts threads
            except RemoraError as error:
                console.print(f"[red]not timed:[/] {dtype}: {escape(str(error))}")
                break
            about = {"library": "Remora", "call": "simulate_batch", "threads": count}
            yield about | {"dtype": dtype, "runs": runs, "steps": runs * steps}, run


_FRESH = """
import time
import numpy as np
import remora as rm
robot = rm.load("servicer")
q, v = rm.neutral(robot), np.zeros(robot.nv)
start = time.perf_counter()
rm.simulate_batch(robot, q, v, 0.0, integrator=rm.Integrator(step=0.01),
                  target=rm.Target(threads=1), record=rm.Record(progress=False))
print(time.perf_counter() - start)
"""


def before_first_step() -> dict[str, float]:
    """Return the time of a batch without steps in a new process, first and from the cache, s."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", _FRESH], capture_output=True, check=True, text=True,
                env={**os.environ, "REMORA_CACHE": folder},
            )  # fmt: skip
            times.append(float(done.stdout))
    return {"first_s": rounded(times[0], 3), "cached_s": rounded(min(times[1:]), 3)}


def many_runs(runs: int, duration: float, rounds: int, console: Console) -> dict[str, Any]:
    """Time large and small batches."""
    robot = rm.load("servicer")
    threads = sorted({1, os.cpu_count() or 1})
    steps = math.ceil(duration / STEP - 1e-6)
    agreed = agreement(robot, *starts(robot, COMPARED), console)
    data: dict[str, Any] = {
        "robot": robot.name, "nv": robot.nv, "runs": runs, "duration": duration, "step": STEP,
        "agreement": agreed, "set_up": before_first_step(), "rows": [], "small": [],
    }  # fmt: skip

    def gathered(n: int, counts: list[int]) -> list[tuple[dict[str, Any], Callable[[], Any]]]:
        cases = [*remora_cases(robot, n, duration, counts, console)]
        try:
            cases += mujoco_cases(robot, n, steps, counts)
        except ImportError as error:
            console.print(f"[yellow]not compared:[/] MuJoCo: {escape(str(error))}")
        return cases

    with console.status("many runs: measuring"):
        data["rows"] = timed(gathered(runs, threads), rounds)
    for n in (1, 8, 64):  # where the setup before the first step matters
        with console.status(f"{n} runs: measuring"):
            cases = [c for c in gathered(n, [1]) if c[0]["dtype"] == "float64"]
            data["small"] += timed(cases, 5)
    return data


# On a GPU ----------------------------------------------------------------------------------------


def gpu_cases(
    robot: rm.Robot, runs: int, duration: float, console: Console
) -> Iterator[tuple[dict[str, Any], Callable[[], Any]]]:
    """Yield the whole call and the kernel alone, in both precisions, after comparing results."""
    from remora.codegen.gpu.cuda_kernel import cupy_with_device

    cupy = cupy_with_device()
    steps = math.ceil(duration / STEP - 1e-6)
    q, v = starts(robot, runs)
    wanted = rm.simulate_batch(
        robot,
        q[:COMPARED],
        v[:COMPARED],
        1.0,
        integrator=rm.Integrator(step=STEP),
        record=rm.Record(progress=False),
    )
    for dtype in ("float64", "float32"):
        here = [cupy.asarray(x.astype(dtype)) for x in (q, v)]

        def whole(
            seconds: float = duration, here: Any = here, dtype: str = dtype, runs: int = runs
        ) -> Any:
            a, b = (x[:runs] for x in here)
            found = rm.simulate_batch(
                robot,
                a,
                b,
                seconds,
                integrator=rm.Integrator(step=STEP),
                target=rm.Target("cuda", dtype=dtype),
                record=rm.Record(progress=False),
            )
            cupy.cuda.get_current_stream().synchronize()
            return found

        about = {
            "library": "Remora", "dtype": dtype, "runs": runs, "steps": runs * steps,
            "threads": 0,
        }  # fmt: skip
        try:
            found = whole(1.0, runs=min(runs, COMPARED))
            ends = [cupy.asnumpy(x[:, -1]) for x in (found.q, found.v)]
            off = distance(robot, tuple(ends), (wanted.q[:, -1], wanted.v[:, -1]))
            console.print(f"[dim]{dtype}: after 1 s off by {off:.1e} from the processor's[/]")
            if not off <= {"float64": 1e-10, "float32": 1e-3}[dtype]:
                console.print(f"[red]not timed:[/] {dtype} is off by {off:.1e}")
                continue
            about["off"] = rounded(off, 2)
            yield about | {"call": "simulate_batch, whole call"}, whole
        except Exception as error:  # CuPy's errors, too: the other cases are still timed
            console.print(f"[red]not timed:[/] simulate_batch, {dtype}: {escape(str(error)[:300])}")
        try:
            alone = _kernel_alone(robot, dtype, here, steps)
            alone()
            yield about | {"call": "steps alone"}, alone
        except Exception as error:
            console.print(f"[red]not timed:[/] kernel alone, {dtype}: {escape(str(error)[:300])}")


def _kernel_alone(robot: rm.Robot, dtype: str, here: list[Any], steps: int) -> Callable[[], Any]:
    """Return a launch of the loaded kernel of rm.simulate_batch."""
    from remora.simulation.batch.batch_loop import COUNT, START, Forces, batch_program, law
    from remora.simulation.batch.batch_loop import STEP as STEP_SIZE

    from remora.codegen.gpu.cuda_kernel import cupy_with_device
    from remora.codegen.integration.program_ptx import CudaProgram
    from remora.simulation.engine.simulate import model_of
    from remora.simulation.integrators.tableaus import RK4

    cupy = cupy_with_device()
    model = model_of(robot, rm.Physics())
    forces = Forces(law(None, (robot.nv,), "torque"), None, ())
    made = batch_program(robot, RK4, forces, (), model.formulation, model.passive, 0.0)
    kernel = CudaProgram(made, f"simulate_{robot.name}", dtype)
    kernel.loaded()
    tables = {START: [0.0], STEP_SIZE: [STEP], COUNT: [steps]}

    def run() -> Any:
        found = kernel(*here, tables=tables)
        cupy.cuda.get_current_stream().synchronize()
        return found

    return run


def mjx_cases(
    robot: rm.Robot, runs: int, console: Console, platform: str = "cuda"
) -> Iterator[tuple[dict[str, Any], Callable[[], Any]]]:
    """Yield MJX's steps of a batch on the GPU in float32, after comparing results."""
    gpu_peers = importlib.import_module("gpu_peers")
    mujoco = importlib.import_module("mujoco")
    from peer_libraries import _mjcf

    peer = gpu_peers.Mjx(robot, "float32", platform)
    jax, mjx = peer.jax, peer.mjx
    model = mujoco.MjModel.from_xml_string(_mjcf(robot))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
    q, v = starts(robot, runs)
    with peer.settings():
        put = mjx.put_model(model, device=peer.device, impl="jax")
        blank = mjx.make_data(model, device=peer.device, impl="jax")

        def one(q: Any, v: Any, steps: Any) -> tuple[Any, Any]:
            data = blank.replace(qpos=q, qvel=v)
            data = jax.lax.fori_loop(0, steps, lambda _, d: mjx.step(put, d), data)
            return data.qpos, data.qvel

        start = time.perf_counter()
        own = [peer.put(peer.layout.q_to(q)), peer.put(peer.layout.v_to(q, v))]
        steps = [jax.device_put(np.int32(k), peer.device) for k in (round(1.0 / STEP), MJX_STEPS)]
        run = jax.jit(jax.vmap(one, (0, 0, None))).lower(*own, steps[0]).compile()
        ends = [np.asarray(x[:COMPARED], float) for x in run(*own, steps[0])]
        end_q = peer.layout.q_from(ends[0])
        end = (end_q, peer.layout.v_from(end_q, ends[1]))
        wanted = rm.simulate_batch(
            robot,
            q[:COMPARED],
            v[:COMPARED],
            1.0,
            integrator=rm.Integrator(step=STEP),
            record=rm.Record(progress=False),
        )
        off = distance(robot, end, (wanted.q[:, -1], wanted.v[:, -1]))
        spent = time.perf_counter() - start
        console.print(f"[dim]MJX: ready after {spent:.0f} s; after 1 s off by {off:.1e}[/]")
        if not off <= 1e-2:
            console.print(f"[red]not timed:[/] MJX is off by {off:.1e}")
            return
    about = {"library": "MJX", "call": "mjx.step, RK4", "dtype": "float32", "threads": 0}
    about |= {"runs": runs, "steps": runs * MJX_STEPS, "off": rounded(off, 2)}
    yield about, lambda: jax.block_until_ready(run(*own, steps[1]))


def on_gpu(
    sizes: list[int], duration: float, rounds: int, console: Console, keep: Callable[[Any], None]
) -> dict[str, Any]:
    """Time the batch and the peers on the GPU; `keep` receives the results so far."""
    from remora.cli import bench_gpu

    robot = rm.load("servicer")
    about = kernel_timing.machine()
    about["gpu"] = bench_gpu.device_name()
    for name in ("cupy-cuda13x", "cupy-cuda12x", "jax", "mujoco-mjx"):
        if kernel_timing.installed(name):
            about["versions"][name] = kernel_timing.installed(name)
    console.print(f"{about['gpu']}; {escape(kernel_timing.described(about))}")
    steps = math.ceil(duration / STEP - 1e-6)
    data: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]), "machine": about, "duration": duration,
        "step": STEP, "notes": list(GPU_NOTES), "rows": [],
    }  # fmt: skip
    for k, runs in enumerate(sizes):
        data["rows"] += timed([*gpu_cases(robot, runs, duration, console)], rounds, enough=20.0)
        keep(data)
        if k == 0:
            try:
                threads = sorted({1, os.cpu_count() or 1})
                data["rows"] += timed([*mujoco_cases(robot, runs, steps, threads)], rounds)
            except ImportError as error:
                console.print(f"[yellow]not compared:[/] MuJoCo: {escape(str(error))}")
        try:
            data["rows"] += timed([*mjx_cases(robot, runs, console)], rounds, enough=20.0)
        except Exception as error:  # any error of JAX: our results are kept
            console.print(f"[yellow]not compared:[/] MJX, {runs} runs: {escape(str(error)[:300])}")
        keep(data)
    return data


# Printing ----------------------------------------------------------------------------------------


def printed(console: Console, title: str, header: list[str], rows: list[list[str]]) -> None:
    table = Table(
        title=f"\n{title}", title_justify="left", box=None, pad_edge=False, header_style="bold"
    )
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k < 2 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_one(rows: list[dict[str, Any]], console: Console) -> None:
    header = ["library", "call", "s", "x real time", "steps", "µs/step", "drift P", "L", "off by"]
    cells = [
        [
            r["library"], r["call"], f"{r['seconds']:.3f}", f"{r['real_time']:.0f}",
            f"{r['steps']:,}", f"{1e6 * r['seconds'] / r['steps']:.1f}", f"{r['linear']:.0e}",
            f"{r['angular']:.0e}", f"{r['off']:.0e}" if r["off"] else "-",
        ]
        for r in rows
    ]  # fmt: skip
    printed(console, "VT18, section 4: 70 s, one run", header, cells)


def print_many(title: str, rows: list[dict[str, Any]], console: Console) -> None:
    header = ["library", "call", "numbers", "runs", "threads", "s", "µs/step", "steps/s"]
    cells = [
        [
            r["library"], r["call"], r["dtype"], f"{r['runs']:,}", str(r["threads"] or "GPU"),
            f"{r['seconds']:.4g}", f"{r['us_per_step']:.4g}", f"{r['steps_per_second']:.3g}",
        ]
        for r in rows
    ]  # fmt: skip
    printed(console, title, header, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=10_000, help="in the batch")
    parser.add_argument("--duration", type=float, default=60.0, help="of each of them, s")
    parser.add_argument("--rounds", type=int, default=3, help="of all cases of the batch")
    parser.add_argument("--only", choices=("one", "batch"), help="this part; keep the other's file")
    parser.add_argument("--gpu", action="store_true", help="the batch on a GPU, nothing else")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    console = Console(width=120, highlight=False)
    data: dict[str, Any] = {}
    if options.json and options.json.exists():
        data = json.loads(options.json.read_text(encoding="utf-8"))

    def save() -> None:
        if options.json:
            options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    def keep(found: Any) -> None:
        data["gpu"] = found
        save()

    if options.gpu:
        sizes = sorted({options.runs, 10 * options.runs})
        keep(on_gpu(sizes, options.duration, options.rounds, console, keep))
        title = f"servicer, {options.duration:g} s in steps of 10 ms"
        print_many(title, data["gpu"]["rows"], console)
        for note in GPU_NOTES:
            console.print(f"- {note}")
        return
    about = kernel_timing.machine()
    if kernel_timing.installed("scipy"):
        about["versions"]["scipy"] = kernel_timing.installed("scipy")
    console.print(kernel_timing.described(about))
    data |= {"machine": about, "notes": list(NOTES)}
    data["command"] = data["command"] if isinstance(data.get("command"), dict) else {}
    made_by = shlex.join(["python", *sys.argv])
    data["load"] = data.get("load", {})

    def load(part: str) -> None:
        """Record the load of the machine before and after a part."""
        data["load"].setdefault(part, []).append(rounded(os.getloadavg()[0], 3))

    if options.only != "batch":
        data["load"].pop("one", None)
        load("one")
        data["one"], data["command"]["one"] = one_run(console), made_by
        load("one")
        save()
        print_one(data["one"], console)
    if options.only != "one":
        data["load"].pop("batch", None)
        load("batch")
        data["batch"] = many_runs(options.runs, options.duration, options.rounds, console)
        data["command"]["batch"] = made_by
        load("batch")
        save()
        title = f"servicer, 13 degrees of freedom: {options.duration:g} s in steps of 10 ms, RK4"
        print_many(title, data["batch"]["rows"], console)
        print_many("few runs, one thread", data["batch"]["small"], console)
        ready = data["batch"]["set_up"]
        console.print(
            f"before the first step: {ready['first_s']} s the first time, {ready['cached_s']} s "
            "from the cache"
        )
    for note in NOTES:
        console.print(f"- {note}")


if __name__ == "__main__":
    main()
