"""The capture of `remora demo`: simulate it, print what happened, write the files."""

from __future__ import annotations

import os
import shutil
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from remora.algebra import pose
from remora.cli.robot_tables import print_tree
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.model.state import difference
from remora.simulation.recording.constraint_switch import impulse_text
from remora.simulation.recording.recording import Recording
from remora.simulation.scenario.scenario import load_scenario
from remora.viewer.report.animation_html import save_html
from remora.viewer.report.report import report

#: The bundled scenario that is shown, and its grapple and fixture.
SCENARIO, GRAPPLE, FIXTURE = "capture", "servicer/tool", "target/fixture"
TITLE = "A servicer captures a tumbling satellite"


def demonstrated(console: Console, folder: Path) -> Path:
    """Simulate, print the results and write the files; return the report."""
    begun = time.perf_counter()
    scenario = load_scenario(SCENARIO)
    robot = scenario.robot

    console.rule("a servicer with a seven-joint arm, and a satellite that tumbles")
    print_tree(robot, console)
    console.print(f"total mass {float(robot.mass):.6g} kg, nq = {robot.nq}, nv = {robot.nv}\n")

    console.rule("it captures the satellite and stops it, without external forces")
    console.print("(the first run compiles the equations of motion)")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "interrupted at", RuntimeWarning)  # `demo` prints it
        run = _whole(scenario.run(folder / "run", progress=False))
    _tell_motion(console, run)

    console.rule("conservation laws")
    console.print(_kept(run))
    seconds = time.perf_counter() - begun
    console.print(
        f"{run.duration:.4g} s simulated with rtol {run.settings['rtol']:g} and recorded in "
        f"{seconds:.1f} s\n"
    )
    animation = save_html(run, folder / "animation.html")
    written = report(run, folder / "report.html", title=TITLE)

    console.rule("files")
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


def _whole(run: Recording) -> Recording:
    """Return a complete run; raise KeyboardInterrupt for an interrupted one."""
    if run.status == "interrupted":
        raise KeyboardInterrupt(run.message)
    return run


def _tell_motion(console: Console, run: Recording) -> None:
    """Print what happened: recoil, capture, braking."""
    robot, capture = run.robot, run.switches[0]
    k = int(np.flatnonzero(run.phase == capture.phase)[0])  # the first sample of the stack
    before = run.q[:k]
    turned = np.degrees(np.linalg.norm(difference(robot, run.q[0], before)[:, :3], axis=1))
    bus = pose.translation(run.frame_pose("servicer/bus")[:k])
    moved = np.linalg.norm(bus - bus[0], axis=1)
    grapple, fixture = (pose.translation(run.frame_pose(x)[k - 1]) for x in (GRAPPLE, FIXTURE))
    still = run.q[k - 1].copy()
    still[:8] = run.q[0, :8]
    there = pose.translation(CompiledRobot(robot).frame_pose(still, frame=GRAPPLE))
    tumble = np.degrees(np.linalg.norm(run.frame_twist("target/bus")[:, :3], axis=1))
    wheels = float(np.linalg.norm(run.signals["wheels.momentum"][-1]))
    rates = np.degrees(np.abs(run.v[-1, _arm(run)])).max()
    rows = (
        ("base", f"turned by up to {turned.max():.1f}° and moved by {1e3 * moved.max():.0f} mm "
                 "while the arm reached"),
        ("", f"a plan for a base that stands still would miss by "
             f"{1e3 * np.linalg.norm(there - fixture):.0f} mm"),
        ("capture", f"at {capture.t:.2f} s, {1e3 * np.linalg.norm(grapple - fixture):.0f} mm from "
                    f"the fixture, which turned at {tumble[k - 1]:.2f}°/s"),
        ("", f"impulse {impulse_text(capture.impulses['grapple'])}; "
             f"{1e3 * capture.energy_loss:.3g} mJ lost"),
        ("stack", f"at {run.t[-1]:.0f} s the satellite turns at {tumble[-1]:.3f}°/s, "
                  f"the joints at most at {rates:.3f}°/s"),
        ("", f"its angular momentum is in the wheels: {wheels:.2f} N m s"),
        ("drives", f"at most {np.abs(run.tau[:, _arm(run)]).max():.1f} N m in the arm"),
    )  # fmt: skip
    table = Table(box=None, show_header=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def _arm(run: Recording) -> list[int]:
    """Return the places of the arm's joints in v."""
    arm = run.robot.body_index("servicer/shoulder_base"), run.robot.body_index("servicer/flange")
    return [j.v.start for j in run.robot.joints[arm[0] : arm[1] + 1]]


def _kept(run: Recording) -> Table:
    found = run.conservation()
    table = Table(box=None, pad_edge=False)
    for name, justify in (("", "left"), ("drift", "right"), ("relative", "right"), ("to", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name, drift in found.drifts.items():
        table.add_row(
            name,
            f"{drift.absolute:.1e} {drift.unit}",
            f"{drift.relative:.1e}",
            f"{drift.scale:.4g} {drift.unit}, {drift.compared}",
        )
    table.add_row("unit quaternions", f"{found.quaternion:.1e}", "", "never renormalized")
    if found.constraint is not None:
        table.add_row("grapple", f"{found.constraint:.1e} m or rad", "", "constraint residual")
    return table
