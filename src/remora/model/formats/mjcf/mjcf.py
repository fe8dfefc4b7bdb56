"""The MJCF reader: MuJoCo compiles the file, and the compiled model becomes builder calls.

The robot's coordinates are MuJoCo's, in MuJoCo's order (`layouts.mujoco_layout` converts states).
Differences:

- A hinge or ball may be anchored away from the origin of its body. Remora's body frame is at the
  joint, so it is moved to the anchor; MuJoCo's body frame is kept as the frame `<body>_mjcf`.
- Several joints on one body become one joint with the same motion if there is one, otherwise a
  chain of joints with massless bodies in between (`mjcf_joints`).
- A free joint with armature becomes three translations and a ball joint, with the same armature.
- The initial pose of a free body is a state, not a property: its joint frame is the world's.
- A linear `<equality><joint>` becomes a mimic joint, `connect` and `weld` become constraints: all
  are hard, while MuJoCo's are soft (`mjcf_equalities`). Other active equalities are refused.
- Linear springs of hinges and slides become joint springs. Other springs and tendons give a
  warning, since they would act without control inputs. Actuators and contacts are not part of a
  robot.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array
from remora.model.building.builder import Builder
from remora.model.building.validate import Place
from remora.model.formats.mjcf.mjcf_compile import compiled, mujoco_module
from remora.model.formats.mjcf.mjcf_equalities import equalities, in_body
from remora.model.formats.mjcf.mjcf_includes import Source, SourceElement, read_files
from remora.model.formats.mjcf.mjcf_joints import ConvertedJoint, links
from remora.model.formats.mjcf.mjcf_names import body_names, joined, joint_names, unused
from remora.model.formats.mjcf.mjcf_shapes import body_shapes, pose_of


def read_mjcf(path: str | os.PathLike[str], mesh_root: str | Path | None = None) -> Builder:
    """Read an MJCF file into a builder, by MuJoCo's own compiler.

    Args:
        path: the file.
        mesh_root: the folder that must contain all referenced files; default: the nearest parent
            folder that is a package, or that of the file.

    Raises:
        ModelError: if Remora's XML reader or MuJoCo refuses the file. MuJoCo features that Remora
            does not support are reported through the builder instead.
        RemoraError: if MuJoCo is not installed.
    """
    mujoco_module()
    source = read_files(os.fspath(path), mesh_root)
    model, notes = compiled(source)
    with np.errstate(all="ignore"):  # the builder refuses non-finite values by name
        builder = _Converter(model, source).convert()
    for note in (*source.warnings, *notes):
        builder.warn(Place("MuJoCo") if note in notes else Place("file"), note)
    return builder


class _Converter:
    """Converts one compiled model into builder calls."""

    def __init__(self, model: Any, source: Source) -> None:
        self._model = model
        self._source = source
        off = int(model.opt.disableflags) & int(mujoco_module().mjtDisableBit.mjDSBL_GRAVITY)
        gravity = np.zeros(3) if off else np.array(model.opt.gravity)
        name = source.root.attributes.get("model") or source.path.stem
        self._builder = Builder(name, gravity, str(source.path))
        self._nodes = _nodes(source.root)
        self._bodies = body_names(model)
        self._joints = joint_names(model)
        self._taken = {name for name in self._bodies if name}
        self._moved: list[Array] = [dual_quaternion.identity()]
        self._equalities = equalities(model, self._joints, self._warn, self._fault)

    def convert(self) -> Builder:
        """Return the builder."""
        model = self._model
        for i in range(1, int(model.nbody)):
            self._body(i)
        for i in range(int(model.nsite)):
            if name := str(model.site(i).name):
                body = int(model.site_bodyid[i])
                x = pose_of(model.site_pos[i], model.site_quat[i])
                x = dual_quaternion.mul(dual_quaternion.conjugate(self._moved[body]), x)
                own, place = self._unique(name, "site"), self._place("site", name)
                self._builder.frame(own, self._bodies[body], placement=x, place=place)
        self._constraints()
        for i in range(int(model.ntendon)):
            name = str(model.tendon(i).name) or str(i)
            if float(model.tendon_armature[i]) != 0.0:
                self._fault("tendon", name, "has armature: inertia along a tendon is not supported")
            else:
                self._warn("tendon", name, "is left out, with whatever force it has")
        if float(model.opt.density) != 0.0 or float(model.opt.viscosity) != 0.0:
            line = self._place("option", "").line
            self._builder.warn(
                Place("option", line), "density, viscosity: the forces of the fluid are left out"
            )
        return self._builder

    def _body(self, i: int) -> None:
        model, name = self._model, self._bodies[i] or ""
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        joints = list(range(first, first + count))
        chain = self._chain(joints)
        moved = chain[-1].moved
        self._moved.append(moved)
        back = dual_quaternion.conjugate(moved)
        R = pose.to_rotation_matrix(
            dual_quaternion.mul(back, pose_of(np.zeros(3), model.body_iquat[i]))
        )
        inertia = R @ np.diag(model.body_inertia[i]) @ R.T
        place = self._place("body", name)
        warn, fault = partial(self._warn, "body", name), partial(self._fault, "body", name)
        shapes = body_shapes(self._source, model, i, back, warn, fault)
        self._builder.body(
            name,
            float(model.body_mass[i]),
            pose.transform_point(back, np.array(model.body_ipos[i])),
            0.5 * (inertia + inertia.T),
            list(shapes),
            place,
        )
        x_body = pose_of(model.body_pos[i], model.body_quat[i])
        self._hang(name, int(model.body_parentid[i]), joints, chain, x_body)
        if not np.array_equal(moved, dual_quaternion.identity()):
            own = self._unique(f"{name}_mjcf", "body")
            self._builder.frame(own, name, placement=back, place=place)
        if int(model.body_mocapid[i]) >= 0:
            self._warn("body", name, "is moved by motion capture in MuJoCo; it is fixed here")
        if float(model.body_gravcomp[i]) != 0.0:
            self._warn("body", name, "its gravity compensation is left out")

    def _chain(self, joints: Sequence[int]) -> list[ConvertedJoint]:
        """Return the joint chain of a body; joints stay separate if one needs its own treatment."""
        model = self._model
        start = model.qpos0[model.jnt_qposadr[joints]]
        tied = any(self._equalities.ties(j, self._joints[j]) for j in joints)
        dofs = model.dof_armature[[k for j in joints for k in self._dofs(j)]]
        apart = len(joints) > 1 and bool(tied or np.any(start != 0.0))
        types = [int(model.jnt_type[j]) for j in joints]
        return links(
            types, model.jnt_pos[joints], model.jnt_axis[joints], apart, bool(np.any(dofs))
        )

    def _dofs(self, j: int) -> range:
        """Return the speed indices of a joint."""
        start = int(self._model.jnt_dofadr[j])
        return range(start, start + (6, 3, 1, 1)[int(self._model.jnt_type[j])])

    def _hang(
        self,
        body: str,
        parent: int,
        joints: Sequence[int],
        chain: Sequence[ConvertedJoint],
        x_body: Array,
    ) -> None:
        """Add the joints: x_body is the pose of MuJoCo's body in its parent at the reference.

        x = x_body J_1 ... J_n, each J_k = x_k (motion of joint k) x_k⁻¹ in MuJoCo's body frame.
        """
        before = dual_quaternion.mul(dual_quaternion.conjugate(self._moved[parent]), x_body)
        on = self._bodies[parent]
        for link in chain:
            own = [joints[k] for k in link.joints]
            name = joined(self._joints[j] for j in own) or f"{body}_fixed"
            if link.part is not None:
                name += "_translation" if link.kind == "cartesian" else "_rotation"
            placement = dual_quaternion.mul(before, link.moved)
            if link.kind == "free" or link.part is not None:
                placement = dual_quaternion.identity()
            elif link.kind in ("revolute", "prismatic"):
                # MuJoCo's body has the pose of the file at q = ref; Remora's joint frame at 0.
                ref = float(self._model.qpos0[self._model.jnt_qposadr[own[0]]])
                if ref != 0.0:
                    placement = dual_quaternion.mul(placement, link.at(-ref))
            place = self._joint_place(name, own, body)
            child = body
            if link is not chain[-1]:
                child = unused(f"{body}_{name}", "body", self._taken)
                self._builder.body(child, place=place)
            numbers: dict[str, Any] = {**link.axes, **(self._drive(own, link) if own else {})}
            self._builder.joint(
                name,
                link.kind,
                on,
                child,
                placement=placement,
                mimic=self._equalities.mimics.get(own[0]) if own else None,
                place=place,
                **numbers,
            )
            on, before = child, dual_quaternion.conjugate(link.moved)

    def _drive(self, joints: Sequence[int], link: ConvertedJoint) -> dict[str, Any]:
        """Return limits, damping, friction and armature of every speed, in MuJoCo's order."""
        model = self._model
        dofs = [k for j in joints for k in self._dofs(j)]
        dofs = dofs if link.part is None else [dofs[k] for k in link.part]
        tables = (model.dof_damping, model.dof_frictionloss, model.dof_armature)
        damping, friction, armature = (np.array(x[dofs]) for x in tables)
        if link.kind == "free":
            # MuJoCo's speeds are [linear, angular], ours [angular, linear].
            damping, friction, armature = (np.roll(x, 3) for x in (damping, friction, armature))
        numbers: dict[str, Any] = {
            "damping": damping,
            "friction": friction,
            "rotor_inertia": armature,
        }
        limited = model.jnt_limited[joints].astype(bool)
        for j in joints:
            quaternion = link.kind in ("free", "spherical") or link.part is not None
            sprung = float(model.jnt_stiffness[j]) != 0.0
            if quaternion and sprung:
                self._warn("joint", self._joints[j], "its spring is left out")
            if np.any(model.jnt_stiffnesspoly[j]):
                what = "the nonlinear part of its spring is left out"
                self._warn("joint", self._joints[j], what)
        if np.any(model.dof_dampingpoly[dofs]):
            self._warn("joint", self._joints[joints[0]], "its nonlinear damping is left out")
        if link.kind in ("free", "spherical") or link.part is not None:
            if np.any(limited):
                self._warn("joint", self._joints[joints[0]], "its cone limit is left out")
            return numbers
        places = model.jnt_qposadr[joints]
        numbers["stiffness"] = np.array(model.jnt_stiffness[joints])
        numbers["spring_reference"] = np.array(model.qpos_spring[places])
        numbers["lower"] = np.where(limited, model.jnt_range[joints, 0], -np.inf)
        numbers["upper"] = np.where(limited, model.jnt_range[joints, 1], np.inf)
        forced = model.jnt_actfrclimited[joints].astype(bool)
        largest = np.max(np.abs(model.jnt_actfrcrange[joints]), axis=1)
        numbers["effort"] = np.where(forced, largest, np.inf)
        return numbers

    # Equalities ------------------------------------------------------------------------------

    def _constraints(self) -> None:
        """Add the constraints between bodies, and the gears."""
        for loop in self._equalities.loops:
            parent, child = (self._bodies[i] for i in loop.bodies)
            x, y = (
                in_body(self._moved[i], p)
                for i, p in zip(loop.bodies, loop.placements, strict=True)
            )
            place = self._place("equality", loop.label)
            self._builder.constraint(
                loop.name,
                loop.kind,
                parent,
                child,
                parent_placement=x,
                child_placement=y,
                active=loop.active,
                place=place,
            )
        for gear in self._equalities.gears:
            place = self._place("equality", gear.label)
            leading, driven = self._joints[gear.leading], self._joints[gear.driven]
            self._builder.gear(
                gear.name, leading, driven, gear.ratio, gear.offset, active=False, place=place
            )

    # Names and places ------------------------------------------------------------------------

    def _unique(self, name: str, what: str) -> str:
        """Return a name unused by bodies and frames: MuJoCo names bodies and sites separately."""
        new = unused(name, what, self._taken)
        if new != name:
            self._warn(what, name, f"is called {new!r}: the name is taken")
        return new

    def _place(self, tag: str, name: str) -> Place:
        node = self._nodes.get((tag, name))
        inside = "" if node is None or node.file == self._source.path else f" in {node.file.name}"
        return Place(f"{tag} {name!r}{inside}", None if node is None else node.line)

    def _joint_place(self, name: str, joints: Sequence[int], body: str) -> Place:
        place = self._place("joint", self._joints[joints[0]]) if joints else None
        line = place.line if place is not None else None
        return Place(f"joint {name!r}", line or self._place("body", body).line)

    def _fault(self, tag: str, name: str, reason: str) -> None:
        self._builder.check.fault(self._place(tag, name), reason)

    def _warn(self, tag: str, name: str, reason: str) -> None:
        self._builder.warn(self._place(tag, name), reason)


def _nodes(root: SourceElement) -> dict[tuple[str, str], SourceElement]:
    """Return the elements of the file by kind and name; some tags state only their type."""
    nodes: dict[tuple[str, str], SourceElement] = {}
    waiting = [(root, "")]
    while waiting:
        node, outer = waiting.pop()
        tag = {"freejoint": "joint"}.get(node.tag, node.tag)
        tag = outer if outer in ("equality", "tendon") else tag
        nodes.setdefault((tag, node.attributes.get("name", "")), node)
        waiting.extend((child, node.tag) for child in node.children[::-1])
    return nodes
