"""Remora: robots mounted on spacecraft, in dual quaternions."""

import sys
from typing import TYPE_CHECKING

from remora import sigint_at_import as sigint_at_import
from remora.lazy_names import lazy_names

if TYPE_CHECKING:  # carried out one by one, when a name is first used
    from remora import algebra
    from remora.actuators.first_order_actuator import FirstOrderActuator
    from remora.actuators.thruster import Thruster
    from remora.actuators.thruster_set import ThrusterSet
    from remora.analysis.conditioning import Conditioning, conditioning
    from remora.analysis.coupling import (
        Coupling,
        DisturbanceBudget,
        coupling,
        coupling_map,
        disturbance_budget,
        momentum_demand,
        wheel_envelope,
        wheel_margin,
    )
    from remora.analysis.floating_workspace import FloatingWorkspace, floating_workspace
    from remora.analysis.manipulability import Manipulability, manipulability
    from remora.analysis.measures import manipulability_map
    from remora.analysis.payload import PayloadEstimate, identify_payload
    from remora.analysis.sensitivity import MissSensitivity, miss_sensitivity
    from remora.analysis.straight_path import StraightPathWorkspace, straight_path_workspace
    from remora.analysis.waveforms import (
        differentiate,
        low_pass,
        multiple_correlation,
        root_mean_square_error,
    )
    from remora.analysis.workspace import Workspace, workspace
    from remora.campaigns.campaign import campaign
    from remora.campaigns.campaign_report import campaign_report
    from remora.campaigns.result import Campaign, open_campaign
    from remora.campaigns.study import Study, bundled_studies, load_study
    from remora.codegen.gpu.cuda_kernel import CudaKernel
    from remora.codegen.kernel import Kernel
    from remora.components.actions import GeneralizedForce, JointForce, Wrench
    from remora.components.component import Component, Interface, ZeroCrossing
    from remora.components.context import Context
    from remora.components.export.c_component import save_component_c
    from remora.components.signals import Signal, State
    from remora.components.system import System
    from remora.control.attitude_pd import AttitudePD
    from remora.control.controllers import CONTROLLERS
    from remora.control.end_effector_wrench import EndEffectorWrenchControl
    from remora.control.joint_pd import JointPD
    from remora.control.laws.admittance import Admittance
    from remora.control.laws.base_pose_tracking import BasePoseTracking
    from remora.control.laws.base_reaction_compensation import BaseReactionCompensation
    from remora.control.laws.coordinated_tracking import CoordinatedTracking
    from remora.control.laws.desired_reaction import DesiredReaction
    from remora.control.laws.frame_pose_tracking import FramePoseTracking
    from remora.control.laws.impedance import Impedance
    from remora.control.laws.joint_computed_torque import JointComputedTorque
    from remora.control.laws.joint_pid import JointPID
    from remora.control.laws.joint_rate_servo import JointRateServo
    from remora.control.laws.operational_computed_torque import OperationalComputedTorque
    from remora.control.laws.reaction_null_space import ReactionNullSpace
    from remora.control.laws.reaction_wheels import ReactionWheels
    from remora.control.laws.resolved_rate import ResolvedRate
    from remora.control.laws.transpose_jacobian import TransposeJacobian
    from remora.control.laws.wheel_desaturation import WheelDesaturation
    from remora.control.references.circle_reference import CircleReference
    from remora.control.references.joint_reference import JointReference
    from remora.control.references.pose_reference import PoseReference
    from remora.dynamics import spart
    from remora.dynamics.assembly.assembly import Assembly
    from remora.dynamics.assembly.black_box import BlackBox
    from remora.dynamics.assembly.compiled_assembly import CompiledAssembly
    from remora.dynamics.assembly.connection import Connection
    from remora.dynamics.assembly.docking.modular_robot import ModularRobot
    from remora.dynamics.assembly.interconnection_graph import InterconnectionGraph
    from remora.dynamics.assembly.sensor_reading import PointReading, SensorReading
    from remora.dynamics.assembly.sensor_recording import SensorRecording
    from remora.dynamics.assembly.split import SplitRobot, split_robot
    from remora.dynamics.assembly.subsystem import (
        ForwardSubsystem,
        Subsystem,
        SubsystemAccelerations,
        SubsystemLoads,
    )
    from remora.dynamics.constraints.actuation import (
        constrained_inverse_dynamics,
        constraint_projector,
    )
    from remora.dynamics.constraints.close_loops import close_loops
    from remora.dynamics.constraints.constraint_report import ConstraintReport, constraint_report
    from remora.dynamics.constraints.loop_kinematics import (
        constraint_bias,
        constraint_jacobian,
        constraint_residual,
    )
    from remora.dynamics.constraints.null_space import constraint_null_space, independent_speeds
    from remora.dynamics.constraints.projection import (
        ConstraintImpulse,
        constraint_impulse,
        project_configuration,
        project_velocity,
    )
    from remora.dynamics.constraints.reactions import constraint_multipliers, constraint_wrenches
    from remora.dynamics.derivatives.derivatives import (
        ForwardDerivatives,
        InverseDerivatives,
        MultiplierDerivatives,
        constrained_inverse_dynamics_derivatives,
        constraint_multiplier_derivatives,
        forward_dynamics_derivatives,
        inverse_dynamics_derivatives,
    )
    from remora.dynamics.derivatives.regressor import (
        inertia_derivatives,
        inertia_parameters,
        inertia_regressor,
    )
    from remora.dynamics.floating import (
        base_response,
        base_response_rate,
        floating_inverse_dynamics,
        generalized_jacobian,
        generalized_jacobian_rate,
    )
    from remora.dynamics.forces.friction import friction_forces
    from remora.dynamics.forces.springs import spring_forces
    from remora.dynamics.forces.stops import stop_forces
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
    from remora.dynamics.kernels.casadi_function import casadi_function
    from remora.dynamics.kernels.compiled import CompiledRobot, compile
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
    from remora.dynamics.lagrangian.center_of_mass_coordinates import (
        separated_coriolis_matrix,
        separated_mass_matrix,
        separated_velocity,
    )
    from remora.dynamics.lagrangian.equivalent_manipulator import (
        equivalent_manipulator,
        equivalent_state,
    )
    from remora.dynamics.lagrangian.matrices import mass_matrix_partials
    from remora.dynamics.lagrangian.reduced import (
        base_velocity,
        reduced_coriolis_matrix,
        reduced_forward_dynamics,
        reduced_mass_matrix,
        reduced_momentum_force,
    )
    from remora.dynamics.maximal.image_coordinates import (
        ImageSpaceConstraints,
        ImageSpaceSolution,
        ImageSpaceSystem,
        from_image_coordinates,
        image_coordinates,
        image_rates,
        image_space_constraints,
        image_space_solution,
        image_space_system,
        project_image_coordinates,
    )
    from remora.dynamics.maximal.joint_relations import (
        constraint_violation,
        joint_accelerations,
        joint_speeds,
        joint_twists,
    )
    from remora.dynamics.maximal.newton_euler import NewtonEulerSystem, newton_euler_system
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
    from remora.dynamics.recursive.articulated_body import ArticulatedBody
    from remora.dynamics.recursive.outward_pass import BodyMotion
    from remora.errors import (
        Fault,
        InvalidValue,
        ModelError,
        ModelWarning,
        RemoraError,
        ShapeError,
        SimulationError,
        SimulationWarning,
        SingularMatrix,
        UnknownName,
    )
    from remora.model import topology
    from remora.model.building.add_constraint import add_constraint
    from remora.model.building.builder import Builder
    from remora.model.combine import combine
    from remora.model.constraint import Constraint
    from remora.model.formats.dh import DHLink, from_dh
    from remora.model.formats.load import bundled_robots, load
    from remora.model.formats.random_robot import random_robot
    from remora.model.formats.yaml.yaml import robot_to_yaml, save_robot
    from remora.model.joint_types import JOINT_TYPES
    from remora.model.layouts.layout import Layout
    from remora.model.layouts.libraries import mujoco_layout, pinocchio_layout, spart_layout
    from remora.model.mimic_gears import mimic_to_gears
    from remora.model.named_states import by_joint, configuration, velocity
    from remora.model.robot import Body, Frame, Geometry, Joint, Robot
    from remora.model.solid_inertias import box_inertia, cylinder_inertia, sphere_inertia
    from remora.model.state import difference, integrate, neutral, normalize, random_state
    from remora.planning.differential import TaskSolution, solve_tasks
    from remora.planning.floating_path import JointPath
    from remora.planning.result import InverseKinematicsResult, TargetError
    from remora.planning.solve import inverse_kinematics
    from remora.planning.task_limits import TaskLimits
    from remora.planning.tasks import (
        BaseAttitudeTask,
        CenterOfMassTask,
        DirectionTask,
        FrameTask,
        PositionTask,
        PostureTask,
        RelativePoseTask,
        Task,
        ZeroReactionTask,
    )
    from remora.sensors.rate_gyro import RateGyro
    from remora.sensors.threshold import Threshold
    from remora.simulation.assembly_run import simulate_assembly
    from remora.simulation.batch.batch import simulate_batch
    from remora.simulation.batch.batch_storage import open_batch
    from remora.simulation.batch.result import Batch
    from remora.simulation.engine.progress import Status
    from remora.simulation.engine.simulate import simulate
    from remora.simulation.engine.simulation import Simulation
    from remora.simulation.export.c_loop import save_loop_c
    from remora.simulation.inputs.capture import capture_events
    from remora.simulation.inputs.events import Event
    from remora.simulation.inputs.loads import Controller, ZeroOrderHold
    from remora.simulation.inputs.phases import Phase
    from remora.simulation.inputs.profiles import Motion, Profile, Pulse
    from remora.simulation.inputs.reach import ReachPlan, plan_reach
    from remora.simulation.inputs.run_settings import (
        Integrator,
        Physics,
        Record,
        Runs,
        Target,
    )
    from remora.simulation.inputs.signal_source import SignalSource
    from remora.simulation.integrators.table import INTEGRATORS
    from remora.simulation.module_changes import Attach, Detach, Swap
    from remora.simulation.recording.conservation import Conservation
    from remora.simulation.recording.constraint_switch import ConstraintSwitch
    from remora.simulation.recording.recording import Recording
    from remora.simulation.scenario.assembly_file import bundled_assemblies, load_assembly
    from remora.simulation.scenario.component_table import COMPONENTS
    from remora.simulation.scenario.scenario import Scenario, bundled_scenarios, load_scenario
    from remora.simulation.storage.reading import open_run
    from remora.viewer.figures.figures import plot
    from remora.viewer.film.render import render
    from remora.viewer.report.analyses import analyze
    from remora.viewer.report.animation_html import save_html
    from remora.viewer.report.report import report
    from remora.viewer.view import view
    from remora.world.bushing import Bushing
    from remora.world.compliant_capture import CompliantCapture
    from remora.world.spring import Spring
    from remora.world.wall import Wall

