"""Every public function of algebra, kinematics and momentum, three ways: one, many, symbols.

The reference is the function on one set of float arrays. On a batch it must give, entry by entry,
the same; traced with CasADi symbols and evaluated, too.
"""

import dataclasses
import inspect

import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint
from mechanisms import four_bar
from numeric import assert_close, traced
from remora import dynamics, loops
from remora.algebra import (
    adjugate,
    hermite,
    least_squares,
    linear,
    pose,
    quaternion,
    screw,
    singular_values,
    tangent,
    vector,
)
from remora.algebra import dual_quaternion as dq
from remora.algebra.array_ops import concatenate
from remora.dynamics import floating, formulations, kinematics, momentum, variational_midpoint
from remora.dynamics.constraints import loop_kinematics, null_space, projection, reactions
from remora.dynamics.derivatives import derivatives, regressor
from remora.dynamics.forces import equations_of_motion, passive_forces
from remora.dynamics.joint_arrays import LoadedState
from remora.dynamics.lagrangian import (
    center_of_mass_coordinates,
    euler_angles,
    lagrange_equations,
    link_jacobians,
    reduced,
)
from remora.dynamics.maximal import joint_relations
from remora.model import solid_inertias, state
from remora.model.joints import in_coordinates
from remora.planning import task_equations
from trees import EVERY_KIND

ROBOT = rm.random_robot(EVERY_KIND, bodies=10)
SERVICER = rm.load("servicer")


def _with_stops_and_springs(robot):
    """Return the robot with narrow limits and with springs where a joint can have them."""
    joints = []
    for joint in robot.joints:
        nv = joint.v.stop - joint.v.start
        if in_coordinates(joint):
            limits = dataclasses.replace(
                joint.limits, lower=np.full(nv, -0.2), upper=np.full(nv, 0.3)
            )
            spring = {"stiffness": np.full(nv, 7.0), "spring_reference": np.full(nv, 0.1)}
            joint = dataclasses.replace(joint, limits=limits, **spring)
        joints.append(joint)
    return robot.replace(joints=joints)


LIMITED = _with_stops_and_springs(ROBOT)
CONTACTS = passive_forces.stop_overlaps(LIMITED, rm.neutral(LIMITED)).size
NB = len(ROBOT.bodies)


def _with_loops(robot):
    """Return the robot with two loops, a rod and a gear."""
    q = rm.neutral(robot)
    rng = np.random.default_rng(5)
    ends = {"spherical": (-1, 9), "universal": (2, 7), "rod": (4, 8)}
    single = [i for i, j in enumerate(robot.joints) if j.v.stop - j.v.start == 1]
    ends["gear"] = (single[0], single[-1])
    made = [constraint(kind, robot, q, *pair, rng) for kind, pair in ends.items()]
    return closed(robot, *made)


CLOSED = _with_loops(ROBOT)
LINKAGE = four_bar()
EQUATIONS = loops.constraint_residual(CLOSED, rm.neutral(CLOSED)).size


def unit_quaternion(rng):
    return quaternion.normalize(rng.normal(size=4))


def unit_pose(rng):
    return pose.from_parts(unit_quaternion(rng), rng.normal(size=3))


def array(*shape):
    return lambda rng: rng.normal(size=shape)


def rotation_matrix(rng):
    return quaternion.to_matrix(unit_quaternion(rng))


def homogeneous(rng):
    return pose.to_matrix(unit_pose(rng))


def positive_definite(n):
    def make(rng):
        A = rng.normal(size=(n, n))
        return A @ A.T + np.eye(n)

    return make


def unit_axis(rng):
    a = rng.normal(size=3)
    return a / np.linalg.norm(a)


def mass(rng):
    return np.asarray(rng.uniform(0.5, 2.0))


def state_q(rng):
    return rm.random_state(ROBOT, rng)[0]


I3 = positive_definite(3)
q4, x8, s6, v3, a8, a4 = unit_quaternion, unit_pose, array(6), array(3), array(8), array(4)
v_, a_, joints_ = array(ROBOT.nv), array(ROBOT.nv), array(ROBOT.nv - 6)
bodies6 = array(NB, 6)
TARGET = "body_9"


def on_robot(function, *more):
    return lambda *arguments: function(ROBOT, *arguments, *more)


