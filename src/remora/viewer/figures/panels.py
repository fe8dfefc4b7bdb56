"""Plottable quantities of a run: named lines with units, grouped into panels of one unit each.

This module is independent of the drawing. `PANELS` lists the quantities by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.errors import RemoraError, UnknownName
from remora.model.joints import coordinates, is_free, kind, speeds
from remora.model.robot import Joint, Robot
from remora.simulation.recording.conservation import Drift
from remora.simulation.recording.quantities import column
from remora.simulation.recording.recording import Recording
from remora.simulation.recording.synonyms import SYNONYMS
from remora.viewer.load_words import short
from remora.viewer.run_tables import labelled
from remora.viewer.scene.link_roles import WHEEL, role_of

#: Units that are converted to degrees.
DEGREES = {"rad": "°", "rad/s": "°/s", "rad/s²": "°/s²"}
#: Title of the panel whose speeds are in rpm, on an axis of their own.
WHEELS = "wheel speeds"
#: Maximum number of lines in a panel; for a larger robot, those that vary most.
MOST_LINES = 32
#: Above this pitch (rad), roll and yaw are close to singular, and a rotation vector is shown.
STEEP = math.radians(80.0)
XYZ = "x", "y", "z"
#: The components of a wrench.
_PARTS = (("force", "N", slice(0, 3)), ("torque", "N m", slice(3, 6)))


@dataclass(frozen=True, eq=False)
class Line:
    """One line of a panel.

    Attributes:
        label: legend text.
        values: `(n,)`, in the panel's unit.
        limits: lower and upper limit; infinite where there is none.
        dashed: whether it is dashed, to stay visible on top of a line it should agree with.
        plain: the label without numbers; empty: the same.
    """

    label: str
    values: Array
    limits: tuple[float, float] = (-math.inf, math.inf)
    dashed: bool = False
    plain: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines of one unit that belong together.

    Attributes:
        title: title of the axes.
        unit: unit of all lines.
        lines: the lines; if empty, the note gives the reason.
        note: a remark.
        log: whether the axis is logarithmic.
        scale: magnitude for comparison; lines that vary by less than 1e-9 of it differ by rounding
            and are drawn flat.
        key: meaning of the numbers beside the line labels.
    """

    title: str
    unit: str
    lines: tuple[Line, ...]
    note: str = ""
    log: bool = False
    scale: float = 1.0
    key: str = ""


@dataclass(frozen=True)
class Choice:
    """The joints, bodies and frames that are plotted.

    Attributes:
        joints: indices of the joints.
        frames: names of bodies and frames.
        degrees: whether angles are shown in degrees.
        apart: whether reaction wheels have panels of their own even where all joints are wheels.
    """

    joints: tuple[int, ...]
    frames: tuple[str, ...]
    degrees: bool = True
    apart: bool = False


def choice(run: Recording, names: Iterable[str] = (), degrees: bool = True) -> Choice:
    """Select joints, bodies and frames by name.

    The default is all joints, and the bodies on free joints (if there is none: the first body if it
    moves, otherwise the last).

    Raises:
        UnknownName: for an unknown name; the message also lists the plottable quantities.
    """
    robot, joints, frames = run.robot, list[int](), list[str]()
    for name in names:
        if name in robot.joints:
            joints.append(robot.joint_index(name))
        elif name in robot.bodies or name in robot.frames:
            frames.append(name)
        else:
            known = [
                *PANELS,
                *run.signal_columns,
                *robot.joints.names,
                *robot.bodies.names,
                *robot.frames.names,
            ]
            raise UnknownName("quantity, joint, body or frame", name, known, SYNONYMS)
    floating = [
        body.name for body, joint in zip(robot.bodies, robot.joints, strict=True) if is_free(joint)
    ]
    moves = kind(robot.joints[0]).nv > 0
    return Choice(
        tuple(joints) or tuple(range(len(robot.joints))),
        tuple(frames) or tuple(floating) or (robot.bodies[0 if moves else -1].name,),
        degrees,
    )


def panels(run: Recording, name: str, of: Choice, most: int = MOST_LINES) -> list[Panel]:
    """Return the panels of a quantity in PANELS, or of a signal of a component.

    Args:
        run: the run.
        name: the quantity or signal.
        of: joints, bodies and frames.
        most: number of lines of a panel; of more, those that vary most are taken.

    Raises:
        UnknownName: for another name.
        RemoraError: if the run has no sample.
    """
    if name not in PANELS and name not in run.signal_columns:
        raise UnknownName("quantity to draw", name, [*PANELS, *run.signal_columns], SYNONYMS)
    if len(run) == 0:
        raise RemoraError("the run has no samples: there is nothing to draw")
    found = PANELS[name](run, of) if name in PANELS else [_signal(run, name)]
    made = (_in_degrees(p) if of.degrees else p for p in found)
    return [_fewer(panel, most) for panel in made]


