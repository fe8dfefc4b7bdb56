"""Benchmark of batches with constraints: a closed chain beside its tree, and dispersed captures.

    python benchmarks/constraint_batches.py [--gpu] [--runs N] [--json FILE]

A free-floating four-bar linkage, closed and open: RK4 steps of 10 ms. Time per step is the
difference of a long and a short batch, so that fixed costs of a call do not count. Captures: the
whole call, with its switches. With --gpu, also on the GPU at hand, where results must agree with
those of the processor to 1e-9.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import remora as rm

STEP = 0.01


def linkage() -> tuple[rm.Robot, np.ndarray, np.ndarray]:
    """Return a closed chain of three links on a free base, and a consistent state."""
    make = rm.Builder("linkage").body("base", mass=20.0, inertia=(4, 5, 6))
    for k, last in enumerate(("base", "link0", "link1")):
        make.body(f"link{k}", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.25))
        make.joint(f"j{k}", "revolute", last, f"link{k}", xyz=(1.0 if k else 0.7, 0, 0))
    make.constraint(
        "pin", "revolute", "base", "link2", parent_xyz=(-0.5, 0, 0), child_xyz=(1, 0, 0)
    )
    robot = make.build()
    q = rm.neutral(robot)
    q[8:] = 1.7, 1.5, 1.5
    return robot, *rm.close_loops(robot, q, [0.1, 0.05, -0.1, 0, 0, 0, 0.3, 0, 0])


def pair() -> tuple[rm.Robot, np.ndarray, list[rm.Phase]]:
    """Return two free bodies, where they begin, and the phases of a capture."""
    chaser = rm.Builder("chaser").body("bus", mass=400, inertia=(80, 90, 110))
    chaser.joint("base", "free", None, "bus").frame("grapple", "bus", xyz=(1.2, 0, 0))
    target = rm.Builder("target").body("bus", mass=150, inertia=(30, 25, 20))
    target.joint("base", "free", None, "bus").frame("fixture", "bus", xyz=(-0.6, 0, 0))
    both = rm.combine({"chaser": chaser.build(), "target": target.build()})
    ends = "chaser/grapple", "target/fixture"
    both = rm.loops.add_constraint(both, "grasp", "fixed", *ends, active=False)
    reach = rm.capture_events(both, *ends, distance=0.05, angle=0.5, speed=0.2)
    q = rm.neutral(both)
    q[8:] = rm.algebra.pose.from_translation(np.array([2.1, 0, 0]))
    stack = rm.Phase(10.0, activate="grasp", latch=True, after_event=True)
    return both, q, [rm.Phase(20.0, events=reach), stack]


def seconds(call: Any) -> tuple[Any, float]:
    """Return what a call returns, and the best time of three."""
    times, found = list[float](), None
    for _ in range(3):
        begun = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - begun)
    return found, min(times)


def measured(target: str, runs: int) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Return the times on a target, and numbers to compare."""
    xp: Any = np
    if target == "cuda":
        import cupy as xp
    on = rm.Target(target, threads=1 if target == "cpu" else 0)
    fixed = rm.Integrator(step=STEP)
    times: dict[str, float] = {}
    numbers: dict[str, np.ndarray] = {}
    robot, q, v = linkage()
    for name, own in (("closed", robot), ("open", robot.with_active(off=["pin"]))):
        start = xp.asarray(np.tile(q, (runs, 1))), xp.asarray(np.tile(v, (runs, 1)))

        def run(steps: int, own: rm.Robot = own, start: Any = start) -> Any:
            return rm.simulate_batch(own, *start, steps * STEP, integrator=fixed, target=on)

        run(2)  # compiles
        short, long = seconds(lambda run=run: run(20))[1], seconds(lambda run=run: run(120))
        times[f"{name}, ns per step"] = 1e9 * (long[1] - short) / (100 * runs)
        numbers[name] = np.array(long[0].q[:1, -1].tolist())
    both, q, phases = pair()
    v = np.tile(np.r_[np.zeros(6), 0.03, -0.02, 0.05, -0.1, 0.03, 0.008], (runs, 1))
    v[:, 9:] += np.random.default_rng(0).normal(0.0, 0.008, (runs, 3))
    start = xp.asarray(np.tile(q, (runs, 1))), xp.asarray(v)
    batch, took = seconds(
        lambda: rm.simulate_batch(both, *start, phases, integrator=fixed, target=on)
    )
    times["capture, ms per run"] = 1e3 * took / runs
    times["captured"] = float(np.isfinite(batch.switches[0].t).mean())
    numbers["impulse"] = batch.switches[0].impulses["grasp"]
    return times, numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results, first = {}, None
    for target in ("cpu", *(["cuda"] if given.gpu else [])):
        results[target], numbers = measured(target, given.runs)
        first = first or numbers
        for name, x in numbers.items():
            off = float(np.nanmax(np.abs(x - first[name]), initial=0.0))
            assert off < 1e-9, f"{name} on {target} differs by {off}"
        for name, value in results[target].items():
            print(f"{target:5} {name:22} {value:10.4g}")
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
