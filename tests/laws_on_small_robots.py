"""Laws and references of the table on small robots, with the inputs that they need."""

import numpy as np

import remora as rm
from arms import arm, wheeled
from remora.algebra import pose
from remora.components.context import context_of

#: A floating base in a plane, and a free one with one joint: small graphs, compiled quickly.
PLANAR, FREE, WHEELED = arm(3, "planar", spread=False), arm(1), wheeled(4)
POSE = pose.from_xyz_rpy([1.2, 0.3, -0.2], [0.2, -0.3, 0.4])
TWIST, THREE = [0.1, 0.0, -0.1, 0.05, 0.02, 0.0], [0.3, -0.2, 0.1]
GOAL = {"pose": POSE, "twist": TWIST}
MOVING = {**GOAL, "twist_rate": TWIST}
BASE = {"base_pose": pose.from_xyz_rpy([0.1, 0.0, 0.2], [0.1, 0.2, -0.1]), "base_twist": TWIST}
TICK = {"sample_time": 0.02}

#: By type: robot, component and inputs.
MADE = {
    "resolved_rate": (
        PLANAR,
        rm.control.ResolvedRate("tool", rows=("vx", "vy"), gain=2.0, secondary=("limits",), **TICK),
        GOAL,
    ),
    "desired_reaction": (
        PLANAR,
        rm.control.DesiredReaction(
            "tool",
            rows=("vx", "vy"),
            base_rows=("wz",),
            method="adjugate",
            bound=50.0,
            base_gain=1.0,
            **TICK,
        ),
        {**GOAL, **BASE},
    ),
    "reaction_null_space": (
        PLANAR,
        rm.control.ReactionNullSpace(rows=("wz",), damping=0.01, **TICK),
        {"command": THREE},
    ),
    "joint_rate_servo": (
        PLANAR,
        rm.control.JointRateServo(gain=20.0, limit=40.0, **TICK),
        {"rate": THREE},
    ),
    "transpose_jacobian": (PLANAR, rm.control.TransposeJacobian("tool", 30.0, 20.0, **TICK), GOAL),
    "joint_computed_torque": (
        PLANAR,
        rm.control.JointComputedTorque(4.0, 4.0, **TICK),
        {"position": THREE},
    ),
    "operational_computed_torque": (
        PLANAR,
        rm.control.OperationalComputedTorque(
            "tool", 4.0, 4.0, rows=("vx", "vy"), damping=0.05, **TICK
        ),
        MOVING,
    ),
    "impedance": (
        PLANAR,
        rm.control.Impedance("tool", 30.0, 20.0, rows=("vx", "vy"), damping=0.05, **TICK),
        MOVING,
    ),
    "admittance": (
        PLANAR,
        rm.control.Admittance(5.0, 20.0, 10.0, **TICK),
        {"force": THREE, "reference_pose": POSE},
    ),
    "base_reaction_compensation": (
        FREE,
        rm.control.BaseReactionCompensation(**TICK),
        {"acceleration": [0.3]},
    ),
    "joint_pid": (
        PLANAR,
        rm.control.JointPID(20.0, 3.0, [9.0, 8.0, 7.0], limit=4.0, **TICK),
        {"position": THREE},
    ),
    "base_pose_tracking": (FREE, rm.control.BasePoseTracking(1.0, 2.0, **TICK), BASE),
    "frame_pose_tracking": (
        PLANAR,
        rm.control.FramePoseTracking("tool", 4.0, 4.0, damping=0.1, **TICK),
        MOVING,
    ),
    "coordinated_tracking": (
        FREE,
        rm.control.CoordinatedTracking("tool", 4.0, 4.0, 1.0, 2.0, damping=0.1, **TICK),
        {**MOVING, **BASE},
    ),
    "reaction_wheels": (
        WHEELED,
        rm.actuators.ReactionWheels(("w0", "w1", "w2", "w3"), 0.1, 0.5, 0.5, 0.3, **TICK),
        {"command": THREE},
    ),
    "wheel_desaturation": (
        WHEELED,
        rm.control.WheelDesaturation(0.5, 0.1, 0.2, 0.05, **TICK),
        {"momentum": THREE},
    ),
    "joint_reference": (
        PLANAR,
        rm.control.JointReference(
            [np.zeros(3), THREE, np.ones(3)],
            max_speed=10.0,
            max_acceleration=40.0,
            law="trapezoidal",
        ),
        {},
    ),
    "pose_reference": (
        PLANAR,
        rm.control.PoseReference([POSE, BASE["base_pose"], POSE], durations=0.4),
        {},
    ),
    "circle_reference": (
        PLANAR,
        rm.control.CircleReference([1, 0, 0], [0.9, 0, 0], [0, 0, 1], 1.5),
        {},
    ),
}


def values(component, robot, q, v, inputs=None, t=0.0):
    """Return the outputs of a component at a state; inputs that are not given have defaults."""
    return component.outputs(state(component, robot, q, v, inputs, t))


def acting(component, robot, q, v, inputs=None, t=0.0):
    """Return the actions of a component at a state, likewise."""
    return component.act(state(component, robot, q, v, inputs, t))


def state(component, robot, q, v, inputs=None, t=0.0, memory=None, noise=None, lags=None):
    """Return the context of a component at a state; what is not given is as at the start."""
    interface = component.interface(robot)
    given = {key: np.asarray(x, dtype=float) for key, x in (inputs or {}).items()}
    assert set(given) <= set(interface.inputs)
    arrays = {
        "continuous": {k: s.initial for k, s in interface.continuous.items()} | (lags or {}),
        "discrete": {k: s.initial for k, s in interface.discrete.items()} | (memory or {}),
        "inputs": {k: given.get(k, s.default) for k, s in interface.inputs.items()},
        "noise": noise or {},
    }
    sampled = component.sample_time is not None
    return context_of(
        robot, arrays, np.asarray(t, dtype=float), np.asarray(q), np.asarray(v), sampled
    )


def context(robot, q, v):
    """Return the context of a component without inputs."""
    nothing = {"continuous": {}, "discrete": {}, "inputs": {}, "noise": {}}
    return context_of(robot, nothing, np.zeros(()), q, v, False)
