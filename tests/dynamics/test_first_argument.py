"""Every public function that takes a robot first says so when something else is given."""

import inspect

import numpy as np
import pytest

import remora as rm
from public_names import everywhere, public

ROBOT = rm.load("servicer")
Q, V = rm.random_state(ROBOT, 0)
TAKES = [
    name
    for name, value in everywhere().items()
    if inspect.isfunction(value)
    and next(iter(inspect.signature(value).parameters), None) == "robot"
]


def test_there_are_many():
    assert len(TAKES) > 40


@pytest.mark.parametrize("name", TAKES)
def test_something_else_instead_of_a_robot(name):
    function = public(name)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    options = {p.name: 0.1 for p in parameters if p.default is p.empty and p.kind is p.KEYWORD_ONLY}
    for first in (Q, "servicer", None, 3, [ROBOT]):
        rest = ([ROBOT] + [V] * len(needed))[: len(needed)]
        with pytest.raises(rm.RemoraError, match="robot"):
            function(first, *rest, **options)


def test_the_message():
    with pytest.raises(rm.RemoraError) as caught:
        rm.mass_matrix(Q, ROBOT)
    assert str(caught.value) == (
        f"mass_matrix takes a robot first, mass_matrix(robot, ...), not an array of shape "
        f"({ROBOT.nq},); the robot was given later: swap the arguments"
    )
    with pytest.raises(TypeError, match=r"load it first: rm.load\('servicer'\)"):
        rm.neutral("servicer")


def test_by_name_it_is_the_same():
    assert np.array_equal(rm.mass_matrix(robot=ROBOT, q=Q), rm.mass_matrix(ROBOT, Q))
    with pytest.raises(rm.RemoraError, match="not int"):
        rm.mass_matrix(robot=1, q=Q)
    with pytest.raises(TypeError, match="missing"):
        rm.mass_matrix(q=Q)


def test_signatures_and_docstrings_are_kept():
    assert list(inspect.signature(rm.mass_matrix).parameters) == ["robot", "q", "formulation"]
    assert rm.mass_matrix.__doc__.startswith("Return H")
