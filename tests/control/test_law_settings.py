"""Laws and references in scenario files: every type of the table, and what a file gets wrong."""

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from arms import arm, wheeled
from remora import control
from remora.actuators import ReactionWheels
from remora.algebra import pose, quaternion
from remora.errors import RemoraError
from remora.simulation.scenario.component_table import COMPONENTS, AnyComponentSettings

ARM = arm(3)
TICK = {"sample_time": 0.1}
PACKAGES = ("remora.control.laws", "remora.control.references", "remora.actuators.reaction")
X, Y = pose.from_xyz_rpy([1, 0, 0]), pose.from_xyz_rpy([0, 1, 0], [0, 0, np.radians(30)])
WHEELS = ["w0", "w1", "w2", "w3"]

#: By type: the file's entry, and what it makes.
CASES = {
    "resolved_rate": (
        {"frame": "tool", "rows": ["vx", "vy"], "gain": 2.0, "secondary": ["limits"]},
        control.ResolvedRate("tool", rows=("vx", "vy"), gain=2.0, secondary=("limits",)),
    ),
    "desired_reaction": (
        {"frame": "tool", "method": "adjugate", "rows": "none"},
        control.DesiredReaction("tool", method="adjugate", rows="none"),
    ),
    "reaction_null_space": ({"rows": ["wz"]}, control.ReactionNullSpace(rows=("wz",))),
    "joint_rate_servo": ({"gain": 5.0, "limit": 2.0}, control.JointRateServo(gain=5.0, limit=2.0)),
    "transpose_jacobian": (
        {"frame": "tool", "kp": 3.0, "kd": 4.0}, control.TransposeJacobian("tool", 3.0, 4.0),
    ),
    "joint_computed_torque": (
        {"kp": 3.0, "kd": 4.0, "joints": ["j1"]}, control.JointComputedTorque(3.0, 4.0, ("j1",)),
    ),
    "operational_computed_torque": (
        {"frame": "tool", "kp": 3.0, "kd": 4.0, "base_rows": "orientation"},
        control.OperationalComputedTorque("tool", 3.0, 4.0, base_rows="orientation"),
    ),
    "impedance": (
        {"frame": "tool", "stiffness": 3.0, "damping_matrix": 4.0},
        control.Impedance("tool", 3.0, 4.0),
    ),
    "admittance": (
        {"mass": 3.0, "damping": 4.0, **TICK}, control.Admittance(3.0, 4.0, **TICK),
    ),
    "base_reaction_compensation": (
        {"torque_only": True}, control.BaseReactionCompensation(torque_only=True),
    ),
    "joint_pid": (
        {"kp": 3.0, "ki": 1.0, "kd": 2.0, **TICK}, control.JointPID(3.0, 1.0, 2.0, **TICK),
    ),
    "base_pose_tracking": ({"kp": 3.0, "kv": 4.0}, control.BasePoseTracking(3.0, 4.0)),
    "frame_pose_tracking": (
        {"frame": "tool", "kp": 3.0, "kv": 4.0}, control.FramePoseTracking("tool", 3.0, 4.0),
    ),
    "coordinated_tracking": (
        {"frame": "tool", "kp": 3.0, "kv": 4.0, "base_kp": 1.0, "base_kv": 2.0},
        control.CoordinatedTracking("tool", 3.0, 4.0, 1.0, 2.0),
    ),
    "reaction_wheels": (
        {"joints": WHEELS, "max_torque": 0.1, "max_speed": 50.0},
        ReactionWheels(tuple(WHEELS), 0.1, 50.0),
    ),
    "wheel_desaturation": (
        {"gain": 1.0, "max_torque": 0.1, "upper": 2.0, "lower": 1.0, **TICK},
        control.WheelDesaturation(1.0, 0.1, 2.0, 1.0, **TICK),
    ),
    "joint_reference": (
        {"waypoints": [["90 deg", 0.0, 0.0], [0.0, 0.0, 1.0]], "max_speed": 0.1},
        control.JointReference([[np.radians(90), 0, 0], [0, 0, 1]], max_speed=0.1),
    ),
    "pose_reference": (
        {"waypoints": [{"xyz": [1.0, 0.0, 0.0]},
                       {"xyz": [0.0, 1.0, 0.0], "rpy": [0.0, 0.0, "30 deg"]}],
         "durations": [2.0], "interpolation": "straight"},
        control.PoseReference([X, Y], [2.0], "straight"),
    ),
    "circle_reference": (
        {"start_point": [1.0, 0.0, 0.0], "center": [0.0, 0.0, 0.0], "normal": [0.0, 0.0, 1.0],
         "duration": 3.0, "rpy": [0.0, 0.0, "30 deg"]},
        control.CircleReference([1, 0, 0], [0, 0, 0], [0, 0, 1], 3.0,
                           quaternion.from_rpy(np.radians([0.0, 0.0, 30.0]))),
    ),
}  # fmt: skip


