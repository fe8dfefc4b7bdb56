"""Tasks: Jacobians are the rates of what they are about, on random trees with every joint type."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion
from remora.algebra import pose, vector
from remora.planning.task_equations import (
    TASK_EQUATIONS,
    equation,
    task_biases,
    task_errors,
    task_jacobian,
)

ROBOT = rm.random_robot(7, bodies=9)
Q, V = rm.random_state(ROBOT, 3)
GOAL = pose.from_parts(rm.random_state(ROBOT, 4)[0][:4], np.array([0.3, -0.2, 0.5]))


def tasks(robot, q):
    last = len(robot.bodies) - 1
    return [
        rm.tasks.FrameTask(last, GOAL),
        rm.tasks.PositionTask(last, (0.1, 0.2, 0.3)),
        rm.tasks.DirectionTask(last, (1, 2, 3), (0, 1, 0)),
        rm.tasks.RelativePoseTask(last, GOAL, reference=len(robot.bodies) // 2),
        rm.tasks.PostureTask(q),
        rm.tasks.CenterOfMassTask((0.1, 0.0, 0.2)),
        rm.tasks.BaseAttitudeTask(GOAL),
        rm.tasks.ZeroReactionTask(),
        rm.tasks.ZeroReactionTask(attitude_only=True),
    ]


TASKS = [task.bind(ROBOT) for task in tasks(ROBOT, rm.random_state(ROBOT, 5)[0])]


def test_directions_may_have_any_length():
    tasks = [
        rm.tasks.DirectionTask("body_3", np.multiply(k, (3, 0, 4)), np.multiply(k, (0, 5, 12)))
        for k in (0.1, 2.0)
    ]
    found, same = (task.bind(ROBOT) for task in tasks)
    for task in (found, same):
        assert task.spec.axis == pytest.approx((0.6, 0.0, 0.8))
        assert task.goal == pytest.approx(np.array([0.0, 5.0, 12.0]) / 13.0)


def test_every_kind_is_tested():
    assert {task.spec.kind for task in TASKS} == set(TASK_EQUATIONS)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_rows_and_gradient(task):
    """Jᵀe is the gradient of -½ e², by CasADi; errors have as many rows as they say."""
    spec, row = task.spec, equation(task.spec)
    e = row.error(ROBOT, Q, spec, task.goal)
    J = row.jacobian(ROBOT, Q, spec)
    assert e.shape == (len(row.angular(ROBOT)),)
    assert J.shape == (e.size, ROBOT.nv)
    assert task.goal.size == row.goal(ROBOT)

    def half_square(q, v):
        e = row.error(ROBOT, q, spec, task.goal)
        return 0.5 * vector.dot(e, e)

    rate = rate_along_motion(ROBOT, half_square, Q, V, np.zeros(ROBOT.nv))
    assert_close(rate, np.array([-(J @ V) @ e]), rtol=1e-11)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_bias_is_the_rate_of_the_jacobian(task):
    row, spec = equation(task.spec), task.spec
    rate = rate_along_motion(
        ROBOT, lambda q, v: vector.apply(row.jacobian(ROBOT, q, spec), v), Q, V, np.zeros(ROBOT.nv)
    )
    assert_close(row.bias(ROBOT, Q, V, spec), rate, rtol=1e-11)


def test_batches():
    specs, goals = tuple(t.spec for t in TASKS), np.concatenate([t.goal for t in TASKS])
    q, v = rm.random_state(ROBOT, 8, (2, 3))
    e, J, b = (
        task_errors(ROBOT, q, goals, specs), task_jacobian(ROBOT, q, specs),
        task_biases(ROBOT, q, v, specs),
    )  # fmt: skip
    assert_close(e[1, 2], task_errors(ROBOT, q[1, 2], goals, specs))
    assert_close(J[1, 2], task_jacobian(ROBOT, q[1, 2], specs))
    assert_close(b[1, 2], task_biases(ROBOT, q[1, 2], v[1, 2], specs))


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (rm.tasks.FrameTask("nowhere", GOAL), "task \"pose of 'nowhere'\": no body or frame"),
        (rm.tasks.FrameTask("body_3", np.full(8, np.nan)), "pose of 'body_3'\": goal holds values"),
        (rm.tasks.FrameTask("body_3", 2.0 * GOAL), "not of unit length"),
        (rm.tasks.FrameTask("body_3", GOAL[:7]), "goal must have shape"),
        (rm.tasks.FrameTask("body_3", np.tile(GOAL, (2, 1))), "must have shape (8,)"),
        (rm.tasks.PositionTask("body_3", (0, 0, np.inf), name="grip"), "task 'grip': goal holds"),
        (rm.tasks.DirectionTask("body_3", (0, 0, 0), (1, 0, 0)), "axis must be a direction"),
        (rm.tasks.DirectionTask("body_3", (1, 0, 0), (0, 0, 0)), "goal must be a direction"),
        (rm.tasks.PostureTask(np.zeros(3)), "task 'posture': goal must have shape"),
        (rm.tasks.FrameTask("body_3", GOAL, weight=-1.0), "weight must not be negative"),
        (rm.tasks.FrameTask("body_3", GOAL, gain=np.nan), "gain must not be negative, not nan"),
        (rm.tasks.FrameTask("body_3", GOAL, velocity=np.zeros(3)), "velocity must have shape"),
        (rm.tasks.FrameTask("body_3", GOAL, priority=0.5), "priority must be a whole number"),
        (rm.tasks.BaseAttitudeTask((1, 1, 0, 0)), "task 'attitude of the base'"),
    ],
)
def test_a_wrong_task_is_named(task, says):
    with pytest.raises(rm.RemoraError) as error:
        task.bind(ROBOT)
    assert says in str(error.value)
