"""Benchmark of the JAX libraries frax, MuJoCo MJX and adam on a GPU with the same robot and batch.

    python benchmarks/gpu_peers.py [--batch 1048576] [--cpu] [--all]

Prints evaluations per second. benchmarks/gpu.py imports the peers from here and times them in the
same process as Remora's kernels. Every batch is jax.jit(jax.vmap(...)) of the library's own call,
compiled ahead of time, with inputs on the device; a call blocks until the result is ready.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import time
from collections.abc import Iterator

import jax_peers
import numpy as np
from jax_peers import Jax, Made, alone
from peer_libraries import _mjcf, converted, deviation
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import remora as rm
from remora.algebra import pose
from remora.cli import kernel_timing
from remora.cli.kernel_timing import TIMED, Case, States
from remora.errors import RemoraError
from remora.model.layouts.libraries import mujoco as mujoco_layout

#: Tolerated relative deviation from Remora's NumPy reference. A float64 peer with a larger
#: deviation is not the same robot and not timed; a float32 peer is timed and marked.
ALLOWED = {"float64": 1e-9, "float32": 1e-4}

NOTES = (
    "all: jit(vmap(...)), compiled ahead, inputs on the device, only the named result is asked for,"
    " so XLA leaves out what it does not need; products in full precision (no TF32)",
    "frax: gravity always on in forward dynamics, which solves with the mass matrix",
    "MJX: no shapes, contacts, constraints, limits, actuators or sensors, no integration; the model"
    " of `remora bench`, put with impl='jax'; forward dynamics is qacc of mjx.forward",
    "adam: no wrench on the base; it has no inverse dynamics with accelerations",
    "* more than 1e-4 from the reference in float32: rounding, the same call agrees to 1e-9 in"
    " float64; in frax it is that of the mass matrix before the solve",
)


class _OnGpu(Jax):
    """The first GPU, unless another platform is named."""

    def __init__(self, robot: rm.Robot, dtype: str = "float64", platform: str = "cuda") -> None:
        super().__init__(robot, dtype, platform)


class Frax(_OnGpu, jax_peers.Frax):
    """frax on the GPU."""


class Adam(_OnGpu, jax_peers.Adam):
    """adam on the GPU."""


class Mjx(_OnGpu):
    """MuJoCo MJX: forward and inverse dynamics, mass matrix, Jacobian."""

    name = "MJX"

    def __init__(self, robot: rm.Robot, dtype: str = "float64", platform: str = "cuda") -> None:
        super().__init__(robot, dtype, platform)
        mujoco = importlib.import_module("mujoco")
        with contextlib.redirect_stdout(io.StringIO()):  # it prints that Warp is missing
            self.mjx = importlib.import_module("mujoco.mjx")
        model = mujoco.MjModel.from_xml_string(_mjcf(robot))
        self.last = int(model.body(robot.bodies[-1].name).id)
        self.layout = mujoco_layout(robot, model)
        with self.settings():
            self.model = self.mjx.put_model(model, device=self.device, impl="jax")
            self.data = self.mjx.make_data(model, device=self.device, impl="jax")

    def function(self, function: str, states: States) -> Made | None:
        call, run = getattr(self, f"_{function}")()

        def check(value, i):
            one = alone(states, i)
            if function == "jacobian":  # in world axes, linear velocity first
                R = pose.to_rotation_matrix(rm.poses(self.robot, one.q[0])[-1])
                value = np.concatenate([R.T @ value[3:], R.T @ value[:3]])
            return deviation(self.robot, self.layout, function, one, value)

        return call, run, converted(self.layout, function, states), check

    def _forward_dynamics(self):
        mjx, model, data = self.mjx, self.model, self.data

        def run(q, v, tau):
            return mjx.forward(model, data.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

        return "mjx.forward", run

    def _inverse_dynamics(self):
        mjx, model, data = self.mjx, self.model, self.data

        def run(q, v, vdot):
            return mjx.inverse(model, data.replace(qpos=q, qvel=v, qacc=vdot)).qfrc_inverse

        return "mjx.inverse", run

    def _at(self, q):
        """Return the data with positions and axes of the joints computed."""
        placed = self.mjx.kinematics(self.model, self.data.replace(qpos=q))
        return self.mjx.com_pos(self.model, placed)

    def _mass_matrix(self):
        def run(q):
            return self.mjx.full_m(self.model, self.mjx.crb(self.model, self._at(q)))

        return "mjx.crb, full_m", run

    def _jacobian(self):
        def run(q):
            at = self._at(q)
            linear, angular = self.mjx.jac(self.model, at, at.xpos[self.last], self.last)
            return self.jax.numpy.concatenate([linear, angular], axis=1).T

        return "mjx.jac", run


PEERS = (Frax, Mjx, Adam)


def present(
    robot: rm.Robot, dtype: str, platform: str = "cuda"
) -> tuple[list[Jax], dict[str, str]]:
    """Return the available peers, and the reasons why others are missing."""
    peers: list[Jax] = []
    missing: dict[str, str] = {}
    for kind in PEERS:
        try:
            peers.append(kind(robot, dtype, platform))
        except (ImportError, RemoraError) as error:
            missing[kind.name] = str(error)
    return peers, missing


def cases(
    peer: Jax, states: States, functions: tuple[str, ...], console: Console
) -> Iterator[Case]:
    """Yield a peer's batches, each compared with Remora's reference."""
    for function in functions:
        start = time.perf_counter()
        try:
            made = peer.batch(function, states.q, states.v, states.x)
        except RemoraError as error:
            console.print(f"[red]not timed:[/] {escape(str(error))}")
            continue
        if made is None:
            continue
        call, run, error = made
        dtype = str(peer.dtype)
        spent = time.perf_counter() - start
        console.print(f"[dim]{peer.name} {call}, {dtype}: ready after {spent:.1f} s[/]")
        if dtype == "float64" and not error <= ALLOWED[dtype]:
            console.print(f"[red]{peer.name} {call}, {dtype}, is off by {error:.1e}: not timed[/]")
            continue
        yield Case(function, peer.name, call, len(states.q), 1, dtype, run, (), error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batch", type=int, default=1 << 20, help="states in a batch")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each robot and function")
    parser.add_argument("--cpu", action="store_true", help="on the CPU, to try it")
    parser.add_argument("--all", action="store_true", help="all robots of benchmarks/dynamics.py")
    parser.add_argument("--function", choices=tuple(TIMED), action="append", help="only this")
    parser.add_argument("--dtype", choices=tuple(ALLOWED), action="append", help="only this")
    options = parser.parse_args()
    robots = {"servicer, 7 joints": rm.load("servicer")}
    if options.all:
        robots = importlib.import_module("dynamics").robots()
    functions = tuple(options.function or TIMED)
    console = Console(width=110, highlight=False)
    names = ("jax", "jaxlib", "frax", "mujoco", "mujoco-mjx", "adam-robotics")
    versions = [f"{name} {v}" for name in names if (v := kernel_timing.installed(name))]
    console.print(", ".join(versions))
    for title, robot in robots.items():
        states = kernel_timing.random_states(robot, options.batch)
        made: list[Case] = []
        for dtype in options.dtype or ALLOWED:
            peers, missing = present(robot, dtype, "cpu" if options.cpu else "cuda")
            for name, reason in missing.items():
                console.print(f"[yellow]not compared:[/] {name}: {escape(reason)}")
            for peer in peers:
                console.print(f"[dim]{peer.name}, {dtype}, on {peer.device.device_kind}[/]")
                made += cases(peer, states, functions, console)
        table = Table(
            title=f"\n{title}: nv = {robot.nv}, batch of {options.batch}",
            title_justify="left", box=None, pad_edge=False, header_style="bold",
        )  # fmt: skip
        for name in ("function", "numbers", "library", "call"):
            table.add_column(name, no_wrap=True)
        for name in ("million/s", "ns each", "deviation"):
            table.add_column(name, justify="right", no_wrap=True)
        for function in functions:
            for result in kernel_timing.measure(
                [c for c in made if c.function == function], options.seconds
            ):
                case, t = result.case, result.seconds
                mark = " " if case.deviation <= ALLOWED[case.dtype] else "*"
                table.add_row(
                    TIMED[function], case.dtype, case.library, case.call, f"{1e-6 / t:.4g}",
                    f"{1e9 * t:.4g}", f"{case.deviation:.1e}{mark}",
                )  # fmt: skip
        console.print(table)
    for note in NOTES:
        console.print(f"- {note}")


if __name__ == "__main__":
    main()