def _in_degrees(panel: Panel) -> Panel:
    if panel.unit not in DEGREES:
        return panel
    turn, unit = (30.0 / math.pi, "rpm") if panel.title == WHEELS else (180.0 / math.pi, "")
    lines = (
        replace(x, values=turn * x.values, limits=(turn * x.limits[0], turn * x.limits[1]))
        for x in panel.lines
    )
    return replace(panel, unit=unit or DEGREES[panel.unit], lines=tuple(lines))


def _fewer(panel: Panel, most: int) -> Panel:
    """Reduce a panel with too many lines to those that vary most."""
    if len(panel.lines) <= most:
        return panel
    ranges = [float(np.ptp(np.nan_to_num(line.values))) for line in panel.lines]
    best: list[int] = sorted(np.argsort(ranges, kind="stable")[-most:].tolist())
    note = f"{most} of {len(panel.lines)}: those that vary most"
    return replace(panel, lines=tuple(panel.lines[k] for k in best), note=note)


# Joints -----------------------------------------------------------------------------------------

#: For each quantity: which unit of a degree of freedom it has, and titles by unit.
_OF_JOINTS: dict[str, dict[str, str]] = {
    "q": {"rad": "joint angles", "m": "joint travels"},
    "v": {"rad/s": "joint speeds", "m/s": "joint speeds, sliding"},
    "vdot": {"rad/s²": "joint accelerations", "m/s²": "joint accelerations, sliding"},
    "tau": {"N m": "joint torques", "N": "joint forces"},
    "passive": {
        "N m": "torques of damping, friction and stops",
        "N": "forces of damping, friction and stops",
    },
}  # fmt: skip
#: The same for a floating body, in body axes.
_OF_FLOATING = {
    "rad/s": "angular velocity", "m/s": "velocity", "rad/s²": "rate of the angular velocity",
    "m/s²": "rate of the velocity", "N m": "torque", "N": "force",
}  # fmt: skip


def _per_joint(name: str) -> Callable[[Recording, Choice], list[Panel]]:
    def made(run: Recording, of: Choice) -> list[Panel]:
        groups: dict[tuple[str, bool, str], list[Line]] = {}
        wheels = _wheels(run.robot, of)
        for i in of.joints:
            joint = run.robot.joints[i]
            free = run.robot.bodies[i].name if is_free(joint) else ""
            for unit, line in _freedoms(run, name, joint):
                groups.setdefault((free, i in wheels, unit), []).append(line)
        result: list[Panel] = []
        for (free, wheel, unit), lines in groups.items():
            if wheel and name == "q":
                continue  # they turn thousands of times
            titles = {u: x.replace("joint", "wheel") for u, x in _OF_JOINTS[name].items()}
            titles = titles if wheel else _OF_JOINTS[name]
            if free and name in ("tau", "passive") and not any(np.any(x.values) for x in lines):
                continue  # a floating body is not actuated
            link = "on" if name in ("tau", "passive") else "of"
            floats = f"{_OF_FLOATING.get(unit)} {link} {short(free)}, body axes"
            limited = name == "tau" and any(math.isfinite(x.limits[1]) for x in lines)
            key = "peak, and % of the effort limit" if limited else ""
            result.append(Panel(floats if free else titles[unit], unit, tuple(lines), key=key))
        result.sort(key=lambda panel: panel.title.endswith(", body axes"))  # joints first
        first = next(iter(_OF_JOINTS[name].values()))
        return result or [Panel(first, "", (), "no joint has any")]

    return made


def _wheels(robot: Robot, of: Choice) -> set[int]:
    """Return which joints carry reaction wheels; none if all inner ones do, unless `of.apart`."""
    inner = [i for i in of.joints if robot.joints[i].parent >= 0]
    wheels = {i for i in inner if role_of(robot, i) == WHEEL}
    return wheels if of.apart or len(wheels) < len(inner) else set()


def _freedoms(run: Recording, name: str, joint: Joint) -> Iterable[tuple[str, Line]]:
    """Return unit and line of each component of a joint."""
    if name == "q" and kind(joint).quaternion is not None:
        if not is_free(joint):  # shown by `attitude` and `position`
            turned = _rotation_vectors(run.q[:, joint.q])
            for k, axis in enumerate(XYZ):
                yield "rad", Line(labelled(joint.name, f".{axis} (vector)"), turned[:, k])
        return
    if joint.mimic is not None:
        units = {"q": "coordinate_unit", "v": "speed_unit", "vdot": "acceleration_unit"}
        if name in units:  # the forces belong to the leader
            unit = getattr(kind(joint).freedoms[0], units[name])
            own = coordinates(joint, run.q) if name == "q" else speeds(joint, run.quantity(name))
            yield unit, Line(labelled(joint.name, " (mimic)"), own[:, 0])
        return
    part = joint.q if name == "q" else joint.v
    values = run.quantity(name)[:, part]
    for k, (full, unit) in enumerate(column(name).components(run.robot)[part]):
        yield unit, _limited(joint, name, k, full.removeprefix(joint.name), values[:, k])


