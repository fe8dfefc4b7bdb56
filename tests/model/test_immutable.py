"""Robots and their parts cannot change: not made by hand, copied, or out of a pickle."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import remora as rm
from remora.model.robot import Body, Frame, Geometry, Joint, Limits, Robot

ROBOT = rm.load("servicer")
GEOMETRY = Geometry("box", (1.0, 1.0, 1.0), np.eye(8)[0])
PARTS = [
    ROBOT, ROBOT.bodies[1], ROBOT.joints[1], ROBOT.joints[1].limits, ROBOT.frames[0], GEOMETRY,
]  # fmt: skip
WAYS = {
    "itself": lambda x: x,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "old pickle": lambda x: pickle.loads(pickle.dumps(x, protocol=2)),
    "replace": dataclasses.replace,
}


def arrays_of(item):
    """Yield every array in a part, however deep."""
    if isinstance(item, np.ndarray):
        yield item
    elif isinstance(item, tuple):
        for part in item:
            yield from arrays_of(part)
    elif dataclasses.is_dataclass(item):
        for field in dataclasses.fields(item):
            yield from arrays_of(getattr(item, field.name))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", PARTS, ids=lambda x: type(x).__name__)
def test_no_array_can_be_written(part, way):
    other = WAYS[way](part)
    assert other == part
    assert hash(other) == hash(part)
    found = list(arrays_of(other))
    assert found
    for array in found:
        assert not array.flags.writeable
        assert array.base is None
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(other, dataclasses.fields(other)[0].name, 1)


def test_parts_made_by_hand_keep_copies():
    com = np.zeros(3)
    body = Body("a", np.array(1.0), com, np.eye(3))
    placement = np.eye(8)[0].copy()
    frame = Frame("f", 0, placement)
    com[0] = placement[0] = 7.0
    assert body.com[0] == 0.0
    assert frame.placement[0] == 1.0
    assert list(arrays_of(body))
    for array in (*arrays_of(body), *arrays_of(frame)):
        assert not array.flags.writeable


def test_every_dataclass_of_the_model_is_covered():
    assert {type(x) for x in PARTS} == {Robot, Body, Joint, Limits, Frame, Geometry}


def test_equality_is_by_value():
    assert rm.load("servicer") == ROBOT
    assert rm.load("servicer") is not ROBOT
    assert ROBOT.replace_body(1, mass=ROBOT.bodies[1].mass * 1.0000001) != ROBOT
    assert ROBOT != "servicer"
    assert ROBOT.bodies[1] in rm.load("servicer").bodies
    assert len({ROBOT, rm.load("servicer")}) == 1


def test_a_copy_works():
    q, _ = rm.random_state(ROBOT, 0)
    other = pickle.loads(pickle.dumps(ROBOT))
    assert (other.nq, other.nv) == (ROBOT.nq, ROBOT.nv)
    assert np.array_equal(rm.mass_matrix(other, q), rm.mass_matrix(ROBOT, q))
    assert other.joints["joint_1" if "joint_1" in other.joints else 1] is not None
