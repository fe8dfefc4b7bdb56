"""Benchmark of the compiled dynamics against Pinocchio, MuJoCo and, if installed, adam and frax.

    python benchmarks/dynamics.py [--robot ROBOT] [--json FILE] [--plot FILE.png]

Forward and inverse dynamics, mass matrix and Jacobian of four robots on a free base: one state per
call from Python, and a batch on one and two threads. Rounds of all libraries are interleaved, the
minimum is reported, and every peer's results are compared with ours first.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
from jax_peers import Adam, Frax
from peer_libraries import chain, present, print_results
from rich.console import Console

import remora as rm
from remora.algebra import pose
from remora.cli import kernel_timing
from remora.cli.kernel_timing import TIMED, Case, Result
from remora.model.formats.random_robot import random_robot

NOTES = (
    "one call: NumPy arrays in and out (JAX arrays for adam and frax), Python's call included",
    "batch: time of one call over all states, divided by their number; results go to a given array",
    "pin.crba computes the upper triangle, Remora the whole matrix; neither crba nor the Jacobian"
    " has a batch in Pinocchio's Python: its batch rows there are its single call",
    "pin.aba, pin.rnea leave by-products in data (placements, joint forces); Remora returns vdot, "
    "tau alone",
    "Pinocchio: the wheel of PyPI, built for any x86-64, not for this processor",
    "MuJoCo: no shapes, contacts, limits or sensors; its call sets the state and copies the result;"
    " mj_forward also factors the mass matrix; its batch is mujoco.rollout of one mj_step, which"
    " integrates, too",
    "adam: zero wrench on the base; frax: gravity always on; both on the servicer only",
)


def two_armed() -> rm.Robot:
    """Return the servicer with a second, identical arm on the other side of its deck."""
    one = rm.load("servicer")
    builder = rm.Builder("two arms")
    bus = one.bodies[0]
    builder.body(bus.name, bus.mass, bus.com, bus.inertia)
    for side, y in (("left", 0.4), ("right", -0.4)):
        for body, joint in list(zip(one.bodies, one.joints, strict=True))[1:]:
            parent = one.bodies[joint.parent].name
            x = joint.placement
            if joint.parent == 0:
                x = pose.compose(pose.from_translation(np.array([0.0, y, 0.0])), x)
            builder.body(f"{side}_{body.name}", body.mass, body.com, body.inertia)
            builder.joint(
                f"{side}_{joint.name}", joint.kind,
                bus.name if joint.parent == 0 else f"{side}_{parent}", f"{side}_{body.name}",
                placement=x, axis=joint.axes[0],
            )  # fmt: skip
    return builder.build()


def robots() -> dict[str, rm.Robot]:
    return {
        "servicer, 7 joints": rm.load("servicer"),
        "two arms, 2x7 joints": two_armed(),
        "snake, 30 joints": chain(30),
        "random tree, 30 joints": random_robot(1, 31, kinds=("revolute",)),
    }


def measured(
    robot: rm.Robot, batch: int, seconds: float, with_jax: bool, console: Console
) -> list[Result]:
    states = kernel_timing.random_states(robot, batch)
    cases: dict[str, list[Case]] = {}
    for function, label in TIMED.items():
        with console.status(f"{label}: compiling"):
            cases[function] = list(kernel_timing.remora_cases(robot, function, states, (1, 2)))
            more = kernel_timing.remora_cases(robot, function, states, (1,), "float32")
            cases[function] += [case for case in more if case.states > 1]
    peers, missing = present(robot, 2)
    for kind in (Adam, Frax) if with_jax else ():
        try:
            peers.append(kind(robot))
        except ImportError as error:
            missing.append(f"{kind.name} is not installed ({error})")
    for line in missing:
        console.print(f"[yellow]not compared:[/] {line}")
    results: list[Result] = []
    for function, label in TIMED.items():
        with console.status(f"{label}: preparing the peers"):
            for peer in peers:
                cases[function] += peer.cases(function, states, (1, 2))
        for case in cases[function]:
            if case.deviation > (1e-5 if case.dtype == "float32" else 1e-9):
                raise SystemExit(f"{case.library} {case.call} is off by {case.deviation:.1e}")
        with console.status(f"{label}: measuring"):
            results += kernel_timing.measure(cases[function], seconds)
    return results


def as_dictionary(result: Result) -> dict[str, Any]:
    case = result.case
    names = ("function", "library", "call", "states", "threads", "dtype")
    return {name: getattr(case, name) for name in names} | {
        "microseconds": float(f"{1e6 * result.seconds:.4g}"),
        "deviation": None if case.deviation != case.deviation else float(f"{case.deviation:.1e}"),
    }


def plot(data: dict[str, Any], file: Path) -> None:
    """Plot microseconds per evaluation: columns are functions, rows are modes, groups robots."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    batch = data["batch"]
    rows = {
        "one call from Python": [
            ("Remora", 1, 1, "#0b6e99"), ("Pinocchio", 1, 1, "#d9822b"),
            ("MuJoCo", 1, 1, "#8a8a8a"),
        ],
        f"batch of {batch}": [
            ("Remora", batch, 1, "#0b6e99"), ("Remora", batch, 2, "#7cc0de"),
            ("Pinocchio", batch, 1, "#d9822b"), ("Pinocchio", batch, 2, "#f0bf8a"),
            ("MuJoCo", batch, 1, "#8a8a8a"), ("MuJoCo", batch, 2, "#c4c4c4"),
        ],
    }  # fmt: skip
    figure, axes = plt.subplots(2, len(TIMED), figsize=(19, 9.5), sharey="row", sharex=True)
    groups = list(data["robots"])
    for row, (way, bars) in enumerate(rows.items()):
        for ax, (function, label) in zip(axes[row], TIMED.items(), strict=True):
            for g, robot in enumerate(groups):
                found = [(bar, _time(data, robot, function, *bar[:3])) for bar in bars]
                found = [(bar, t) for bar, t in found if t is not None]
                width = 0.84 / max(3, len(found))
                for k, ((_, _, _, color), t) in enumerate(found):
                    x = g + (k - (len(found) - 1) / 2) * width
                    ax.bar(x, t, width * 0.92, color=color, zorder=3)
                    ax.text(
                        x, t * 1.08, f"{t:.2g}" if t < 10 else f"{t:.0f}", ha="center",
                        va="bottom", rotation=90, fontsize=7.5, zorder=4,
                    )  # fmt: skip
            ax.set_yscale("log")
            ax.set_ylim(*((0.2, 50) if row == 0 else (0.02, 50)))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.grid(axis="y", which="major", color="0.82", zorder=0)
            ax.grid(axis="y", which="minor", color="0.93", zorder=0)
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_xticks(range(len(groups)), [g.replace(", ", "\n") for g in groups], fontsize=9)
            if row == 0:
                ax.set_title(label, fontsize=13, pad=10)
        axes[row][0].set_ylabel(f"{way}\nµs per evaluation", fontsize=11)
        many = len({bar[2] for bar in bars}) > 1
        handles = [plt.Rectangle((0, 0), 1, 1, color=bar[3]) for bar in bars]
        names = [
            name + (f", {threads} thread{'s' * (threads > 1)}" if many else "")
            for name, _, threads, _ in bars
        ]
        axes[row][-1].legend(handles, names, fontsize=9, loc="upper left", frameon=False, ncols=2)
    about = data["machine"]
    versions = about["versions"]
    figure.suptitle(
        "Time per evaluation, float64, free base; shortest of many interleaved rounds, lower is "
        "better\n"
        f"{about['processor']} ({about['llvm_name']}, {about['lanes_float64']} lanes), "
        f"{about['cores']} cores; Pinocchio {versions.get('pin')}, "
        f"MuJoCo {versions.get('mujoco-core') or versions.get('mujoco')}",
        fontsize=12,
    )
    figure.text(
        0.01, 0.008,
        "In batches Pinocchio has loops for forward and inverse dynamics (abaInParallel, "
        "rneaInParallel) only, MuJoCo one for steps (rollout, which integrates, too); "
        "where bars are missing there is none.",
        fontsize=9, color="0.3",
    )  # fmt: skip
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    figure.savefig(file, dpi=110)


