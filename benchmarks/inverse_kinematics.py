"""Benchmark of inverse kinematics against pink and mink, and of reaches with a floating base.

    python benchmarks/inverse_kinematics.py [--targets N] [--floating N] [--seed N] [--json FILE]

Targets are the tool's poses at random configurations within the joints' ranges, so each of them can
be reached. The servicer's arm starts from one posture; a target counts as reached within 1e-4 m and
1e-3 rad, with the joints in their ranges. Both libraries may start again from the same random
configurations; the first row of each allows a single start. pink and mink solve
their quadratic programs with DAQP and take whole steps (gain 1, dt 1 s, no speed limit), with two
values of their damping. Their time has no loading, Remora's no compilation. A library that is not
installed (`pip install pin-pink mink`) is left out.

For a floating base the targets are the tool's poses at the ends of straight joint paths with
conserved momentum.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import remora as rm
from remora.algebra import dual_quaternion, pose
from remora.planning.floating_path import base_motion, end_of_path

LENGTH, ANGLE = 1e-4, 1e-3
STARTS, ITERATIONS = 8, 100
START = np.radians([20.0, 50.0, 0.0, -90.0, 0.0, 60.0, 45.0])


def reached(robot: rm.Robot, q: np.ndarray, target: np.ndarray) -> bool:
    """Tell whether the tool is at the target and all joints are in their ranges."""
    off = dual_quaternion.mul(dual_quaternion.conjugate(rm.frame_pose(robot, q, "tool")), target)
    within = all(
        np.all((j.limits.lower - 1e-9 <= q[j.q]) & (q[j.q] <= j.limits.upper + 1e-9))
        for j in robot.joints
        if j.kind == "revolute"
    )
    angle = 2.0 * np.arcsin(min(1.0, float(np.linalg.norm(off[1:4]))))
    return bool(within and angle < ANGLE and np.linalg.norm(pose.translation(off)) < LENGTH)


def remora_solver(robot: rm.Robot, starts: int) -> Callable[[np.ndarray], np.ndarray]:
    task = {"position_weight": 1.0, "orientation_weight": 0.1}  # 1e-4 m weighs as much as 1e-3 rad

    def solve(target: np.ndarray) -> np.ndarray:
        return rm.inverse_kinematics(
            robot, rm.tasks.FrameTask("tool", target, **task), START, base="fixed",
            tolerance=LENGTH, max_iterations=ITERATIONS, starts=starts,
        ).q  # fmt: skip

    return solve


def pink_solver(robot: rm.Robot, starts: int, damping: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return pink's loop: steps until the error is small, from each start in turn."""
    pin: Any = importlib.import_module("pinocchio")
    pink: Any = importlib.import_module("pink")
    limits: Any = importlib.import_module("pink.limits")
    model = pin.buildModelFromUrdf(str(rm.bundled("robots")["servicer"]))
    data = model.createData()
    task = pink.tasks.FrameTask(
        "tool", position_cost=1.0, orientation_cost=0.1, lm_damping=damping, gain=1.0
    )
    inside = [limits.ConfigurationLimit(model)]

    def solve(target: np.ndarray) -> np.ndarray:
        task.set_target(pin.SE3(pose.to_rotation_matrix(target), pose.translation(target)))
        rng = np.random.default_rng(0)
        q = START
        for k in range(starts):
            begin = START if k == 0 else rng.uniform(
                model.lowerPositionLimit, model.upperPositionLimit
            )  # fmt: skip
            state = pink.Configuration(model, data, begin)
            for _ in range(ITERATIONS):
                error = task.compute_error(state)
                if np.linalg.norm(error[:3]) < LENGTH and np.linalg.norm(error[3:]) < ANGLE:
                    return state.q
                velocity = pink.solve_ik(
                    state, [task], 1.0, solver="daqp", limits=inside, safety_break=False
                )
                state.integrate_inplace(velocity, 1.0)
            q = state.q
        return q

    return solve


