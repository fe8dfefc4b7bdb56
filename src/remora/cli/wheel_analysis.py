"""The analysis `wheels` of `remora analyze`: momentum envelope against the demand of the arm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.algebra.vector import apply, transpose
from remora.analysis.arm import check_base, moving_joints
from remora.analysis.base_coupling import momentum_demand, wheel_margin
from remora.analysis.sampling import joint_ranges
from remora.cli.path_analyses import MOST_POINTS, POINTS, Result
from remora.control.laws.reaction_wheels import spin_axes, spin_inertias
from remora.control.references.time_laws import JERK_PEAKS, minimum_jerk
from remora.dynamics.kinematics import poses
from remora.errors import InvalidValue, RemoraError
from remora.model.joints import turns_about_axis
from remora.model.robot import Robot
from remora.model.state import neutral
from remora.simulation.storage.reading import open_run
from remora.viewer.figures.wheel_figure import wheel_figure
from remora.viewer.report.analysis_page import AnalysisPage

#: Speed of a joint without a limit of its own, rad/s or m/s.
USUAL_SPEED = 0.1
#: A margin below this is noted on the page.
TIGHT = 1.5


def wheels_page(robot: Robot, target: str, options: dict[str, Any]) -> Result:
    """Return the page of the wheels: their envelope, and the arm's demand along a path."""
    check_base(robot, "floating")
    names = wheel_joints(robot, target)
    axes = np.asarray(spin_axes(robot, names), dtype=float).T
    capacity = _capacity(robot, names, options["capacity"])
    q, v, t, source = _motion(robot, target, options["run"])
    for name in names:  # the wheels' own momentum is not a demand
        v[:, robot.joints[name].v] = 0.0
    R = pose.to_rotation_matrix(poses(robot, q)[:, 0])
    demand = apply(transpose(R), momentum_demand(robot, q, v))
    margin = wheel_margin(robot, q, v, axes, capacity)
    worst = int(np.argmin(margin))
    size = np.linalg.norm(demand, axis=-1)
    notices: list[str] = []
    if margin[worst] < 1.0:
        notices.append(
            f"The wheels saturate: at {t[worst]:.3g} s the arm demands "
            f"{1.0 / margin[worst]:.2f} times what they can store."
        )
    elif margin[worst] < TIGHT:
        notices.append(f"The margin is small: {margin[worst]:.2f} at {t[worst]:.3g} s.")
    page = AnalysisPage(
        f"{robot.name}: wheels against the arm's demand", f"{len(names)} wheels, {source}",
        [(f"{margin[worst]:.3g}", "smallest margin; below 1 the wheels saturate"),
         (f"{t[worst]:.3g} s", "time of the smallest margin"),
         (f"{size.max():.3g} N m s", "largest demand"),
         (f"{capacity.max():.3g} N m s", "capacity of the largest wheel")],
        [(wheel_figure(axes, capacity, t, demand, options["run"] is not None), "Wheels",
          "Shaded: all that the wheels can store together. The path must stay inside, in every "
          "plane; that it does in these three is not sufficient, the margin is.")],
        [("robot", robot.name), ("frame", target), ("path", source),
         *((name, f"{h:.4g} N m s, axis {', '.join(f'{x:.3f}' for x in axis)}")
           for name, h, axis in zip(names, capacity, axes, strict=True))],
        notices,
    )  # fmt: skip
    data = {
        "t": t, "demand": demand, "margin": margin, "axes": axes, "capacity": capacity,
        "wheels": np.array(names),
    }  # fmt: skip
    header = ["t", "h_x", "h_y", "h_z", "margin"]
    return page, data, (header, np.column_stack([t, demand, margin]))


def wheel_joints(robot: Robot, target: str) -> list[str]:
    """Return the names of the wheels: joints of the base that carry one body and turn freely.

    Raises:
        InvalidValue: if there are none.
    """
    parents = {joint.parent for joint in robot.joints}
    arm = set(moving_joints(robot, target))
    found = [
        joint.name
        for i, joint in enumerate(robot.joints)
        if joint.parent == 0 and i not in arm and i not in parents and joint.mimic is None
        and turns_about_axis(joint)
        and not np.any(np.isfinite([joint.limits.lower, joint.limits.upper]))
    ]  # fmt: skip
    if not found:
        raise InvalidValue(
            f"{robot.name} has no wheels: bodies on continuous revolute joints of the base"
        )
    return found


def _capacity(robot: Robot, names: list[str], given: float | None) -> Array:
    """Return the largest momentum of each wheel, N m s: as given, or I times the speed limit."""
    if given is not None:
        if not np.isfinite(given) or given <= 0.0:
            raise InvalidValue(f"--capacity must be positive, N m s, not {given:g}")
        return np.full(len(names), given)
    speeds = np.array([float(robot.joints[name].limits.velocity[0]) for name in names])
    if not np.all(np.isfinite(speeds)):
        lacking = [n for n, s in zip(names, speeds, strict=True) if not np.isfinite(s)]
        raise InvalidValue(
            f"{', '.join(lacking)} has no limit of its speed: give --capacity, N m s of each wheel"
        )
    return speeds * np.asarray(spin_inertias(robot, names), dtype=float)


def _motion(robot: Robot, target: str, folder: Path | None) -> tuple[Array, Array, Array, str]:
    """Return configurations, velocities, times and a description: of a run, or a default path."""
    if folder is not None:
        run = open_run(folder)
        if run.robot.nq != robot.nq or run.robot.joints.names != robot.joints.names:
            raise RemoraError(f"{folder}: was made with other joints than those of {robot.name!r}")
        every = np.unique(np.linspace(0, len(run) - 1, min(len(run), MOST_POINTS)).astype(int))
        return np.array(run.q[every]), np.array(run.v[every]), run.t[every], f"run {folder}"
    ranges = [r for r in joint_ranges(robot, target) if r.lower]
    halves: dict[str, Array] = {}
    fastest = 0.0
    for r in ranges:
        halves[r.name] = 0.5 * (np.array(r.upper) - np.array(r.lower))
        limit = robot.joints[r.name].limits.velocity
        most = np.where(np.isfinite(limit), limit, USUAL_SPEED)
        fastest = max(fastest, float(np.max(halves[r.name] / most)))
    duration = JERK_PEAKS[0] * fastest
    t = np.linspace(0.0, duration, POINTS)
    s = minimum_jerk(t, duration)
    q, v = np.repeat(neutral(robot)[None], POINTS, axis=0), np.zeros((POINTS, robot.nv))
    for r in ranges:
        start = np.array(r.lower) + 0.5 * halves[r.name]
        q[:, r.q : r.q + len(r.lower)] = start + s.s[:, None] * halves[r.name]
        v[:, robot.joints[r.name].v] = s.rate[:, None] * halves[r.name]
    told = "all joints from a quarter to three quarters of their ranges, the fastest at its limit"
    return q, v, t, f"{told} of speed ({USUAL_SPEED:g} rad/s where it has none)"