def _limited(joint: Joint, name: str, k: int, own: str, values: Array) -> Line:
    """Return the line of one degree of freedom named `own`, with its limits."""
    limits = joint.limits
    label = own.removeprefix(".") if is_free(joint) else labelled(joint.name, own)
    if name == "q":
        return Line(label, values, (float(limits.lower[k]), float(limits.upper[k])))
    if name == "v":
        most = float(limits.velocity[k])
        return Line(label, values, (-most, most))
    most = float(limits.effort[k])
    if name != "tau" or not 0.0 < most < math.inf:
        return Line(label, values)
    peak = float(np.max(np.abs(np.nan_to_num(values))))
    share = 100.0 * peak / most
    words = "<0.1" if share < 0.1 else f"{share:.1f}" if share < 9.95 else f"{share:.0f}"
    text = f"{own}  {peak:.3g}, {words} %"
    return Line(labelled(joint.name, text), values, (-most, most), plain=label)


def _power(run: Recording, of: Choice) -> list[Panel]:
    lines: list[Line] = []
    for i in of.joints:
        joint = run.robot.joints[i]
        power = np.sum(run.tau[:, joint.v] * run.v[:, joint.v], axis=-1)
        silent = is_free(joint) and not np.any(power)
        if joint.mimic is None and kind(joint).nv and not silent:
            lines.append(Line(short(joint.name), power))
    return [Panel("power of the actuation", "W", tuple(lines), "" if lines else "no joint has any")]


def _reactions(run: Recording, of: Choice) -> list[Panel]:
    held = [i for i in of.joints if run.robot.joints[i].kind != "free"]
    if not held:
        return [Panel("reactions", "", (), "no joint holds a body: there are no reactions")]
    names, R = run.robot.joints.names, run.reactions
    return [
        Panel(f"constraint {what} through each joint, magnitude", unit,
              _sizes(names, held, R[..., part]))
        for what, unit, part in _PARTS
    ]  # fmt: skip


# Bodies and frames ------------------------------------------------------------------------------


def _attitude(run: Recording, of: Choice) -> list[Panel]:
    made: list[Panel] = []
    for name in of.frames:
        x = run.frame_pose(name)
        turned = dual_quaternion.mul(dual_quaternion.conjugate(x[:1]), x)
        rpy = np.unwrap(pose.to_rpy(turned), axis=0)
        if np.all(np.abs(rpy[:, 1]) < STEEP):
            words, labels, values = "roll, pitch, yaw", ("roll", "pitch", "yaw"), rpy
        else:
            words, labels, values = "rotation vector", XYZ, _rotation_vectors(x[:, :4])
        title = f"attitude of {short(name)} from the start: {words}"
        made.append(Panel(title, "rad", _columns(labels, values)))
    return made


def _position(run: Recording, of: Choice) -> list[Panel]:
    return [
        Panel(
            f"position of {short(name)}, inertial axes", "m",
            _columns(XYZ, pose.translation(run.frame_pose(name))),
        )
        for name in of.frames
    ]  # fmt: skip


def _rotation_vectors(r: Array) -> Array:
    """Return rotation vectors of unit quaternions `(n, 4)` relative to the first; NaN at jumps."""
    vectors = 2.0 * quaternion.log(quaternion.mul(quaternion.conjugate(r[:1]), r))
    jumps = np.linalg.norm(np.diff(vectors, axis=0), axis=-1) > math.pi
    return np.where(np.concatenate([[False], jumps])[:, None], np.nan, vectors)


def _wrenches(run: Recording, of: Choice) -> list[Panel]:
    wrenches = run.wrenches
    loaded = [] if wrenches is None else np.flatnonzero(np.any(wrenches, axis=(0, 2))).tolist()
    if wrenches is None or not loaded:
        return [Panel("external wrenches", "", (), "there are none in this run")]
    bodies = run.robot.bodies.names
    made: list[Panel] = []
    for what, unit, part in _PARTS:
        if len(loaded) == 1:
            title = f"external {what} on {short(bodies[loaded[0]])}, body axes"
            lines = _columns(XYZ, wrenches[:, loaded[0], part])
        else:
            title = f"external {what} on each body, magnitude"
            lines = _sizes(bodies, loaded, wrenches[..., part])
        if any(np.any(line.values) for line in lines):
            made.append(Panel(title, unit, lines))
    return made


# Components -------------------------------------------------------------------------------------


