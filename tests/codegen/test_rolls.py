"""Blocks that repeat a computation for many coordinates: loops with the bits of straight lines."""

import numpy as np
import pytest

import remora as rm
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


def each(n, degree=2):
    """A sum with a compensation term, and coefficients of polynomials, for each coordinate."""

    def summed(x, rest, rate, h):
        step = h * rate + rest
        total = x + step
        return total, step - (total - x)

    def fitted(x, rate, fit):
        return concatenate([fit[:1] * 2.0 + x[None], (x * rate)[None]], trailing=2)

    vector = [Cell(name, (n,)) for name in ("x", "rest", "rate")]
    return Program(
        [vector[0], vector[2], Signature("h", (1,)), Cell("left", (1,))],
        [*vector[:2], Cell("fit", (degree, n)), Cell("left", (1,))],
        [
            Run(Block(summed, ["x", "rest", "rate", "h"], ["x", "rest"], each=True)),
            While("left", [
                Run(Block(fitted, ["x", "rate", "fit"], ["fit"], each=True)),
                Run(Block(summed, ["x", "rest", "rate", "h"], ["x", "rest"], each=True)),
                Run(Block(lambda left: left - 1.0, ["left"], ["left"])),
            ]),
            Sample(Block(lambda *x: x, ["x", "rest", "fit"], ["x end", "rest end", "fit end"])),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_block_for_each_element_does_what_one_for_all_does(n, dtype):
    rng = np.random.default_rng(n)
    given = [rng.normal(size=(3, n)), rng.normal(size=(3, n)), [0.25], [[1.0], [0.0], [3.0]]]
    x, rest, fit = agree(each(n), given, dtype)
    assert np.allclose(x[:, :], given[0] + 0.25 * np.array([[2.0], [1.0], [4.0]]) * given[1])
    assert np.abs(rest).max() < 1e-6
    assert np.all(fit[1] == 0.0)
    assert np.allclose(fit[0, 1], (given[0] + 0.25 * given[1])[0] * given[1][0])


def test_a_long_block_is_traced_for_one_element():
    blocks = [each(n).blocks()[0] for n in (10, 300)]
    assert [block.each for block in blocks] == [0, 300]
    assert len(blocks[1].graph.nodes) < 10


@pytest.mark.parametrize(
    ("reads", "writes", "reason"),
    [
        (["h"], ["x"], "must read an array of length 7"),
        (["x", "h"], ["x", "left"], "must write cells of one length"),
    ],
)
def test_a_block_for_each_element_needs_its_length(reads, writes, reason):
    cells = [Cell("x", (7,)), Cell("left", (1,)), Cell("h", (1,))]

    def same(*arrays):
        return arrays[: len(writes)]

    with pytest.raises(rm.errors.ShapeError, match=reason):
        Program([], cells, [Run(Block(same, reads, writes, each=True))])
