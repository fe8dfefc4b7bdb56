"""FPG11: its equations, the functions and tests of each.

Rows: number or range of numbers, what, functions, test, note.
"""

from __future__ import annotations

_LAGRANGE = "dynamics/lagrangian/test_lagrange_equations.py"
_REDUCED = "dynamics/lagrangian/test_reduced.py"
_EULER = "dynamics/lagrangian/test_euler_angles.py"
_DEM = "dynamics/lagrangian/test_equivalent.py"
_TWIN = f"{_DEM}::test_inertia_accelerations_momentum_and_tool"
_PARTIALS = f"{_LAGRANGE}::test_every_partial_derivative_is_casadis"
_AD = f"{_LAGRANGE}::test_the_printed_ad_term_is_wrong_on_se3_and_right_on_so3"
_M = f"{_LAGRANGE}::test_mass_matrix_is_the_sum_over_the_links"
_C = f"{_LAGRANGE}::test_coriolis_matrix"
_H = f"{_LAGRANGE}::test_selection_matrices_of_the_bases"
_DYNAMICS = f"{_LAGRANGE}::test_pinocchio"
_MOMENTUM = "remora.dynamics.lagrangian.lagrange_equations.momentum_partials_of"
_CROSS = "remora.dynamics.lagrangian.link_jacobians.cross_matrix"
_BRACKET = "remora.dynamics.lagrangian.link_jacobians.bracket_matrix"
_WRONG_AD = "correction: for [v, ω] the term is −[0 p̂; p̂ l̂]; printed −[l̂ p̂; 0 l̂], from (7)"

ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    ("Figure 1", "spacecraft, arm and frames", "", "", "a drawing"),
    ("1", "pose of a link as a homogeneous matrix", "rm.poses remora.algebra.pose.to_matrix",
     "algebra/test_dual_quaternion.py::test_poses_are_homogeneous_matrices",
     "poses are dual quaternions"),
    ("2", "g_0i = g_0b g_bi(q)", "rm.poses",
     "dynamics/test_pinocchio_kinematics.py::test_against_pinocchio",
     "frames of links are those of the file, not principal axes at centres of mass"),
    ("3", "selection matrix H of the base", "rm.papers.fpg11.link_jacobian", _H,
     "the motion subspace of the base's joint: any of the ten kinds"),
    ("4", "twist of a link", "rm.papers.fpg11.link_jacobian rm.twists", _M,
     "[ω, v], body axes; Ad of link_adjoint"),
    ("5", "exponential map of SE(3)", "remora.algebra.dual_quaternion.exp rm.integrate",
     "algebra/test_dual_quaternion.py::test_exp_and_log_to_full_precision", ""),
    ("6", "M(Q) v̇ + C(Q, v) v = τ", "rm.forward_dynamics rm.inverse_dynamics", _DYNAMICS,
     'formulation="lagrangian"'),
    ("7", "C of the local coordinates", "rm.coriolis_matrix", _AD,
     "correction: indices of S, S⁻¹_mi (∂S_km/∂φ_s − ∂S_ks/∂φ_m) S⁻¹_sj M_kl v_l"),
    ("8", "kinetic energy of a link", "rm.kinetic_energy",
     "dynamics/test_kinematics.py::test_momentum_and_energy_body_by_body", "of the whole robot"),
    ("9-10", "inertia matrix of a link, and of the robot", "rm.mass_matrix", _M,
     'formulation="lagrangian"'),
    ("11", "the equations of motion in blocks", "rm.forward_dynamics", _DYNAMICS,
     'formulation="lagrangian"; slices of v: robot.joints[0].v'),
    ("12", "rates of a unit quaternion", "rm.integrate remora.algebra.quaternion.mul",
     "model/test_joints.py::test_screws_are_the_derivative_of_the_pose_and_rate_theirs",
     "correction: the identity for I_b; with ω in inertial axes the sign is η 1 − ε̂"),
    ("13", "attitude dynamics", "rm.inverse_dynamics", _DYNAMICS,
     "correction: ω in body axes, where I_b is constant"),
    ("14", "equations of motion of spacecraft and arm", "rm.forward_dynamics", _DYNAMICS, ""),
    ("15", "inertia matrix with the centre of mass apart",
     "rm.papers.fpg11.separated_mass_matrix rm.papers.fpg11.separated_velocity "
     "rm.papers.fpg11.separated_coriolis_matrix",
     f"{_REDUCED}::test_the_translation_of_the_centre_of_mass_separates", "order [ω, ċ, q̇]"),
    ("16-17", "rates of Euler angles",
     "remora.dynamics.lagrangian.euler_angles.rate_matrix_inverse "
     "remora.dynamics.lagrangian.euler_angles.euler_coordinates",
     f"{_EULER}::test_the_rates_are_fpg11s_matrix",
     "correction: ω in body axes; singular at a pitch of ±90°"),
    ("18", "the reduced equations", "rm.dynamics.reduced_forward_dynamics",
     f"{_REDUCED}::test_the_full_and_the_reduced_model_agree_on_60_trees",
     "printed for zero momentum; here for any"),
    ("19", "the base's motion from momentum", "rm.base_velocity",
     f"{_REDUCED}::test_base_velocity_from_momentum",
     "printed for zero momentum; M_ωω is that of (15), on SE(3) M_VV"),
    ("20", "the equations of motion on SE(3)", "rm.forward_dynamics", _DYNAMICS,
     'formulation="lagrangian"'),
    ("21", "S on SE(3), ad", f"remora.algebra.tangent.twist {_CROSS}",
     "algebra/test_tangent.py::test_twist_is_that_of_exp", "tangent.twist(φ, φ̇) is S φ̇, [ω, v]"),
    ("22", "C_VV", "rm.coriolis_matrix", _AD, f"{_WRONG_AD}; the sum runs to n"),
    ("23", "C_Vq", "rm.coriolis_matrix", _C, "correction: the sum runs to n"),
    ("24-25", "C_qV, C_qq", "rm.coriolis_matrix", _C, 'formulation="lagrangian"'),
    ("26", "C", "rm.coriolis_matrix", _C,
     f"{_WRONG_AD}; vᵀ(Ṁ − 2C)v = 0, but Ṁ − 2C is not skew-symmetric"),
    ("27", "H on SO(3)", "rm.papers.fpg11.link_jacobian", _H, "a spherical base"),
    ("28", "kinetic energy on SO(3)", "rm.papers.fpg11.separated_mass_matrix",
     f"{_REDUCED}::test_eq_28_pins_the_base",
     "correction: with H of (27) this is a robot pinned at its base; a floating one has M_s of "
     "separated_mass_matrix"),
    ("29", "S on SO(3)", "remora.algebra.tangent.angular_velocity",
     "algebra/test_tangent.py::test_angular_velocity_is_that_of_exp",
     "tangent.angular_velocity(φ, φ̇) is S φ̇"),
    ("30", "C_VV on SO(3)", "rm.coriolis_matrix", _AD, "the sum runs to n"),
    ("31", "reduced inertia matrix", "rm.reduced_mass_matrix",
     f"{_REDUCED}::test_mass_matrix_coriolis_matrix_and_momentum_force",
     "correction: n × n, with M_VV of SE(3), 6 × 6"),
    ("32", "reduced Coriolis matrix", "rm.reduced_coriolis_matrix",
     f"{_REDUCED}::test_eq_32_as_printed_for_an_arm",
     "correction: ∂ᵀ(M_r q̇)/∂q; printed for zero momentum, here for any"),
    ("33", "kinetic energy of the space manipulator", "rm.kinetic_energy",
     "dynamics/test_kinematics.py::test_momentum_and_energy_body_by_body",
     "relative to the centre of mass"),
    ("34", "kinetic energy of the equivalent manipulator",
     "rm.equivalent_manipulator rm.kinetic_energy", _TWIN, ""),
    ("35-38", "masses, inertias and lengths of the equivalent manipulator",
     "rm.equivalent_manipulator", f"{_DEM}::test_the_printed_mapping",
     "serial chains; the mass of the first body is free"),
    ("39", "kinetic energy of a link", "rm.papers.fpg11.separated_mass_matrix",
     f"{_REDUCED}::test_eq_28_pins_the_base", "correction: as (28)"),
    ("40", "inertia matrix of a link", "rm.mass_matrix", _M, "as (9)"),
    ("41", "inertia matrix of the equivalent manipulator",
     "rm.equivalent_manipulator rm.mass_matrix", _TWIN, ""),
    ("42", "its first block", "rm.equivalent_manipulator", _TWIN, "inertia of the base, unchanged"),
    ("43", "its Coriolis matrix", "rm.equivalent_manipulator rm.coriolis_matrix", _TWIN, ""),
    ("44", "its equations of motion",
     "rm.equivalent_manipulator rm.papers.fpg11.equivalent_state rm.forward_dynamics", _TWIN, ""),
    ("A.1", "∂M/∂q_k", "rm.dynamics.mass_matrix_partials", _PARTIALS,
     "summed over the links first, most of it cancels"),
    ("Proposition A.1", "∂Ad/∂q_k", "rm.papers.fpg11.link_adjoint_partials", _PARTIALS, ""),
    ("A.2-A.3", "∂Ad/∂q_k, derived", "rm.papers.fpg11.link_adjoint_partials", _PARTIALS,
     "twists are [ω, v]; the blocks of the paper, of [v, ω], are swapped"),
    ("B.1", "Jacobian of a link", "rm.papers.fpg11.link_jacobian", _M, "with the columns of H"),
    ("B.2", "∂J_i/∂q_k", "rm.papers.fpg11.link_jacobian_partials", _PARTIALS,
     "correction: zero blocks are 6 × k and 6 × (n − i)"),
    ("C.1-C.2", "rows of ∂ᵀ(Mv)/∂q on SO(3)", _MOMENTUM, _C,
     "row k is the derivative by q_k"),
    ("C.3", "x = (Mv)_V", "rm.mass_matrix", _M, "M v; for a free base the momentum in its axes"),
    ("C.4", "ad_x on SO(3)", _BRACKET, _AD,
     "the function returns -ad_x, as it enters (22): -x̂ where the paper prints x̂"),
    ("C.5", "ad_x on SE(3)", _BRACKET, _AD, _WRONG_AD),
    ("C.6-C.7", "rows of ∂ᵀ(Mv)/∂q on SE(3)", _MOMENTUM, _C, ""),
)  # fmt: skip
