"""The same robot in Pinocchio and in MuJoCo, built from Remora's own data, part by part."""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion
from remora.model.robot import Robot

#: Kinds that both libraries have; Pinocchio's universal joint wants perpendicular axes.
PINOCCHIO_KINDS = ("revolute", "prismatic", "helical", "planar", "cartesian", "spherical", "free")
#: Free joints only at the root in MuJoCo.
MUJOCO_KINDS = (
    "revolute", "prismatic", "cylindrical", "universal", "planar", "cartesian", "spherical",
)  # fmt: skip


def pinocchio_model(robot: Robot):
    """Return a `pinocchio.Model`, and for each body the pose of its frame in Pinocchio's joint.

    Pinocchio's planar joint knows only the normal z: there the joint frame is turned, and the
    body frame stands turned back in it.
    """
    import pinocchio as pin

    model = pin.Model()
    model.name = robot.name
    model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    ids, offsets = [], []
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        axes = joint.axes
        turn = dq.identity()
        kind = {
            "revolute": lambda a=axes: pin.JointModelRevoluteUnaligned(a[0]),
            "prismatic": lambda a=axes: pin.JointModelPrismaticUnaligned(a[0]),
            "helical": lambda a=axes, h=joint.pitch: pin.JointModelHelicalUnaligned(a[0], float(h)),
            "planar": pin.JointModelPlanar,
            "cartesian": pin.JointModelTranslation,
            "spherical": pin.JointModelSpherical,
            "free": pin.JointModelFreeFlyer,
        }
        if joint.kind == "planar":
            turn = pose.from_rotation_matrix(axes.T)
        parent = 0 if joint.parent < 0 else ids[joint.parent]
        before = dq.identity() if joint.parent < 0 else offsets[joint.parent]
        placement = pose.compose(before, joint.placement, turn)
        if joint.kind == "fixed":
            if joint.parent < 0:  # Pinocchio's universe carries it
                ids.append(0)
                offsets.append(placement)
                model.appendBodyToJoint(0, _inertia(pin, body), _se3(pin, placement))
                continue
            ids.append(parent)
            offsets.append(placement)
            model.appendBodyToJoint(parent, _inertia(pin, body), _se3(pin, placement))
            continue
        i = model.addJoint(parent, kind[joint.kind](), _se3(pin, placement), joint.name)
        offset = dq.conjugate(turn)
        model.appendBodyToJoint(i, _inertia(pin, body), _se3(pin, offset))
        ids.append(i)
        offsets.append(offset)
    return model, ids, offsets


def _inertia(pin, body):
    return pin.Inertia(float(body.mass), np.array(body.com), np.array(body.inertia))


def _se3(pin, x):
    return pin.SE3(pose.to_rotation_matrix(x), pose.translation(x))


def mujoco_model(robot: Robot):
    """Return a `mujoco.MjModel` of the robot, through an MJCF text."""
    import mujoco

    return mujoco.MjModel.from_xml_string(mjcf_text(robot))


def mjcf_text(robot: Robot) -> str:
    """Write the robot as MJCF; one MuJoCo joint per degree of freedom."""
    g = " ".join(repr(float(x)) for x in robot.gravity)
    children = {i: [] for i in range(-1, len(robot.bodies))}
    for i, joint in enumerate(robot.joints):
        children[joint.parent].append(i)

    def numbers(values):
        return " ".join(repr(float(v)) for v in values)

    def element(i):
        body, joint = robot.bodies[i], robot.joints[i]
        I = body.inertia
        full = numbers([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
        x = joint.placement
        inside = "".join(_mjcf_joints(joint, numbers))
        com, mass = numbers(body.com), numbers([body.mass])
        inside += f'<inertial pos="{com}" mass="{mass}" fullinertia="{full}"/>'
        inside += "".join(element(k) for k in children[i])
        at = f'pos="{numbers(pose.translation(x))}" quat="{numbers(quaternion.normalize(x[:4]))}"'
        return f'<body name="{body.name}" {at}>{inside}</body>'

    bodies = "".join(element(k) for k in children[-1])
    return (
        f'<mujoco><compiler angle="radian" autolimits="false"/><option gravity="{g}"/>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )


def _mjcf_joints(joint, numbers):
    e = joint.axes
    rows = {
        "fixed": [],
        "revolute": [("hinge", e[:1])],
        "prismatic": [("slide", e[:1])],
        "cylindrical": [("hinge", e[:1]), ("slide", e[:1])],
        "universal": [("hinge", e[:1]), ("hinge", e[1:2])],
        "planar": [("slide", e[0:1]), ("slide", e[1:2]), ("hinge", e[2:3])],
        "cartesian": [("slide", np.eye(3)[k : k + 1]) for k in range(3)],
        "spherical": [("ball", None)],
        "free": [("free", None)],
    }[joint.kind]
    for k, (kind, axis) in enumerate(rows):
        along = "" if axis is None else f' axis="{numbers(axis[0])}"'
        name = joint.name if len(rows) == 1 else f"{joint.name}_{k}"
        yield f'<joint name="{name}" type="{kind}"{along}/>'