def sum_of_q_and_v(q, v, dq, dv):
    """Return both sums; of the compensation terms, which are rounding errors, only the effect."""
    rests = 0.0 * q, 0.1 * v
    change = concatenate([dq, dv])
    found = state.compensated_sum(ROBOT, change, (q, v), rests)
    return found[0], found[1]


def on_closed(function, *more):
    return lambda *arguments: function(CLOSED, *arguments, *more)


#: The tasks of inverse kinematics, of a frame and of the centre of mass.
TASK_SPECS = tuple(
    task.bind(ROBOT).spec
    for task in (
        rm.tasks.FrameTask(TARGET, np.eye(8)[0]),
        rm.tasks.CenterOfMassTask(np.zeros(3)),
    )
)


def task_errors(q, goal, point):
    return task_equations.task_errors(ROBOT, q, concatenate([goal, point]), TASK_SPECS)


def inertia_of(function):
    return lambda m, moment, about, *rest: function(screw.Inertia(m, moment, about), *rest)


def transform_inertia(x, m, moment, about):
    return tuple(screw.transform_inertia(screw.transform(x), screw.Inertia(m, moment, about)))


def add_inertia(*a):
    return tuple(screw.add_inertia(screw.Inertia(*a[:3]), screw.Inertia(*a[3:])))


def left_svd_without_signs(U, sigma):
    return U * sigma[..., None, :] ** 2 @ np.swapaxes(U, -1, -2), sigma


def ellipsoid(base, kind):
    def of(q):
        found = rm.manipulability(ROBOT, q, TARGET, base, kind)
        return found.semi_axes, found.center

    return of


