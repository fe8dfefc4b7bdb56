"""Pages of analyses along a path: conditioning, sensitivity of the miss, payload, wheels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from remora.actuators.reaction_wheels import spin_axes, spin_inertias
from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.algebra.vector import apply, transpose
from remora.analysis.arm import check_base, moving_joints
from remora.analysis.base_coupling import momentum_demand, wheel_margin
from remora.analysis.checkpoints import Progress
from remora.analysis.jacobian_conditioning import conditioning
from remora.analysis.payload import identify_payload
from remora.analysis.sampling import joint_ranges
from remora.analysis.sensitivity import miss_sensitivity
from remora.control.references.time_laws import JERK_PEAKS, minimum_jerk
from remora.dynamics.kinematics import poses
from remora.errors import InvalidValue, RemoraError
from remora.model.joints import turns_about_axis
from remora.model.robot import Robot
from remora.model.state import neutral
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.reading import open_run
from remora.viewer.figures.analysis_figures import interval_figure, wheel_figure
from remora.viewer.report.analysis_page import AnalysisPage

#: Standard deviations where none are given: parts of masses and inertias, m.
USUAL_ERRORS = {"mass": 0.01, "inertia": 0.02, "com": 0.002, "length": 0.0005}
#: Configurations of a path without a run, and most that are taken from one.
POINTS, MOST_POINTS = 101, 400
#: Speed of a joint without a limit of its own, rad/s or m/s.
USUAL_SPEED = 0.1
#: A margin of the wheels below this is noted on the page.
TIGHT = 1.5
_DEFAULT_PATH = "all joints from a quarter to three quarters of their ranges"
_PARAMETERS = ["mass", "m x", "m y", "m z", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"]
_UNITS = ["kg", *["kg m"] * 3, *["kg m²"] * 6]
#: Folder of a recorded run.
RunFolder = str | os.PathLike[str]


def conditioning_page(
    robot: Robot,
    target: str,
    checkpoint: Path,
    base: str = "floating",
    plane: str | None = None,
    run: RunFolder | None = None,
) -> AnalysisPage:
    """Return the conditioning along a run, or along the default path."""
    base, subspace = check_base(robot, base), plane or "twist"
    q, t, source = _path(robot, target, run)
    found = conditioning(robot, q, target, base, subspace, t=t)
    worst = int(np.argmax(found.condition))
    nearest = float(np.nanmin(found.limit_share)) if found.joints else np.nan
    return AnalysisPage(
        f"{robot.name}: conditioning of {found.frame}", f"{subspace}, {base} base, {source}",
        [(f"{found.condition[worst]:.4g}", "largest condition number"),
         (f"{found.smallest.min():.4g}", "smallest singular value"),
         (f"{np.min(found.joint_distance):.3g} rad", "nearest singularity, estimated"),
         *([(f"{100.0 * nearest:.1f} %", "of a range from the nearest limit")]
           if np.isfinite(nearest) else [])],
        [(found.plot(), "Conditioning",
          f"Angular rates are multiplied by {found.length:.3g} m. Shaded: near.")],
        [("robot", robot.name), ("frame", found.frame), ("path", source)],
        [text[:1].upper() + text[1:] + "." for text in found.warnings()],
        {"t": found.t, "singular_values": found.singular_values, "condition": found.condition,
         "joint_distance": found.joint_distance, "limit_distance": found.limit_distance,
         "limit_joints": np.array(found.joints)},
        {"t": found.t,
         **{f"sigma{k + 1}": sigma for k, sigma in enumerate(found.singular_values.T)},
         "condition": found.condition},
    )  # fmt: skip


def sensitivity_page(
    robot: Robot,
    target: str,
    checkpoint: Path,
    base: str = "floating",
    error: Mapping[str, float] | None = None,
    samples: int = 500,
    run: RunFolder | None = None,
    progress: Progress | None = None,
) -> AnalysisPage:
    """Return the sensitivity of the miss at the end of a run or of the default path."""
    base, errors = check_base(robot, base), error or USUAL_ERRORS
    q, _, source = _path(robot, target, run)
    found = miss_sensitivity(robot, q, target, errors, base)
    x, misses = found.monte_carlo(samples, checkpoint=checkpoint, progress=progress)
    drawn = float(np.linalg.norm(misses)) / samples**0.5
    worst = int(np.argmax(found.contributions))
    return AnalysisPage(
        f"{robot.name}: sensitivity of {found.frame.name}", f"{base} base, {source}",
        [(f"{1e3 * found.rms:.3g} mm", "rms miss by derivatives"),
         (f"{1e3 * drawn:.3g} mm", f"rms miss of {samples:,} robots"),
         (found.labels[worst], f"matters most, {1e3 * found.contributions[worst]:.3g} mm")],
        [(found.plot(misses=misses), "Miss",
          "Left: derivative times standard deviation. Right: robots drawn at random, and the "
          "distribution that the derivatives predict.")],
        [("robot", robot.name), ("frame", found.frame.name), ("path", source),
         *((f"standard deviation, {k}", f"{v:g}") for k, v in errors.items())],
        (),
        {"labels": np.array(found.labels), "deviations": found.deviations,
         "jacobian": found.jacobian, "covariance": found.covariance, "errors": x,
         "misses": misses},
        {"standard deviation": found.deviations,
         **dict(zip(("dx", "dy", "dz"), found.jacobian, strict=True)),
         "miss": found.contributions},
    )  # fmt: skip


def payload_page(
    robot: Robot, target: str, checkpoint: Path, run: RunFolder | None = None
) -> AnalysisPage:
    """Return the payload that a run was made with; the robot is the one without it."""
    if run is None:
        raise InvalidValue(
            "payload needs a recorded manoeuvre: name its folder with `run` (--run DIR)"
        )
    recorded, _ = _recorded(robot, run)
    found = identify_payload(robot, recorded.q, recorded.v, target, momentum=None)
    half = 0.5 * np.diff(found.intervals, axis=1)[:, 0]
    rows = [
        (f"{name}, {unit}", f"{x:.6g} ± {h:.2g}")
        for name, unit, x, h in zip(_PARAMETERS, _UNITS, found.parameters, half, strict=True)
    ]
    notices = [] if found.consistent else [
        "The parameters that fit best belong to no body; shown are the nearest that do."
    ]  # fmt: skip
    com = ", ".join(f"{round(1e3 * x)}" for x in found.com)
    return AnalysisPage(
        f"{robot.name}: payload at {target}", f"identified from {run}",
        [(f"{found.mass:.4g} kg", f"mass, ± {half[0]:.2g} kg"), (com, "centre of mass, mm"),
         (f"{found.samples:,}", "samples"), (f"{found.residual:.2g}", "relative residual")],
        [(interval_figure(_PARAMETERS, found.parameters, half), "Parameters",
          f"{100.0 * found.confidence:.0f} % intervals, relative to the estimates.")],
        [("robot", robot.name), ("frame", target), *rows], notices,
        {"parameters": found.parameters, "covariance": found.covariance,
         "intervals": found.intervals, "consistent": found.consistent},
        {"parameter": found.parameters, "low": found.intervals[:, 0],
         "high": found.intervals[:, 1]},
    )  # fmt: skip


def wheels_page(
    robot: Robot,
    target: str,
    checkpoint: Path,
    run: RunFolder | None = None,
    capacity: float | None = None,
) -> AnalysisPage:
    """Return the page of the wheels: their envelope, and the arm's demand along a path."""
    check_base(robot, "floating")
    names = wheel_joints(robot, target)
    axes = np.asarray(spin_axes(robot, names), dtype=float).T
    most = _capacity(robot, names, capacity)
    q, v, t, source = _motion(robot, target, run)
    for name in names:  # the wheels' own momentum is not a demand
        v[:, robot.joints[name].v] = 0.0
    R = pose.to_rotation_matrix(poses(robot, q)[:, 0])
    demand = apply(transpose(R), momentum_demand(robot, q, v))
    margin = wheel_margin(robot, q, v, axes, most)
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
    return AnalysisPage(
        f"{robot.name}: wheels against the arm's demand", f"{len(names)} wheels, {source}",
        [(f"{margin[worst]:.3g}", "smallest margin; below 1 the wheels saturate"),
         (f"{t[worst]:.3g} s", "time of the smallest margin"),
         (f"{size.max():.3g} N m s", "largest demand"),
         (f"{most.max():.3g} N m s", "capacity of the largest wheel")],
        [(wheel_figure(axes, most, t, demand, run is not None), "Wheels",
          "Shaded: all that the wheels can store together. The path must stay inside, in every "
          "plane; that it does in these three is not sufficient, the margin is.")],
        [("robot", robot.name), ("frame", target), ("path", source),
         *((name, f"{h:.4g} N m s, axis {', '.join(f'{x:.3f}' for x in axis)}")
           for name, h, axis in zip(names, most, axes, strict=True))],
        notices,
        {"t": t, "demand": demand, "margin": margin, "axes": axes, "capacity": most,
         "wheels": np.array(names)},
        {"t": t, **dict(zip(("h_x", "h_y", "h_z"), demand.T, strict=True)), "margin": margin},
    )  # fmt: skip


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


