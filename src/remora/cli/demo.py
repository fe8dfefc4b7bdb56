"""`remora demo`: a first look at what the library computes."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from remora.algebra import pose
from remora.algebra.namespace import Array
from remora.cli.info import print_tree
from remora.dynamics.floating import base_response, generalized_jacobian
from remora.dynamics.kinematics import frame_pose, frame_twist, jacobian
from remora.dynamics.momentum import center_of_mass, momentum
from remora.model.load import load
from remora.model.state import neutral


def demo() -> None:
    """Show a servicer: its tree, its tool's pose and Jacobian, and how its base recoils."""
    console = Console(highlight=False)
    robot = load("servicer")
    q = neutral(robot)
    q[8:] = np.radians([0.0, 30.0, 0.0, -60.0, 0.0, 45.0, 0.0])
    joint_speeds = np.radians([0.0, 5.0, 0.0, -5.0, 0.0, 5.0, 0.0])

    console.rule("a servicer: a bus with a seven-joint arm")
    print_tree(robot, console)
    console.print(f"total mass {float(robot.mass):.6g} kg, nq = {robot.nq}, nv = {robot.nv}\n")

    x = frame_pose(robot, q, "tool")
    console.rule("where it is")
    console.print(f"joint angles, ° {_row(np.degrees(q[8:]), 0)}")
    console.print(f"tool position   {_row(pose.translation(x), 4)} m")
    console.print(f"roll pitch yaw  {_row(np.degrees(pose.to_rpy(x)), 3)}°")
    console.print(f"centre of mass  {_row(center_of_mass(robot, q), 4)} m\n")

    console.rule("the tool's twist per joint speed (tool axes)")
    on_fixed_base = jacobian(robot, q, "tool")[:, 6:]
    console.print(_matrix("base held: Jacobian", on_fixed_base))
    console.print(
        _matrix("base floating: generalized Jacobian", generalized_jacobian(robot, q, "tool"))
    )

    console.rule("the arm moves, the base recoils")
    v = np.concatenate([base_response(robot, q) @ joint_speeds, joint_speeds])
    twist = frame_twist(robot, q, v, "tool")
    console.print(f"joint speeds, °/s {_row(np.degrees(joint_speeds), 0)[2:]}")
    console.print(f"base turns at   {_row(np.degrees(v[:3]), 4)} °/s")
    console.print(f"base drifts at  {_row(1e3 * v[3:6], 3)} mm/s")
    console.print(f"tool moves at   {_row(1e3 * twist[3:], 3)} mm/s, tool axes")
    held = on_fixed_base @ joint_speeds
    console.print(f"  were base held{_row(1e3 * held[3:], 3)} mm/s")
    h = momentum(robot, q, v)
    console.print(
        f"total momentum  {np.linalg.norm(h[:3]):.1e} N s, {np.linalg.norm(h[3:]):.1e} N m s"
        " (zero but for rounding)"
    )
    console.print("\nNext: [bold]remora info servicer[/], or [bold]remora info YOUR.urdf[/]")


def _row(values: Array, digits: int) -> str:
    rounded: list[float] = (np.round(values, digits) + 0.0).tolist()  # + 0.0: no "-0"
    return " ".join(f"{x:8.{digits}f}" for x in rounded)


def _matrix(title: str, J: Array) -> Table:
    """Return a table of a Jacobian, a row a component of the twist."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for k in range(J.shape[1]):
        table.add_column(f"joint {k + 1}", justify="right")
    for name, row in zip(("ωx", "ωy", "ωz", "vx  m", "vy  m", "vz  m"), J, strict=True):
        table.add_row(name, *_row(row, 4).split())
    return table
