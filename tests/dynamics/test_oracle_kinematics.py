"""All quantities under `kinematics`, and the Jacobians under `end_links`, of SPART's numbers."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import pose, screw
from spart import (
    as_inertial_jacobian,
    in_inertial_axes,
    jacobian_in_spart_speeds,
    jacobian_rate_in_spart_speeds,
    twist_rate_in_inertial_axes,
)


@pytest.mark.parametrize("k", range(8))
def test_kinematics(reference, k):
    ref = reference
    q, v, vdot = ref.state(k)
    want = {key: np.array(value) for key, value in ref.data["states"][k]["kinematics"].items()}
    robot = ref.robot

    def everything(frame):
        return (
            rm.frame_pose(robot, q, frame),
            rm.frame_twist(robot, q, v, frame),
            rm.dynamics.frame_acceleration(robot, q, v, vdot, frame),
        )

    x0, xi0, a0 = everything(ref.base)
    assert_close(in_inertial_axes(x0, xi0), want["t0"])
    assert_close(twist_rate_in_inertial_axes(x0, xi0, a0), want["t0dot"])

    rows = [jacobian_in_spart_speeds(ref, q, ref.base)]
    rates = [jacobian_rate_in_spart_speeds(ref, q, v, ref.base)]
    for i, link in enumerate(ref.links):
        x, xi, a = everything(link)
        assert_close(pose.to_rotation_matrix(x), want["RL"][i])
        assert_close(pose.translation(x), want["rL"][i])
        assert_close(in_inertial_axes(x, xi), want["tL"][i])
        assert_close(twist_rate_in_inertial_axes(x, xi, a), want["tLdot"][i])
        # the joint frame: the link's own frame, as URDF has it, turned with the joint
        joint_frame = robot.frame(link.name)
        x_link = rm.frame_pose(robot, q, joint_frame)
        assert_close(pose.translation(x_link), want["rJ"][i])
        assert_close(pose.translation(x) - pose.translation(x_link), want["g"][i])
        check_joint_orientation(ref, i, q, x_link, want)
        rows.append(jacobian_in_spart_speeds(ref, q, link))
        rates.append(jacobian_rate_in_spart_speeds(ref, q, v, link))
    assert_close(np.concatenate(rows), want["N"])
    assert_close(np.concatenate(rates), want["Ndot"])

    assert_close(rm.center_of_mass(robot, q), want["r_com"])
    J = rm.dynamics.center_of_mass_jacobian(robot, q)
    assert_close(J @ v, want["v_com"])
    assert_close(center_of_mass_acceleration(robot, q, v, vdot), want["a_com"])


def check_joint_orientation(ref, i, q, x_link, want):
    """SPART's RJ is the joint frame before it turns, and e the joint's axis in inertial axes."""
    spart = ref.data["robot"]["joints"][i]
    axis = np.array(spart["axis"], dtype=float).reshape(-1)
    turned = quaternion_of_joint(spart, axis, q, ref)
    R = pose.to_rotation_matrix(x_link) @ turned.T
    assert_close(R, want["RJ"][i])
    assert_close(R @ axis, want["e"][i])


def quaternion_of_joint(spart, axis, q, ref):
    if spart["type"] != 1:  # only a revolute joint turns the frame behind it
        return np.eye(3)
    angle = ref.layout.q_to(q)[7 + spart["q_id"] - 1]
    return pose.to_rotation_matrix(pose.from_axis_angle(axis, np.asarray(angle)))


def center_of_mass_acceleration(robot, q, v, vdot):
    x, xi, a = (
        rm.poses(robot, q),
        rm.twists(robot, q, v),
        rm.dynamics.accelerations(robot, q, v, vdot),
    )
    total = np.zeros(3)
    for i, body in enumerate(robot.bodies):
        at = pose.from_translation(body.com)
        twist, rate = screw.adjoint_inverse(at, xi[i]), screw.adjoint_inverse(at, a[i])
        R = pose.to_rotation_matrix(x[i])
        total += body.mass * (R @ (rate[3:] + np.cross(twist[:3], twist[3:])))
    return total / robot.mass


@pytest.mark.parametrize("k", range(8))
def test_jacobians_of_the_end_links(reference, k):
    ref = reference
    q, v, vdot = ref.state(k)
    for end in ref.data["states"][k]["end_links"]:
        link = ref.links[end["link_id"] - 1]
        point = np.array(end["point_in_link"], dtype=float).reshape(-1)
        for suffix, at in (("", np.zeros(3)), ("p", point)):
            J = jacobian_in_spart_speeds(ref, q, link, at)
            assert_close(J[:, :6], end[f"J0{suffix}"])
            assert_close(J[:, 6:], np.array(end[f"Jm{suffix}"]).reshape(6, -1))
            rate = jacobian_rate_in_spart_speeds(ref, q, v, link, at)
            wanted = np.hstack(
                [end[f"J0{suffix}dot"], np.array(end[f"Jm{suffix}dot"]).reshape(6, -1)]
            )
            assert_close(rate, wanted)
            x = rm.frame_pose(ref.robot, q, link)
            floating = as_inertial_jacobian(x, rm.generalized_jacobian(ref.robot, q, link, at))
            assert_close(floating, np.array(end[f"Jstar{suffix}"]).reshape(6, -1))
        x = rm.frame_pose(ref.robot, q, link)
        assert_close(pose.transform_point(x, point), end["rp"])
        assert_close(in_inertial_axes(x, rm.frame_twist(ref.robot, q, v, link, point)), end["tp"])
        a = rm.dynamics.frame_acceleration(ref.robot, q, v, vdot, link, point)
        xi = rm.frame_twist(ref.robot, q, v, link, point)
        assert_close(twist_rate_in_inertial_axes(x, xi, a), end["tpdot"])
