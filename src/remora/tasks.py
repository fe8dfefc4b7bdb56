"""Tasks of inverse kinematics, and what it returns."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.planning.differential import (
        TaskSolution,
        solve_tasks,
    )
    from remora.planning.floating_path import JointPath
    from remora.planning.result import (
        InverseKinematicsResult,
        TargetError,
    )
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
    from remora.simulation.inputs.reach import ReachPlan

__all__ = [
    "BaseAttitudeTask",
    "CenterOfMassTask",
    "DirectionTask",
    "FrameTask",
    "InverseKinematicsResult",
    "JointPath",
    "PositionTask",
    "PostureTask",
    "ReachPlan",
    "RelativePoseTask",
    "TargetError",
    "Task",
    "TaskLimits",
    "TaskSolution",
    "ZeroReactionTask",
    "solve_tasks",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
