"""Remora: robots mounted on spacecraft, in dual quaternions."""

from remora import algebra
from remora.compile.cuda import CudaKernel
from remora.compile.kernel import Kernel
from remora.control.attitude_pd import AttitudePD
from remora.control.joint_pd import JointPD
from remora.control.laws import CONTROLLERS
from remora.dynamics.compiled import CompiledRobot, compile
from remora.dynamics.derivatives import (
    ForwardDerivatives,
    InverseDerivatives,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from remora.dynamics.floating import (
    base_response,
    base_response_rate,
    floating_inverse_dynamics,
    generalized_jacobian,
    generalized_jacobian_rate,
)
from remora.dynamics.formulations import (
    FORMULATIONS,
    bias_force,
    coriolis_matrix,
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    mass_matrix,
    newton_euler_solution,
    reaction_wrenches,
)
from remora.dynamics.friction import passive_forces
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
    center_of_mass,
    center_of_mass_jacobian,
    centroidal_momentum,
    centroidal_momentum_matrix,
    kinetic_energy,
    locked_inertia,
    momentum,
    momentum_matrix,
    potential_energy,
)
from remora.dynamics.regressor import (
    inertia_derivatives,
    inertia_parameters,
    inertia_regressor,
)
from remora.dynamics.relative import (
    constraint_violation,
    joint_accelerations,
    joint_speeds,
    joint_twists,
)
from remora.dynamics.stops import stop_forces
from remora.errors import (
    Fault,
    ModelError,
    ModelWarning,
    RemoraError,
    ShapeError,
    SimulationError,
    UnknownName,
    ValueRefused,
)
from remora.model.build import Builder
from remora.model.dh import DHLink, from_dh
from remora.model.kinds import JOINTS
from remora.model.layout import Layout
from remora.model.layouts import mujoco_layout, pinocchio_layout, spart_layout
from remora.model.load import bundled, load
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
from remora.model.yaml import dumps, save
from remora.simulate.batch import Batch, simulate_batch
from remora.simulate.conservation import Conservation
from remora.simulate.events import Event
from remora.simulate.integrators import INTEGRATORS
from remora.simulate.loads import Controller, Sampled
from remora.simulate.phases import Phase
from remora.simulate.profiles import Motion, Profile, Pulse
from remora.simulate.progress import Status
from remora.simulate.reading import open_run
from remora.simulate.recording import Recording
from remora.simulate.run import simulate
from remora.simulate.scenario import Scenario, bundled_scenarios, load_scenario
from remora.view.figures import plot
from remora.view.html import save_html
from remora.view.report import report
from remora.view.show import view

__version__ = "0.1.0"

__all__ = [
    "CONTROLLERS",
    "FORMULATIONS",
    "INTEGRATORS",
    "JOINTS",
    "AttitudePD",
    "Batch",
    "Body",
    "Builder",
    "CompiledRobot",
    "Conservation",
    "Controller",
    "CudaKernel",
    "DHLink",
    "Event",
    "Fault",
    "ForwardDerivatives",
    "Frame",
    "Geometry",
    "InverseDerivatives",
    "Joint",
    "JointPD",
    "Kernel",
    "Layout",
    "ModelError",
    "ModelWarning",
    "Motion",
    "Phase",
    "Profile",
    "Pulse",
    "Recording",
    "RemoraError",
    "Robot",
    "Sampled",
    "Scenario",
    "ShapeError",
    "SimulationError",
    "Status",
    "UnknownName",
    "ValueRefused",
    "accelerations",
    "algebra",
    "ancestors",
    "base_response",
    "base_response_rate",
    "bias_force",
    "branch_terminations",
    "bundled",
    "bundled_scenarios",
    "center_of_mass",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "children",
    "compile",
    "constraint_violation",
    "coriolis_matrix",
    "difference",
    "dumps",
    "floating_inverse_dynamics",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "frame_acceleration",
    "frame_pose",
    "frame_twist",
    "from_dh",
    "generalized_jacobian",
    "generalized_jacobian_rate",
    "hybrid_dynamics",
    "incidence_matrix",
    "inertia_derivatives",
    "inertia_parameters",
    "inertia_regressor",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "jacobian",
    "jacobian_rate",
    "joint_accelerations",
    "joint_speeds",
    "joint_twists",
    "kinetic_energy",
    "leaves",
    "load",
    "load_scenario",
    "locked_inertia",
    "mass_matrix",
    "momentum",
    "momentum_matrix",
    "mujoco_layout",
    "negatives",
    "neutral",
    "newton_euler_solution",
    "normalize",
    "open_run",
    "passive_forces",
    "pinocchio_layout",
    "plot",
    "poses",
    "positives",
    "potential_energy",
    "random_robot",
    "random_state",
    "reaction_wrenches",
    "report",
    "save",
    "save_html",
    "simulate",
    "simulate_batch",
    "spart_layout",
    "stop_forces",
    "subtree",
    "twists",
    "view",
]