def _capacity(robot: Robot, names: list[str], each: float | None) -> Array:
    """Return the largest momentum of each wheel, N m s: as set, or I times the speed limit."""
    if each is not None:
        if not np.isfinite(each) or each <= 0.0:
            raise InvalidValue(f"the capacity of a wheel must be positive, N m s, not {each:g}")
        return np.full(len(names), each)
    speeds = np.array([float(robot.joints[name].limits.velocity[0]) for name in names])
    if not np.all(np.isfinite(speeds)):
        lacking = [n for n, s in zip(names, speeds, strict=True) if not np.isfinite(s)]
        raise InvalidValue(
            f"{', '.join(lacking)} has no limit of its speed: set `capacity`, N m s of each wheel"
        )
    return speeds * np.asarray(spin_inertias(robot, names), dtype=float)


# Paths -------------------------------------------------------------------------------------------


def _path(robot: Robot, target: str, folder: RunFolder | None) -> tuple[Array, Array | None, str]:
    """Return configurations, times and a description: of a run, or of the default path."""
    if folder is None:
        return _ranges_path(robot, target, np.linspace(0.25, 0.75, POINTS)), None, _DEFAULT_PATH
    run, every = _recorded(robot, folder)
    return np.array(run.q[every]), run.t[every], f"run {folder}"


