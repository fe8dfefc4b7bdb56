"""MJCF: MuJoCo compiles the file, and its compiled model becomes builder calls.

The coordinates of the robot are MuJoCo's, in MuJoCo's order (`layouts.mujoco_layout` converts
states). What differs, and why:

- A hinge or ball may be anchored away from the origin of its body. Remora's body frame sits at
  the joint, so it is moved to the anchor; the frame that MuJoCo calls the body's is kept as the
  frame `<body>_mjcf`.
- Several joints on one body become the one joint that moves exactly so (`mjcf_joints.STACKS`);
  other stacks are refused, because the bodies between them would have no mass.
- The start pose of a free body is a state, not a property: its joint frame is the world's.
- A linear `<equality><joint>` becomes a mimic joint, kept exactly where MuJoCo keeps it softly;
  every other equality closes a loop and is refused.
- Springs, tendons, actuators and contacts are not part of a Remora robot; where they would act
  without being asked (springs, tendons), a warning says so.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.namespace import Array
from remora.errors import Fault, ModelError, RemoraError
from remora.model.building.builder import Builder
from remora.model.building.validate import Place
from remora.model.formats.mjcf_files import read_files
from remora.model.formats.mjcf_joints import ALLOWED, STACKS, WORDS, Stack
from remora.model.formats.xml import Element
from remora.model.numbers import frozen
from remora.model.robot import Geometry


def read_mjcf(path: str | os.PathLike[str]) -> Builder:
    """Return the builder that an MJCF file describes, through MuJoCo's own compiler.

    Raises:
        ModelError: where Remora's XML reader or MuJoCo refuses the file. What MuJoCo has and
            Remora cannot say is noted in the builder instead.
        RemoraError: where MuJoCo is not installed.
    """
    source = os.fspath(path)
    root = read_files(source)
    mujoco = _mujoco()
    notes: list[str] = []
    before = mujoco.get_mju_user_warning()
    # MuJoCo would write its warnings into a file in the current folder.
    mujoco.set_mju_user_warning(notes.append)
    try:
        model: Any = mujoco.MjModel.from_xml_path(source)
    except (ValueError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise ModelError(source, [_mujoco_fault(str(error))]) from None
    finally:
        mujoco.set_mju_user_warning(before)
    with np.errstate(all="ignore"):  # what is not finite the builder refuses by name
        builder = _Converter(mujoco, model, root, source).convert()
    builder.warnings.extend(notes)
    return builder


def _mujoco() -> Any:
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise RemoraError(
            "reading MJCF needs MuJoCo; install it with: pip install 'remora[mjcf]'"
        ) from None


def _mujoco_fault(message: str) -> Fault:
    """Return MuJoCo's message, whose last words are the element and the line."""
    found = re.search(r"line(?: number=)?\s*(\d+)", message, re.IGNORECASE)
    reason = " ".join(message.split())
    reason = reason if len(reason) <= 300 else reason[:297] + "..."
    return Fault("MuJoCo", reason, int(found.group(1)) if found else None)