TABLE = {
    vector: {
        "dot": (vector.dot, v3, v3), "cross": (vector.cross, v3, v3), "skew": (vector.skew, v3),
        "apply": (vector.apply, array(3, 4), a4), "transpose": (vector.transpose, array(3, 4)),
    },
    quaternion: {
        "pure": (quaternion.pure, v3), "vec": (quaternion.vec, a4),
        "mul": (quaternion.mul, a4, a4), "conjugate": (quaternion.conjugate, a4),
        "dot": (quaternion.dot, a4, a4), "cross": (quaternion.cross, a4, a4),
        "norm": (quaternion.norm, a4), "normalize": (quaternion.normalize, a4),
        "left": (quaternion.left, a4), "right": (quaternion.right, a4),
        "skew": (quaternion.skew, a4), "exp": (quaternion.exp, v3),
        "exp_minus_one": (quaternion.exp_minus_one, v3),
        "cos_minus_one": (
            lambda s: quaternion.cos_minus_one(s, *quaternion.cos_sinc(s)),
            lambda g: g.uniform(0.0, 2.0, size=1),
        ),
        "cos_sinc": (quaternion.cos_sinc, lambda g: g.uniform(0.0, 2.0, size=1)),
        "log": (quaternion.log, q4), "shortest": (quaternion.shortest, q4),
        "half_angle_over_sine": (
            lambda r: quaternion.half_angle_over_sine(quaternion.shortest(r)), q4,
        ),
        "power": (lambda r: quaternion.power(r, 0.3), q4), "rotate": (quaternion.rotate, q4, v3),
        "from_axis_angle": (quaternion.from_axis_angle, unit_axis, array()),
        "to_axis_angle": (quaternion.to_axis_angle, q4), "to_matrix": (quaternion.to_matrix, q4),
        "from_matrix": (quaternion.from_matrix, rotation_matrix),
        "from_rpy": (quaternion.from_rpy, v3), "to_rpy": (quaternion.to_rpy, q4),
    },
    dq: {
        "real": (dq.real, a8), "dual": (dq.dual, a8), "pure": (dq.pure, s6), "vec6": (dq.vec6, a8),
        "vec": (dq.vec, a8), "mul": (dq.mul, a8, a8), "conjugate": (dq.conjugate, a8),
        "dot": (dq.dot, a8, a8), "cross": (dq.cross, a8, a8), "circle": (dq.circle, a8, a8),
        "swap": (dq.swap, a8), "norm": (dq.norm, a8), "normalize": (dq.normalize, a8),
        "left": (dq.left, a8), "right": (dq.right, a8), "skew": (dq.skew, a8),
        "exp": (dq.exp, s6), "exp_minus_one": (dq.exp_minus_one, s6), "log": (dq.log, x8),
        "power": (lambda x: dq.power(x, 0.7), x8),
        "sclerp": (lambda a, b: dq.sclerp(a, b, 0.4), x8, x8),
    },
    pose: {
        "from_parts": (pose.from_parts, q4, v3), "from_quaternion": (pose.from_quaternion, q4),
        "from_translation": (pose.from_translation, v3), "rotation": (pose.rotation, x8),
        "translation": (pose.translation, x8),
        "to_rotation_matrix": (pose.to_rotation_matrix, x8),
        "from_rotation_matrix": (pose.from_rotation_matrix, rotation_matrix, v3),
        "to_matrix": (pose.to_matrix, x8), "from_matrix": (pose.from_matrix, homogeneous),
        "from_xyz_rpy": (pose.from_xyz_rpy, v3, v3), "to_rpy": (pose.to_rpy, x8),
        "from_axis_angle": (pose.from_axis_angle, unit_axis, array()),
        "to_axis_angle": (pose.to_axis_angle, x8), "compose": (pose.compose, x8, x8, x8),
        "transform_point": (pose.transform_point, x8, v3),
    },
    screw: {
        "adjoint": (screw.adjoint, x8, s6), "adjoint_inverse": (screw.adjoint_inverse, x8, s6),
        "transform": (lambda x: tuple(screw.transform(x)), x8),
        "inertia_diagonal": (inertia_of(screw.inertia_diagonal), mass, v3, I3),
        "to_outer": (lambda x, s: screw.to_outer(screw.transform(x), s), x8, s6),
        "to_inner": (lambda x, s: screw.to_inner(screw.transform(x), s), x8, s6),
        "columns_to_outer": (
            lambda x, S: screw.columns_to_outer(screw.transform(x), S), x8, array(6, 2),
        ),
        "columns_to_inner": (
            lambda x, S: screw.columns_to_inner(screw.transform(x), S), x8, array(6, 2),
        ),
        "transform_matrix": (lambda x: screw.transform_matrix(screw.transform(x)), x8),
        "adjoint_matrix": (screw.adjoint_matrix, x8), "cross": (screw.cross, s6, s6),
        "shift": (screw.shift, s6, v3), "power": (screw.power, s6, s6),
        "inertia": (lambda *a: tuple(screw.inertia(*a)), mass, v3, I3),
        "transform_inertia": (transform_inertia, x8, mass, v3, I3),
        "add_inertia": (add_inertia, mass, v3, I3, mass, v3, I3),
        "inertia_matrix": (inertia_of(screw.inertia_matrix), mass, v3, I3),
        "momentum": (inertia_of(screw.momentum), mass, v3, I3, s6),
        "kinetic_energy": (inertia_of(screw.kinetic_energy), mass, v3, I3, s6),
        "dual_inertia": (screw.dual_inertia, mass, I3), "H": (screw.H, array(8, 8)),
        "H_inverse": (screw.H_inverse, mass, I3),
    },
    tangent: {
        "rotation_vector_rate": (tangent.rotation_vector_rate, v3, v3),
        "angular_velocity": (tangent.angular_velocity, v3, v3),
        "screw_rate": (tangent.screw_rate, s6, s6), "twist": (tangent.twist, s6, s6),
    },
    hermite: {
        name: (getattr(hermite, name), array(3), array(3), array(3), array(3))
        for name in ("value", "rate", "second_rate")
    },
    adjugate: {"adjugate": (adjugate.adjugate, array(4, 4))},
    least_squares: {
        "damped_inverse": (
            lambda A, s, W: least_squares.damped_inverse(A, s, W),
            array(2, 4), array(), positive_definite(4),
        ),
        "projected": (least_squares.projected, array(2, 4), array(4, 2), array(4)),
    },
    linear: {
        "ldl": (linear.ldl, positive_definite(4)),
        "uncancelled": (linear.uncancelled, array(4, 2), array(4)),
        "ldl_solve": (
            lambda A, B: linear.ldl_solve(linear.ldl(A), B), positive_definite(4), array(4, 2),
        ),
        "solve": (linear.solve, positive_definite(4), array(4, 3)),
        "inverse": (linear.inverse, positive_definite(4)),
        "ltdl": (linear.ltdl, positive_definite(4)),
        "ltdl_solve": (
            lambda A, B: linear.ltdl_solve(linear.ltdl(A), B), positive_definite(4), array(4, 2),
        ),
        "ltdl_inverse": (lambda A: linear.ltdl_inverse(linear.ltdl(A)), positive_definite(4)),
        "reciprocal_pivots": (
            lambda A: linear.reciprocal_pivots(linear.ltdl(A)[1], A), positive_definite(4),
        ),
        "forward_substitute": (
            lambda A, B: linear.forward_substitute(linear.ldl(A)[0], B),
            positive_definite(4), array(4, 2),
        ),
        "back_substitute": (
            lambda A, B: linear.back_substitute(linear.ldl(A)[0], B),
            positive_definite(4), array(4, 2),
        ),
        "mirror": (linear.mirror, array(3, 3)),
        "congruence": (linear.congruence, array(4, 3), positive_definite(4)),
    },
    singular_values: {
        "left_svd": (lambda A: left_svd_without_signs(*singular_values.left_svd(A)), array(3, 5)),
        "singular_values": (singular_values.singular_values, array(6, 4)),
        "volume": (singular_values.volume, array(3, 5)),
    },
    kinematics: {
        "poses": (on_robot(rm.poses), state_q), "twists": (on_robot(rm.twists), state_q, v_),
        "accelerations": (on_robot(dynamics.accelerations), state_q, v_, a_),
        "frame_pose": (on_robot(rm.frame_pose, TARGET), state_q),
        "frame_twist": (on_robot(rm.frame_twist, TARGET), state_q, v_),
        "frame_acceleration": (on_robot(dynamics.frame_acceleration, TARGET), state_q, v_, a_),
        "jacobian": (on_robot(rm.jacobian, TARGET, (0.1, 0.2, 0.3)), state_q),
        "jacobian_rate": (on_robot(dynamics.jacobian_rate, TARGET, (0.1, 0.2, 0.3)), state_q, v_),
    },
    solid_inertias: {
        "box_inertia": (rm.box_inertia, mass, lambda g: g.uniform(0.1, 2.0, size=3)),
        "cylinder_inertia": (rm.cylinder_inertia, mass, mass, mass),
        "sphere_inertia": (rm.sphere_inertia, mass, mass),
    },
    momentum: {
        "center_of_mass": (on_robot(rm.center_of_mass), state_q),
        "center_of_mass_jacobian": (on_robot(dynamics.center_of_mass_jacobian), state_q),
        "momentum": (on_robot(rm.momentum), state_q, v_),
        "momentum_matrix": (on_robot(dynamics.momentum_matrix), state_q),
        "centroidal_momentum": (on_robot(dynamics.centroidal_momentum), state_q, v_),
        "centroidal_momentum_matrix": (on_robot(dynamics.centroidal_momentum_matrix), state_q),
        "locked_inertia": (on_robot(dynamics.locked_inertia), state_q),
        "kinetic_energy": (on_robot(rm.kinetic_energy), state_q, v_),
        "potential_energy": (
            lambda q: rm.potential_energy(ROBOT.replace(gravity=np.array([1.0, 2.0, 3.0])), q),
            state_q,
        ),
    },
    floating: {
        "generalized_jacobian": (on_robot(rm.generalized_jacobian, TARGET), state_q),
        "generalized_jacobian_rate": (
            on_robot(dynamics.generalized_jacobian_rate, TARGET), state_q, v_,
        ),
        "base_response": (on_robot(dynamics.base_response), state_q),
        "base_response_rate": (on_robot(dynamics.base_response_rate), state_q, v_),
        "floating_inverse_dynamics": (
            on_robot(dynamics.floating_inverse_dynamics), state_q, v_, array(ROBOT.nv - 6), bodies6,
        ),
    },
    passive_forces: {
        "friction_forces": (on_robot(dynamics.friction_forces), v_),
        "spring_forces": (lambda q: dynamics.spring_forces(LIMITED, q), state_q),
        "stop_forces": (lambda q, v: dynamics.stop_forces(LIMITED, q, v, 100.0, 0.1), state_q, v_),
        "stop_overlaps": (lambda q: passive_forces.stop_overlaps(LIMITED, q), state_q),
        "stop_rates": (lambda v: passive_forces.stop_rates(LIMITED, v), v_),
        "in_contact": (lambda q: passive_forces.in_contact(LIMITED, q), state_q),
        "contact_forces": (
            lambda q, v, contact: passive_forces.contact_forces(LIMITED, q, v, contact, 100.0, 0.1),
            state_q, v_, array(CONTACTS),
        ),
    },
    equations_of_motion: {
        "reduced_rates_near": (
            on_robot(equations_of_motion.reduced_rates_near),
            state_q, array(2 * ROBOT.nv + 3), a_, s6,
        ),
        "passive_loads": (on_robot(equations_of_motion.passive_loads), state_q, v_),
        "actuation": (on_robot(equations_of_motion.actuation), state_q, v_, a_, bodies6),
        "state_derivative": (
            on_robot(equations_of_motion.state_derivative), state_q, v_, v_, a_, bodies6,
        ),
        "state_derivative_near": (
            on_robot(equations_of_motion.state_derivative_near), state_q,
            array(2 * ROBOT.nv + 3), a_, bodies6,
        ),
    },
    variational_midpoint: {
        "lagrangian_slopes": (
            on_robot(variational_midpoint.lagrangian_slopes), state_q, v_, bodies6,
        ),
        "velocity_of": (on_robot(variational_midpoint.velocity_of), state_q, v_),
        "starting_defect": (
            on_robot(variational_midpoint.starting_defect), v_, v_, v_, v_, array(),
        ),
        "ending_momentum": (on_robot(variational_midpoint.ending_momentum), v_, v_, v_, array()),
    },
    formulations: {
        "forward_dynamics": (on_robot(rm.forward_dynamics), state_q, v_, a_, bodies6),
        "inverse_dynamics": (on_robot(rm.inverse_dynamics), state_q, v_, a_, bodies6),
        "hybrid_dynamics": (
            lambda q, v, tau, qdd: rm.hybrid_dynamics(ROBOT, q, v, tau, {"joint_0": qdd}),
            state_q, v_, a_, s6,
        ),
        "newton_euler_solution": (
            lambda *a: tuple(rm.papers.vt18.newton_euler_solution(ROBOT, *a)),
            state_q, v_, a_, bodies6,
        ),
        "reaction_wrenches": (on_robot(rm.reaction_wrenches), state_q, v_, a_, bodies6),
        "mass_matrix": (on_robot(rm.mass_matrix), state_q),
        "coriolis_matrix": (on_robot(rm.coriolis_matrix), state_q, v_),
        "bias_force": (on_robot(rm.bias_force), state_q, v_),
    },
    derivatives: {
        "forward_dynamics_derivatives": (
            on_robot(dynamics.forward_dynamics_derivatives), state_q, v_, a_, bodies6,
        ),
        "constraint_multiplier_derivatives": (
            lambda *a: tuple(loops.constraint_multiplier_derivatives(LINKAGE, *a)),
            array(3), array(3), array(3),
        ),
        "constrained_inverse_dynamics_derivatives": (
            lambda *a: tuple(loops.constrained_inverse_dynamics_derivatives(LINKAGE, *a)),
            array(3), array(3), array(3),
        ),
        "inverse_dynamics_derivatives": (
            on_robot(dynamics.inverse_dynamics_derivatives), state_q, v_, a_, bodies6,
        ),
    },
    regressor: {
        "inertia_regressor": (on_robot(dynamics.inertia_regressor), state_q, v_, a_),
        "inertia_derivatives": (on_robot(dynamics.inertia_derivatives), state_q, v_, a_, bodies6),
    },
    link_jacobians: {
        "energy_matrix": (inertia_of(link_jacobians.energy_matrix), mass, v3, I3),
        "cross_matrix": (link_jacobians.cross_matrix, s6),
        "bracket_matrix": (link_jacobians.bracket_matrix, s6),
        "link_adjoint": (on_robot(link_jacobians.link_adjoint, TARGET), state_q),
        "link_jacobian": (on_robot(link_jacobians.link_jacobian, TARGET), state_q),
        "link_adjoint_partials": (on_robot(link_jacobians.link_adjoint_partials, TARGET), state_q),
        "link_jacobian_partials": (
            on_robot(link_jacobians.link_jacobian_partials, TARGET), state_q,
        ),
    },
    lagrange_equations: {
        "hybrid": (
            lambda q, v, tau, w: lagrange_equations.hybrid(ROBOT, LoadedState(q, v, tau, w)),
            state_q, v_, a_, bodies6,
        ),
        "inverse": (on_robot(lagrange_equations.inverse), state_q, v_, a_, bodies6),
        "mass_matrix_of": (on_robot(lagrange_equations.mass_matrix_of), state_q),
        "mass_matrix_rate_of": (on_robot(lagrange_equations.mass_matrix_rate_of), state_q, v_),
        "momentum_partials_of": (on_robot(lagrange_equations.momentum_partials_of), state_q, v_),
        "bracket_of": (on_robot(lagrange_equations.bracket_of), v_),
        "coriolis_matrix_of": (on_robot(lagrange_equations.coriolis_matrix_of), state_q, v_),
        "mass_matrix_partials": (on_robot(lagrange_equations.mass_matrix_partials), state_q),
        "applied_force_of": (on_robot(lagrange_equations.applied_force_of), state_q, bodies6),
    },
    reduced: {
        "base_velocity": (on_robot(rm.base_velocity), state_q, joints_, s6),
        "reduced_mass_matrix": (on_robot(rm.reduced_mass_matrix), state_q),
        "reduced_coriolis_matrix": (on_robot(rm.reduced_coriolis_matrix), state_q, joints_, s6),
        "reduced_momentum_force": (on_robot(dynamics.reduced_momentum_force), state_q, s6),
        "reduced_forward_dynamics": (
            on_robot(dynamics.reduced_forward_dynamics), state_q, joints_, joints_, s6,
        ),
        "reduced_flow": (on_robot(reduced.reduced_flow), state_q, joints_, joints_, s6),
    },
    center_of_mass_coordinates: {
        "separated_velocity": (on_robot(rm.papers.fpg11.separated_velocity), state_q, v_),
        "separated_mass_matrix": (on_robot(rm.papers.fpg11.separated_mass_matrix), state_q),
        "separated_coriolis_matrix": (
            on_robot(rm.papers.fpg11.separated_coriolis_matrix), state_q, v_,
        ),
    },
    euler_angles: {
        "euler_coordinates": (on_robot(euler_angles.euler_coordinates), state_q, v_),
        "euler_state": (on_robot(euler_angles.euler_state), v_, v_),
        "euler_acceleration": (on_robot(euler_angles.euler_acceleration), v_, v_, a_),
        "rate_matrix": (on_robot(euler_angles.rate_matrix), v_),
        "rate_matrix_inverse": (on_robot(euler_angles.rate_matrix_inverse), v_),
        "body_to_euler_rates": (euler_angles.body_to_euler_rates, array(3)),
        "hybrid": (
            lambda q, v, tau, w: euler_angles.hybrid(ROBOT, LoadedState(q, v, tau, w)),
            state_q, v_, a_, bodies6,
        ),
        "inverse": (on_robot(euler_angles.inverse), state_q, v_, a_, bodies6),
    },
    joint_relations: {
        "joint_twists": (on_robot(dynamics.joint_twists), state_q, bodies6),
        "joint_speeds": (on_robot(dynamics.joint_speeds), state_q, bodies6),
        "generalized_coordinates": (on_robot(rm.papers.vt18.generalized_coordinates), state_q),
        "from_generalized_coordinates": (
            on_robot(rm.papers.vt18.from_generalized_coordinates), array(ROBOT.nv - 6), state_q,
        ),
        "rate_maps": (on_robot(rm.papers.vt18.rate_maps), state_q),
        "joint_accelerations": (on_robot(dynamics.joint_accelerations), state_q, bodies6, bodies6),
        "constraint_violation": (
            on_robot(dynamics.constraint_violation), state_q, v_, bodies6, bodies6,
        ),
    },
    loop_kinematics: {
        "constraint_residual": (on_closed(loops.constraint_residual), state_q),
        "constraint_jacobian": (on_closed(loops.constraint_jacobian), state_q),
        "constraint_bias": (on_closed(loops.constraint_bias), state_q, v_),
    },
    null_space: {
        "constraint_null_space": (
            lambda q: loops.constraint_null_space(LINKAGE, q, ("j2",)), array(3),
        ),
    },
    projection: {
        "project_configuration": (on_closed(loops.project_configuration), state_q),
        "project_velocity": (on_closed(loops.project_velocity), state_q, v_),
        "constraint_projector": (on_closed(loops.constraint_projector), state_q),
        "closing_momentum": (on_closed(projection.closing_momentum), state_q, array(EQUATIONS)),
        "constraint_impulse": (
            lambda *a: tuple(loops.constraint_impulse(CLOSED, *a)), state_q, v_,
        ),
        "held_impulse": (lambda *a: projection.held_impulse(CLOSED, *a), state_q, v_),
    },
    reactions: {
        "constraint_multipliers": (
            on_closed(loops.constraint_multipliers), state_q, v_, a_, bodies6,
        ),
        "constraint_wrenches": (on_closed(rm.constraint_wrenches), state_q, v_, a_, bodies6),
        "wrenches_of": (on_closed(reactions.wrenches_of), state_q, array(EQUATIONS)),
        "loop_loads": (on_closed(reactions.loop_loads), state_q, array(EQUATIONS)),
    },
    rm: {
        "jacobian_world": (on_robot(rm.jacobian, TARGET, (0.1, 0.2, 0.3), "world"), state_q),
        "jacobian_rate_world": (
            on_robot(dynamics.jacobian_rate, TARGET, (0.1, 0.2, 0.3), "world"), state_q, v_,
        ),
        "configuration": (
            lambda x, angle: rm.configuration(SERVICER, {"elbow_pitch": angle}, base=x), x8, array()
        ),
        "velocity": (
            lambda xi, speed: rm.velocity(SERVICER, {"elbow_pitch": speed}, base=xi), s6, array()
        ),
        "by_joint": (lambda q: tuple(rm.by_joint(ROBOT, q).values()), state_q),
        "integrate": (on_robot(rm.integrate), state_q, v_),
        "difference": (on_robot(rm.difference), state_q, state_q),
        "normalize": (on_robot(rm.normalize), state_q),
        "increment": (on_robot(state.increment), state_q, v_),
        "compensated_sum": (sum_of_q_and_v, state_q, v_, v_, v_),
        "task_errors": (task_errors, state_q, x8, v3),
        "task_jacobian": (on_robot(task_equations.task_jacobian, TASK_SPECS), state_q),
        "task_biases": (on_robot(task_equations.task_biases, TASK_SPECS), state_q, v_),
        "log_rate": (on_robot(state.log_rate), v_, v_),
        "log_velocity": (on_robot(state.log_velocity), v_, v_),
        "manipulability": (ellipsoid("fixed", "kinematic"), state_q),
        "static_manipulability": (ellipsoid("floating", "static"), state_q),
        "dynamic_manipulability": (ellipsoid("flying", "dynamic"), state_q),
    },
}  # fmt: skip

