"""Conversion of MuJoCo's equality constraints to mimic joints and constraints.

- An active, linear `joint` becomes a mimic joint, which eliminates a coordinate; an inactive one
  becomes an inactive gear.
- `connect` becomes a spherical constraint and `weld` a fixed one; without torque (`torquescale` 0)
  a weld is a `connect`.
- All others are refused if they are active and left out with a warning if not.

All of them are hard, while MuJoCo's are soft; `solref` and `solimp` are not read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array
from remora.model.formats.mjcf.mjcf_compile import mujoco_module
from remora.model.formats.mjcf.mjcf_names import unused
from remora.model.formats.mjcf.mjcf_shapes import pose_of

#: The relation of a mimic joint: leading joint, ratio, offset.
Relation = tuple[str, float, float]


class MjcfLoop(NamedTuple):
    """A constraint between two of MuJoCo's bodies.

    Attributes:
        name: of the equality, or generated.
        label: its name in messages.
        kind: of the constraint.
        bodies: both bodies by MuJoCo's index, 0 for the world.
        placements: of the constraint frames, in MuJoCo's body frames.
        active: whether it acts from the start.
    """

    name: str
    label: str
    kind: str
    bodies: tuple[int, int]
    placements: tuple[Array, Array]
    active: bool


class MjcfGear(NamedTuple):
    """An inactive relation between two joints, by MuJoCo's index: q_driven = r q_leading + c."""

    name: str
    label: str
    leading: int
    driven: int
    ratio: float
    offset: float


@dataclass
class Equalities:
    """All equalities of a model.

    Attributes:
        mimics: the relation of each mimic joint, by MuJoCo's index of the joint.
        loops: constraints between bodies.
        gears: inactive relations between joints.
    """

    mimics: dict[int, Relation] = field(default_factory=dict[int, Relation])
    loops: list[MjcfLoop] = field(default_factory=list[MjcfLoop])
    gears: list[MjcfGear] = field(default_factory=list[MjcfGear])

    def ties(self, joint: int, name: str) -> bool:
        """Return whether a joint is in a relation, so that it must remain a separate joint."""
        leads = any(leader == name for leader, _, _ in self.mimics.values())
        geared = any(joint in (gear.leading, gear.driven) for gear in self.gears)
        return joint in self.mimics or leads or geared


def equalities(
    model: Any,
    joints: list[str],
    warn: Callable[[str, str, str], None],
    fault: Callable[[str, str, str], None],
) -> Equalities:
    """Return the equalities of a compiled model.

    Args:
        model: the model.
        joints: names of its joints.
        warn: receives tag, name and text of a warning.
        fault: the same of a fault.
    """
    kinds = mujoco_module().mjtEq
    found = Equalities()
    taken = {str(model.equality(e).name) for e in range(int(model.neq))} - {""}
    for e in range(int(model.neq)):
        given = str(model.equality(e).name)
        label, active = given or str(e), bool(model.eq_active0[e])
        name = given or unused(f"equality_{e}", "constraint", taken)
        kind = kinds(int(model.eq_type[e]))
        if kind == kinds.mjEQ_JOINT:
            _relate(model, e, joints, found, name, label, active, warn, fault)
        elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            loop = _loop(model, e, name, label, active)
            if int(model.body_weldid[loop.bodies[0]]) == int(model.body_weldid[loop.bodies[1]]):
                warn("equality", label, "is left out: both its bodies are parts of one rigid body")
            else:
                found.loops.append(loop)
        elif active:
            word = kind.name.removeprefix("mjEQ_").lower()
            reason = (
                f"is a {word} constraint, which is not supported; remove it, or set "
                'active="false", to load the robot without it'
            )
            fault("equality", label, reason)
        else:
            warn("equality", label, "is not active and left out")
    for gear in list(found.gears):
        if gear.leading in found.mimics or gear.driven in found.mimics:
            found.gears.remove(gear)
            warn("equality", gear.label, "is not active and left out: one of its joints is a mimic")
    return found


def _loop(model: Any, e: int, name: str, label: str, active: bool) -> MjcfLoop:
    """Return a connect or weld: the frames coincide, or only their origins do."""
    enums = mujoco_module()
    data = np.array(model.eq_data[e])
    weld = int(model.eq_type[e]) == int(enums.mjtEq.mjEQ_WELD)
    ends = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
    if int(model.eq_objtype[e]) == int(enums.mjtObj.mjOBJ_SITE):
        bodies = int(model.site_bodyid[ends[0]]), int(model.site_bodyid[ends[1]])
        placements = (
            pose_of(model.site_pos[ends[0]], model.site_quat[ends[0]]),
            pose_of(model.site_pos[ends[1]], model.site_quat[ends[1]]),
        )
    elif weld:  # anchor on the second body, pose of the second body's axes at it in the first
        bodies = ends
        placements = pose_of(data[3:6], data[6:10]), pose.from_translation(data[:3])
    else:  # the anchor in both bodies
        bodies = ends
        placements = pose.from_translation(data[:3]), pose.from_translation(data[3:6])
    rigid = weld and data[10] != 0.0
    return MjcfLoop(name, label, "fixed" if rigid else "spherical", bodies, placements, active)


def _relate(
    model: Any,
    e: int,
    joints: list[str],
    found: Equalities,
    name: str,
    label: str,
    active: bool,
    warn: Callable[[str, str, str], None],
    fault: Callable[[str, str, str], None],
) -> None:
    """Add the relation of an equality between joints: q1 - ref1 = c0 + c1 (q2 - ref2)."""
    one, two = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
    c = [float(x) for x in model.eq_data[e][:5]]
    names = f"of joint {joints[one]!r}"
    reason = ""
    if two < 0:
        reason = f"{names} holds it still: remove the joint instead"
    elif any(c[2:]):
        reason = f"{names} is not linear: polycoef {c}"
    elif active and one in found.mimics:
        reason = f"{names} is the second on that joint"
    if reason and active:
        fault("equality", label, reason)
    elif reason:
        warn("equality", label, "is not active and left out")
    else:
        refs = [float(model.qpos0[model.jnt_qposadr[j]]) for j in (one, two)]
        offset = c[0] + refs[0] - c[1] * refs[1]
        if active:
            found.mimics[one] = (joints[two], c[1], offset)
        else:
            found.gears.append(MjcfGear(name, label, two, one, c[1], offset))


def in_body(moved: Array, x: Array) -> Array:
    """Return a pose in MuJoCo's body frame, in the body frame that was moved to `moved`."""
    return dual_quaternion.mul(dual_quaternion.conjugate(moved), x)