class _Converter:
    """Turns one compiled model into builder calls."""

    def __init__(self, mujoco: Any, model: Any, root: Element, source: str) -> None:
        self._mujoco = mujoco
        self._model = model
        self._source = source
        off = int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        gravity = np.zeros(3) if off else np.array(model.opt.gravity)
        name = root.attributes.get("model") or Path(source).stem
        self._builder = Builder(name, gravity, source)
        self._lines = _lines(root)
        self._taken: set[str] = set()
        self._bodies: list[str | None] = [None]
        self._moved: list[Array] = [dual_quaternion.identity()]

    def convert(self) -> Builder:
        """Return the builder."""
        model = self._model
        for i in range(1, int(model.nbody)):
            name = self._name("mjOBJ_BODY", i) or f"body_{i}"
            self._bodies.append(self._unique(name, "body"))
        mimics = self._mimics()
        for i in range(1, int(model.nbody)):
            self._body(i, mimics)
        for i in range(int(model.nsite)):
            if name := self._name("mjOBJ_SITE", i):
                place = self._place("site", name)
                x = _pose(model.site_pos[i], model.site_quat[i])
                self._frame(self._unique(name, "site"), int(model.site_bodyid[i]), x, place)
        for i in range(int(model.ntendon)):
            name = self._name("mjOBJ_TENDON", i) or str(i)
            self._warn(f"tendon {name!r} is left out, with whatever force it has")
        return self._builder

    def _body(self, i: int, mimics: dict[int, tuple[str, float, float]]) -> None:
        model, name = self._model, self._bodies[i]
        assert name is not None
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        joints = list(range(first, first + count))
        stack = self._stack(name, joints)
        self._moved.append(stack.moved)
        back = dual_quaternion.conjugate(stack.moved)
        R = pose.to_rotation_matrix(
            dual_quaternion.mul(back, pose.from_quaternion(np.array(model.body_iquat[i])))
        )
        inertia = R @ np.diag(model.body_inertia[i]) @ R.T
        self._builder.body(
            name,
            float(model.body_mass[i]),
            pose.transform_point(back, np.array(model.body_ipos[i])),
            0.5 * (inertia + inertia.T),
            self._geometry(i, back),
            self._place("body", name),
        )
        parent = int(model.body_parentid[i])
        self._joint(
            name, parent, joints, stack, _pose(model.body_pos[i], model.body_quat[i]), mimics
        )
        if not np.array_equal(stack.moved, dual_quaternion.identity()):
            own = self._unique(f"{name}_mjcf", "body")
            self._builder.frame(own, name, placement=back, place=self._place("body", name))
        if int(model.body_mocapid[i]) >= 0:
            self._warn(f"body {name!r} is moved by motion capture in MuJoCo; it is fixed here")
        if float(model.body_gravcomp[i]) != 0.0:
            self._warn(f"body {name!r}: gravity compensation is left out")

    def _stack(self, body: str, joints: Sequence[int]) -> Stack:
        model = self._model
        types = tuple(int(model.jnt_type[j]) for j in joints)
        make = STACKS.get(types)
        stack = make(model.jnt_pos[joints], model.jnt_axis[joints]) if make else None
        if stack is not None:
            return stack
        names = ", ".join(
            f"{WORDS[t]} {self._joint_name(j)!r}" for j, t in zip(joints, types, strict=True)
        )
        reason = f"the joints {names} are no single joint of Remora's; allowed: {ALLOWED}"
        self._fault("body", body, reason)
        return Stack("fixed", dual_quaternion.identity())

    def _joint(
        self,
        body: str,
        parent: int,
        joints: Sequence[int],
        stack: Stack,
        x_body: Array,
        mimics: dict[int, tuple[str, float, float]],
    ) -> None:
        """Add the joint: x_body is the pose of MuJoCo's body in its parent at the reference."""
        model = self._model
        placement = dual_quaternion.mul(dual_quaternion.conjugate(self._moved[parent]), x_body)
        placement = dual_quaternion.mul(placement, stack.moved)
        if stack.kind == "free":
            placement = dual_quaternion.identity()
        elif stack.kind in ("revolute", "prismatic"):
            # MuJoCo's body stands as the file says at q = ref; Remora's joint frame is at q = 0.
            ref = float(model.qpos0[model.jnt_qposadr[joints[0]]])
            if ref != 0.0:
                placement = dual_quaternion.mul(placement, stack.at(-ref))
        elif len(joints) > 1 and any(model.qpos0[model.jnt_qposadr[joints]] != 0.0):
            self._fault("body", body, "several joints on one body must have ref 0")
        name = "+".join(self._joint_name(j) for j in joints) or f"{body}_fixed"
        follows = [j for j in joints if j in mimics]
        if follows and len(joints) > 1:
            self._fault("body", body, "an equality on one of several joints is not supported")
        self._builder.joint(
            name,
            stack.kind,
            self._bodies[parent],
            body,
            placement=placement,
            mimic=mimics[follows[0]] if follows and len(joints) == 1 else None,
            place=self._joint_place(name, joints, body),
            **stack.axes,
            **(self._drive(joints, stack) if stack.kind != "fixed" else {}),
        )

    def _drive(self, joints: Sequence[int], stack: Stack) -> dict[str, Any]:
        """Return limits, damping, friction and armature of every speed, in MuJoCo's order."""
        model = self._model
        start = int(model.jnt_dofadr[joints[0]])
        dofs = slice(start, start + {"free": 6, "spherical": 3}.get(stack.kind, len(joints)))
        damping, friction, armature = (
            np.array(x[dofs])
            for x in (model.dof_damping, model.dof_frictionloss, model.dof_armature)
        )
        if stack.kind == "free":
            # MuJoCo's speeds are [linear, angular], ours [angular, linear].
            damping, friction, armature = (np.roll(x, 3) for x in (damping, friction, armature))
        numbers: dict[str, Any] = {
            "damping": damping,
            "friction": friction,
            "rotor_inertia": armature,
        }
        limited = model.jnt_limited[joints].astype(bool)
        for j in joints:
            if float(model.jnt_stiffness[j]) != 0.0 or np.any(model.jnt_stiffnesspoly[j]):
                self._warn(f"joint {self._joint_name(j)!r}: its spring is left out")
        if np.any(model.dof_dampingpoly[dofs]):
            name = self._joint_name(joints[0])
            self._warn(f"joint {name!r}: the damping that is not linear is left out")
        if stack.kind in ("free", "spherical"):
            if np.any(limited):
                self._warn(f"joint {self._joint_name(joints[0])!r}: the cone limit is left out")
            return numbers
        numbers["lower"] = np.where(limited, model.jnt_range[joints, 0], -np.inf)
        numbers["upper"] = np.where(limited, model.jnt_range[joints, 1], np.inf)
        forced = model.jnt_actfrclimited[joints].astype(bool)
        largest = np.max(np.abs(model.jnt_actfrcrange[joints]), axis=1)
        numbers["effort"] = np.where(forced, largest, np.inf)
        return numbers

    def _geometry(self, body: int, back: Array) -> list[Geometry]:
        """Return the shapes that MuJoCo's viewer shows: groups 0 to 2."""
        model = self._model
        first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
        shapes: list[Geometry] = []
        for g in range(first, first + count):
            solid = self._solid(g) if int(model.geom_group[g]) < 3 else None
            if solid is None:
                continue
            kind, size, x, mesh = solid
            material = int(model.geom_matid[g])
            rgba = model.geom_rgba[g] if material < 0 else model.mat_rgba[material]
            red, green, blue, alpha = (float(np.clip(c, 0.0, 1.0)) for c in rgba)
            x = frozen(dual_quaternion.mul(back, x))
            if not np.all(np.isfinite([*size, *x, *rgba])):
                self._fault("body", self._bodies[body] or "", f"its geom {g} is not finite")
                continue
            shapes.append(Geometry(kind, size, x, (red, green, blue, alpha), mesh))
        return shapes

    def _solid(self, g: int) -> tuple[str, tuple[float, ...], Array, str | None] | None:
        model, types = self._model, self._mujoco.mjtGeom
        a, b, c = (float(s) for s in model.geom_size[g])
        x = _pose(model.geom_pos[g], model.geom_quat[g])
        solids: dict[int, tuple[str, tuple[float, ...]]] = {
            int(types.mjGEOM_SPHERE): ("sphere", (a,)),
            int(types.mjGEOM_CAPSULE): ("capsule", (a, 2.0 * b)),
            int(types.mjGEOM_ELLIPSOID): ("ellipsoid", (a, b, c)),
            int(types.mjGEOM_CYLINDER): ("cylinder", (a, 2.0 * b)),
            int(types.mjGEOM_BOX): ("box", (2.0 * a, 2.0 * b, 2.0 * c)),
        }
        kind = int(model.geom_type[g])
        if kind in solids:
            return (*solids[kind], x, None)
        mesh = int(model.geom_dataid[g])
        if kind != int(types.mjGEOM_MESH) or int(model.mesh_pathadr[mesh]) < 0:
            return None  # a plane or height field moves nowhere; a mesh without a file has no name
        # MuJoCo shifts a mesh to its centre and main axes; the file's own frame is wanted.
        own = _pose(model.mesh_pos[mesh], model.mesh_quat[mesh])
        x = dual_quaternion.mul(x, dual_quaternion.conjugate(own))
        text = bytes(model.paths[int(model.mesh_pathadr[mesh]) :]).split(b"\0", 1)[0]
        file = Path(self._source).parent.resolve() / os.fsdecode(text)
        scale = tuple(float(s) for s in model.mesh_scale[mesh])
        return "mesh", scale, x, str(file.resolve())

    # Equalities ------------------------------------------------------------------------------

    def _mimics(self) -> dict[int, tuple[str, float, float]]:
        """Return what each following joint follows; anything else is a fault."""
        model, types = self._model, self._mujoco.mjtEq
        found: dict[int, tuple[str, float, float]] = {}
        for e in range(int(model.neq)):
            name = self._name("mjOBJ_EQUALITY", e) or str(e)
            kind = types(int(model.eq_type[e]))
            if not model.eq_active0[e]:
                self._warn(f"equality {name!r} is not active and left out")
                continue
            if kind != types.mjEQ_JOINT:
                word = kind.name.removeprefix("mjEQ_").lower()
                reason = f"is a {word} constraint: closed loops are not supported"
                self._fault("equality", name, reason)
                continue
            one, two = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
            c = [float(x) for x in model.eq_data[e][:5]]
            names = f"of joint {self._joint_name(one)!r}"
            if two < 0:
                self._fault("equality", name, f"{names} holds it still: remove the joint instead")
            elif any(c[2:]):
                self._fault("equality", name, f"{names} is not linear: polycoef {c}")
            elif one in found:
                self._fault("equality", name, f"{names} is the second on that joint")
            else:
                # q1 - ref1 = c0 + c1 (q2 - ref2)
                refs = [float(model.qpos0[model.jnt_qposadr[j]]) for j in (one, two)]
                offset = c[0] + refs[0] - c[1] * refs[1]
                found[one] = (self._joint_name(two), c[1], offset)
        return found

    # Names and places ------------------------------------------------------------------------

    def _name(self, kind: str, index: int) -> str:
        of = getattr(self._mujoco.mjtObj, kind)
        return self._mujoco.mj_id2name(self._model, int(of), index) or ""

    def _joint_name(self, j: int) -> str:
        if name := self._name("mjOBJ_JOINT", j):
            return name
        body = int(self._model.jnt_bodyid[j])
        nth = j - int(self._model.body_jntadr[body])
        return f"{self._bodies[body]}_joint" + (f"_{nth}" if nth else "")

    def _unique(self, name: str, what: str) -> str:
        """Return a name no body or frame has yet: MuJoCo names bodies and sites independently."""
        new = name
        while new in self._taken:
            new = f"{new}_{what}"
        if new != name:
            self._warn(f"{what} {name!r} is called {new!r}: the name is taken")
        self._taken.add(new)
        return new

    def _frame(self, name: str, body: int, x: Array, place: Place) -> None:
        placement = dual_quaternion.mul(dual_quaternion.conjugate(self._moved[body]), x)
        self._builder.frame(name, self._bodies[body], placement=placement, place=place)

    def _place(self, tag: str, name: str) -> Place:
        return Place(f"{tag} {name!r}", self._lines.get((tag, name)))

    def _joint_place(self, name: str, joints: Sequence[int], body: str) -> Place:
        line = self._place("joint", self._joint_name(joints[0])).line if joints else None
        return Place(f"joint {name!r}", line or self._place("body", body).line)

    def _fault(self, tag: str, name: str, reason: str) -> None:
        self._builder.check.fault(self._place(tag, name), reason)

    def _warn(self, text: str) -> None:
        self._builder.warnings.append(text)


def _pose(p: Array, r: Array) -> Array:
    return pose.from_parts(quaternion.normalize(np.array(r)), np.array(p))


def _lines(root: Element) -> dict[tuple[str, str], int]:
    """Return where the main file names what; an equality's own tag says only its type."""
    lines: dict[tuple[str, str], int] = {}
    waiting = [(root, "")]
    while waiting:
        element, outer = waiting.pop()
        tag = {"freejoint": "joint"}.get(element.tag, element.tag)
        tag = "equality" if outer == "equality" else tag
        lines.setdefault((tag, element.attributes.get("name", "")), element.line)
        waiting.extend((child, element.tag) for child in element.children[::-1])
    return lines
