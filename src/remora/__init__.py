"""Remora: robots mounted on spacecraft, in dual quaternions."""

import sys
from typing import TYPE_CHECKING

from remora import sigint_at_import as sigint_at_import
from remora.lazy_names import lazy_names

if TYPE_CHECKING:  # carried out one by one, when a name is first used
    from remora import (
        actuators,
        algebra,
        analysis,
        control,
        dynamics,
        errors,
        estimation,
        loops,
        papers,
        sensors,
        tasks,
        world,
    )
    from remora.analysis.manipulability import manipulability
    from remora.analysis.workspace import workspace
    from remora.campaigns.campaign import campaign
    from remora.campaigns.campaign_report import campaign_report
    from remora.campaigns.result import (
        Campaign,
        open_campaign,
    )
    from remora.campaigns.study import (
        Study,
        load_study,
    )
    from remora.codegen.gpu.cuda_kernel import CudaKernel
    from remora.codegen.kernel import Kernel
    from remora.components.actions import (
        GeneralizedForce,
        JointForce,
        Wrench,
    )
    from remora.components.component import (
        Component,
        Interface,
        ZeroCrossing,
    )
    from remora.components.context import Context
    from remora.components.export.c_component import save_component_c
    from remora.components.parameter import parameter
    from remora.components.signals import (
        Signal,
        State,
    )
    from remora.components.system import System
    from remora.dynamics.assembly.assembly import Assembly
    from remora.dynamics.assembly.black_box import BlackBox
    from remora.dynamics.assembly.docking.modular_robot import ModularRobot
    from remora.dynamics.constraints.close_loops import close_loops
    from remora.dynamics.constraints.reactions import constraint_wrenches
    from remora.dynamics.floating import generalized_jacobian
    from remora.dynamics.formulations import (
        aba,
        bias_force,
        coriolis_matrix,
        crba,
        forward_dynamics,
        hybrid_dynamics,
        inverse_dynamics,
        mass_matrix,
        reaction_wrenches,
        rnea,
    )
    from remora.dynamics.kernels.compiled import (
        CompiledRobot,
        compile,
    )
    from remora.dynamics.kinematics import (
        frame_pose,
        frame_twist,
        jacobian,
        poses,
        twists,
    )
    from remora.dynamics.lagrangian.equivalent_manipulator import equivalent_manipulator
    from remora.dynamics.lagrangian.reduced import (
        base_velocity,
        reduced_coriolis_matrix,
        reduced_mass_matrix,
    )
    from remora.dynamics.momentum import (
        center_of_mass,
        kinetic_energy,
        momentum,
        potential_energy,
    )
    from remora.errors import RemoraError
    from remora.model import (
        layouts,
        topology,
    )
    from remora.model.building.builder import Builder
    from remora.model.combine import combine
    from remora.model.constraint import Constraint
    from remora.model.formats.bundled import bundled
    from remora.model.formats.dh import (
        DHLink,
        from_dh,
    )
    from remora.model.formats.load import (
        load,
    )
    from remora.model.formats.random_robot import random_robot
    from remora.model.formats.yaml.yaml import (
        robot_to_yaml,
        save_robot,
    )
    from remora.model.joint_types import JOINT_TYPES
    from remora.model.named_states import (
        by_joint,
        configuration,
        velocity,
    )
    from remora.model.robot import (
        Body,
        Frame,
        Geometry,
        Joint,
        Robot,
    )
    from remora.model.solid_inertias import (
        box_inertia,
        cylinder_inertia,
        sphere_inertia,
    )
    from remora.model.state import (
        difference,
        integrate,
        neutral,
        normalize,
        random_state,
    )
    from remora.planning.solve import inverse_kinematics
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
    from remora.simulation.inputs.loads import (
        Controller,
        ZeroOrderHold,
    )
    from remora.simulation.inputs.phases import Phase
    from remora.simulation.inputs.profiles import (
        Motion,
        Profile,
        Pulse,
    )
    from remora.simulation.inputs.reach import plan_reach
    from remora.simulation.inputs.run_settings import (
        Integrator,
        Physics,
        Record,
        Runs,
        Target,
    )
    from remora.simulation.inputs.signal_source import SignalSource
    from remora.simulation.integrators.table import INTEGRATORS
    from remora.simulation.module_changes import (
        Attach,
        Detach,
        Swap,
    )
    from remora.simulation.recording.conservation import Conservation
    from remora.simulation.recording.recording import Recording
    from remora.simulation.scenario.assembly_file import (
        load_assembly,
        save_assembly,
    )
    from remora.simulation.scenario.component_table import COMPONENTS
    from remora.simulation.scenario.scenario import (
        Scenario,
        load_scenario,
    )
    from remora.simulation.storage.reading import open_run
    from remora.viewer.figures.figures import plot
    from remora.viewer.film.render import render
    from remora.viewer.report.analyses import analyze
    from remora.viewer.report.animation_html import save_html
    from remora.viewer.report.report import report
    from remora.viewer.view import view

