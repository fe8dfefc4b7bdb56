"""The writer of Remora's YAML robot files, which load again bit for bit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array, is_symbolic
from remora.atomic_files import write_text
from remora.errors import RemoraError
from remora.model.constraint import GEAR, NUMBERS_OF_KIND, ROD, Constraint
from remora.model.formats.yaml.yaml_tree import scalar
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Body, Frame, Geometry, Joint, Robot
from remora.model.robot_fields import PER_SPEED, rows
from remora.model.takes_robot import takes_robot

#: Version of the format.
FORMAT = 1

_HEAD = """\
# A robot for Remora. SI units: m, kg, s, rad, N, N m.
# placement: a pose in the parent's frame as unit dual quaternion, real part then dual part,
#   scalar first: r + ε ½ p r (xyz: [x, y, z] and rpy: [roll, pitch, yaw] may stand instead).
# inertia: about the centre of mass, body axes: diagonal; xx, xy, xz, yy, yz, zz; or 3 x 3.
"""


@takes_robot
def save_robot(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write a robot as a YAML file that `load` reads back exactly.

    Mesh paths are relative to the file, and meshes must be below its folder, as for loading.

    Args:
        robot: a robot without symbols and batches.
        path: the file; it is replaced if it exists.

    Raises:
        RemoraError: for symbols, batches, non-finite values, or a file that cannot be written.
    """
    write_text(path, robot_to_yaml(robot, folder=Path(path).parent))


@takes_robot
def robot_to_yaml(robot: Robot, folder: str | os.PathLike[str] | None = None) -> str:
    """Return the YAML text of a robot.

    Args:
        robot: a robot without symbols and batches.
        folder: the folder that mesh paths are relative to; None: absolute paths.

    Raises:
        RemoraError: for symbols, batches and values that are not finite.
    """
    root = None if folder is None else Path(folder).resolve()
    lines = [f"remora: {FORMAT}", f"name: {yaml_text(robot.name)}"]
    lines.append(f"gravity: {yaml_numbers('gravity', robot.gravity, 3)}")
    lines += [] if robot.dynamics else ["dynamics: false"]
    lines.append("bodies:" if robot.bodies else "bodies: []")
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        lines += _item(_body(body))
        lines += ["    joint:", *(f"      {line}" for line in _joint(robot, joint))]
        shapes = [_geometry(f"geometry of body {body.name!r}", g, root) for g in body.geometry]
        lines += ["    geometry:"] if shapes else []
        lines += [f"    {line}" for shape in shapes for line in _item(shape)]
    lines += ["frames:"] if robot.frames else []
    for frame in robot.frames:
        lines += _item(_frame(robot, frame))
    lines += ["constraints:"] if robot.constraints else []
    for constraint in robot.constraints:
        lines += _item(_constraint(robot, constraint))
    return _HEAD + "\n".join(lines) + "\n"


def _item(lines: list[str]) -> list[str]:
    """Return the lines of a map as an item of a list."""
    return [f"  - {lines[0]}", *(f"    {line}" for line in lines[1:])]


def _body(body: Body) -> list[str]:
    what = f"body {body.name!r}"
    frame = body.inertial_frame
    return [
        f"name: {yaml_text(body.name)}",
        f"mass: {yaml_numbers(f'mass of {what}', body.mass)}",
        f"com: {yaml_numbers(f'centre of mass of {what}', body.com, 3)}",
        f"inertia: {_inertia(f'inertia of {what}', body.inertia)}",
        *([] if frame is None else [f"inertial_frame: {yaml_numbers(what, np.array(frame), 8)}"]),
    ]


def _joint(robot: Robot, joint: Joint) -> list[str]:
    what = f"joint {joint.name!r}"
    row = JOINT_TYPES[joint.kind]
    parent = _body_name(robot, joint.parent)
    lines = [f"name: {yaml_text(joint.name)}", f"kind: {joint.kind}", f"parent: {parent}"]
    lines += _placement(what, joint.placement)
    lines += _axes(what, joint)
    if joint.kind == "helical":
        lines.append(f"pitch: {yaml_numbers(f'pitch of {what}', joint.pitch)}")
    for key, field in rows("limits").items():
        bounds, unlimited = getattr(joint.limits, key), field.absent
        assert unlimited is not None
        if not np.all(bounds == unlimited):
            text = yaml_numbers(f"{key} limit of {what}", bounds, row.nv, unlimited)
            lines.append(f"{field.written}: {text}")
    for key, field in rows("joint", holds="numbers", shape=PER_SPEED).items():
        values = getattr(joint, key)
        text = yaml_numbers(f"{key} of {what}", values, row.nv)
        if not _same(values, np.full(row.nv, field.absent)):
            lines.append(f"{field.written}: {text}")
    if joint.mimic is not None:
        leader = yaml_text(robot.joints[joint.mimic.joint].name)
        ratio, offset = (
            _number(f"mimic of {what}", x) for x in (joint.mimic.ratio, joint.mimic.offset)
        )
        lines.append(f"mimic: {{joint: {leader}, ratio: {ratio}, offset: {offset}}}")
    return lines