def _signals(run: Recording, of: Choice) -> list[Panel]:
    """Return a panel for each vector, and one for the numbers of a component with one unit."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for name, own in run.signal_columns.items():
        if own.size == ():
            numbers.setdefault((name.partition(".")[0], own.unit), []).append(name)
    made: list[Panel] = []
    for name, own in run.signal_columns.items():
        component = name.partition(".")[0]
        group = numbers.get((component, own.unit), [])
        if own.size or len(group) == 1:
            made.append(_signal(run, name))
        elif name == group[0]:
            lines = (Line(short(x.partition(".")[2]), run.signals[x]) for x in group)
            made.append(Panel(f"signals of {short(component)}", own.unit, tuple(lines)))
    return made or [Panel("signals", "", (), "the run has no components with signals")]


def _signal(run: Recording, name: str) -> Panel:
    own = run.signal_columns[name]
    values = run.signals[name].reshape(len(run), -1)
    if own.size == (3,):
        labels: Sequence[str] = XYZ
    else:
        labels = [index or short(name) for index, _ in own.components(run.robot)]
    return Panel(name, own.unit, _columns(labels, values))


# The whole robot --------------------------------------------------------------------------------


def _momentum(run: Recording, of: Choice) -> list[Panel]:
    kept, h = run.conservation(), run.momentum
    return [
        Panel("linear momentum, inertial axes", "N s", _columns(XYZ, h[:, :3]),
              scale=kept.linear_momentum.scale or 1.0),
        Panel("angular momentum about the inertial origin", "N m s", _columns(XYZ, h[:, 3:]),
              scale=kept.angular_momentum.scale or 1.0),
    ]  # fmt: skip


def _com(run: Recording, of: Choice) -> list[Panel]:
    size = run.conservation().center_of_mass.scale or 1.0
    return [Panel("centre of mass, inertial axes", "m", _columns(XYZ, run.com), scale=size)]


def _energy(run: Recording, of: Choice) -> list[Panel]:
    lines = [Line("kinetic energy", run.kinetic_energy)]
    if np.any(run.potential_energy):
        lines.append(Line("potential energy", run.potential_energy))
    for k, what in enumerate(("actuation", "external wrenches", "passive forces")):
        if np.any(run.work[:, k]):
            lines.append(Line(f"work of {what}", run.work[:, k], dashed=True))
    return [Panel("energy, and work since the start", "J", tuple(lines))]


def _drift(run: Recording, of: Choice) -> list[Panel]:
    """Return the drifts over time whose maxima `run.conservation()` reports, in its scales."""
    kept, t, h = run.conservation(), run.t, run.momentum
    line = run.com[0] + (t - t[0])[:, None] * (h[0, :3] / float(run.robot.mass))
    energy = run.kinetic_energy + run.potential_energy
    work = np.sum(run.work, axis=-1)
    distances: tuple[tuple[str, Drift, Array], ...] = (
        ("linear momentum", kept.linear_momentum, _lengths(h[:, :3] - h[0, :3])),
        ("angular momentum", kept.angular_momentum, _lengths(h[:, 3:] - h[0, 3:])),
        ("centre of mass", kept.center_of_mass, _lengths(run.com - line)),
        ("energy balance", kept.energy, np.abs((energy - energy[0]) - (work - work[0]))),
    )
    lines = [
        Line(f"{name}  {drift.relative:.1e}", distance / (drift.scale or 1.0))
        for name, drift, distance in distances
        if not drift.broken_by
    ]
    broken = kept.linear_momentum.broken_by
    note = f"momentum is not conserved here: {broken}" if broken else ""
    title = "conservation errors, relative"
    return [Panel(title, "", tuple(lines), note, log=True, key="largest")]


def _sizes(names: Sequence[str], which: Sequence[int], vectors: Array) -> tuple[Line, ...]:
    return tuple(Line(short(names[i]), _lengths(vectors[:, i])) for i in which)


def _columns(labels: Sequence[str], values: Array) -> tuple[Line, ...]:
    return tuple(Line(label, values[:, k]) for k, label in enumerate(labels))


def _lengths(x: Array) -> Array:
    return np.sqrt(np.sum(x * x, axis=-1))


#: Plottable quantities by name.
PANELS: dict[str, Callable[[Recording, Choice], list[Panel]]] = {
    "q": _per_joint("q"),
    "v": _per_joint("v"),
    "vdot": _per_joint("vdot"),
    "tau": _per_joint("tau"),
    "passive": _per_joint("passive"),
    "power": _power,
    "reactions": _reactions,
    "attitude": _attitude,
    "position": _position,
    "com": _com,
    "momentum": _momentum,
    "energy": _energy,
    "drift": _drift,
    "wrenches": _wrenches,
    "signals": _signals,
}