def _time(
    data: dict[str, Any], robot: str, function: str, library: str, states: int, threads: int
) -> float | None:
    wanted = (function, library, states, threads, "float64")
    for r in data["robots"][robot]["results"]:
        if wanted == tuple(r[k] for k in ("function", "library", "states", "threads", "dtype")):
            return r["microseconds"]
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--robot", help="a file or a bundled name, instead of the four robots")
    parser.add_argument("--batch", type=int, default=4096, help="states in a batch")
    parser.add_argument("--seconds", type=float, default=6.0, help="for each robot and function")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--plot", type=Path, help="draw the results into this file (matplotlib)")
    parser.add_argument("--from-json", type=Path, help="draw or print a saved file; time nothing")
    options = parser.parse_args()
    if options.from_json:
        data = json.loads(options.from_json.read_text(encoding="utf-8"))
        if options.plot:
            plot(data, options.plot)
        return
    console = Console(width=110, highlight=False)
    about = kernel_timing.machine()
    for name in ("adam-robotics", "frax", "jax"):
        if kernel_timing.installed(name):
            about["versions"][name] = kernel_timing.installed(name)
    console.print(kernel_timing.described(about))
    data: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": about,
        "batch": options.batch,
        "seconds_per_function": options.seconds,
        "notes": list(NOTES),
        "robots": {},
    }
    made = {options.robot: rm.load(options.robot)} if options.robot else robots()
    data["robots"] = dict.fromkeys(made)
    for name, robot in reversed(made.items()):  # JAX, which starts threads, comes last
        results = measured(robot, options.batch, options.seconds, name == next(iter(made)), console)
        print_results(f"\n{name}: nv = {robot.nv}, µs per evaluation", results, console)
        data["robots"][name] = {
            "bodies": len(robot.bodies),
            "nv": robot.nv,
            "operations": {f: kernel_timing.kernel_of(robot, f).graph.count() for f in TIMED},
            "results": [as_dictionary(r) for r in results],
        }
    for note in NOTES:
        console.print(f"- {note}")
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(data, options.plot)


if __name__ == "__main__":
    main()