def _geometry(what: str, shape: Geometry, root: Path | None) -> list[str]:
    lines = [f"kind: {shape.kind}", f"size: {_list(what, shape.size)}"]
    lines += _placement(what, shape.placement)
    if shape.color is not None:
        lines.append(f"color: {_list(what, shape.color)}")
    if shape.mesh is not None:
        mesh = Path(shape.mesh)
        if root is not None:
            mesh = mesh.resolve()
            if not mesh.is_relative_to(root):
                raise RemoraError(
                    f"{what}: the mesh {shape.mesh!r} is not below the folder {str(root)!r}; "
                    "save the robot in a folder above its meshes"
                )
            mesh = mesh.relative_to(root)
        lines.append(f"mesh: {yaml_text(mesh.as_posix())}")
    return lines


def _frame(robot: Robot, frame: Frame) -> list[str]:
    return [
        f"name: {yaml_text(frame.name)}",
        f"body: {_body_name(robot, frame.body)}",
        *_placement(f"frame {frame.name!r}", frame.placement),
    ]


def _constraint(robot: Robot, constraint: Constraint) -> list[str]:
    what, kind = f"constraint {constraint.name!r}", constraint.kind
    own = NUMBERS_OF_KIND.get(kind, ())
    lines = [f"name: {yaml_text(constraint.name)}", f"kind: {kind}"]
    if kind == GEAR:
        ends = (yaml_text(robot.joints[i].name) for i in (constraint.parent, constraint.child))
        lines += [f"{role}: {end}" for role, end in zip(("parent", "child"), ends, strict=True)]
    else:
        for end in ("parent", "child"):
            lines.append(f"{end}: {_body_name(robot, getattr(constraint, end))}")
            lines += _placement(what, getattr(constraint, f"{end}_placement"), f"{end}_placement")
        lines += [] if kind == ROD else _axes(what, constraint)
    for key, field in rows("constraint", holds="numbers", shape=()).items():
        value = getattr(constraint, key)
        text = yaml_numbers(f"{key} of {what}", value)
        if key in own:
            lines.append(f"{key}: {text}")
        elif not _same(value, np.asarray(field.absent)):
            raise RemoraError(f"{what} is {kind} and has no {key}, but {text} is given")
    return lines + ([] if constraint.active else ["active: false"])


def _body_name(robot: Robot, body: int) -> str:
    return "null" if body < 0 else yaml_text(robot.bodies[body].name)


def _axes(what: str, part: Joint | Constraint) -> list[str]:
    """Return the axes; of a planar joint's plane and normal only the normal is written."""
    axes, lines = JOINT_TYPES[part.kind].axes, list[str]()
    if axes:
        lines.append(f"axis: {yaml_numbers(what, part.axes[2 if part.kind == 'planar' else 0], 3)}")
    if axes == 2:
        lines.append(f"axis2: {yaml_numbers(what, part.axes[1], 3)}")
    return lines


def _placement(what: str, x: Array, key: str = "placement") -> list[str]:
    text = yaml_numbers(f"{key} of {what}", x, 8)
    return [] if _same(x, dual_quaternion.identity()) else [f"{key}: {text}"]


def _inertia(what: str, I: Array) -> str:
    """Return the shortest of the three forms that is exact."""
    _checked(what, I, (3, 3))
    if _same(I, np.diag(np.diag(I))):
        return _list(what, np.diag(I))
    upper = I[np.triu_indices(3)]
    if _same(I, I.T):
        return _list(what, upper)
    return f"[{', '.join(_list(what, row) for row in I)}]"


def _same(a: Array, b: Array) -> bool:
    """Tell whether two arrays are equal bit for bit: -0.0 is not 0.0."""
    return bool(np.array_equal(a, b) and np.array_equal(np.signbit(a), np.signbit(b)))


def yaml_numbers(what: str, values: Array, count: int | None = None, unlimited: float = 0.0) -> str:
    """Return an array as text: one number for `count` None or 1, a list otherwise."""
    values = np.asarray(values)
    _checked(what, values, () if count is None else (count,))
    if count is None or count == 1:
        values = values.reshape(1)
        return _list(what, values, unlimited)[1:-1]
    return _list(what, values, unlimited)


def _checked(what: str, values: Array, shape: tuple[int, ...]) -> None:
    if is_symbolic(values):
        raise RemoraError(f"{what} is symbolic; only numbers can be saved")
    if values.shape != shape:
        raise RemoraError(
            f"{what} has the shape {values.shape}, not {shape}; batches cannot be saved"
        )


def _list(what: str, values: Iterable[float], unlimited: float = 0.0) -> str:
    parts = (
        "null" if unlimited and value == unlimited else _number(what, value) for value in values
    )
    return f"[{', '.join(parts)}]"


def _number(what: str, value: float) -> str:
    if not np.isfinite(value):
        raise RemoraError(f"{what} is not finite: {value}; it cannot be saved")
    return repr(float(value))


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def yaml_text(text: str) -> str:
    """Return text for YAML: quoted unless it is a plain word."""
    if _PLAIN.fullmatch(text) and isinstance(scalar(text), str):
        return text
    return '"' + "".join(_character(c) for c in text) + '"'


def _character(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    if c.isprintable():
        return c
    return f"\\U{ord(c):08x}"
