"""Physical checks of a robot, made on the bodies that remain after fixed links are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from remora.model.building.inertia_consistency import (
    Impossible,
    Treatment,
    impossible,
    listed,
    moments_text,
    repaired,
)
from remora.model.building.mass_matrix_check import Undefined, is_immobile, undefined_joint
from remora.model.building.tree import massless
from remora.model.building.validate import Checker, Place
from remora.model.robot import Robot
from remora.model.topology import subtree

#: The place of a warning about the whole robot.
ROBOT = Place("robot")


class Warn(Protocol):
    """A callback for acceptable irregularities."""

    def __call__(self, place: Place, reason: str, loud: bool = False) -> None:
        """Record one; `loud`: it affects what can be computed, and is shown when loading."""
        ...


def judged(
    robot: Robot, places: Sequence[Place], treatment: Treatment, check: Checker, warn: Warn
) -> Robot:
    """Return the robot, with inertias repaired if requested; report faults and warnings.

    Args:
        robot: the robot.
        places: the place of each body in its file.
        treatment: of inconsistent inertias.
        check: collects faults.
        warn: collects warnings.
    """
    odd = impossible(robot.bodies, robot.joints)
    if treatment == "strict":
        for index, reason in odd:
            check.fault(places[index], reason)
    elif treatment == "repair" and odd:
        robot, odd = _repaired(robot, odd, places, warn), []
    if check.faults:
        return robot
    found = undefined_joint(robot)
    if found is not None:
        _report(robot, found, odd, places, treatment, check, warn)
    if odd and not check.faults:
        names = listed(robot.bodies[i].name for i, _ in odd)
        first = odd[0].reason.split(";")[0]
        warn(
            ROBOT,
            f"the inertia of {len(odd)} of {len(robot.bodies)} bodies is physically impossible "
            f"({names}; the first: {first}); the file's numbers are used as they are, "
            "inertia='repair' corrects and inertia='strict' refuses them",
            loud=True,
        )
    return robot


def cannot_accelerate(robot: Robot, joint: int) -> str:
    """Return why forward dynamics is undefined at a joint."""
    own = robot.joints[joint]
    return (
        f"forward dynamics is not defined, for the mass matrix is singular: what joint "
        f"{own.name!r} ({own.kind}) carries has no "
        "inertia along its freedoms"
    )


def _repaired(
    robot: Robot, odd: Sequence[Impossible], places: Sequence[Place], warn: Warn
) -> Robot:
    largest = 0.0
    for index, _ in odd:
        old = robot.bodies[index].inertia
        new = repaired(old)
        robot = robot.replace_body(index, inertia=new)
        before, after = moments_text(old), moments_text(new)
        warn(places[index], f"inertia repaired: principal moments {before} became {after} kg m²")
        largest = max(largest, float(np.max(np.abs(new - old))))
    names = listed(robot.bodies[i].name for i, _ in odd)
    warn(
        ROBOT,
        f"the inertia of {len(odd)} of {len(robot.bodies)} bodies ({names}) was physically "
        f"impossible and is replaced by the nearest possible one; the largest change of an entry "
        f"is {largest:.3g} kg m²",
        loud=True,
    )
    return robot


def _report(
    robot: Robot,
    found: Undefined,
    odd: Sequence[Impossible],
    places: Sequence[Place],
    treatment: Treatment,
    check: Checker,
    warn: Warn,
) -> None:
    """Report why the mass matrix is not positive definite, as a fault or a warning.

    Robots without any mass, and those whose inconsistent inertias make the mass matrix indefinite,
    are refused. In the remaining case only the acceleration of one joint is undefined, while
    inverse dynamics, the mass matrix and momentum are well defined. A warning names that joint.
    """
    joint, place = robot.joints[found.joint], places[found.joint]
    carried = subtree(robot, found.joint)
    ground = "; say base='fixed' if it is the ground" if joint.parent < 0 else ""
    instead = f"{ground}; dynamics=False (--no-dynamics) loads it for kinematics only"
    guilty = [robot.bodies[i].name for i, _ in odd if i in carried]
    moving = zip(robot.bodies, robot.joints, strict=True)
    nothing = all(massless(b) for b, j in moving if not is_immobile(j))
    if found.negative and guilty:
        check.fault(
            place,
            f"the mass matrix is not positive definite: joint {joint.name!r} feels a negative "
            f"inertia, because no body can have the inertia of {listed(guilty)}; inertia='repair' "
            f"replaces it, dynamics=False loads the robot for kinematics only",
        )
    elif nothing or (treatment == "strict" and massless(robot.bodies[found.joint])):
        reason = f"mass is zero on a body that moves (joint {joint.name!r}, {joint.kind})"
        rest = all(massless(robot.bodies[i]) for i in carried)
        beyond = "" if rest else ", and what it carries has no inertia along that joint's freedoms"
        check.fault(place, f"{reason}{beyond}; it must be positive{instead}")
    else:
        where = "" if found.everywhere else " at some configurations"
        warn(place, cannot_accelerate(robot, found.joint) + where, loud=True)
