"""Blocks that repeat a computation for many coordinates: loops with the bits of straight lines."""

import numpy as np
import pytest

from programs import agree
from remora.algebra.array_ops import concatenate, less, select, sqrt
from remora.codegen.integration import rolls
from remora.codegen.integration.hosted_code import hosted_code
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import Block, Cell, If, Record, Run, Sample, While
from remora.codegen.ir.graph import Signature


def chain(n, width=3):
    """Coordinates in groups: some are scaled, all are moved, one block reads its neighbours."""
    order = np.random.default_rng(3).permutation(n)
    x, rest, far, one = Cell("x", (n,)), Cell("rest", (n,)), Cell("far", (n,)), (1,)

    def scaled(x, h):
        parts = []
        for start in range(0, n - n % width, width):
            part = x[start : start + width]
            length = sqrt(np.sum(part * part, keepdims=True) + 1.0)
            parts.append(part / length * h)
        return concatenate([*parts, x[n - n % width :]])

    def summed(x, rest, far, h):
        step = h * far + rest
        total = x + step
        return total, step - (total - x)

    def shuffled(x, far):
        shifted = concatenate([x[1:], x[:1]])
        return x[order] + shifted, select(less(far, 0.5), far, 0.0 * far)

    def measured(x, far, left):
        return np.sum(x * far, keepdims=True), left - 1.0

    return Program(
        [Signature("x", (n,)), Signature("far", (n,)), Signature("h", one), Cell("left", one)],
        [x, rest, far, Cell("size", one), Cell("left", one), Cell("row", one, wide=True)],
        [
            While("left", [
                Run(Block(scaled, ["x", "h"], ["x"])),
                Run(Block(summed, ["x", "rest", "far", "h"], ["x", "rest"])),
                Record(Block(lambda x: x, ["x"], ["each"]), "row"),
                Run(Block(shuffled, ["x", "far"], ["x", "far"])),
                Run(Block(measured, ["x", "far", "left"], ["size", "left"])),
                Run(Block(lambda row: row + 1.0, ["row"], ["row"], wide=True)),
                If("size", [Run(Block(lambda x, size: x / (1.0 + size), ["x", "size"], ["x"]))]),
            ]),
            Sample(Block(lambda x, rest, size: (x, rest, size), ["x", "rest", "size"],
                         ["x end", "rest end", "size end"])),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_bits_are_those_of_straight_lines(dtype):
    n, runs, rng = 200, 5, np.random.default_rng(0)
    given = [
        rng.normal(size=(runs, n)), rng.normal(size=(runs, n)), [0.25],
        np.array([[1.0], [3.0], [2.0], [0.0], [4.0]]),
    ]  # fmt: skip
    agree(chain(n), given, dtype, capacity=3)


def test_what_is_straight_in_the_code_of_many_coordinates_is_the_sum(monkeypatch):
    def length(n):
        return len(hosted_code(chain(n), "float64", True)[0])

    each = (length(2400) - length(600)) / 1800
    monkeypatch.setattr(rolls, "LEAST_SAVED", np.inf)
    assert each < 0.15 * (length(2400) - length(600)) / 1800


def test_few_operations_are_left_as_they_are():
    graphs = [block.graph for block in chain(30).prepared("float64").blocks()]
    assert not any(rolls.rolled(graph, ["x", "far", "rest"]) for graph in graphs)


def test_terms_of_a_sum_are_computed_in_a_loop_and_added_in_line():
    def measured(x, far):
        return np.sum(sqrt(x * x + far), keepdims=True)

    inputs = [Signature("x", (900,)), Signature("far", (900,))]
    program = Program(inputs, [], [Sample(Block(measured, ["x", "far"], ["size"]))])
    (block,) = program.prepared("float64").blocks()
    found = rolls.rolled(block.graph, ["x", "far"])
    (roll,) = found.rolls
    assert roll.copies > 800
    assert len(roll.nodes) == 2
    assert len(found.after) < 1000
    agree(program, np.random.default_rng(0).uniform(size=(2, 3, 900)))
