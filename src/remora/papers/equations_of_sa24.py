"""SA24: its equations, algorithms, tables and figures, the functions and tests of each.

Rows: number or range of numbers, what, functions, test, note.
"""

from __future__ import annotations

_ASSEMBLY = "dynamics/assembly/test_composition.py"
_TREES = f"{_ASSEMBLY}::test_inverse_dynamics_of_100_random_trees_cut_at_random_joints"
_GRAPH = "dynamics/assembly/test_interconnection_graph.py"
_SPLIT = "dynamics/assembly/test_mass_center_wrenches.py::test_the_split_of_the_paper"
_WRENCHES = (
    "dynamics/assembly/test_mass_center_wrenches.py::test_the_wrenches_are_those_of_the_assembly"
)
_CONTROL = "control/test_end_effector_wrench.py"
_PRINTED = f"{_CONTROL}::test_the_printed_law_is_a_transposed_jacobian_with_gravity"
_BOX = "dynamics/assembly/test_black_box.py::test_black_boxes_with_exact_data_in_random_trees"
_PAGE = "test_docs.py::test_what_a_page_says_is_true"
_FILES = "simulation/test_assembly_file.py"
_JOINTS = "model/test_joints.py::test_screws_are_the_derivative_of_the_pose_and_rate_theirs"
_MODULE = "remora.dynamics.assembly.robot_module"
_COMPOSED = "rm.Assembly.inverse_dynamics rm.Assembly.joint_loads"
_GRAPH_OF = "rm.Assembly.graph rm.papers.sa24.InterconnectionGraph"

ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    ("Figure 1", "the 24-degree-of-freedom branched robot", "rm.load_assembly",
     f"{_FILES}::test_bundled_assemblies",
     "the bundled assembly sa24_branched; picture in docs/sa24.md"),
    ("Table I", "features of published methods", "", "", "a survey"),
    ("1", "W_i, from twists to wrenches of a subsystem",
     "rm.papers.sa24.joint_wrenches rm.papers.sa24.Subsystem", f"{_WRENCHES}_in_other_frames",
     "joint_wrenches for a robot; a user's object has the methods of Subsystem"),
    ("2", "Γ_i = W_i(Ξ_i) + Σ Γ_ji, Ξ_i = Ξ_{p_i,i} + Ξ_{i,i}",
     f"rm.Assembly.joint_loads {_GRAPH_OF}",
     f"{_GRAPH}::test_twist_edges_add_up_to_the_twists_of_the_robot",
     "here in the frames of the bodies, about their origins"),
    ("Figure 2", "propagation of twists and wrenches", "", "", "a drawing"),
    ("3", "Example 1, two subsystems", _COMPOSED, _TREES, ""),
    ("4", "interconnection matrix A", "remora.dynamics.assembly.interconnection_graph."
     "InterconnectionGraph.A rm.Assembly.graph", f"{_GRAPH}::test_the_matrix_of_example_2", ""),
    ("Figure 3", "graph of two subsystems", _GRAPH_OF,
     f"{_GRAPH}::test_the_picture_has_circles_squares_and_both_kinds_of_edges",
     "InterconnectionGraph.plot"),
    ("Example 2", "A of the branched robot", "rm.Assembly.graph",
     f"{_GRAPH}::test_the_matrix_of_example_2", ""),
    ("Proposition 3", "Γ_total = A 1", "remora.dynamics.assembly.interconnection_graph."
     "InterconnectionGraph.total",
     f"{_GRAPH}::test_a_1_is_the_wrench_at_every_joint_of_random_trees", ""),
    ("5", "Γ_total = A 1", "remora.dynamics.assembly.interconnection_graph."
     "InterconnectionGraph.total",
     f"{_GRAPH}::test_a_1_is_the_wrench_at_every_joint_of_random_trees", ""),
    ("Figure 4", "graph of the branched robot", _GRAPH_OF,
     f"{_GRAPH}::test_the_picture_has_circles_squares_and_both_kinds_of_edges",
     "docs/pictures/assembly_graph.png"),
    ("Algorithm 1", "composition", "rm.Assembly.inverse_dynamics", _TREES,
     "correction: line 2 returns (X, Ξ, Ξ̇)"),
    ("Algorithm 2", "twists and their rates, outward", _COMPOSED, _TREES,
     "correction: line 29, as in Algorithm 1"),
    ("6-7", "twists of the connection point at the bodies, and their rates",
     f"{_MODULE}.start_inverse rm.Assembly.graph",
     f"{_GRAPH}::test_twist_edges_add_up_to_the_twists_of_the_robot",
     "InterconnectionGraph.twists has them; of centres of mass, mass_center_motions"),
    ("Algorithm 3", "wrenches, inward", _COMPOSED, _TREES,
     "correction: the root has no predecessor, a guard is missing in line 7"),
    ("8", "wrenches of a connection point at the joints",
     f"{_MODULE}.finish_inverse rm.Assembly.graph",
     f"{_GRAPH}::test_a_1_is_the_wrench_at_every_joint_of_random_trees",
     "correction: poses run from 0 to η − 1"),
    ("Algorithm 4", "Newton-Euler algorithm of a serial mechanism",
     "rm.papers.sa24.joint_wrenches rm.inverse_dynamics", _SPLIT,
     "correction: a helical joint adds one dimension"),
    ("Algorithm 5", "twists of the centres of mass and their rates",
     "rm.papers.sa24.mass_center_motions", _SPLIT, "correction: dots in lines 8 and 9"),
    ("Algorithm 6", "twists of joints", "remora.model.joints.motion_subspace", _JOINTS,
     "planar and 6-DoF joints: speeds are those of the moved body, the paper's are about the "
     "origin of frame i − 1"),
    ("Algorithm 7", "wrenches at the joints", "rm.papers.sa24.joint_wrenches", _SPLIT,
     "correction: dots on the first terms of lines 5 and 6; line 2 has the wrench that the robot "
     "exerts, `wrenches` the one that acts on it"),
    ("Example 4", "Example 1 with dual quaternions", _COMPOSED, _TREES, ""),
    ("9", "Γ = N(X, Ξ, Ξ̇) and its parts",
     "rm.papers.sa24.joint_wrenches rm.papers.sa24.wrench_parts", _SPLIT,
     "correction: gravity is in each part as printed, and counts once here; "
     "rm.Assembly.wrench_parts splits by v and v̇"),
    ("10", "N̄, with wrenches at end-effectors",
     "rm.papers.sa24.joint_wrenches rm.papers.sa24.wrench_parts", _SPLIT, "as for (9)"),
    ("11", "feedback U of an end-effector", "remora.control.end_effector_wrench.pose_feedback",
     f"{_CONTROL}::test_feedback_on_a_moving_target_is_the_error_dynamics",
     "moving targets: inputs pose_0, twist_0, twist_rate_0 of EndEffectorWrenchControl"),
    ("12", "wrenches of the joints for control",
     "rm.control.EndEffectorWrenchControl remora.control.end_effector_wrench.printed_law "
     "remora.control.end_effector_wrench.assembly_law",
     _PRINTED, 'law="printed": a Jacobian transpose with gravity compensation; '
     'law="linearizing" linearizes'),
    ("Figure 5", "the 30-degree-of-freedom mobile robot", "rm.load_assembly",
     f"{_FILES}::test_bundled_assemblies",
     "the bundled assembly sa24_mobile; picture in docs/sa24.md"),
    ("Table II", "errors of the branched robot", "rm.load_assembly rm.Assembly.inverse_dynamics",
     _PAGE, "docs/sa24.md, in MuJoCo and against Pinocchio, with what the figures depend on"),
    ("Figure 6", "waveforms of three joints", "rm.analysis.low_pass rm.analysis.differentiate",
     _PAGE, "docs/sa24.md"),
    ("13", "A′ of the mobile robot", "rm.Assembly.graph",
     f"{_GRAPH}::test_black_boxes_have_a_column_and_no_rows", ""),
    ("Figure 7", "graph of the mobile robot", _GRAPH_OF,
     f"{_GRAPH}::test_the_picture_has_circles_squares_and_both_kinds_of_edges",
     "InterconnectionGraph.plot"),
    ("Table III", "errors of the mobile robot with a black box",
     "rm.BlackBox rm.papers.sa24.SensorRecording", _PAGE, "docs/sa24.md"),
    ("footnote 15", "sign of a force-torque sensor", "rm.BlackBox",
     "dynamics/assembly/test_black_box.py::test_the_sign_of_a_sensor", 'sensor="reaction"'),
    ("Figure 8", "waveforms of three joints of the mobile robot", "rm.BlackBox", _BOX,
     "docs/pictures/sa24_waveforms.png"),
    ("Figure 9", "errors of five end-effectors", "rm.control.EndEffectorWrenchControl",
     f"{_CONTROL}::test_closed_loops_settle", "docs/pictures/sa24_figure_9.png"),
    ("14", "the error of all end-effectors",
     "remora.control.end_effector_wrench.EndEffectorWrenchControl.errors",
     f"{_CONTROL}::test_closed_loops_settle", "errors has the norm of each"),
    ("15", "Ad(x) ξ", "remora.algebra.screw.adjoint",
     "algebra/test_screw.py::test_adjoint_is_the_dual_quaternion_sandwich", ""),
    ("16", "Ad_n(X) a", "remora.algebra.screw.adjoint",
     "algebra/test_screw.py::test_adjoint_is_the_dual_quaternion_sandwich",
     "the same function on a batch of poses"),
    ("appendix A", "logarithm of a pose", "remora.control.end_effector_wrench.pose_logarithm",
     f"{_CONTROL}::test_the_logarithm_of_sa24",
     "the inverse of exp(P + ε D) = e^P + ε D e^P; dual_quaternion.log is that of the series"),
    ("Table IV", "parameters of the links", "rm.load_assembly",
     f"{_FILES}::test_the_arms_have_the_numbers_of_table_4", "classic Denavit-Hartenberg"),
)  # fmt: skip
