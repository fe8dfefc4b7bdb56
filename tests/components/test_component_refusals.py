"""Mistakes in components are refused with the name of the component, without a traceback."""

import itertools
import re

import numpy as np
import pytest

import remora as rm
from remora.components.feedthrough import dependence
from sliders import slider


class Made(rm.Component):
    """A component with the interface that a test gives."""

    how: object = None

    def interface(self, robot):
        return self.how()


def unlucky():
    raise ValueError("no such sensor")


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (unlucky, "interface raised ValueError: no such sensor"),
        (lambda: rm.Interface(inputs={"u": 3}), "inputs: 'u' must be a Signal, not 3"),
        (lambda: rm.Interface(outputs={"u": ()}), "outputs: 'u' must be a Signal"),
        (lambda: rm.Interface(events={"e": 1}), "events: 'e' must be a ZeroCrossing"),
        (lambda: rm.Interface(noise={"w": -1}), "noise: 'w' must be how many numbers"),
        (lambda: rm.Interface(noise={"w": 2.5}), "noise: 'w' must be how many numbers"),
        (lambda: rm.Interface(inputs=["u"]), "inputs must be a dictionary, not list"),
        (lambda: rm.Interface(discrete={"s": "abc"}), "must be numbers, not 'abc'"),
    ],
)
def test_interfaces(how, text):
    with pytest.raises(rm.errors.ModelError, match="component 'made'") as error:
        rm.System(slider(), [Made(how=how, sample_time=0.1)])
    assert text in str(error.value)


class Link(rm.Component):
    """An output that is its input."""

    def interface(self, robot):
        return rm.Interface(inputs={"u": rm.Signal()}, outputs={"y": rm.Signal()})

    def outputs(self, at):
        return {"y": 2.0 * at.inputs["u"]}


def test_all_signals_of_an_algebraic_loop_are_named_from_source_to_reader():
    parts = [Link(name=name) for name in "abcd"]
    wires = {"b.u": "a.y", "c.u": "b.y", "a.u": "c.y", "d.u": "a.y"}
    with pytest.raises(rm.errors.ModelError) as error:
        rm.System(slider(), parts, wires)
    told = re.search(r"(\w\.y(?: -> \w\.y)+);", str(error.value))[1].split(" -> ")
    assert len(told) == 4
    assert told[0] == told[-1]
    assert all(wires[f"{after[0]}.u"] == before for before, after in itertools.pairwise(told))


class Gain(rm.Component):
    """A parameter, and an action that is no action."""

    k: float = 1.0
    acts: bool = False

    def act(self, at):
        return 3.0 if self.acts else None


class Half(rm.Component):
    """One output of its own, and one that is its input."""

    def interface(self, robot):
        outputs = {"own": rm.Signal(), "passed": rm.Signal()}
        return rm.Interface(inputs={"u": rm.Signal()}, outputs=outputs)

    def outputs(self, at):
        return {"own": at.t, "passed": 2.0 * at.inputs["u"]}


def test_components_that_read_each_other_tick_before_those_of_another_sample_time():
    parts = [
        Half(name="slow", sample_time=0.2), Half(name="a", sample_time=0.1),
        Half(name="b", sample_time=0.1),
    ]  # fmt: skip
    wires = {"slow.u": "a.passed", "a.u": "b.own", "b.u": "a.own"}
    system = rm.System(slider(), parts, wires)
    assert [sorted(update.names) for update in system.schedule] == [["a", "b"], ["slow"]]


class Switched(rm.Component):
    """An output that decides on one parameter, with gains that are zero."""

    mode: float = 1.0
    first: float = 0.0
    second: float = 0.0

    def interface(self, robot):
        return rm.Interface(
            inputs={k: rm.Signal() for k in "uvw"}, outputs={k: rm.Signal() for k in "xy"}
        )

    def outputs(self, at):
        third = at.inputs["w"] if self.mode > 2.0 else 0.0
        return {"x": self.first * at.inputs["u"] + third, "y": self.second * at.inputs["v"]}


def test_outputs_depend_on_inputs_whose_gain_is_zero_here():
    robot, component = slider(), Switched(name="s")
    found = dependence(robot, "s", component, component.interface(robot))
    assert found.outputs == {"x": {"u"}, "y": {"v"}}
    assert (found.reads_robot, found.error) == (False, None)


def test_parameters_and_actions():
    with pytest.raises(rm.errors.ModelError, match=r"'gain'.*'k' must be a number, not 'a'"):
        rm.System(slider(), [Gain(k="a")])
    with pytest.raises(rm.errors.ModelError, match=r"'gain'.*act must return .* not float"):
        rm.System(slider(), [Gain(acts=True)])
    with pytest.raises(rm.errors.ModelError, match="component '3'"):
        rm.System(slider(), [Gain(name=3)])


@pytest.mark.parametrize("components", [Gain(), None, 3])
def test_what_is_no_list_of_components(components):
    with pytest.raises(rm.errors.ModelError, match="must be a list or dictionary of components"):
        rm.System(slider(), components)


def test_what_is_no_dictionary_of_connections():
    with pytest.raises(rm.errors.ModelError, match="connect: must be a dictionary, not list"):
        rm.System(slider(), [Gain()], [1])


def test_lists_are_numbers():
    class Listed(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"y": rm.Signal(3)})

        def outputs(self, at):
            return {"y": [1.0, 2.0, 3.0]}

    run = rm.simulate(rm.System(slider(), [Listed()]), [0.0], [0.0], 0.1)
    assert np.array_equal(run.signals["listed.y"][-1], [1.0, 2.0, 3.0])


class Typo(rm.Component):
    """An output that is declared under another name than the returned one."""

    def interface(self, robot):
        return rm.Interface(outputs={"torque": rm.Signal((), "N m")})

    def outputs(self, at):
        return {"torqe": 0.0 * at.t}


@pytest.mark.parametrize(
    ("component", "text"),
    [
        (Gain, "must be a Component, not the class Gain: write Gain(...)"),
        (3, "must be a Component, not int"),
        (Gain(sample_time=-0.1), "sample_time must be a positive number of seconds, not -0.1"),
        (Gain(sample_time=True), "sample_time must be a positive number of seconds, not True"),
        (Gain(sample_time="0.1"), "sample_time must be a positive number of seconds, not '0.1'"),
        (
            Gain(sample_time=0.1, delay=-0.1),
            "delay must be a nonnegative number of seconds, not -0.1",
        ),
        (Typo(), "outputs returns 'torqe'; the interface declares torque"),
    ],
)
def test_typical_mistakes(component, text):
    with pytest.raises(rm.errors.ModelError) as error:
        rm.System(slider(), [component])
    assert text in str(error.value)


def test_the_closest_parameter_is_suggested():
    system = rm.System(slider(), [Gain(name="pd")])
    with pytest.raises(
        rm.errors.UnknownName, match=r"'pd.kk'; did you mean 'pd.k'\? known: mass, .*pd.k"
    ):
        rm.simulate_batch(
            system,
            [0.0],
            [0.0],
            1.0,
            integrator=rm.Integrator(step=0.1),
            runs=rm.Runs(parameters={"pd.kk": [1.0, 2.0]}),
        )


def test_systems_and_signals_are_listed():
    system = rm.System(slider(), [rm.SignalSource(2.0, "m", name="goal")])
    assert repr(system).startswith("System of 'slider': 1 component\n")
    run = rm.simulate(system, [0.0], [0.0], 1.0, record=0.5)
    assert repr(run.signals) == "<goal.value (3,)>"
