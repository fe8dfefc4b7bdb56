"""VT18: its equations, tables, lemmas, figures and algorithm, the functions and tests of each.

Rows: number or range of numbers, what, functions, test, note.
"""

from __future__ import annotations

_QUATERNION = "remora.algebra.quaternion"
_DUAL = "remora.algebra.dual_quaternion"
_SCREW = "remora.algebra.screw"
_Q_TEST = "algebra/test_quaternion.py"
_D_TEST = "algebra/test_dual_quaternion.py"
_S_TEST = "algebra/test_screw.py"
_TREE = "model/test_topology.py::test_example_1"
_ACROSS = "dynamics/test_kinematics.py::test_relations_across_the_joints"
_SYSTEM = "dynamics/test_newton_euler.py::test_dense_system_is_vt18s"
_PUBLIC = "dynamics/test_newton_euler.py::test_public_system"
_HELD = "dynamics/test_prescribed.py"
_REDUCED = f"{_HELD}::test_against_the_reduced_system_of_vt18"
_STATES = "papers/test_integrated_states.py"
_RUN = "simulation/test_vt18.py"
_SOLVE = "remora.dynamics.maximal.saddle_point.solve rm.papers.vt18.newton_euler_solution"
_S = "rm.papers.vt18.newton_euler_system"
_RATES = "model/test_joints.py::test_screws_are_the_derivative_of_the_pose_and_rate_theirs"
_GENERALIZED = "dynamics/test_newton_euler.py::test_generalized_coordinates_of_tables_3_and_6"
_HYBRID = "rm.hybrid_dynamics rm.papers.vt18.newton_euler_solution"
_KEPT = (
    "the system keeps its structure: the constraint of a prescribed joint also has its degrees of "
    "freedom, and the actuation is part of T; see docs/dynamics.md"
)
_IN_SIX = "wrenches and twists have six components here, [f, τ] and [ω, v]"

ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    ("Table 1", "operations on quaternions",
     f"{_QUATERNION}.mul {_QUATERNION}.conjugate {_QUATERNION}.dot {_QUATERNION}.cross "
     f"{_QUATERNION}.norm", f"{_Q_TEST}::test_table_1_identities", ""),
    ("1", "[s]× of a vector quaternion", f"{_QUATERNION}.skew remora.algebra.vector.skew",
     f"{_Q_TEST}::test_table_1_identities", ""),
    ("2-4", "left and right multiplication by matrices", f"{_QUATERNION}.left {_QUATERNION}.right",
     f"{_Q_TEST}::test_table_1_identities", ""),
    ("5", "rates of a unit quaternion", "rm.integrate", _RATES,
     "½ q ω in the steps of integrators"),
    ("6", "the group of dual quaternions", f"{_DUAL}.mul", f"{_D_TEST}::test_table_2_identities",
     "arrays (..., 8), real part then dual part"),
    ("Table 2", "operations on dual quaternions",
     f"{_DUAL}.mul {_DUAL}.conjugate {_DUAL}.dot {_DUAL}.cross {_DUAL}.circle {_DUAL}.swap "
     f"{_DUAL}.norm {_DUAL}.vec", f"{_D_TEST}::test_table_2_identities", ""),
    ("7", "[s]× of a vector dual quaternion", f"{_DUAL}.skew",
     f"{_D_TEST}::test_table_2_identities", ""),
    ("8-9", "left and right multiplication by matrices", f"{_DUAL}.left {_DUAL}.right",
     f"{_D_TEST}::test_table_2_identities", ""),
    ("Lemma 1", "the cross product is invariant", f"{_DUAL}.cross",
     f"{_D_TEST}::test_lemma_1_cross_product_is_invariant", ""),
    ("10", "the cross product is invariant", f"{_DUAL}.cross",
     f"{_D_TEST}::test_lemma_1_cross_product_is_invariant", ""),
    ("11", "proof of Lemma 1", f"{_DUAL}.cross",
     f"{_D_TEST}::test_lemma_1_cross_product_is_invariant",
     "correction: the first line lacks the ½ of Table 2"),
    ("Lemma 2", "left and right multiplications undo each other", f"{_DUAL}.left {_DUAL}.right",
     f"{_D_TEST}::test_lemma_2_multiplication_matrices_undo_each_other", ""),
    ("12-13", "left and right multiplications undo each other", f"{_DUAL}.left {_DUAL}.right",
     f"{_D_TEST}::test_lemma_2_multiplication_matrices_undo_each_other", ""),
    ("14", "dual velocity in another frame", f"{_SCREW}.adjoint {_SCREW}.adjoint_inverse",
     f"{_S_TEST}::test_adjoint_is_the_dual_quaternion_sandwich", _IN_SIX),
    ("15", "rates of a pose", "rm.integrate", _RATES, "½ q ω in the steps of integrators"),
    ("16", "wrenches", f"{_SCREW}.adjoint", f"{_S_TEST}::test_shifting_law", _IN_SIX),
    ("17", "a wrench about another point", f"{_SCREW}.shift", f"{_S_TEST}::test_shifting_law", ""),
    ("Figure 1", "a wrench about two points", "", "", "a drawing"),
    ("18-21", "frame transformations of wrenches and twists",
     f"{_SCREW}.adjoint {_SCREW}.adjoint_inverse",
     f"{_S_TEST}::test_adjoint_is_the_dual_quaternion_sandwich", _IN_SIX),
    ("22", "dual inertia matrix", f"{_SCREW}.dual_inertia",
     f"{_S_TEST}::test_lemma_3_and_momentum_in_eight_components", ""),
    ("23", "dual momentum", f"{_SCREW}.momentum",
     f"{_S_TEST}::test_lemma_3_and_momentum_in_eight_components", ""),
    ("24", "kinetic energy of a body", f"{_SCREW}.kinetic_energy",
     f"{_S_TEST}::test_lemma_3_and_momentum_in_eight_components", ""),
    ("25-27", "H(M), which takes the place of the swap", f"{_SCREW}.H",
     f"{_S_TEST}::test_lemma_3_and_momentum_in_eight_components", ""),
    ("28", "dual momentum by H(M)", f"{_SCREW}.H {_SCREW}.inertia_matrix",
     f"{_S_TEST}::test_lemma_3_and_momentum_in_eight_components", ""),
    ("Lemma 3", "the inverse of H(M)", f"{_SCREW}.H_inverse",
     f"{_S_TEST}::test_lemma_3_and_momentum_in_eight_components", ""),
    ("29", "the inverse of H(M)", f"{_SCREW}.H_inverse",
     f"{_S_TEST}::test_lemma_3_and_momentum_in_eight_components", ""),
    ("30", "dual momentum of a system", "rm.momentum",
     "dynamics/test_kinematics.py::test_momentum_and_energy_body_by_body", ""),
    ("31", "kinetic energy of a system", "rm.kinetic_energy",
     "dynamics/test_kinematics.py::test_momentum_and_energy_body_by_body", ""),
    ("32-33", "Newton-Euler equation of a body", f"{_SCREW}.momentum {_SCREW}.cross",
     f"{_S_TEST}::test_newton_euler_of_one_body", ""),
    ("Figure 2", "a two-arm spacecraft and its tree", "rm.topology.incidence_matrix", _TREE,
     "a drawing"),
    ("34", "incidence matrix C", "rm.topology.incidence_matrix", _TREE,
     "the base is on joint 0 here: C of the paper is incidence_matrix(robot)[1:]"),
    ("35", "branch termination vector T", "rm.topology.branch_terminations", _TREE, ""),
    ("Figure 3", "an arm on a satellite", "rm.load",
     "model/test_bundled_robots.py::test_vt18_satellite", "the bundled robot vt18_satellite"),
    ("36-37", "C and T of Figure 3", "rm.topology.incidence_matrix rm.topology.branch_terminations",
     _TREE, ""),
    ("38-40", "N(·) and P(·)", "rm.topology.negatives rm.topology.positives rm.topology.leaves",
     _TREE, ""),
    ("41", "y, the dual velocities of all bodies", f"{_S} rm.twists", _PUBLIC,
     "newton_euler_system has them about the centres of mass, in eight components"),
    ("Table 3", "generalized coordinates of joints",
     "rm.papers.vt18.generalized_coordinates rm.papers.vt18.from_generalized_coordinates",
     _GENERALIZED, "q has a quaternion of a spherical joint, these Euler angles 3-2-1; U is "
     "`cartesian` here"),
    ("42", "Γ, the generalized coordinates", "rm.papers.vt18.generalized_coordinates",
     _GENERALIZED, ""),
    ("43", "the state x", "rm.papers.integrate_state remora.papers.integrated_states.vt18_rates",
     f"{_STATES}::test_a_run_is_that_of_simulate", 'state "VT18"; rm.simulate integrates q and v'),
    ("Figure 4", "frames and wrenches of a joint", "", "",
     "a drawing; the paper's joint frame i is the frame of body i here"),
    ("44", "T, the reduced reaction wrenches", _S, _PUBLIC,
     "correction: its last entry names joint B, there are B − 1"),
    ("Table 4", "reduced reaction wrenches, V and Λ", f"remora.model.joints.reaction_basis {_S}",
     "dynamics/test_newton_euler.py::test_lambda_and_l_are_vt18s_tables_4_and_6", ""),
    ("Table 5", "actuation wrenches, V_act", f"remora.model.joints.actuation_basis {_S}",
     "dynamics/test_newton_euler.py::test_maps_are_vt18s_tables_4_and_5",
     "a cylindrical joint's forces are ordered as its speeds, [τ, f]"),
    ("45", "rates of the base's pose", "rm.integrate", _RATES, ""),
    ("46", "dual velocity of a joint", "rm.dynamics.joint_twists", _ACROSS, ""),
    ("47", "rates of the generalized coordinates", "rm.dynamics.joint_speeds", _ACROSS, ""),
    ("Table 6", "L, from dual velocity to rates", f"rm.papers.vt18.rate_maps {_S}", _GENERALIZED,
     "singular at a pitch of 90°"),
    ("48", "dual acceleration of a joint",
     "rm.dynamics.joint_accelerations rm.dynamics.joint_twists", _ACROSS, ""),
    ("49", "the constraint of a joint", "rm.dynamics.constraint_violation", _ACROSS, ""),
    ("50", "S [ẏ; T] = B", _S, _SYSTEM, ""),
    ("51-54", "the blocks of S", _S, _SYSTEM, ""),
    ("55-56", "B_1 and B_2", _S, _SYSTEM, "also Ṡ v, of joints whose screws depend on q"),
    ("57", "S", _S, _PUBLIC, ""),
    ("58-60", "solution by the Schur complement", _SOLVE, _SYSTEM, "without forming S"),
    ("61-62", "prescribed motion of a joint", _HYBRID, _REDUCED,
     "prescribed={joint: acceleration}; q and v have its motion"),
    ("63-64", "velocity and acceleration of the distal body",
     f"remora.dynamics.recursive.outward_pass.accelerations_of {_HYBRID}", _REDUCED, ""),
    ("65-70", "equations of the bodies at a prescribed joint", _HYBRID, _REDUCED, _KEPT),
    ("71", "the system with a prescribed joint", _HYBRID,
     f"{_HELD}::test_equation_71_as_printed_is_regular_and_wrong",
     "correction: as printed it is regular and wrong; with (64) put in and all eight rows of the "
     "distal body it is right"),
    ("72", "S_act,2 = 0", _HYBRID, _REDUCED, _KEPT),
    ("73", "S_act,1", _HYBRID, _REDUCED, "correction: j = i + 1 for j = i"),
    ("74", "B̂_1", _HYBRID, _REDUCED, _KEPT),
    ("75", "Υ", _HYBRID,
     f"{_HELD}::test_equation_71_with_the_accelerations_put_in_lacks_equations",
     "correction: j = i + 1 for j = i; reduced by Υ, the system lacks equations"),
    ("76", "the matrix of (71)", _S, "dynamics/test_newton_euler.py::test_matrix_of_equation_76",
     "newton_euler_system(..., prescribed=...); correction: [V V_act]ᵀ for Υ along V_act alone"),
    ("Algorithm 1", "the framework, step by step",
     "rm.papers.integrate_state rm.papers.vt18.newton_euler_system",
     f"{_STATES}::test_a_run_is_that_of_simulate",
     "line by line in docs/vt18.md; line 17 reads \"Ŝ21 from Ŝ21\""),
    ("77-78", "pulses at the joints", "rm.Pulse rm.simulate",
     f"{_RUN}::test_kinetic_energy_is_constant_between_pulses_and_equals_the_work",
     "the wrenches act at O_1 to O_3"),
    ("Figure 5", "centre of mass, energy and condition of S",
     f"remora.dynamics.maximal.newton_euler.system {_S}",
     f"{_RUN}::test_condition_number_of_s", "docs/vt18.md"),
    ("Figure 6", "drift of two formulations",
     "rm.papers.integrate_state remora.papers.integrated_states.decoupled_rates",
     f"{_STATES}::test_linear_functions_of_the_state_do_not_drift",
     "which state is integrated decides what drifts: docs/vt18.md"),
    ("Figure 7", "a two-arm satellite", "rm.load",
     "model/test_bundled_robots.py::test_vt18_two_arm", "the bundled robot vt18_two_arm"),
    ("Figure 8", "frames and wrenches of the two-arm satellite", "", "", "a drawing"),
)  # fmt: skip