def _motion(robot: Robot, target: str, folder: RunFolder | None) -> tuple[Array, Array, Array, str]:
    """Return configurations, velocities, times and a description, as `_path`."""
    if folder is not None:
        run, every = _recorded(robot, folder)
        return np.array(run.q[every]), np.array(run.v[every]), run.t[every], f"run {folder}"
    halves = {
        r.name: 0.5 * (np.array(r.upper) - np.array(r.lower))
        for r in joint_ranges(robot, target)
        if r.lower
    }
    fastest = 0.0
    for name, half in halves.items():
        limit = robot.joints[name].limits.velocity
        most = np.where(np.isfinite(limit), limit, USUAL_SPEED)
        fastest = max(fastest, float(np.max(half / most)))
    duration = JERK_PEAKS[0] * fastest
    t = np.linspace(0.0, duration, POINTS)
    s = minimum_jerk(t, duration)
    v = np.zeros((POINTS, robot.nv))
    for name, half in halves.items():
        v[:, robot.joints[name].v] = s.rate[:, None] * half
    source = f"{_DEFAULT_PATH}, the fastest at its limit of speed ({USUAL_SPEED:g} rad/s where it "
    return _ranges_path(robot, target, 0.25 + 0.5 * s.s), v, t, source + "has none)"


def _ranges_path(robot: Robot, target: str, parts: Array) -> Array:
    """Return configurations with all joints of the arm at parts of their ranges."""
    q = np.repeat(neutral(robot)[None], len(parts), axis=0)
    for r in joint_ranges(robot, target):
        if r.lower:
            low, high = np.array(r.lower), np.array(r.upper)
            q[:, r.q : r.q + len(low)] = low + parts[:, None] * (high - low)
    return q


def _recorded(robot: Robot, folder: RunFolder) -> tuple[Recording, Array]:
    """Return a run of the robot's joints, and the samples of it that are looked at."""
    run = open_run(folder)
    if run.robot.nq != robot.nq or run.robot.joints.names != robot.joints.names:
        raise RemoraError(f"{folder}: was made with other joints than those of {robot.name!r}")
    every = np.linspace(0, len(run) - 1, min(len(run), MOST_POINTS)).astype(int)
    return run, np.unique(every)
