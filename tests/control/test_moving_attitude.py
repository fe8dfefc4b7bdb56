"""AttitudePD with a goal that moves: an input, or the attitude of a target."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import quaternion

H = 0.05
SETTINGS = {"integrator": rm.Integrator("rk4", step=H), "record": H}
RATE = np.array([0.02, -0.05, 0.03])


def box(name, mass):
    built = rm.Builder(name).body(name, mass=mass, inertia=(0.1 * mass, 0.2 * mass, 0.25 * mass))
    return built.joint(f"{name}_base", "free", None, name).build()


class Turning(rm.Component):
    """An attitude that turns at a constant rate, as a navigation would tell it."""

    def interface(self, robot):
        outputs = {"goal_attitude": rm.Signal(4), "goal_rate": rm.Signal(3, "rad/s")}
        return rm.Interface(outputs=outputs)

    def outputs(self, at):
        r = quaternion.exp(0.5 * at.t[..., None] * RATE)
        return {"goal_attitude": r, "goal_rate": RATE + 0.0 * r[..., :3]}


def off(r, goal):
    return 2.0 * np.linalg.norm(quaternion.mul(quaternion.conjugate(goal), r)[..., 1:], axis=-1)


@pytest.mark.parametrize("goal", [(1, 0, 0, 0), (0.5, 0.5, 0.5, 0.5)])
def test_a_turning_goal_is_followed(goal):
    """Without knowing its rate the base lags by kd ω/kp; with it, by the gyroscopic torque."""
    robot = box("bus", 50.0)
    law = rm.control.AttitudePD(robot, goal, 40.0, 40.0, None, goal_input=True, name="law")
    q, v = rm.neutral(robot), np.zeros(6)
    lag = {}
    for told in (True, False):
        connect = {} if told else {"law.goal_rate": [0.0, 0.0, 0.0]}
        run = rm.simulate(rm.System(robot, [Turning(), law], connect), q, v, 60.0, **SETTINGS)
        at = quaternion.mul(quaternion.exp(0.5 * 60.0 * RATE), np.asarray(goal))
        lag[told] = off(run.q[-1, :4], at)
    w = quaternion.rotate(quaternion.conjugate(np.asarray(goal)), RATE)
    gyroscopic = np.cross(w, np.array([5.0, 10.0, 12.5]) * w) / 40.0
    assert lag[True] == pytest.approx(np.linalg.norm(gyroscopic), rel=0.02, abs=1e-9)
    assert lag[False] == pytest.approx(np.linalg.norm(RATE), rel=0.05)


def test_a_tumbling_target_is_followed():
    robot = rm.combine({"chaser": box("bus", 50.0), "target": box("body", 20.0)})
    frame = "target/body"
    law = rm.control.AttitudePD(robot, (1, 0, 0, 0), 40.0, 40.0, 0.05, goal_frame=frame, name="law")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[robot.joints[1].v] = [0.03, 0.05, -0.04, 0, 0, 0]
    system = rm.System(robot, [law])
    run = rm.simulate(system, q, v, 60.0, **SETTINGS)
    target = rm.frame_pose(robot, run.q[-1], frame)[:4]
    assert off(run.q[-1, :4], target) < 1e-3
    assert off(run.q[-1, :4], run.q[0, :4]) > 0.5
    told = system.truth_read_by()["law"]
    assert {"target/body_base attitude", "target/body_base rate"} <= set(told)
    batch = rm.simulate_batch(system, q, v, 5.0, runs=2, **SETTINGS)
    assert np.abs(batch.q[1] - run.q[: batch.q.shape[1]]).max() < 1e-12


def test_refusals():
    robot = box("bus", 50.0)
    made = (robot, (1, 0, 0, 0), 4.0, 4.0, 0.1)
    with pytest.raises(rm.errors.RemoraError, match="must be on a body that is not the base"):
        rm.control.AttitudePD(*made, goal_frame="bus")
    with pytest.raises(rm.errors.InvalidValue, match="one goal"):
        rm.control.AttitudePD(*made, goal_frame="bus", goal_input=True)
