"""Other words for the quantities of a run, for the hints of error messages."""

from __future__ import annotations

#: Other words for quantities, in lower case, and the names here or in figures that they mean.
SYNONYMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("torque", "torques", "force", "forces", "effort", "actuation"), ("tau",)),
    **dict.fromkeys(("angle", "angles", "joints", "configuration"), ("q",)),
    **dict.fromkeys(("velocity", "velocities", "speed", "speeds", "rates", "qd", "qdot"), ("v",)),
    **dict.fromkeys(("acceleration", "accelerations", "qdd", "qddot", "dv"), ("vdot",)),
    **dict.fromkeys(("friction", "damping"), ("passive",)),
    **dict.fromkeys(("time", "times"), ("t",)),
    **dict.fromkeys(("reaction", "constraint_forces", "loads"), ("reactions",)),
    **dict.fromkeys(("wrench", "external"), ("wrenches",)),
    **dict.fromkeys(("position", "positions", "xyz", "translation"), ("position", "positions")),
    **dict.fromkeys(
        ("orientation", "attitude", "euler", "euler_angles", "rpy"), ("attitude", "euler_angles")
    ),
    **dict.fromkeys(("quaternion", "quaternions"), ("quaternions", "attitude")),
    **dict.fromkeys(("twist", "angular_velocity"), ("twists", "v")),
    **dict.fromkeys(("pose", "base_pose"), ("poses", "position")),
    **dict.fromkeys(("center_of_mass", "centre_of_mass"), ("com",)),
    **dict.fromkeys(("angular_momentum", "linear_momentum"), ("momentum",)),
    **dict.fromkeys(("kinetic", "potential"), ("energy",)),
    **dict.fromkeys(("conservation", "error", "errors"), ("drift",)),
}