__version__ = "0.1.0"

__all__ = [
    "COMPONENTS",
    "INTEGRATORS",
    "JOINT_TYPES",
    "Assembly",
    "Attach",
    "Batch",
    "BlackBox",
    "Body",
    "Builder",
    "Campaign",
    "CompiledRobot",
    "Component",
    "Conservation",
    "Constraint",
    "Context",
    "Controller",
    "CudaKernel",
    "DHLink",
    "Detach",
    "Event",
    "Frame",
    "GeneralizedForce",
    "Geometry",
    "Integrator",
    "Interface",
    "Joint",
    "JointForce",
    "Kernel",
    "ModularRobot",
    "Motion",
    "Phase",
    "Physics",
    "Profile",
    "Pulse",
    "Record",
    "Recording",
    "RemoraError",
    "Robot",
    "Runs",
    "Scenario",
    "Signal",
    "SignalSource",
    "Simulation",
    "State",
    "Status",
    "Study",
    "Swap",
    "System",
    "Target",
    "Wrench",
    "ZeroCrossing",
    "ZeroOrderHold",
    "aba",
    "actuators",
    "algebra",
    "analysis",
    "analyze",
    "base_velocity",
    "bias_force",
    "box_inertia",
    "bundled",
    "by_joint",
    "campaign",
    "campaign_report",
    "capture_events",
    "center_of_mass",
    "close_loops",
    "combine",
    "compile",
    "configuration",
    "constraint_wrenches",
    "control",
    "coriolis_matrix",
    "crba",
    "cylinder_inertia",
    "difference",
    "dynamics",
    "equivalent_manipulator",
    "errors",
    "estimation",
    "forward_dynamics",
    "frame_pose",
    "frame_twist",
    "from_dh",
    "generalized_jacobian",
    "hybrid_dynamics",
    "integrate",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobian",
    "kinetic_energy",
    "layouts",
    "load",
    "load_assembly",
    "load_scenario",
    "load_study",
    "loops",
    "manipulability",
    "mass_matrix",
    "momentum",
    "neutral",
    "normalize",
    "open_batch",
    "open_campaign",
    "open_run",
    "papers",
    "parameter",
    "plan_reach",
    "plot",
    "poses",
    "potential_energy",
    "random_robot",
    "random_state",
    "reaction_wrenches",
    "reduced_coriolis_matrix",
    "reduced_mass_matrix",
    "render",
    "report",
    "rnea",
    "robot_to_yaml",
    "save_assembly",
    "save_component_c",
    "save_html",
    "save_loop_c",
    "save_robot",
    "sensors",
    "simulate",
    "simulate_assembly",
    "simulate_batch",
    "sphere_inertia",
    "tasks",
    "topology",
    "twists",
    "velocity",
    "view",
    "workspace",
    "world",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
