"""Benchmark of closed loops: the cost of components in batches, and adaptive batches.

    python benchmarks/closed_loop.py [--gpu] [--json FILE]

The bundled servicer with joint control, attitude control and a rate gyro at 50 Hz, with noise and a
delay of one sample, beside the same robot without components: RK4 steps of 10 ms. Time per step is
the difference of a long and a short batch, so that fixed costs of a call do not count; they are
reported separately. Adaptive batches (dopri5) are compared with the same runs one at a time. With
--gpu, 100,000 runs on the GPU at hand. Results must agree before a clock starts.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import remora as rm
from remora.algebra.array_ops import Array, concatenate

STEP = 0.01


class Gyro(rm.Component):
    """Rates of the base with noise."""

    sigma: float

    def interface(self, robot: rm.Robot) -> rm.Interface:
        return rm.Interface(outputs={"rate": rm.Signal(3, "rad/s")}, noise={"n": 3})

    def outputs(self, at: rm.Context) -> Mapping[str, Array]:
        return {"rate": at.v[..., :3] + self.sigma * at.noise["n"]}


class Attitude(rm.Component):
    """PD control of the attitude of the base."""

    kp: float
    kd: float

    def interface(self, robot: rm.Robot) -> rm.Interface:
        signal = {"torque": rm.Signal(3, "N m")}
        return rm.Interface(inputs={"rate": rm.Signal(3, "rad/s")}, outputs=signal)

    def outputs(self, at: rm.Context) -> Mapping[str, Array]:
        error = 2.0 * at.q[..., :1] * at.q[..., 1:4]
        return {"torque": -self.kp * error - self.kd * at.inputs["rate"]}

    def act(self, at: rm.Context) -> rm.JointForce:
        return rm.JointForce("base", concatenate([self.outputs(at)["torque"], np.zeros(3)]))


class Joints(rm.Component):
    """PD control of the joints."""

    kp: Array
    kd: Array

    def act(self, at: rm.Context) -> rm.GeneralizedForce:
        own = -self.kp * at.q[..., 8:] - self.kd * at.v[..., 6:]
        return rm.GeneralizedForce(concatenate([np.zeros(6), own]))


def systems() -> dict[str, rm.System]:
    robot = rm.load("servicer")
    H = rm.mass_matrix(robot, rm.neutral(robot))
    felt = 1.0 / np.diag(np.linalg.inv(H))[6:]
    loop = [
        Gyro(1e-4, sample_time=0.02),
        Attitude(50.0, 200.0, sample_time=0.02, delay=0.02),
        Joints(1.2 * felt, 1.2 * felt, sample_time=0.02, delay=0.02),
    ]
    return {"open": rm.System(robot), "closed": rm.System(robot, loop)}


def states(robot: rm.Robot, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    q = np.tile(rm.neutral(robot), (n, 1))
    q[:, 8:] = rng.uniform(-1.0, 1.0, (n, robot.nq - 8))
    return q, 0.01 * rng.normal(size=(n, robot.nv))


def seconds(call: Callable[[float], Any], short: float, long: float, rounds: int) -> Array:
    """Return the least times of a short and a long batch, s."""
    call(short)
    found = np.full(2, np.inf)
    for _ in range(rounds):
        for k, duration in enumerate((short, long)):
            start = time.perf_counter()
            call(duration)
            found[k] = min(found[k], time.perf_counter() - start)
    return found


def lockstep(target: str, dtype: str, runs: int, rounds: int) -> dict[str, Any]:
    """Return nanoseconds per step of open and closed loop, and their ratio."""
    made = systems()
    q, v = states(made["open"].robot, runs)
    on = rm.Target(target, dtype, threads=0 if target == "cuda" else 1)
    steps_of, nothing = rm.Integrator(step=STEP), rm.Record(signals=[])
    if target == "cuda":
        import cupy

        arrays = cupy.asarray(q, dtype), cupy.asarray(v, dtype)
        wait: Callable[[], Any] = cupy.cuda.Device().synchronize
    else:
        arrays = (q, v)
        wait = lambda: None  # noqa: E731
    short, long = (10.0, 100.0) if target == "cuda" else (1.0, 21.0)
    row: dict[str, Any] = {"target": target, "dtype": dtype, "runs": runs}
    for name, system in made.items():

        def call(duration: float, system: rm.System = system) -> None:
            rm.simulate_batch(
                system, *arrays, duration, integrator=steps_of, record=nothing, target=on
            )
            wait()

        times = seconds(call, short, long, rounds)
        steps = runs * (long - short) / STEP
        row[f"{name} ns per step"] = 1e9 * (times[1] - times[0]) / steps
        row[f"{name} ms per call"] = 1e3 * (
            times[0] - (times[1] - times[0]) * short / (long - short)
        )
        row[f"{name} steps per s"] = steps / (times[1] - times[0])
    row["closed / open"] = row["closed ns per step"] / row["open ns per step"]
    return row


def adaptive(runs: int, singles: int, rounds: int) -> dict[str, Any]:
    """Return the time of a batch of dopri5 runs beside that of single runs."""
    robot = rm.load("servicer")
    q, v = states(robot, runs)
    dopri5 = rm.Integrator("dopri5", rtol=1e-9, atol=1e-11)
    ignore = rm.Physics(limits="ignore")
    exact = rm.simulate(
        robot,
        q[0],
        v[0],
        20.0,
        integrator=rm.Integrator(rtol=1e-13, atol=1e-15),
        physics=rm.Physics(limits="ignore"),
    )

    def batch() -> Any:
        return rm.simulate_batch(robot, q, v, 20.0, integrator=dopri5, target=rm.Target(threads=1))

    def single() -> Any:
        return [
            rm.simulate(robot, q[k], v[k], 20.0, integrator=dopri5, physics=ignore, record=20.0)
            for k in range(singles)
        ]

    found: dict[str, Any] = {"runs": runs, "rtol": 1e-9}
    times = {"batch": np.inf, "single": np.inf}
    calls: dict[str, Callable[[], Any]] = {"batch": batch, "single": single}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            start = time.process_time()  # both on one thread
            result = call()
            times[name] = min(times[name], time.process_time() - start)
            last = result.v[0, -1] if name == "batch" else result[0].v[-1]
            found[f"{name} error"] = float(np.abs(last - exact.v[-1]).max())
    found["batch ms per run"] = 1e3 * times["batch"] / runs
    found["single ms per run"] = 1e3 * times["single"] / singles
    found["single / batch"] = found["single ms per run"] / found["batch ms per run"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="measure on the GPU at hand, too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = [lockstep("cpu", dtype, 256, given.rounds) for dtype in ("float64", "float32")]
    found: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "loops": rows}
    found["adaptive"] = adaptive(1000, 50, given.rounds)
    if given.gpu:
        rows += [lockstep("cuda", dtype, 100_000, 3) for dtype in ("float64", "float32")]
    for row in (*rows, found["adaptive"]):
        shown = (f"{k}: {x:.4g}" if isinstance(x, float) else f"{k}: {x}" for k, x in row.items())
        print(", ".join(shown))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