def mink_solver(robot: rm.Robot, starts: int, damping: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return mink's loop, the same as pink's."""
    mujoco: Any = importlib.import_module("mujoco")
    mink: Any = importlib.import_module("mink")
    spec = mujoco.MjSpec.from_file(str(rm.bundled("robots")["servicer"]))
    spec.compiler.fusestatic = False
    spec.compiler.boundmass, spec.compiler.boundinertia = 1e-6, 1e-9  # of the massless tool
    model = spec.compile()
    task = mink.FrameTask(
        "tool", "body", position_cost=1.0, orientation_cost=0.1, gain=1.0, lm_damping=damping
    )
    inside = [mink.ConfigurationLimit(model)]
    state = mink.Configuration(model)

    def solve(target: np.ndarray) -> np.ndarray:
        task.set_target(mink.SE3(np.concatenate([target[:4], pose.translation(target)])))
        rng = np.random.default_rng(0)
        for k in range(starts):
            state.update(START if k == 0 else rng.uniform(*model.jnt_range.T))
            for _ in range(ITERATIONS):
                error = task.compute_error(state)
                if np.linalg.norm(error[:3]) < LENGTH and np.linalg.norm(error[3:]) < ANGLE:
                    return state.q.copy()
                velocity = mink.solve_ik(state, [task], 1.0, "daqp", limits=inside)
                state.integrate_inplace(velocity, 1.0)
        return state.q.copy()

    return solve


def measured(
    robot: rm.Robot, solvers: dict[str, Callable[[np.ndarray], np.ndarray]], targets: np.ndarray
) -> dict[str, dict[str, float]]:
    """Solve every target with every library in turn, so that a busy machine slows all alike."""
    for solve in solvers.values():
        solve(targets[0])
    taken = {name: np.zeros(len(targets)) for name in solvers}
    met = {name: np.zeros(len(targets), dtype=bool) for name in solvers}
    for i, target in enumerate(targets):
        for name, solve in solvers.items():
            begun = time.perf_counter()
            try:
                q = solve(target)
            except Exception:  # pink raises where DAQP finds no solution
                q = None
            taken[name][i] = time.perf_counter() - begun
            met[name][i] = q is not None and reached(robot, q, target)
    return {
        name: {
            "success": float(np.mean(met[name])),
            "median_ms": 1e3 * float(np.median(taken[name])),
            "mean_ms": 1e3 * float(np.mean(taken[name])),
        }
        for name in solvers
    }


def floating(count: int, seed: int) -> dict[str, float]:
    """Return how many targets that some straight joint path reaches are reached."""
    robot = rm.load("servicer")
    q0 = rm.neutral(robot)
    q0[8:] = START
    response = base_motion(robot, True)
    rng, met, taken = np.random.default_rng(seed), 0, 0.0
    for k in range(count):
        end = np.array([rng.uniform(j.limits.lower, j.limits.upper)[0] for j in robot.joints[1:]])
        target = rm.frame_pose(robot, end_of_path(robot, q0, end - START, 64, response), "tool")
        begun = time.perf_counter()
        found = rm.inverse_kinematics(robot, {"tool": target}, q0, base="floating", seed=k)
        taken += time.perf_counter() - begun
        met += found.success
    return {"targets": count, "success": met / count, "mean_ms": 1e3 * taken / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--floating", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2026, help="of the targets; 11: the old set")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    robot = rm.load("servicer", base="fixed")
    solvers = {f"Remora, {n} starts": remora_solver(robot, n) for n in (1, STARTS)}
    for name, made in (("pink", pink_solver), ("mink", mink_solver)):
        for n in (1, STARTS) if importlib.util.find_spec(name) else ():
            solvers[f"{name}, {n} starts"] = made(robot, n, 1.0)
            solvers[f"{name}, {n} starts, little damping"] = made(robot, n, 1e-3)
    configurations = rm.random_state(robot, given.seed, given.targets)[0]
    targets = rm.frame_pose(robot, configurations, "tool")
    results: dict[str, Any] = {"fixed": measured(robot, solvers, targets) if given.targets else {}}
    if given.floating:
        results["floating"] = floating(given.floating, given.seed)
    table = Table(title=f"{given.targets} reachable poses of the servicer's arm, fixed base")
    for column in ("", "reached", "median", "mean"):
        table.add_column(column)
    for name, row in results["fixed"].items():
        table.add_row(name, f"{100 * row['success']:.1f} %", f"{row['median_ms']:.2f} ms",
                      f"{row['mean_ms']:.2f} ms")  # fmt: skip
    console = Console(highlight=False)
    console.print(table)
    if "floating" in results:
        console.print("floating base:", results["floating"])
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
