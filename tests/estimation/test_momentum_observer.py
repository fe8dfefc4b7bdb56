"""The momentum observer: residuals in closed form, contact forces, payloads."""

import numpy as np
import pytest

import needs
import remora as rm
from arms import arm
from c_structs import built_test, verdict

H = 0.01
SETTINGS = {
    "integrator": rm.Integrator("rk4", step=H), "record": H,
    "physics": rm.Physics(limits="ignore"),
}  # fmt: skip


class Drive(rm.Component):
    """Torques on all joints, commanded at ticks."""

    sampled = True
    torque: np.ndarray

    def interface(self, robot):
        return rm.Interface(outputs={"torque": rm.Signal(len(self.torque), "N m")})

    def outputs(self, at):
        return {"torque": self.torque + 0.0 * at.t}

    def act(self, at):
        names = [joint.name for joint in at.robot.joints[1:]]
        return [rm.JointForce(n, self.torque[k]) for k, n in enumerate(names)]


def test_a_mass_on_a_rail_in_closed_form():
    """r = f (1 - (1 - K T)^k): Euler's method is exact for constant forces."""
    built = rm.Builder("rail").body("ground", mass=1.0, inertia=(1, 1, 1))
    built = built.joint("base", "fixed", None, "ground").body("car", mass=4.0, inertia=(1, 1, 1))
    robot = built.joint("rail", "prismatic", "ground", "car", axis=(1, 0, 0)).build()
    observer = rm.estimation.MomentumObserver(8.0, sample_time=H, name="observer")
    push = rm.actuators.Thruster("car", 3.0, direction=(1.0, 0.0, 0.0), name="push")
    connect = {"observer.torque": [0.0], "push.command": 1.0}
    run = rm.simulate(rm.System(robot, [observer, push], connect), [0.0], [0.2], 1.0, **SETTINGS)
    found = run.signals["observer.force"][1:, 0]
    expected = 3.0 * (1.0 - (1.0 - 8.0 * H) ** np.arange(found.size))
    assert np.abs(found - expected).max() < 1e-11


def error(force, h):
    """Return the largest error of the residual from Jᵀ f with the lag of the observer."""
    robot = arm(3)
    observer = rm.estimation.MomentumObserver(20.0, sample_time=h, name="observer")
    push = rm.actuators.Thruster("tool", 2.0, direction=(1.0, 2.0, 2.0), name="push")
    drive = Drive(torque=np.array([0.4, -0.3, 0.2]), sample_time=h, name="drive")
    q, v = rm.random_state(robot, 4)
    system = rm.System(robot, [observer, push, drive], {"push.command": force})
    assert "observer" in system.truth_read_by()
    settings = SETTINGS | {"integrator": rm.Integrator("rk4", step=0.01), "record": h}
    run = rm.simulate(system, q, 0.1 * v, 2.0, **settings)
    J = rm.jacobian(robot, run.q[:-1], "tool")[:, 3:]
    expected = np.einsum("kij,i->kj", J, force * 2.0 * np.array([1.0, 2.0, 2.0]) / 3.0)
    assert np.abs(expected).max() >= 1.5 * force
    lagged = np.zeros(expected.shape)
    for k in range(len(expected) - 1):
        lagged[k + 1] = lagged[k] + 20.0 * h * (expected[k] - lagged[k])
    return np.abs(run.signals["observer.force"][1:] - lagged).max()


@pytest.mark.parametrize("force", [0.0, 1.0])
def test_a_contact_force_on_a_moving_floating_arm(force):
    """The residual follows Jᵀ f, besides drives, on the base, too, with errors of order T."""
    coarse, fine = error(force, 0.02), error(force, 0.01)
    assert fine < 0.03
    assert coarse / fine == pytest.approx(2.0, rel=0.2)


def test_a_payload_that_the_design_does_not_have():
    """At rest the residual is its weight: m times the gravity torques of a unit mass."""
    built = rm.Builder("lift", gravity=(0, 0, -9.81)).body("ground", mass=1.0, inertia=(1, 1, 1))
    built = built.joint("base", "fixed", None, "ground")
    built = built.body("link", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    built = built.joint("lift", "revolute", "ground", "link", axis=(0, 1, 0))
    built = built.body("load", mass=1.0, inertia=(0.01, 0.01, 0.01))
    design = built.joint("hold", "revolute", "link", "load", axis=(1, 0, 0), xyz=(1, 0, 0)).build()
    robot = design.replace_body("load", mass=3.5)
    weight = 9.81 * (2.0 * 0.5 + 3.5)
    observer = rm.estimation.MomentumObserver(10.0, sample_time=H, name="observer")
    drive = Drive(torque=np.array([-weight, 0.0]), sample_time=H, name="drive")
    system = rm.System(robot, [drive, observer], design=design)
    run = rm.simulate(system, np.zeros(2), np.zeros(2), 2.0, **SETTINGS)
    assert np.abs(run.q).max() < 1e-9
    assert run.signals["observer.force"][-1] == pytest.approx([2.5 * 9.81, 0.0], rel=1e-6, abs=1e-9)


@needs.compiler
def test_in_c(tmp_path):
    robot = arm(1)
    observer = rm.estimation.MomentumObserver(20.0, sample_time=H, name="observer")
    drive = Drive(torque=np.array([0.4]), sample_time=H, name="drive")
    rm.save_component_c(rm.System(robot, [observer, drive]), "observer", tmp_path)
    assert verdict(built_test(tmp_path, "observer", "-O1")) == (0, 0, "good")


def test_a_gain_that_would_not_converge():
    with pytest.raises(rm.errors.InvalidValue, match="at most 1/sample_time, 100 1/s"):
        rm.estimation.MomentumObserver(101.0, sample_time=H)
