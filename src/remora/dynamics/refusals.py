"""Checks of robots: masses, a free base, no mimic joints or constraints where unsupported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

import numpy as np

from remora.algebra.array_ops import Array, is_symbolic
from remora.errors import InvalidValue
from remora.model.building.mass_matrix_check import undefined_joint
from remora.model.building.physical_checks import cannot_accelerate
from remora.model.robot import Robot

P = ParamSpec("P")
R = TypeVar("R")

#: Functions of masses that are the same with and without active constraints: they follow from the
#: state, or are quantities of the tree.
UNAFFECTED_BY_CONSTRAINTS = frozenset((
    "center_of_mass",
    "center_of_mass_jacobian",
    "momentum",
    "momentum_matrix",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "locked_inertia",
    "kinetic_energy",
    "potential_energy",
    "mass_matrix",
    "coriolis_matrix",
    "bias_force",
    "inertia_regressor",
    "base_response",
    "base_response_rate",
    "base_velocity",
    "generalized_jacobian",
    "generalized_jacobian_rate",
))  # fmt: skip
#: Functions that take active constraints into account; a formulation that cannot, refuses itself.
WITH_CONSTRAINTS = frozenset((
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "constraint_multiplier_derivatives",
    "hybrid_dynamics",
    "newton_euler_solution",
    "reaction_wrenches",
    "constraint_impulse",
    "constraint_multipliers",
    "constraint_wrenches",
    "project_configuration",
    "project_velocity",
    "close_loops",
    "constraint_report",
    "constraint_projector",
    "constrained_inverse_dynamics",
    "constrained_inverse_dynamics_derivatives",
))  # fmt: skip
_ALLOWED = UNAFFECTED_BY_CONSTRAINTS | WITH_CONSTRAINTS


def depends_on_constraints(function: Callable[..., Any]) -> bool:
    """Return whether a function of the library takes active constraints into account."""
    home = getattr(function, "__module__", "")
    if home.startswith("remora.dynamics.constraints."):
        return True
    return home.startswith("remora.") and getattr(function, "__name__", "") in WITH_CONSTRAINTS


def needs_dynamics(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that it refuses a kinematics-only model and active constraints."""
    allowed = function.__name__ in _ALLOWED

    @functools.wraps(function)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        robot = arguments[0] if arguments else named.get("robot")
        if isinstance(robot, Robot):
            if not robot.dynamics:
                refuse_kinematic(robot, function.__name__)
            if robot.constraints and not allowed:
                refuse_constraints(robot, function.__name__)
        return function(*arguments, **named)

    checked.__dict__["needs_dynamics"] = True
    return checked


def without_constraints(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of the tree alone so that it refuses a robot with active constraints."""

    @functools.wraps(function)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        robot = arguments[0] if arguments else named.get("robot")
        if isinstance(robot, Robot):
            refuse_constraints(robot, function.__name__)
        return function(*arguments, **named)

    return checked


def refuse_kinematic(robot: Robot, what: str) -> None:
    """Raise if a robot is a kinematics-only model, for which `what` is undefined."""
    if not robot.dynamics:
        raise InvalidValue(
            f"{what} needs masses and inertias, and robot {robot.name!r} is a kinematics-only "
            "model: it was loaded with dynamics=False; load it with dynamics=True, which reports "
            "what is missing"
        )


def refuse_constraints(
    robot: Robot, what: str, advice: str = "switch them off: robot.with_active(off=[...])"
) -> None:
    """Raise if a robot has active constraints, which `what` does not take into account."""
    active = [repr(c.name) for c in robot.constraints if c.active]
    if active:
        names = ", ".join(active[:10]) + (", ..." if len(active) > 10 else "")
        raise InvalidValue(
            f"{what} does not take constraints into account, and robot {robot.name!r} has active "
            f"ones: {names}; {advice}"
        )


def refuse_function(robot: Robot, function: Callable[..., Any]) -> None:
    """Raise if a function marked by `needs_dynamics` cannot be computed for a robot."""
    if getattr(function, "needs_dynamics", False):
        refuse_kinematic(robot, function.__name__)
        if function.__name__ not in _ALLOWED:
            refuse_constraints(robot, function.__name__)
        if function.__name__.startswith("forward_dynamics"):
            refuse_undefined(robot)


def refuse_undefined(robot: Robot, prescribed: Collection[int] = ()) -> None:
    """Raise if some joint has no inertia to accelerate at any configuration.

    With numeric arguments a singular pivot raises by itself; compiled code must be refused before
    it is generated.

    Args:
        robot: the robot.
        prescribed: joints with prescribed accelerations, by index.
    """
    found = undefined_joint(robot, prescribed)
    if found is not None and found.everywhere:
        hint = "prescribe or lock that joint, or give what it carries a mass and an inertia"
        raise InvalidValue(f"robot {robot.name!r}: {cannot_accelerate(robot, found.joint)}; {hint}")


def finite_result(result: Array) -> Array:
    """Return a result, or raise where the numbers were too large for it."""
    if not is_symbolic(result) and not np.all(np.isfinite(result)):
        raise InvalidValue("the result is not finite: velocities or forces are too large")
    return result


def refuse_mimic_joints(robot: Robot, formulation: str) -> None:
    """Raise if the robot has mimic joints: the formulation moves every joint independently."""
    names = [j.name for j in robot.joints if j.mimic is not None]
    if names:
        raise InvalidValue(
            f"the formulation {formulation!r} does not support mimic joints "
            f"({', '.join(names)}); use formulation='composite'"
        )


def floats(robot: Robot) -> bool:
    """Tell whether the robot has exactly one base that floats: free, and held by nothing."""
    return _why_not(robot) is None


def require_free_base(robot: Robot) -> None:
    """Raise if the robot does not have exactly one base that floats: free, and held by nothing."""
    reason = _why_not(robot)
    if reason is not None:
        raise InvalidValue(f"robot {robot.name!r} {reason}")


def _why_not(robot: Robot) -> str | None:
    """Return what keeps the robot from floating, or None."""
    if sum(j.parent < 0 for j in robot.joints) > 1:
        return "must have one base, not several"
    if robot.joints[0].kind != "free":
        return f"must have its base on a free joint, not on a {robot.joints[0].kind} one"
    held = [repr(c.name) for c in robot.constraints if c.active and min(c.parent, c.child) < 0]
    if held:
        return (
            f"does not float: {', '.join(held)} "
            f"{'connects' if len(held) == 1 else 'connect'} it to the inertial frame, through "
            "which its momentum changes; switch them off: robot.with_active(off=[...])"
        )
    return None