__version__ = "0.1.0"

__all__ = [
    "COMPONENTS",
    "CONTROLLERS",
    "FORMULATIONS",
    "INTEGRATORS",
    "JOINT_TYPES",
    "Admittance",
    "ArticulatedBody",
    "Assembly",
    "Attach",
    "AttitudePD",
    "BaseAttitudeTask",
    "BasePoseTracking",
    "BaseReactionCompensation",
    "Batch",
    "BlackBox",
    "Body",
    "BodyMotion",
    "Builder",
    "Bushing",
    "Campaign",
    "CenterOfMassTask",
    "CircleReference",
    "CompiledAssembly",
    "CompiledRobot",
    "CompliantCapture",
    "Component",
    "Conditioning",
    "Connection",
    "Conservation",
    "Constraint",
    "ConstraintImpulse",
    "ConstraintReport",
    "ConstraintSwitch",
    "Context",
    "Controller",
    "CoordinatedTracking",
    "Coupling",
    "CudaKernel",
    "DHLink",
    "DesiredReaction",
    "Detach",
    "DirectionTask",
    "DisturbanceBudget",
    "EndEffectorWrenchControl",
    "Event",
    "Fault",
    "FirstOrderActuator",
    "FloatingWorkspace",
    "ForwardDerivatives",
    "ForwardSubsystem",
    "Frame",
    "FramePoseTracking",
    "FrameTask",
    "GeneralizedForce",
    "Geometry",
    "ImageSpaceConstraints",
    "ImageSpaceSolution",
    "ImageSpaceSystem",
    "Impedance",
    "Integrator",
    "InterconnectionGraph",
    "Interface",
    "InvalidValue",
    "InverseDerivatives",
    "InverseKinematicsResult",
    "Joint",
    "JointComputedTorque",
    "JointForce",
    "JointPD",
    "JointPID",
    "JointPath",
    "JointRateServo",
    "JointReference",
    "Kernel",
    "Layout",
    "Manipulability",
    "MissSensitivity",
    "ModelError",
    "ModelWarning",
    "ModularRobot",
    "Motion",
    "MultiplierDerivatives",
    "NewtonEulerSystem",
    "OperationalComputedTorque",
    "PayloadEstimate",
    "Phase",
    "Physics",
    "PointReading",
    "PoseReference",
    "PositionTask",
    "PostureTask",
    "Profile",
    "Pulse",
    "RateGyro",
    "ReachPlan",
    "ReactionNullSpace",
    "ReactionWheels",
    "Record",
    "Recording",
    "RelativePoseTask",
    "RemoraError",
    "ResolvedRate",
    "Robot",
    "Runs",
    "Scenario",
    "SensorReading",
    "SensorRecording",
    "ShapeError",
    "Signal",
    "SignalSource",
    "Simulation",
    "SimulationError",
    "SimulationWarning",
    "SingularMatrix",
    "SplitRobot",
    "Spring",
    "State",
    "Status",
    "StraightPathWorkspace",
    "Study",
    "Subsystem",
    "SubsystemAccelerations",
    "SubsystemLoads",
    "Swap",
    "System",
    "Target",
    "TargetError",
    "Task",
    "TaskLimits",
    "TaskSolution",
    "Threshold",
    "Thruster",
    "ThrusterSet",
    "TransposeJacobian",
    "UnknownName",
    "Wall",
    "WheelDesaturation",
    "Workspace",
    "Wrench",
    "ZeroCrossing",
    "ZeroOrderHold",
    "ZeroReactionTask",
    "accelerations",
    "add_constraint",
    "algebra",
    "analyze",
    "base_response",
    "base_response_rate",
    "base_velocity",
    "bias_force",
    "box_inertia",
    "bundled_assemblies",
    "bundled_robots",
    "bundled_scenarios",
    "bundled_studies",
    "by_joint",
    "campaign",
    "campaign_report",
    "capture_events",
    "casadi_function",
    "center_of_mass",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "close_loops",
    "combine",
    "compile",
    "conditioning",
    "configuration",
    "constrained_inverse_dynamics",
    "constrained_inverse_dynamics_derivatives",
    "constraint_bias",
    "constraint_impulse",
    "constraint_jacobian",
    "constraint_multiplier_derivatives",
    "constraint_multipliers",
    "constraint_null_space",
    "constraint_projector",
    "constraint_report",
    "constraint_residual",
    "constraint_violation",
    "constraint_wrenches",
    "coriolis_matrix",
    "coupling",
    "coupling_map",
    "cylinder_inertia",
    "difference",
    "differentiate",
    "disturbance_budget",
    "equivalent_manipulator",
    "equivalent_state",
    "floating_inverse_dynamics",
    "floating_workspace",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "frame_acceleration",
    "frame_pose",
    "frame_twist",
    "friction_forces",
    "from_dh",
    "from_image_coordinates",
    "generalized_jacobian",
    "generalized_jacobian_rate",
    "hybrid_dynamics",
    "identify_payload",
    "image_coordinates",
    "image_rates",
    "image_space_constraints",
    "image_space_solution",
    "image_space_system",
    "independent_speeds",
    "inertia_derivatives",
    "inertia_parameters",
    "inertia_regressor",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_kinematics",
    "jacobian",
    "jacobian_rate",
    "joint_accelerations",
    "joint_speeds",
    "joint_twists",
    "kinetic_energy",
    "load",
    "load_assembly",
    "load_scenario",
    "load_study",
    "locked_inertia",
    "low_pass",
    "manipulability",
    "manipulability_map",
    "mass_matrix",
    "mass_matrix_partials",
    "mimic_to_gears",
    "miss_sensitivity",
    "momentum",
    "momentum_demand",
    "momentum_matrix",
    "mujoco_layout",
    "multiple_correlation",
    "neutral",
    "newton_euler_solution",
    "newton_euler_system",
    "normalize",
    "open_batch",
    "open_campaign",
    "open_run",
    "pinocchio_layout",
    "plan_reach",
    "plot",
    "poses",
    "potential_energy",
    "project_configuration",
    "project_image_coordinates",
    "project_velocity",
    "random_robot",
    "random_state",
    "reaction_wrenches",
    "reduced_coriolis_matrix",
    "reduced_forward_dynamics",
    "reduced_mass_matrix",
    "reduced_momentum_force",
    "render",
    "report",
    "robot_to_yaml",
    "root_mean_square_error",
    "save_component_c",
    "save_html",
    "save_loop_c",
    "save_robot",
    "separated_coriolis_matrix",
    "separated_mass_matrix",
    "separated_velocity",
    "simulate",
    "simulate_assembly",
    "simulate_batch",
    "solve_tasks",
    "spart",
    "spart_layout",
    "sphere_inertia",
    "split_robot",
    "spring_forces",
    "stop_forces",
    "straight_path_workspace",
    "topology",
    "twists",
    "velocity",
    "view",
    "wheel_envelope",
    "wheel_margin",
    "workspace",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