def made(kind, entry, robot):
    settings = TypeAdapter(AnyComponentSettings).validate_python(
        {"type": kind, **entry}, context=robot
    )
    return settings.made(robot, "")


@pytest.mark.parametrize("kind", CASES)
def test_a_file_makes_what_python_makes(kind):
    entry, expected = CASES[kind]
    robot = wheeled(4) if kind == "reaction_wheels" else ARM
    assert made(kind, entry, robot) == expected


def test_every_type_of_the_table_is_here():
    laws = [name for name, row in COMPONENTS.items() if row.__module__.startswith(PACKAGES)]
    assert list(CASES) == laws


@pytest.mark.parametrize(
    ("kind", "entry", "told"),
    [
        ("resolved_rate", {"frame": "hand"}, "no body or frame named 'hand'"),
        ("joint_pid", {"kp": 1.0, "ki": 1.0, "kd": 1.0}, "sample_time"),
        ("joint_pid", {"kp": -1.0, "ki": 1.0, "kd": 1.0, **TICK}, "greater than 0"),
        ("joint_computed_torque", {"kp": 1.0, "kd": 1.0, "joints": ["j7"]}, "no joint named 'j7'"),
    ],
)
def test_what_a_file_gets_wrong(kind, entry, told):
    with pytest.raises(ValidationError, match=told):
        made(kind, entry, ARM)


@pytest.mark.parametrize(
    ("kind", "entry", "expected"),
    [
        (
            "joint_pid",
            {"kp": {"j0": 3.0, "j1": 4.0, "j2": 5.0}, "ki": [1.0, 2.0, 3.0], "kd": 2.0, **TICK},
            control.JointPID([3.0, 4.0, 5.0], [1.0, 2.0, 3.0], 2.0, **TICK),
        ),
        (
            "resolved_rate",
            {"frame": "tool", "joints": ["j2", "j0"], "weights": {"j0": 1.0, "j2": 2.0}},
            control.ResolvedRate("tool", ("j2", "j0"), weights=[2.0, 1.0]),
        ),
        (
            "base_pose_tracking",
            {"kp": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0], "kv": 4.0},
            control.BasePoseTracking([1.0, 1.0, 1.0, 2.0, 2.0, 2.0], 4.0),
        ),
        (
            "impedance",
            {
                "frame": "tool",
                "stiffness": np.diag([3.0] * 6).tolist(),
                "damping_matrix": [1.0] * 6,
            },
            control.Impedance("tool", 3.0, 1.0),
        ),
        (
            "end_effector_wrench",
            {"targets": {"tool": {"xyz": [1.0, 0.0, 0.0]}}, "kp": 3.0, "kv": 4.0},
            control.EndEffectorWrenchControl(ARM, {"tool": X}, 3.0, 4.0),
        ),
    ],
)
def test_a_file_takes_what_python_takes(kind, entry, expected):
    assert made(kind, entry, ARM) == expected


@pytest.mark.parametrize(
    ("gain", "told"),
    [
        ({"j0": 1.0, "j1": 1.0}, "kp: no value for joint 'j2'"),
        ({"j0": 1.0, "base": 1.0}, "kp: no controlled joint named 'base'"),
        ([1.0, 2.0], "kp must be one number or 3"),
        ({"j0": -1.0}, "greater than 0"),
        ({"j9": 1.0}, "no joint named 'j9'"),
    ],
)
def test_gains_by_joint_that_do_not_fit(gain, told):
    with pytest.raises((ValidationError, RemoraError), match=told):
        made("joint_computed_torque", {"kp": gain, "kd": 1.0}, ARM).interface(ARM)
