"""`remora demo`: a servicer with a floating base unfolds its arm and reaches for a target."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import time
import warnings
import webbrowser
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from remora.algebra import pose
from remora.cli.info import print_tree
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import RemoraError
from remora.model.formats.load import load
from remora.model.robot import Frame, Robot
from remora.model.state import difference, neutral
from remora.simulation.engine.simulate import simulate
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.profiles import Motion
from remora.simulation.inputs.reach import plan_reach
from remora.simulation.recording.recording import Recording
from remora.viewer.report.animation_html import save_html
from remora.viewer.report.report import report

#: Joint angles of the arm folded against the bus, and half open, rad.
FOLDED = np.radians([0.0, 110.0, 0.0, -145.0, 0.0, 100.0, 0.0])
OPEN = np.radians([20.0, 50.0, 0.0, -90.0, 0.0, 60.0, 45.0])
#: Position of the target relative to the tool when the arm is open, inertial axes, m.
AHEAD = np.array([0.85, 0.30, -0.30])
UNFOLDING, REACHING, HOLDING = 14.0, 14.0, 4.0


def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write into; remora-demo, or the next free name, by default."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report if there is a browser.")
    ] = True,
) -> None:
    """Simulate a servicer that reaches for a target, and write a report and an animation."""
    console = Console(highlight=False)
    folder = _folder(out)
    try:
        written = _demonstrated(console, folder)
    except KeyboardInterrupt:
        console.print(f"\n[yellow]interrupted[/]: what was done until then is in {folder}")
        raise typer.Exit(130) from None
    if show and _has_browser():
        webbrowser.open(written.resolve().as_uri())


def _demonstrated(console: Console, folder: Path) -> Path:
    """Simulate, print the results and write the files; return the report."""
    begun = time.perf_counter()
    robot = load("servicer")

    console.rule("a servicer: a bus with a seven-joint arm")
    print_tree(robot, console)
    console.print(f"total mass {float(robot.mass):.6g} kg, nq = {robot.nq}, nv = {robot.nv}\n")

    console.rule("it unfolds its arm and reaches for a target; nothing holds its base")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "interrupted at", RuntimeWarning)  # `demo` prints it
        robot, run = reached(robot, folder / "run")
    _tell_motion(console, robot, run)

    console.rule("what must be kept, and how well it is")
    console.print(_kept(run))
    seconds = time.perf_counter() - begun
    console.print(
        f"{run.duration:g} s simulated with rtol {run.settings['rtol']:g}, planned and recorded in "
        f"{seconds:.1f} s\n"
    )
    animation = save_html(run, folder / "animation.html")
    written = report(run, folder / "report.html", title="A servicer reaches for a target")

    console.rule("to look at")
    table = Table(box=None, show_header=False, pad_edge=False)
    for what, path in (("report", written), ("animation", animation), ("run", folder / "run")):
        table.add_row(what, str(path))
    console.print(table)
    command = "remora"
    if shutil.which(command) is None:  # as after `make demo`
        command = min(os.path.relpath(sys.argv[0]), sys.argv[0], key=len)
    console.print(
        f"\nNext: [bold]{command} view {folder / 'run'}[/], [bold]{command} view YOUR.urdf[/], "
        f"[bold]{command} run --list[/]"
    )
    return written


def reached(robot: Robot, out: Path) -> tuple[Robot, Recording]:
    """Return the robot with its target, and the run that reaches it, recorded on disk.

    Raises:
        KeyboardInterrupt: if a run was interrupted; no results of an incomplete run are printed.
    """
    q = neutral(robot)
    q[8:] = FOLDED
    rest = np.zeros(robot.nv)
    names = [joint.name for joint in robot.joints[1:]]
    unfold = Phase(
        UNFOLDING,
        prescribed={
            name: Motion.between(0.0, UNFOLDING, a, b)
            for name, a, b in zip(names, FOLDED, OPEN, strict=True)
        },
        name="unfold",
    )
    opened = _whole(simulate(robot, q, rest, phases=[unfold], rtol=1e-12, atol=1e-13))
    start = opened.frame_pose("tool")[-1]
    target = pose.from_parts(pose.rotation(start), pose.translation(start) + AHEAD)
    robot = robot.replace(frames=[*robot.frames, Frame("target", -1, target)])
    plan = plan_reach(robot, opened.q[-1], "tool", "target", REACHING)
    reach = Phase(REACHING, prescribed=plan.motions, own_clock=True, name="reach")
    hold = Phase(HOLDING, locked=names, name="hold", impulse=True)
    run = simulate(
        robot, q, rest, phases=[unfold, reach, hold], rtol=1e-12, atol=1e-13,
        sample=0.05, step_to_samples=True, out=out,
    )  # fmt: skip
    return robot, _whole(run)


def _whole(run: Recording) -> Recording:
    """Return a complete run; raise KeyboardInterrupt for an interrupted one."""
    if run.status == "interrupted":
        raise KeyboardInterrupt(run.message)
    return run


def _tell_motion(console: Console, robot: Robot, run: Recording) -> None:
    turns = np.degrees(np.linalg.norm(difference(robot, run.q[0], run.q)[:, :3], axis=1))
    turned, most = float(turns[-1]), float(turns.max())
    bus, tool = (pose.translation(run.frame_pose(name)) for name in ("bus", "tool"))
    moved = np.linalg.norm(bus[-1] - bus[0])
    goal = pose.translation(robot.frame("target").placement)
    off = np.linalg.norm(tool[-1] - goal)
    held = run.q[-1].copy()
    held[:8] = run.q[0, :8]
    fast = CompiledRobot(robot)
    missed = np.linalg.norm(pose.translation(fast.frame_pose(held, target="tool")) - goal)
    reaction = np.abs(run.reactions[:, 1:]).max(axis=(0, 1))
    console.print(
        f"base    turned by up to {most:.1f}°, at the end {turned:.2f}°, "
        f"and moved by {1e3 * moved:.1f} mm"
    )
    console.print(
        f"tool    stopped {1e3 * off:.3f} mm from the target: the plan knew of the recoil;"
    )
    console.print(f"        one for a base that stands still would miss by {1e3 * missed:.0f} mm")
    console.print(
        f"joints  at most {np.abs(run.tau[:, 6:]).max():.2f} N m of drive; their bearings carried "
        f"{reaction[:3].max():.2f} N and {reaction[3:].max():.2f} N m\n"
    )


def _kept(run: Recording) -> Table:
    found = run.conservation()
    table = Table(box=None, pad_edge=False)
    for name, justify in (("", "left"), ("drift", "right"), ("relative", "right"), ("to", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name, drift in (
        ("linear momentum", found.linear_momentum),
        ("angular momentum", found.angular_momentum),
        ("centre of mass", found.center_of_mass),
        ("energy and work", found.energy),
    ):
        table.add_row(
            name,
            f"{drift.absolute:.1e} {drift.unit}",
            f"{drift.relative:.1e}",
            f"{drift.scale:.4g} {drift.unit}, {drift.compared}",
        )
    table.add_row("unit quaternions", f"{found.quaternion:.1e}", "", "never scaled back")
    return table


def _folder(out: Path | None) -> Path:
    """Create and return a new folder."""
    if out is not None:
        if out.exists():
            raise RemoraError(f"{out}: is there already; name a new folder")
        folder = out
    else:
        names = (f"remora-demo-{k}" for k in itertools.count(2))
        folder = next(Path(n) for n in ("remora-demo", *itertools.islice(names, 9999))
                      if not Path(n).exists())  # fmt: skip
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise RemoraError(f"{folder}: cannot be made: {error.strerror}; see --out") from None
    return folder


def _has_browser() -> bool:
    """Return whether a graphical session is available."""
    if not sys.stdout.isatty():
        return False
    screen = any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return screen or sys.platform in ("darwin", "win32")
