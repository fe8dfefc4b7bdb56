"""A system with other parameters, or on another robot, is the one that `System` would make."""

import pickle

import casadi
import numpy as np
import pytest

import remora as rm
from sliders import slider


class Feed(rm.Component):
    """Its output depends on its input in one mode only."""

    mode: float = 0.0

    def interface(self, robot):
        return rm.Interface(inputs={"wish": rm.Signal()}, outputs={"force": rm.Signal()})

    def outputs(self, at):
        if self.mode > 0.0:
            return {"force": 2.0 * at.inputs["wish"]}
        return {"force": 0.0 * at.t}


class Wish(rm.Component):
    def interface(self, robot):
        return rm.Interface(outputs={"wish": rm.Signal()})

    def outputs(self, at):
        return {"wish": 3.0 + 0.0 * at.t}


class Drive(rm.Component):
    def interface(self, robot):
        return rm.Interface(inputs={"force": rm.Signal()})

    def act(self, at):
        return rm.JointForce("slide", at.inputs["force"][..., None])


def ends(system, duration=2.0):
    run = rm.simulate(system, [0.0], [0.0], duration, record=rm.Record(progress=False))
    assert run.status == "complete"
    return run.q[-1, 0]


def test_a_parameter_that_decides_on_the_order():
    """A force of 6 N on 1 kg for 2 s: 12 m."""
    system = rm.System(slider(), [Feed(), Wish(), Drive()])
    changed = system.with_parameters({"feed.mode": 1.0})
    fresh = rm.System(slider(), [Feed(mode=1.0), Wish(), Drive()])
    assert changed.order == fresh.order != system.order
    assert ends(changed) == pytest.approx(12.0, rel=1e-12)
    assert ends(fresh) == pytest.approx(12.0, rel=1e-12)
    assert changed == fresh


def test_kernels_of_another_order_are_not_found(monkeypatch, tmp_path):
    """The structure of a system is in the keys of its kernels, in memory and on disk."""
    monkeypatch.setenv("REMORA_CACHE", str(tmp_path / "kernels"))
    system = rm.System(slider(), [Feed(), Wish(), Drive()])
    fresh = rm.System(slider(), [Feed(mode=1.0), Wish(), Drive()])
    assert ends(fresh) == pytest.approx(12.0, rel=1e-12)
    stale = system._changed(system.robot, None, fresh.components)
    with pytest.raises(rm.RemoraError, match=r"'force' of component 'feed' depends on 'wish.wish'"):
        ends(stale)
    assert ends(fresh) == pytest.approx(12.0, rel=1e-12)


class Back(rm.Component):
    """The position as a wish, or a loop."""

    loop: float = 0.0

    def interface(self, robot):
        return rm.Interface(inputs={"force": rm.Signal()}, outputs={"wish": rm.Signal()})

    def outputs(self, at):
        return {"wish": at.inputs["force"] if self.loop > 0.0 else at.q[..., 0]}


def test_an_algebraic_loop_made_by_a_parameter_is_refused():
    system = rm.System(slider(), [Feed(mode=1.0), Back(), Drive()])
    with pytest.raises(rm.errors.ModelError, match="loop"):
        system.with_parameters({"back.loop": 1.0})


class Odd(rm.Component):
    """A branch that cannot be traced."""

    mode: float = 0.0

    def interface(self, robot):
        return rm.Interface(outputs={"force": rm.Signal()})

    def outputs(self, at):
        if self.mode > 0.0:
            return {"force": 6.0 if at.t >= 0.0 else 0.0}
        return {"force": 0.0 * at.t}


def test_a_parameter_that_makes_a_component_untraceable():
    system = rm.System(slider(), [Odd(), Drive()])
    changed = system.with_parameters({"odd.mode": 1.0})
    assert list(changed.untraceable) == ["odd"]
    assert ends(changed) == pytest.approx(12.0, rel=1e-12)
    with pytest.raises(rm.RemoraError, match="'odd' cannot be compiled"):
        rm.simulate_batch(
            changed,
            [[0.0]],
            [[0.0]],
            1.0,
            integrator=rm.Integrator(step=0.1),
            record=rm.Record(progress=False),
        )


class Held(rm.Component):
    """Default of an input, and names of signals, from a parameter."""

    level: float = 1.0

    def interface(self, robot):
        return rm.Interface(inputs={"set": rm.Signal(default=self.level)},
                            outputs={"force": rm.Signal()})  # fmt: skip

    def outputs(self, at):
        return {"force": at.inputs["set"]}


