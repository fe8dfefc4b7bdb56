"""Every argument of a run that is not what it must be is refused with what it must be."""

import dataclasses
import pickle

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped

VT18 = rm.load("vt18_satellite")
Q, V = rm.neutral(VT18), np.zeros(9)


def condition(t, q, v):
    return t - 0.5


BOTH = [
    ({"duration": "1"}, r"duration must be a number, such as 10\.0, in s, not str '1'"),
    ({"duration": True}, "duration must be a number"),
    ({"duration": [1.0]}, "duration must be a number"),
    ({"duration": 1j}, "duration must be a number"),
    ({"duration": -1.0}, r"duration must be a number of seconds, finite and not negative, not -1"),
    ({"duration": np.nan}, "not negative, not nan"),
    ({"duration": np.inf}, "not negative, not inf"),
    ({"stops": [1e4, 0.1, 3]}, r"stops must be 1e4, or \(1e4, 0\.2\) for stiffness and damping"),
    ({"stops": "stiff"}, r"stops must be 1e4, or \(1e4, 0\.2\)"),
    ({"stops": {"k": 1e4}}, r"stops must be 1e4, or \(1e4, 0\.2\)"),
    ({"stops": [1e4, -1.0]}, "damping must be finite and not negative"),
    ({"stops": [[1e4], [1.0, 2.0]]}, "stops must be 1e4"),
    ({"slip_speed": "1e-3"}, "slip_speed must be a number"),
    ({"start": "0"}, "start must be a number"),
    ({"start": np.nan}, "start must be a finite number"),
    ({"breaks": "1"}, "breaks must be finite times in s"),
    ({"breaks": ["a"]}, "breaks must be finite times in s"),
    ({"breaks": [np.inf]}, "breaks must be finite times in s"),
    ({"sample": "0.1"}, "sample must be a number"),
    ({"sample": ["a", "b"]}, "sample must be seconds between samples, or times of all"),
    ({"step": "0.1"}, "step must be a number"),
    ({"formulation": 3}, "no formulation of forward dynamics 3; known"),
]
ONE = [
    ({"events": [condition]}, r"events must be rm\.Event\(\.\.\.\), not function: write rm\.Event"),
    ({"events": condition}, r"events must be a list of rm\.Event"),
    ({"events": ["late"]}, r"events must be rm\.Event\(\.\.\.\), not str"),
    ({"locked": ["J1", 3]}, r"locked must be names of joints, such as \['elbow'\] or 'elbow'"),
    ({"locked": 3}, "locked must be names of joints"),
    ({"locked": "elbow"}, "no joint named 'elbow'; known: "),
    ({"prescribed": ["J1"]}, "prescribed must be a dictionary by name"),
    ({"prescribed": {0: None}}, "prescribed must be given by names, not by 0"),
    ({"rtol": "tight"}, "rtol must be a number"),
    ({"max_step": "1"}, "max_step must be a number"),
    ({"max_steps": 1.5}, "max_steps must be a whole number"),
    ({"saturate": "no"}, "saturate must be True or False"),
    ({"resume": 1}, "resume must be True or False"),
    ({"assume_unchanged": 1, "resume": True, "out": "a.run"}, "assume_unchanged must be True or F"),
    ({"progress": 3}, "progress must be True, False, None or a function of a Status, not int 3"),
    ({"signals": ["gyro.rate"]}, r"Record\(signals=...\) is for rm.simulate_batch"),
    ({"step_to_samples": 1.0}, "step_to_samples must be True or False"),
    ({"note": 3}, "note must be a string"),
    ({"out": 3}, "folder must be the path of a directory"),
    ({"limits": ["stop"]}, "no treatment of limits"),
    ({"integrator": "rk4", "step": 1e-300}, r"1 s in steps of 1e-300 s are more than 1e\+12"),
    ({"integrator": 5}, "no integrator 5; known"),
    ({"integrator": ["rk4"]}, "no integrator"),
]
MANY = [
    ({"threads": 1.5}, "threads must be a whole number"),
    ({"target": ["cpu"]}, "no target"),
    ({"dtype": np.float64}, "no dtype"),
    ({"inputs": [1.0]}, "inputs must be a dictionary by name"),
    ({"parameters": "mass"}, "parameters must be a dictionary by name"),
    ({"count": -1}, r"count must be a whole number from 0 to 2\^32 - 1, not -1"),
    ({"count": True}, "count must be a whole number, not bool True"),
    ({"count": (3,)}, "count must be a whole number"),
    ({"seed": 1.0}, "seed must be a whole number, not float 1.0"),
    ({"seed": -1}, r"seed must be a whole number from 0 to 2\^64 - 1, not -1"),
    ({"index": [0, 1], "count": 3}, r"index must have the batch shape \(3,\), not \(2,\)"),
    ({"index": [0.5], "count": 1}, "index must be whole numbers"),
    ({"index": [0.5], "count": 1, "target": "python"}, "index must be whole numbers"),
    ({"signals": ["gyro.rate", 3]}, r"signals must be names of signals, such as \['gyro.rate'\]"),
    ({"signals": "gyro.rate"}, "no signal named 'gyro.rate'"),
    ({"note": "of a batch"}, r"Record\(note='of a batch'\) is for a single run"),
    ({"progress": print}, r"Record\(progress=.*\) is for a single run"),
]


