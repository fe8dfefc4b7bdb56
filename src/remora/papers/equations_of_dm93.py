"""DM93: its equations and figures, the functions and tests of each.

Rows: number or range of numbers, what, functions, test, note.
"""

from __future__ import annotations

_BODY = "remora.dynamics.maximal.image_space.body_equations"
_FORCE = "remora.dynamics.maximal.image_space.generalized_force"
_UNIT = "remora.dynamics.maximal.image_space.unit_rows rm.papers.dm93.image_space_constraints"
_COORDINATES = "rm.papers.dm93.image_coordinates rm.papers.dm93.from_image_coordinates"
_SYSTEM = "rm.papers.dm93.image_space_system rm.papers.dm93.image_space_solution"
_TEST = "dynamics/test_image_space.py"
_MATRICES = f"{_TEST}::test_matrices_of_the_paper"
_THERE = f"{_TEST}::test_there_and_back"
_PENDULUM = f"{_TEST}::test_double_pendulum_against_its_closed_form"
_PLANAR = f"{_TEST}::test_planar_quaternions_are_the_eight_coordinates_in_the_plane"
_LAGRANGE = f"{_TEST}::test_equations_are_lagranges_on_and_off_the_manifold"
_SOLUTION = f"{_TEST}::test_system_and_solution"
_MOVING = "correction: [q⁺]ᵀ for [G] in the rotational parts, which are in the moving frame"
_EXAMPLE = "examples/13_dm93_double_pendulum.py has it in the paper's four components"

ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    ("Figure 1", "a spatial displacement", "", "", "a drawing"),
    ("1", "Q_1 to Q_4, the Euler parameters", _COORDINATES, _THERE,
     "scalars first here: the paper's order is components 1, 2, 3, 0, 5, 6, 7, 4"),
    ("2", "Q_5 to Q_8, ½ d q", _COORDINATES, _THERE, "d is the centre of mass, inertial axes"),
    ("3-4", "the unit conditions", _UNIT, _THERE, ""),
    ("5", "composition of displacements", "remora.algebra.dual_quaternion.mul",
     "algebra/test_dual_quaternion.py::test_table_2_identities", ""),
    ("6-7", "[g⁺] and [h⁻]", "remora.algebra.quaternion.left remora.algebra.quaternion.right",
     "algebra/test_quaternion.py::test_table_1_identities", ""),
    ("8", "d = 2[G] q_o = 2[G_o] q", f"{_BODY} rm.papers.dm93.from_image_coordinates", _MATRICES,
     ""),
    ("9", "velocity", f"rm.papers.dm93.image_rates {_BODY}", _MATRICES,
     "image_rates has the rates of Q"),
    ("10", "acceleration", _SYSTEM, _LAGRANGE, ""),
    ("11", "angular velocity in the moving frame", f"rm.papers.dm93.image_rates {_BODY}", _MATRICES,
     "correction: ω′ = 2[q⁺]ᵀq̇; [G] gives ω in the fixed frame, and the 2 stands in (20)"),
    ("12", "[W] = [G][Ġ]ᵀ", _BODY, _MATRICES, "correction: that is −½ of ω in matrix form"),
    ("13", "angular acceleration", _BODY, _LAGRANGE, "correction: 2[·]q̈"),
    ("14-15", "partial velocities", _BODY, _MATRICES, "of a general system; see (19), (20)"),
    ("16", "generalized force", _FORCE, _MATRICES, ""),
    ("17-18", "generalized inertia force, F + F* = 0", _BODY, _LAGRANGE, ""),
    ("19", "[Ψ]", _BODY, _MATRICES, ""),
    ("20", "[Ω]", _BODY, _MATRICES, _MOVING),
    ("21", "F", f"{_FORCE} {_BODY}", _MATRICES, _MOVING),
    ("22", "F*", _BODY, _LAGRANGE, "correction: the first term of χ is [J′]ω̇′"),
    ("23", "[M]Q̈ = F + h", f"{_BODY} {_SYSTEM}", _LAGRANGE,
     "correction: [M] is singular, of rank 7; regular with the rows of (3), (4)"),
    ("24", "[M]", _BODY, _MATRICES, _MOVING),
    ("25", "h", _BODY, f"{_TEST}::test_as_printed_eq_25_is_not_lagranges",
     "correction: 8[Ġ]ᵀ[J′][Ġ]q for 8[Ġ][J′][Ġ]ᵀq"),
    ("Figure 2", "the double pendulum", _SYSTEM, _PENDULUM, _EXAMPLE),
    ("Figure 3", "a planar robot holding a workpiece", _SYSTEM,
     "dynamics/test_image_space_chains.py::test_two_arms_and_a_workpiece_by_plane_mechanics",
     "examples/46"),
    ("26-27", "planar quaternions", _BODY, _PLANAR, _EXAMPLE),
    ("28-29", "the pendulum's coordinates and constraint", _BODY, _PENDULUM, _EXAMPLE),
    ("30", "equations of motion with multipliers",
     f"{_SYSTEM} remora.papers.integrated_states.dm93_rates", _SOLUTION,
     "rows for ten kinds of joints: ImageSpaceSystem.Phi, .gamma; runs: rm.papers.integrate_state"),
    ("31-32", "[M] and [Φ] of the pendulum", _BODY, _PENDULUM, _EXAMPLE),
)  # fmt: skip