CASES = {
    f"{module.__name__.split('.')[-1]}.{name}": row
    for module, rows in TABLE.items()
    for name, row in rows.items()
}

# Constants, checks, and things that take no arrays.
LEFT_OUT = {
    "identity", "prescribed_by_index", "momentum_per_speed", "inertia_parameters",
    "checked_arguments", "finite_result", "links_of", "screw_partials", "reduction",
    "velocity_force",
    "require_free_base", "usual_formulation", "has_spring", "active_constraints", "branches",
    "loop_at", "loops_at", "relative_pose", "row_response", "independent_speeds",
    "runge_kutta_step",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_three_ways(name, rng):
    row = CASES[name]
    function, *makers = row
    # solving with the whole robot's inertia magnifies rounding by its condition, here about 1e3
    solving = (
        "formulations", "floating", "derivatives", "regressor", "equations_of_motion",
        "variational", "reduced", "center_of_mass_coordinates", "euler_angles", "projection",
        "reactions",
    )  # fmt: skip
    rounding = (
        1e-12 if name.startswith((*solving, "singular_values")) or "ability" in name else 1e-14
    )
    batch = [[make(rng) for make in makers] for _ in range(6)]
    single = [_outputs(function(*arguments)) for arguments in batch]

    stacked = [
        np.stack(column).reshape(2, 3, *np.shape(column[0])) for column in zip(*batch, strict=True)
    ]
    for k, many in enumerate(_outputs(function(*stacked))):
        expected = np.stack([outputs[k] for outputs in single])
        assert_close(many, expected.reshape(2, 3, *expected.shape[1:]), rtol=rounding)

    for one, symbolic in zip(single[0], traced(function, batch[0]), strict=True):
        assert_close(symbolic, one, rtol=10.0 * rounding)


@pytest.mark.parametrize("module", [r for r in TABLE if r is not rm], ids=lambda r: r.__name__)
def test_the_table_is_complete(module):
    public = {
        name
        for name, member in inspect.getmembers(module, inspect.isfunction)
        if member.__module__ == module.__name__ and name == member.__name__ and name[0] != "_"
    }
    assert public - LEFT_OUT == set(TABLE[module])


def _outputs(result):
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]