@pytest.mark.parametrize(("options", "text"), BOTH + ONE)
def test_simulate_says_what_it_expects(options, text):
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate(VT18, Q, V, **grouped(**{"duration": 1.0, **options}))


@pytest.mark.parametrize(("options", "text"), BOTH + MANY)
def test_simulate_batch_says_what_it_expects(options, text):
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate_batch(VT18, Q, V, **grouped(True, **{"duration": 1.0, "step": 0.1, **options}))


def test_settings_are_values():
    """Equal settings are equal and have one hash, however their numbers were given."""
    pairs = [
        (rm.Physics(stops=np.array([1e4, 0.5])), rm.Physics(stops=[1e4, 0.5])),
        (rm.Physics(stops=np.float32(2.0)), rm.Physics(stops=(2, 0))),
        (rm.Integrator(breaks=np.array([0.5, 1.0]), rtol=np.array(1e-9)),
         rm.Integrator(breaks=[0.5, 1], rtol=1e-9)),
        (rm.Target(threads=np.int8(2)), rm.Target(threads=2)),
    ]  # fmt: skip
    for one, other in pairs:
        assert one == other
        assert hash(one) == hash(other)
        assert pickle.loads(pickle.dumps(one)) == dataclasses.replace(other) == one
        assert repr(one) == repr(other)


def test_the_robot_comes_first():
    with pytest.raises(rm.RemoraError, match="the first argument must be a robot or a system, not"):
        rm.simulate(Q, VT18, V, 1.0)
    with pytest.raises(rm.RemoraError, match="simulate_batch takes a robot first"):
        rm.simulate_batch(Q, VT18, V, 1.0, integrator=rm.Integrator(step=0.1))


def test_phases_say_what_they_expect():
    for options, text in [
        ({"duration": "1"}, "the duration of a phase must be a number"),
        ({"duration": 1.0, "events": [condition]}, r"write rm\.Event"),
        ({"duration": 1.0, "own_clock": "yes"}, "own_clock must be True or False"),
        ({"duration": 1.0, "name": 3}, "the name of a phase must be a string"),
    ]:
        with pytest.raises(rm.RemoraError, match=text):
            rm.Phase(**options)
    with pytest.raises(rm.RemoraError, match=r"or one or more rm\.Phase"):
        rm.simulate(VT18, Q, V, [3])


def test_one_name_one_event_one_phase_and_a_list_for_stops_are_fine():
    q = rm.neutral(VT18)
    many = rm.simulate(
        VT18,
        q,
        V,
        0.1,
        locked=["J1"],
        physics=rm.Physics(stops=(1e4, 0.5)),
        integrator=rm.Integrator(breaks=[0.05]),
    )
    event = rm.Event(condition, "late", action="record")
    one = rm.simulate(
        VT18,
        q,
        V,
        np.float32(0.1),
        locked="J1",
        physics=rm.Physics(stops=[1e4, 0.5]),
        integrator=rm.Integrator(breaks=0.05),
        events=event,
    )
    assert one.settings["phases"][0]["locked"] == many.settings["phases"][0]["locked"] == ["J1"]
    assert one.settings["stops"] == many.settings["stops"] == [1e4, 0.5]
    assert rm.simulate(VT18, q, V, rm.Phase(0.1, locked="J1")).status == "complete"
