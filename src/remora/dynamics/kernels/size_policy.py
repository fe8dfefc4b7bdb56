"""The size policy: straight-line code, loops or no compilation, by the number of bodies.

| robot | functions |
| --- | --- |
| small | straight-line code, zeros and ones of the robot's numbers folded away |
| above a recursion's `straight` | loops over the bodies, if the function is a recursion |
| up to `LARGEST_QUICK_COMPILE` | worth compiling on the fly, to show a quantity once |
| up to `LARGEST_STRAIGHT_LINE` | straight-line code on request: derivatives, C, batches |
"""

from __future__ import annotations

from remora.model.robot import Robot

#: Largest robot, in bodies, whose functions are compiled just to be evaluated once.
LARGEST_QUICK_COMPILE = 20
#: Largest robot, in bodies, of which straight-line code is made at all.
LARGEST_STRAIGHT_LINE = 200


def compiles_quickly(robot: Robot) -> bool:
    """Tell whether compiling a function of the robot takes less time than evaluating it."""
    return len(robot.bodies) <= LARGEST_QUICK_COMPILE


def fits_straight_line(robot: Robot) -> bool:
    """Tell whether straight-line code of the robot's functions can be made."""
    return len(robot.bodies) <= LARGEST_STRAIGHT_LINE
