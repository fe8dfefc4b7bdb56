"""Remora: robots mounted on spacecraft, in dual quaternions."""

from remora import algebra
from remora.dynamics.kinematics import (
    accelerations,
    frame_acceleration,
    frame_pose,
    frame_twist,
    jacobian,
    jacobian_rate,
    poses,
    twists,
)
from remora.dynamics.momentum import (
    base_response,
    center_of_mass,
    center_of_mass_jacobian,
    generalized_jacobian,
    kinetic_energy,
    momentum,
    momentum_matrix,
    potential_energy,
)
from remora.dynamics.relative import (
    constraint_violation,
    joint_accelerations,
    joint_speeds,
    joint_twists,
)
from remora.errors import Fault, ModelError, RemoraError, ShapeError, UnknownName, ValueRefused
from remora.model.build import Builder
from remora.model.dh import DHLink, from_dh
from remora.model.joints import JOINTS
from remora.model.layouts import Layout, mujoco_layout, pinocchio_layout, spart_layout
from remora.model.load import load
from remora.model.random import random_robot
from remora.model.robot import Body, Frame, Geometry, Joint, Robot
from remora.model.state import difference, integrate, neutral, normalize, random_state
from remora.model.topology import (
    ancestors,
    branch_terminations,
    children,
    incidence_matrix,
    leaves,
    negatives,
    positives,
    subtree,
)

__version__ = "0.1.0"

__all__ = [
    "JOINTS",
    "Body",
    "Builder",
    "DHLink",
    "Fault",
    "Frame",
    "Geometry",
    "Joint",
    "Layout",
    "ModelError",
    "RemoraError",
    "Robot",
    "ShapeError",
    "UnknownName",
    "ValueRefused",
    "accelerations",
    "algebra",
    "ancestors",
    "base_response",
    "branch_terminations",
    "center_of_mass",
    "center_of_mass_jacobian",
    "children",
    "constraint_violation",
    "difference",
    "frame_acceleration",
    "frame_pose",
    "frame_twist",
    "from_dh",
    "generalized_jacobian",
    "incidence_matrix",
    "integrate",
    "jacobian",
    "jacobian_rate",
    "joint_accelerations",
    "joint_speeds",
    "joint_twists",
    "kinetic_energy",
    "leaves",
    "load",
    "momentum",
    "momentum_matrix",
    "mujoco_layout",
    "negatives",
    "neutral",
    "normalize",
    "pinocchio_layout",
    "poses",
    "positives",
    "potential_energy",
    "random_robot",
    "random_state",
    "spart_layout",
    "subtree",
    "twists",
]
