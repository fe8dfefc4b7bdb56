"""Arguments for every function of the library, for tests of compiled code."""

import inspect

import remora as rm
from remora.dynamics.kernels.compiled import FUNCTIONS

#: Functions that solve with the whole robot's inertia.
SOLVING = (
    "forward_dynamics", "reaction_wrenches", "floating_inverse_dynamics",
    "forward_dynamics_derivatives", "reduced_forward_dynamics",
)  # fmt: skip

#: Functions whose straight line for a dozen bodies takes a minute to compile.
HEAVY = (
    "base_response_rate", "coriolis_matrix", "forward_dynamics_derivatives",
    "generalized_jacobian_rate", "inertia_regressor", "inverse_dynamics_derivatives",
    "reduced_coriolis_matrix", "separated_coriolis_matrix", "separated_mass_matrix",
)  # fmt: skip


def arguments_for(name, robot, rng, batch=()):
    """Random arguments of a function of the library, by the names of its parameters."""
    q, v = rm.random_state(robot, rng, batch)
    made = {
        "q": q, "q0": q, "q1": rm.random_state(robot, rng, batch)[0], "v": v,
        "tau": rng.normal(size=v.shape), "vdot": rng.normal(size=v.shape),
        "dq": rng.normal(size=v.shape) * 0.3, "frame": len(robot.bodies) - 1,
        "joint_speeds": v[..., robot.joints[0].v.stop :],
        "joint_forces": rng.normal(size=(*batch, robot.nv - robot.joints[0].v.stop)),
        "momentum": rng.normal(size=(*batch, 6)),
        "vdot_joints": rng.normal(size=(*batch, robot.nv - robot.joints[0].v.stop)),
        "twists": rng.normal(size=(*batch, len(robot.bodies), 6)),
        "accelerations": rng.normal(size=(*batch, len(robot.bodies), 6)),
    }  # fmt: skip
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters.values())[1:]
    return [made[p.name] for p in parameters if p.default is p.empty]
