"""SA24's Ξ at centres of mass, Γ in frames i - 1 and its split, against other code."""

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import cut
from numeric import assert_close, traced
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw
from trees import Case

SA = rm.papers.sa24


def in_inertial_axes(case, omegas, speeds, alphas, accelerations, gravity):
    """Γ from forces and moments in inertial axes, moved to every joint and turned there.

    The motions are those of the centres of mass in body axes; rates are of the components.
    """
    robot, q = case.robot, case.q
    x = rm.poses(robot, q)
    R, p = pose.to_rotation_matrix(x), pose.translation(x)
    forces, moments, centres = [], [], []
    for i, body in enumerate(robot.bodies):
        w, v, al, a = omegas[i], speeds[i], alphas[i], accelerations[i]
        centres.append(p[i] + R[i] @ body.com)
        forces.append(body.mass * (R[i] @ (a + np.cross(w, v)) - gravity))
        moments.append(R[i] @ (body.inertia @ al + np.cross(w, body.inertia @ w)))
    total = []
    for i, joint in enumerate(robot.joints):
        carried = list(rm.topology.subtree(robot, i))
        parent = x[joint.parent] if joint.parent >= 0 else dq.identity()
        at = dq.mul(parent, joint.placement)
        R_at, p_at = pose.to_rotation_matrix(at), pose.translation(at)
        f = sum(forces[k] for k in carried)
        n = sum(moments[k] + np.cross(centres[k] - p_at, forces[k]) for k in carried)
        total.append(np.concatenate([R_at.T @ f, R_at.T @ n]))
    return np.array(total)


@pytest.mark.parametrize("seed", range(8))
def test_the_split_of_the_paper(seed):
    case = Case(seed, largest=9)
    robot, q, v, vdot = case.robot, case.q, case.v, case.vdot
    motion = SA.mass_center_motions(robot, q, v, vdot)
    for i, body in enumerate(robot.bodies):
        frame = rm.Frame("c", i, pose.from_translation(body.com))
        assert_close(motion.twists[i], rm.frame_twist(robot, q, v, frame))
        rates = rm.dynamics.frame_acceleration(robot, q, v, vdot, frame)
        assert_close(motion.rates[i], rates)
    (w, s), (al, a) = (np.split(x, 2, axis=-1) for x in motion)
    none, g = np.zeros_like(w), robot.gravity
    rest = np.zeros(3)
    found = SA.wrench_parts(robot, q, v, vdot, case.wrenches)
    assert_close(found.inertial, in_inertial_axes(case, none, none, al, a, rest), rtol=1e-11)
    assert_close(found.coriolis, in_inertial_axes(case, w, s, none, none, rest), rtol=1e-11)
    assert_close(found.gravity, in_inertial_axes(case, none, none, none, none, g), rtol=1e-11)
    whole = SA.joint_wrenches(robot, q, *motion, case.wrenches)
    assert_close(sum(found), whole, rtol=1e-11)
    assert_close(whole - found.external, in_inertial_axes(case, w, s, al, a, g), rtol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_the_wrenches_are_those_of_the_assembly_in_other_frames(seed):
    case = Case(seed, largest=9)
    split, at = cut(case, 0.5)
    assembly, robot = split.assembly, split.assembly.to_robot()
    total = assembly.graph(at.q, at.v, at.vdot, at.wrenches).total  # frames of the bodies
    motion = SA.mass_center_motions(robot, at.q, at.v, at.vdot)
    found = SA.joint_wrenches(robot, at.q, *motion, at.wrenches)
    x = rm.poses(robot, at.q)
    for i, joint in enumerate(robot.joints):
        parent = x[joint.parent] if joint.parent >= 0 else dq.identity()
        before = dq.mul(parent, joint.placement)
        moved = dq.mul(dq.conjugate(before), x[i])
        assert_close(found[i], screw.adjoint(moved, total[i]), rtol=1e-11)
    ours = assembly.wrench_parts(at.q, at.v, at.vdot)
    theirs = SA.wrench_parts(robot, at.q, at.v, at.vdot)
    zero = 0.0 * at.v
    # by v and v̇: without acceleration there is no inertial part; by Ξ and Ξ̇ there is
    assert not np.any(assembly.wrench_parts(at.q, at.v, zero).inertial)
    if np.any(np.abs(ours.coriolis) > 1e-9):
        assert np.abs(SA.wrench_parts(robot, at.q, at.v, zero).inertial).max() > 1e-6
    at_rest = SA.wrench_parts(robot, at.q, zero, at.vdot)
    assert_close(at_rest.coriolis, 0.0 * theirs.coriolis)


def test_batches_symbols_and_refusals():
    case = Case(3, largest=6)
    robot, n = case.robot, len(case.robot.bodies)
    q, v = rm.random_state(robot, 1, (2, 3))

    def functions(q, v):
        motion = SA.mass_center_motions(robot, q, v, 0.5 * v)
        return *motion, SA.joint_wrenches(robot, q, *motion), *SA.wrench_parts(robot, q, v, v)

    many, one = functions(q, v), functions(q[1, 2], v[1, 2])
    for all_of_them, single, symbols in zip(
        many, one, traced(functions, [q[1, 2], v[1, 2]]), strict=True
    ):
        assert all_of_them.shape == (2, 3, n, 6)
        assert_close(all_of_them[1, 2], single)
        assert_close(symbols, single, rtol=1e-11)
    with pytest.raises(rm.errors.ShapeError, match=r"rates must have shape"):
        SA.joint_wrenches(robot, q, np.zeros((n, 6)), np.zeros(6))