def test_defaults_of_inputs_follow_and_connections_stay():
    system = rm.System(slider(), [Held(), Drive()])
    assert ends(system.with_parameters({"held.level": 6.0})) == pytest.approx(12.0, rel=1e-12)
    copied = pickle.loads(pickle.dumps(system)).with_parameters({"held.level": 6.0})
    assert ends(copied) == pytest.approx(12.0, rel=1e-12)
    given = np.array(3.0)
    system = rm.System(slider(), [Held(), Drive()], {"held.set": given})
    given[...] = 100.0
    assert ends(system.with_parameters({"held.level": 9.0})) == pytest.approx(6.0, rel=1e-12)


def test_numbers_and_symbols_at_once():
    system = rm.System(slider(), [Feed(), Wish(), Drive(), Held(name="other")],
                       {"drive.force": "feed.force"})  # fmt: skip
    level = casadi.SX.sym("level")
    changed = system.with_parameters({"feed.mode": 1.0, "other.level": level})
    fresh = system.with_parameters({"feed.mode": 1.0})
    assert changed.order == fresh.order != system.order
    assert changed.components["feed"].mode == 1.0
    assert changed.components["other"].level is not None


# Robots -------------------------------------------------------------------------------------------


class Weighed(rm.Component):
    """Its initial state is a number of the robot."""

    def interface(self, robot):
        return rm.Interface(continuous={"a": 1.0 / np.asarray(robot.bodies["mass"].mass)})

    def derivative(self, at):
        return {"a": 0.0 * at.state["a"]}

    def act(self, at):
        return rm.JointForce("slide", at.state["a"][..., None])


def test_interfaces_follow_the_robot():
    """A force of 1/3 N of old: 1 N on 1 kg."""
    system = rm.System(slider(mass=3.0), [Weighed()])
    changed = system.with_robot(slider(mass=1.0))
    assert changed.initial_x.tolist() == [1.0]
    assert ends(changed) == pytest.approx(2.0, rel=1e-12)
    assert changed == rm.System(slider(mass=1.0), [Weighed()])
    assert system.with_robot(system.robot) is system


def two_joints(first, second):
    b = rm.Builder("two").body("a", mass=1.0, inertia=(1, 1, 1))
    b = b.joint(first, "prismatic", None, "a", axis=(1, 0, 0))
    b = b.body("b", mass=1.0, inertia=(1, 1, 1))
    return b.joint(second, "prismatic", "a", "b", axis=(0, 1, 0)).build()


class Hold(rm.Component):
    def interface(self, robot):
        return rm.Interface(outputs={"x": rm.Signal((robot.nv,))})

    def outputs(self, at):
        return {"x": at.q}

    def act(self, at):
        return rm.JointForce("slide", 2.0 + 0.0 * at.joint_position("slide"))


def test_a_robot_with_other_joints_gets_a_system_of_its_own():
    one = rm.System(slider(), [Hold()])
    both = one.with_robot(two_joints("other", "slide"))
    assert both.signals["hold.x"][0] == (2,)
    run = rm.simulate(both, [0.0, 0.0], [0.0, 0.0], 1.0, record=rm.Record(progress=False))
    np.testing.assert_allclose(run.q[-1], [0.0, 1.0], atol=1e-12)
    with pytest.raises(rm.errors.ModelError, match="slide"):
        one.with_robot(two_joints("first", "second"))
    symbolic = two_joints("other", "slide").replace_body("a", mass=casadi.SX.sym("m"))
    with pytest.raises(rm.RemoraError, match="must have the bodies of 'slider', mass, not a, b"):
        one.with_robot(symbolic)
    other = slider().replace_body("mass", mass=casadi.SX.sym("m"))
    assert one.with_robot(other).robot is other


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"feed.mode": "fast"}, "parameter 'feed.mode' is not numeric: 'fast'"),
        ({"feed.mode": 1 + 2j}, "parameter 'feed.mode' is not numeric"),
        ({"feed.mode": [1.0, [2.0]]}, "parameter 'feed.mode' is not numeric"),
        ("fast", "parameters must be a dictionary by name"),
    ],
)
def test_parameters_that_are_no_numbers_are_refused(values, says):
    system = rm.System(slider(), [Feed(), Wish()])
    with pytest.raises(rm.RemoraError, match=says):
        system.with_parameters(values)
