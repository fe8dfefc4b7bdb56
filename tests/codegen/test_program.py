"""Programs: control flow that differs from run to run, against plain Python and the interpreter."""

import threading

import numpy as np
import pytest

import needs
import remora as rm
from programs import agree
from ptx_machine import launched
from remora.algebra.array_ops import absolute, concatenate, less, select, sqrt
from remora.codegen.gpu import ptx
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_interpreter import interpret
from remora.codegen.integration.program_plan import planned
from remora.codegen.integration.program_ptx import CudaProgram
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    If,
    Record,
    Repeat,
    Run,
    Sample,
    While,
)
from remora.codegen.llvm import host as host_module
from remora.codegen.llvm.host import host

DTYPES = ["float64", "float32"]


def sizes(dtype):
    lanes = host().lanes(dtype)
    return [1, 3, lanes, lanes + 1, 100]


def scalar(name, wide=False):
    return Cell(name, (1,), wide)


# Divergent control flow --------------------------------------------------------------------------


def collatz():
    """Steps until 1 is reached, the largest number on the way, and how many numbers were odd."""

    def half(x):
        return np.floor(0.5 * x)

    def look(x):
        odd = x - 2.0 * np.floor(0.5 * x)
        return odd - 0.5, 0.5 - odd

    def count(x, steps, top):
        return steps + 1.0, select(less(top, x), x, top), x - 1.5

    more = Run(Block(count, ["x", "steps", "top"], ["steps", "top", "more"]))
    return Program(
        inputs=[scalar("x")],
        cells=[scalar(n) for n in ("x", "steps", "top", "odds", "more", "odd", "even")],
        body=[
            Run(Block(lambda x: (x - 1.5, x), ["x"], ["more", "top"])),
            While("more", [
                Run(Block(look, ["x"], ["odd", "even"])),
                If("odd", [
                    Run(Block(lambda x, n: (3.0 * x + 1.0, n + 1.0), ["x", "odds"], ["x", "odds"])),
                ]),
                If("even", [Run(Block(half, ["x"], ["x"]))]),
                more,
            ]),
            Sample(Block(lambda *x: x, ["steps", "top", "odds"], ["steps", "top", "odds"])),
        ],
    )  # fmt: skip


def plain_collatz(x):
    steps, top, odds = 0, x, 0
    while x > 1.5:
        if x % 2 == 1:
            x, odds = 3 * x + 1, odds + 1
        else:
            x //= 2
        steps, top = steps + 1, max(top, x)
    return steps, top, odds


@pytest.mark.parametrize("dtype", DTYPES)
def test_collatz(dtype):
    program = collatz()
    for n in sizes(dtype):
        x = np.arange(n) % 60 + 1
        found = agree(program, [x[:, None]], dtype)
        wanted = np.array([plain_collatz(int(k)) for k in x]).T
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a[:, 0], b)


def nested():
    """For each of a number of rounds of its own, a run counts down from a number of its own."""
    cells = [scalar(n) for n in ("rounds", "left", "deep", "sum", "last")]
    return Program(
        inputs=[scalar("n"), scalar("m")],
        cells=cells,
        body=[
            Run(Block(lambda n: n, ["n"], ["rounds"])),
            While("rounds", [
                Run(Block(lambda m, r: m - r, ["m", "rounds"], ["left"])),
                If("left", [
                    While("left", [
                        Run(Block(lambda x: (x - 1.0, x - 2.5), ["left"], ["left", "deep"])),
                        If("deep", [Run(Block(lambda s, x: s + x, ["sum", "left"], ["sum"]))]),
                    ]),
                    Run(Block(lambda r: r, ["rounds"], ["last"])),
                ]),
                Run(Block(lambda r: r - 1.0, ["rounds"], ["rounds"])),
            ]),
            Sample(Block(lambda *x: concatenate(x), ["sum", "last", "rounds", "left"], ["out"])),
        ],
    )  # fmt: skip


def plain_nested(n, m):
    rounds, left, total, last = n, 0, 0, 0
    while rounds > 0:
        left = m - rounds
        if left > 0:
            while left > 0:
                left -= 1
                if left - 1.5 > 0:
                    total += left
            last = rounds
        rounds -= 1
    return total, last, rounds, left


@pytest.mark.parametrize("dtype", DTYPES)
def test_nested_conditions(dtype):
    for n in sizes(dtype):
        rng = np.random.default_rng(n)
        a, b = rng.integers(0, 7, n), rng.integers(-1, 9, n)
        (found,) = agree(nested(), [a[:, None], b[:, None]], dtype)
        np.testing.assert_array_equal(found, [plain_nested(*p) for p in zip(a, b, strict=True)])


def bisection(wide):
    """The root of x³ + x - a by bisection to a tolerance of each run's own."""

    def begin(a):
        return -1.0 - absolute(a), 1.0 + absolute(a), np.ones(1)

    def halve(low, high, a, tolerance):
        middle = 0.5 * (low + high)
        above = less(a, middle * middle * middle + middle)
        low, high = select(above, low, middle), select(above, middle, high)
        return low, high, high - low - tolerance

    names = ["low", "high", "width"]
    return Program(
        inputs=[scalar("a", wide), scalar("tolerance")],
        cells=[scalar(n, wide) for n in names],
        body=[
            Run(Block(begin, ["a"], names, wide)),
            While("width", [Run(Block(halve, ["low", "high", "a", "tolerance"], names, wide))]),
            Sample(Block(lambda low, high: 0.5 * (low + high), ["low", "high"], ["x"], wide)),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bisection(dtype, wide):
    for n in sizes(dtype):
        a = np.random.default_rng(n).normal(size=(n, 1)) * 10.0
        tolerance = 10.0 ** -np.random.default_rng(1).uniform(1.0, 4.0, (n, 1))
        (x,) = agree(bisection(wide), [a, tolerance], dtype)
        assert (np.abs(x**3 + x - a) <= (3 * x**2 + 2) * tolerance).all()


def adaptive():
    """y' = -k y + sin-like drive by Heun's method, the step size controlled in each run."""

    def attempt(t, h, end, y, k):
        h = select(less(end - t, h), end - t, h)
        f = -k * y + t
        y1 = y + h * f
        f1 = -k * y1 + (t + h)
        y2 = y + 0.5 * h * (f + f1)
        ratio = absolute(y2 - y1) / 1e-4
        fine = less(ratio, 1.0)
        factor = select(less(ratio, 0.01), 4.0, 0.9 / sqrt(select(less(ratio, 0.01), 1.0, ratio)))
        return y2, select(fine, 1.0, -1.0), h, h * select(less(factor, 0.2), 0.2, factor)

    def accept(t, used, new, count, end):
        return new, t + used, count + 1.0, end - (t + used) - 1e-9

    tried = ["new", "fine", "used", "h"]
    cells = [scalar(n, wide=True) for n in ("t", "h", "used", "count", "more")]
    return Program(
        inputs=[scalar("y"), scalar("k"), scalar("end", wide=True)],
        cells=[*cells, scalar("y"), scalar("new"), scalar("fine"), scalar("tries")],
        body=[
            Run(Block(lambda end: (0.1 + 0.0 * end, end), ["end"], ["h", "more"], wide=True)),
            While("more", [
                Run(Block(attempt, ["t", "h", "end", "y", "k"], tried, wide=True)),
                Run(Block(lambda n: n + 1.0, ["tries"], ["tries"])),
                If("fine", [
                    Record(Block(lambda t: t, ["t"], ["t"], wide=True), "count"),
                    Record(Block(lambda y, h: (y, h), ["y", "h"], ["y", "step"]), "count"),
                    Run(Block(accept, ["t", "used", "new", "count", "end"],
                              ["y", "t", "count", "more"], wide=True)),
                ]),
            ]),
            Sample(Block(lambda t, n: (t, n), ["t", "count"], ["last", "steps"], wide=True)),
            Sample(Block(lambda y, n: (y, n), ["y", "tries"], ["end y", "tries"])),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_adaptive_steps_with_records(dtype):
    for n in sizes(dtype):
        rng = np.random.default_rng(n)
        y, k, end = rng.normal(size=n), rng.uniform(0.1, 30.0, n), rng.uniform(0.5, 2.0, n)
        given = [x[:, None] for x in (y, k, end)]
        found = agree(adaptive(), given, dtype, capacity=400)
        t, ys, h, last, steps, last_y, tries = (x[..., 0] for x in found)
        np.testing.assert_allclose(last, end, atol=2e-9)
        exact = (y + 1 / k**2) * np.exp(-k * end) + end / k - 1 / k**2
        np.testing.assert_allclose(last_y, exact, atol=2e-3)
        assert (tries >= steps).all()
        if n > 30:
            assert len(np.unique(steps)) > 5  # the runs differ
        for b in range(n):
            count = int(steps[b])
            assert 0 < count < 400
            assert (np.diff(t[b, :count]) > 0).all()
            assert np.isnan(t[b, count:]).all()
            assert np.isnan(h[b, count:]).all()
            assert not np.isnan(ys[b, :count]).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_records_beyond_the_capacity_are_not_stored(dtype):
    given = [x[:, None] for x in (np.ones(37), np.linspace(0.5, 20.0, 37), np.full(37, 1.5))]
    whole = agree(adaptive(), given, dtype, capacity=400)
    for rows in (0, 1, 17):
        found = agree(adaptive(), given, dtype, capacity=rows)
        for a, b, o in zip(found, whole, adaptive().outputs, strict=True):
            if o.per == "record":
                assert a.shape == (37, rows, 1)
                np.testing.assert_array_equal(a, b[:, :rows])
            else:
                np.testing.assert_array_equal(a, b)


def test_records_where_the_index_is_no_row():
    """Negative, NaN, too large, and between two rows."""
    program = Program(
        [Cell("i", ()), Cell("x", (3,))], [Cell("i", ())],
        [
            Record(Block(lambda x: 2.0 * x, ["x"], ["a"]), "i", buffer="one"),
            Record(Block(lambda x: x[1], ["x"], ["b"]), "i", buffer="two"),
        ],
    )  # fmt: skip
    index = np.array([-1.0, np.nan, 0.0, 1.9, 2.0, 1e300, -0.5, np.inf, 0.99])
    x = np.random.default_rng(0).normal(size=(9, 3))
    a, b = agree(program, [index, x], capacity={"one": 2, "two": 3})
    assert a.shape == (9, 2, 3)
    assert b.shape == (9, 3)
    for k, row in ((2, 0), (3, 1), (8, 0)):
        np.testing.assert_array_equal(a[k, row], 2.0 * x[k])
        assert b[k, row] == x[k, 1]
    assert b[4, 2] == x[4, 1]
    assert np.isfinite(a).sum() == 9
    assert np.isfinite(b).sum() == 4


# Tables, rows, precision -------------------------------------------------------------------------


def clocked():
    """Steps from start to start, with the time in double precision."""
    return Program(
        [scalar("x")],
        [scalar("t", wide=True), scalar("x"), scalar("seen")],
        [
            ForEach([
                Repeat("count", [
                    Run(Block(lambda t0, h, i: t0 + (i + 1.0) * h, ["start", "step", "i"], ["t"],
                              wide=True)),
                    Run(Block(lambda x, h: x + h, ["x", "step"], ["x"])),
                    Run(Block(lambda t, start: t - start, ["t", "start"], ["seen"], wide=True)),
                ], index="i"),
                Sample(Block(lambda t: t, ["t"], ["t"], wide=True)),
                Sample(Block(lambda x, seen, t: (x, seen, t), ["x", "seen", "t"],
                             ["x", "seen", "rounded"])),
            ]),
        ],
        tables=["start", "step", "count"],
    )  # fmt: skip


def test_time_is_exact_in_single_precision():
    """A thousand steps of 1 ms from 1e6 s; the time is also what the other blocks see, rounded."""
    tables = {"start": [1e6, 1e6 + 1.0], "step": [1e-3, 1e-3], "count": [1000, 500]}
    found = agree(clocked(), [np.arange(20)[:, None]], "float32", tables=tables)
    t, x, seen, rounded = (a[..., 0] for a in found)
    np.testing.assert_allclose(t, [[1e6 + 1.0, 1e6 + 1.5]] * 20, rtol=1e-15)
    np.testing.assert_allclose(seen, [[1.0, 0.5]] * 20, atol=1e-6)
    np.testing.assert_array_equal(rounded, t.astype("float32"))
    np.testing.assert_allclose(x - np.arange(20)[:, None], [[1.0, 1.5]] * 20, atol=2e-3)


def weighted():
    """Sums of coefficients times tables, in both precisions."""
    return Program(
        [scalar("x")], [Cell("a", (2,), wide=True), Cell("b", (2,))],
        [
            ForEach([
                For([[0.1, 0.2], [0.3, 0.7]], [
                    Run(Block(lambda a, c, e: a + c * e, ["a", "row", "e"], ["a"], wide=True)),
                    Run(Block(lambda b, c, e: b + c * e, ["b", "row", "e"], ["b"])),
                ]),
            ]),
            Sample(Block(lambda a: a, ["a"], ["a"], wide=True)),
            Sample(Block(lambda b: b, ["b"], ["b"])),
        ],
        tables=["e"],
    )  # fmt: skip


def test_coefficients_and_tables_are_exact_in_wide_blocks():
    a, b = agree(weighted(), [np.ones(1)], "float32", tables={"e": [1.1, 1.3]})
    wanted = np.array([0.4, 0.9]) * 2.4
    np.testing.assert_allclose(a, wanted, rtol=1e-15)
    np.testing.assert_allclose(b, wanted, rtol=1e-6)
    assert np.abs(a - b).max() > 1e-9


def test_wide_blocks_round_what_they_write():
    """Also where the next block, which could be joined, reads it."""
    program = Program(
        [scalar("x", wide=True)], [scalar("y"), scalar("z", wide=True)],
        [
            Run(Block(lambda x: x / 3.0, ["x"], ["y"], wide=True)),
            Run(Block(lambda x, y: x / 3.0 - y, ["x", "y"], ["z"], wide=True)),
            Sample(Block(lambda z: z, ["z"], ["z"], wide=True)),
        ],
    )  # fmt: skip
    x = np.arange(1.0, 20.0)[:, None]
    (z,) = agree(program, [x], "float32")
    np.testing.assert_array_equal(z, x / 3.0 - (x / 3.0).astype("float32"))


def test_constants_that_pass_between_joined_blocks_are_rounded():
    program = Program(
        [], [scalar("a"), scalar("b")],
        [
            Run(Block(lambda: np.full(1, 0.1), [], ["a"])),
            Run(Block(lambda a: 3.0 * a + 0.7, ["a"], ["b"])),
            Sample(Block(lambda b: b * 10.0, ["b"], ["b"])),
        ],
    )  # fmt: skip
    agree(program, [], "float32")
    assert sum(isinstance(s, Run) for s in planned(program, "float32").body) == 1


def test_cells_start_at_zero_or_at_the_input_of_their_name():
    program = Program(
        [Cell("x", (2,))], [Cell("x", (2,)), Cell("y", (2,))],
        [
            Run(Block(lambda x, y: (x + 1.0, x + y), ["x", "y"], ["x", "y"])),
            Sample(Block(lambda x, y: (x, y), ["x", "y"], ["x", "y"])),
        ],
    )  # fmt: skip
    given = np.arange(10.0).reshape(5, 2)
    x, y = agree(program, [given])
    np.testing.assert_array_equal(x, given + 1.0)
    np.testing.assert_array_equal(y, given)


def test_uniform_conditions_do_not_mask():
    """A condition that depends on tables only is a plain branch; one on an input is not."""

    def program(source):
        return Program(
            [scalar("p")], [scalar("go"), scalar("x"), scalar("tick")],
            [
                ForEach([
                    Run(Block(lambda p: p - 0.5, [source], ["tick"])),
                    If("tick", [Run(Block(lambda x, e: x + e, ["x", "e"], ["x"]))]),
                    Sample(Block(lambda x: x, ["x"], ["x"])),
                ]),
            ],
            tables=["e"],
        )  # fmt: skip

    for source, masked in (("e", False), ("p", True)):
        made = program(source)
        plan = planned(made, "float64", lanes=8)
        assert ("tick" in plan.divergent) == masked
        blocks = [b for b in _blocks(plan.body) if b.masked]
        assert bool(blocks) == masked
        given = np.arange(11.0)[:, None] % 2
        (x,) = agree(made, [given], tables={"e": [1.0, 0.0, 2.0]})
        wanted = [1.0, 1.0, 3.0] if not masked else given * [1.0, 1.0, 3.0]
        np.testing.assert_array_equal(x[..., 0], np.broadcast_to(wanted, (11, 3)))


def _blocks(body):
    found = []
    for s in body:
        found += [s.block] if hasattr(s, "block") else _blocks(s.body)
    return found


def test_cells_of_one_iteration_need_no_mask():
    """What a run has written before it reads it need not survive in a lane that waits."""
    plan = planned(nested(), "float64", lanes=8)
    masked = {name for b in _blocks(plan.body) for name in b.masked}
    assert "deep" not in masked
    assert {"rounds", "sum", "left", "last"} <= masked


def test_inputs_in_loops_are_placed_in_their_order():
    """The machine code does not depend on the hashes of names, which differ between processes."""
    names = [f"number {k}" for k in range(12)]
    block = Block(lambda y, *numbers: y - sum(numbers), ("y", *names), ("y",))
    inputs = [Cell(name, (1,)) for name in names]
    program = Program(
        inputs,
        [Cell("y", (1,))],
        [While("y", [Run(block)]), Sample(Block(lambda y: y, ["y"], ["end"]))],
    )
    cells = list(planned(program, "float64").cells)
    assert [name for name in cells if name != "y"] == names


def test_conditional_samples():
    """What no run writes is NaN."""
    program = Program(
        [scalar("x")], [scalar("x")],
        [
            ForEach([
                If("x", [Sample(Block(lambda x, e: (x * e, e), ["x", "e"], ["y", "e"]))]),
                Run(Block(lambda x: x - 1.0, ["x"], ["x"])),
            ]),
        ],
        tables=["e"],
    )  # fmt: skip
    x = np.arange(-1.0, 20.0)
    y, _ = agree(program, [x[:, None]], tables={"e": [1.0, 2.0, 3.0]})
    now = x[:, None] - np.arange(3.0)
    np.testing.assert_array_equal(y[..., 0], np.where(now > 0, now * [1.0, 2.0, 3.0], np.nan))


def test_lanes_that_wait_compute_nothing_that_ends_the_process():
    """A division by zero, and a root of a negative number, in lanes that are done."""
    program = Program(
        [scalar("n")], [scalar("n"), scalar("x")],
        [
            While("n", [
                Run(Block(lambda n, x: (n - 1.0, x + sqrt(n) / n), ["n", "x"], ["n", "x"])),
            ]),
            Sample(Block(lambda x: x, ["x"], ["x"])),
        ],
    )  # fmt: skip
    n = np.array([0.0, 3.0, -5.0, np.nan, 7.0, 1.0, 0.0, 40.0, 2.0])
    (x,) = agree(program, [n[:, None]])
    wanted = [sum(np.sqrt(k) / k for k in np.arange(m, 0, -1)) if m > 0 else 0.0 for m in n]
    np.testing.assert_allclose(x[:, 0], wanted, rtol=1e-14)


class Random:
    """Programs made at random: loops and conditions in each other, cells of both precisions."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.cells = [Cell(f"c{k}", (2,), wide=k < 2) for k in range(6)]
        self.flags = []

    def some(self, names, count=3):
        count = self.rng.integers(1, count + 1)
        return [str(x) for x in self.rng.choice(names, min(count, len(names)), replace=False)]

    def function(self, count):
        numbers, ways = self.rng.normal(size=(count, 3)).round(3), self.rng.integers(0, 4, count)

        def one(first, last, a, b, c, way):
            if way == 0:
                return a * first + b * last + c
            if way == 1:
                return select(less(first, last), a * first, b - last)
            return absolute(first) / (1.0 + last * last) + c if way == 2 else np.full(1, c)

        def computed(*x):
            values = [
                (one(x[0][:1], x[-1][-1:], *n, way), n[1])
                for n, way in zip(numbers, ways, strict=True)
            ]
            return tuple(concatenate([value, b - 0.5 * value]) for value, b in values)

        return computed

    def block(self, given, wide):
        writes = self.some([c.name for c in self.cells if wide or not c.wide])
        reads = self.some([*(c.name for c in self.cells), "x", "w", *given])
        return Block(self.function(len(writes)), reads, writes, wide)

    def flag(self):
        self.flags.append(Cell(f"f{len(self.flags)}", (1,), bool(self.rng.integers(2))))
        return self.flags[-1]

    def body(self, depth, given, entry):
        found = []
        for _ in range(self.rng.integers(1, 5)):
            kind = self.rng.choice(["run", "run", "run", "if", "while", "for", "sample", "record"])
            wide = bool(self.rng.integers(2))
            if kind == "run" or not depth:
                found.append(Run(self.block(given, wide)))
            elif kind == "if":
                flag, source = self.flag(), self.some([c.name for c in self.cells], 1)
                offset = self.rng.normal()
                test = Block(lambda x, c=offset: x[:1] - c, source, [flag.name], flag.wide)
                found += [Run(test), If(flag.name, self.body(depth - 1, given, entry))]
            elif kind == "while":
                flag, source = self.flag(), self.some([c.name for c in self.cells], 1)
                begin = Block(lambda x: np.floor(select(less(x[:1], 4.0), x[:1], 4.0)), source,
                              [flag.name], flag.wide)  # fmt: skip
                down = Run(Block(lambda f: f - 1.0, [flag.name], [flag.name], flag.wide))
                body = self.body(depth - 1, given, entry)
                body.insert(self.rng.integers(len(body) + 1), down)
                found += [Run(begin), While(flag.name, body)]
            elif kind == "for":
                name, rows = f"row{depth}", self.rng.normal(size=(2, 2))
                found.append(For(rows, self.body(depth - 1, [*given, name], entry), name))
            else:
                reads = self.some([c.name for c in self.cells])
                name = f"{kind} {entry} {wide}"
                block = Block(lambda *x: concatenate([x[0], x[-1]])[1:3], reads, [name], wide)
                index = Cell(f"f{len(self.flags)}", (1,))
                if kind == "sample":
                    found.append(Sample(block))
                else:
                    self.flags.append(index)
                    count = Block(lambda x: 3.0 * x[1:], reads[:1], [index.name])
                    found += [Run(count), Record(block, index.name)]
        return found

    def program(self):
        ends = self.body(1, [], "end")
        body = [
            *self.body(2, [], "start"),
            ForEach([
                *self.body(3, ["e"], "each"),
                Repeat("n", self.body(2, ["e", "i"], "rep"), "i"),
            ]),
            *ends,
            Sample(Block(lambda *x: concatenate(x), [c.name for c in self.cells[2:]], ["narrow"])),
            Sample(Block(lambda *x: concatenate(x), ["c0", "c1"], ["wide"], wide=True)),
        ]  # fmt: skip
        inputs = [Cell("x", (2,)), Cell("w", (2,), wide=True), self.cells[0], self.cells[3]]
        return Program(inputs, [*self.cells, *self.flags], body, ["e", "n"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed, dtype):
    program = Random(seed).program()
    rng = np.random.default_rng(seed)
    given = [2.0 * rng.normal(size=(19, 2)) for _ in program.inputs]
    tables = {"e": [0.3, -1.2, 2.0], "n": [2, 0, 1]}
    agree(program, given, dtype, tables=tables, capacity=4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_position_in_any_batch(dtype):
    kernel = ProgramKernel(adaptive(), "adaptive", dtype)
    n = 3 * host().lanes(dtype) + 5
    rng = np.random.default_rng(4)
    given = [rng.normal(size=n), rng.uniform(0.1, 20.0, n), rng.uniform(0.5, 2.0, n)]
    given = [a[:, None].astype(kind) for a, kind in zip(given, (dtype, dtype, float), strict=True)]
    whole = kernel(*given, capacity=300)
    for part in (slice(0, 1), slice(5, 6), slice(2, n), slice(n - 3, n)):
        some = kernel(*(a[part] for a in given), capacity=300)
        for a, b in zip(some, whole, strict=True):
            np.testing.assert_array_equal(a, b[part])
    alone = kernel(*(a[7] for a in given), capacity=300)
    shaped = kernel(*(a[:6].reshape(2, 3, 1) for a in given), capacity=300)
    for a, b, c in zip(alone, shaped, whole, strict=True):
        np.testing.assert_array_equal(a, c[7])
        np.testing.assert_array_equal(b.reshape(c[:6].shape), c[:6])
    for threads in (2, 3, 0):
        for a, b in zip(kernel(*given, capacity=300, threads=threads), whole, strict=True):
            np.testing.assert_array_equal(a, b)


# PTX ---------------------------------------------------------------------------------------------


def on_threads(program, given, dtype, registers, monkeypatch, rtol, **options):
    """Compare the PTX, run on the machine of the tests, with the interpreter."""
    for own in DTYPES:
        monkeypatch.setitem(ptx.MEMORY, own, ptx.MEMORY[own]._replace(registers=registers))
    given = [
        np.asarray(a, "float64" if program.wide_input(s.name) else dtype)
        for a, s in zip(given, program.inputs, strict=True)
    ]
    expected = interpret(program.prepared(dtype), given, dtype=dtype, **options)
    for columns in (False, True):
        kernel = CudaProgram(program, "test", dtype)
        got = launched(kernel, given, **options, columns=columns, block=1)
        for a, b, o in zip(got, expected, program.outputs, strict=True):
            assert a.dtype == ("float64" if o.wide else dtype)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("registers", [100, 3])
@pytest.mark.parametrize("dtype", DTYPES)
class TestPtx:
    def test_collatz(self, dtype, registers, monkeypatch):
        x = np.array([1, 2, 7, 27])[:, None]
        on_threads(collatz(), [x], dtype, registers, monkeypatch, rtol=0.0)

    def test_nested_conditions(self, dtype, registers, monkeypatch):
        a, b = np.array([[0], [3], [5], [6]]), np.array([[4], [-1], [8], [3]])
        on_threads(nested(), [a, b], dtype, registers, monkeypatch, rtol=0.0)

    def test_adaptive_steps_with_records(self, dtype, registers, monkeypatch):
        given = [np.array([[1.0], [-0.5]]), np.array([[2.0], [9.0]]), np.array([[0.7], [0.4]])]
        for rows in (100, 5):
            on_threads(
                adaptive(), given, dtype, registers, monkeypatch, capacity=rows,
                rtol=1e-9 if dtype == "float64" else 1e-4,
            )  # fmt: skip

    def test_time_at_1e6_seconds(self, dtype, registers, monkeypatch):
        tables = {"start": [1e6, 1e6 + 1.0], "step": [1e-3, 1e-3], "count": [5, 3]}
        given = [np.arange(3.0)[:, None]]
        on_threads(clocked(), given, dtype, registers, monkeypatch, tables=tables, rtol=1e-7)

    def test_coefficients(self, dtype, registers, monkeypatch):
        given, tables = [np.ones((2, 1))], {"e": [1.1, 1.3]}
        on_threads(weighted(), given, dtype, registers, monkeypatch, tables=tables, rtol=1e-7)


@needs.gpu
@pytest.mark.parametrize("dtype", DTYPES)
class TestGpu:
    """Threads that part, on a real GPU: against the CPU, and the same bits in any batch."""

    def compared(self, program, given, dtype, rtol, **options):
        given = [
            np.asarray(a, "float64" if program.wide_input(s.name) else dtype)
            for a, s in zip(given, program.inputs, strict=True)
        ]
        expected = ProgramKernel(program, "test", dtype)(*given, **options)
        kernel = CudaProgram(program, "test", dtype)
        device = [needs.CUPY.asarray(a) for a in given]
        got = kernel(*device, **options)
        few = kernel(*(a[3:40] for a in device), **options)
        if len(program.outputs) == 1:
            expected, got, few = (expected,), (got,), (few,)
        for a, b, c in zip(got, expected, few, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a.get(), b, rtol=rtol, atol=rtol)
            np.testing.assert_array_equal(a[3:40].get(), c.get())

    def test_collatz(self, dtype):
        x = np.random.default_rng(0).integers(1, 60, (1000, 1))
        self.compared(collatz(), [x], dtype, rtol=0.0)

    def test_nested_conditions(self, dtype):
        rng = np.random.default_rng(1)
        given = [rng.integers(0, 7, (1000, 1)), rng.integers(-1, 9, (1000, 1))]
        self.compared(nested(), given, dtype, rtol=0.0)

    def test_adaptive_steps_with_records(self, dtype):
        """In single precision, a run may take a step more or less: only its end is compared."""
        rng = np.random.default_rng(2)
        y, k, end = rng.normal(size=999), rng.uniform(0.1, 30.0, 999), rng.uniform(0.5, 2.0, 999)
        given = [x[:, None] for x in (y, k, end)]
        if dtype == "float64":
            self.compared(adaptive(), given, dtype, rtol=1e-9, capacity=400)
        else:
            kernel = CudaProgram(adaptive(), "test", dtype)
            kinds = (dtype, dtype, "float64")
            device = [needs.CUPY.asarray(a.astype(d)) for a, d in zip(given, kinds, strict=True)]
            t, _, _, last, steps, last_y, _ = (x.get() for x in kernel(*device, capacity=400))
            exact = (y + 1 / k**2) * np.exp(-k * end) + end / k - 1 / k**2
            np.testing.assert_allclose(last_y[:, 0], exact, atol=2e-3)
            np.testing.assert_allclose(last[:, 0], end, atol=2e-9)
            np.testing.assert_array_equal(np.isfinite(t[..., 0]).sum(axis=1), steps[:, 0])

    def test_time_at_1e6_seconds(self, dtype):
        tables = {"start": [1e6, 1e6 + 1.0], "step": [1e-3, 1e-3], "count": [1000, 500]}
        self.compared(clocked(), [np.arange(100.0)[:, None]], dtype, tables=tables, rtol=1e-6)


# Refusals ----------------------------------------------------------------------------------------

X = Cell("x", ())


def _of(*body, cells=(X,), tables=("e",)):
    return Program([], cells, body, tables)


def _run(function=lambda x: x, reads=("x",), writes=("x",), **more):
    return Run(Block(function, reads, writes, **more))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: _of(_run(reads=["z"])), "reads named 'z'; known: x"),
        (lambda: _of(_run(writes=["z"])), "writes named 'z'; known: x"),
        (lambda: _of(_run(reads=["e"])), "reads named 'e'"),
        (lambda: _of(_run(lambda x: (x, x))), "returns 2 arrays for x"),
        (lambda: _of(_run(lambda x: (x, x), writes=["x", "x"])), "writes 'x' twice"),
        (lambda: _of(_run(lambda x: np.zeros(2))), r"writes 'x' of shape \(2,\)"),
        (lambda: _of(_run(), cells=[Cell("x", (), wide=True)]), "wide cell 'x': make the block"),
        (lambda: _of(While("z", [])), "cell of a While named 'z'"),
        (lambda: _of(If("x", []), cells=[Cell("x", (2,))]), "must be one number"),
        (lambda: _of(Record(Block(lambda: 0.0, [], ["y"]), "z")), "cell of a Record named 'z'"),
        (lambda: _of(Repeat("e", [])), "table that counts a Repeat named 'e'"),
        (lambda: _of(ForEach([Repeat("f", [])])), "named 'f'; known: e"),
        (lambda: _of(ForEach([ForEach([])])), "ForEach cannot be nested"),
        (lambda: _of(ForEach([]), tables=()), "needs at least one table"),
        (lambda: _of(For([1.0], [])), "rows of a For"),
        (lambda: _of(For(np.zeros((0, 2)), [])), "rows of a For"),
        (lambda: _of(For([[np.nan]], [])), "must be finite"),
        (lambda: _of(For([[1.0]], [], name="x")), "row 'x' .* same name as another"),
        (lambda: _of(For([[1.0]], [For([[1.0]], [])])), "row 'row' .* same name as another"),
        (lambda: _of(ForEach([Repeat("e", [], index="e")])), "counter 'e' .* same name as another"),
        (lambda: _of(tables=["e", "e"]), "table 'e' .* same name as another"),
        (lambda: _of(cells=[X, X]), "cells of a program: 'x' is named twice"),
        (lambda: Program([Cell("x", (2,))], [X], []), r"shape \(\), the input of this name \(2,\)"),
        (
            lambda: _of(
                Sample(Block(lambda: 0.0, [], ["y"])), Sample(Block(lambda: 0.0, [], ["y"], True))
            ),
            "'y' of a program is written in two ways",
        ),
    ],
)
def test_programs_that_do_not_fit(made, reason):
    with pytest.raises(rm.RemoraError, match=reason):
        made()


def test_calls_that_do_not_fit():
    program = Program(
        [scalar("x")], [scalar("x")],
        [
            ForEach([
                Repeat("count", [Run(Block(lambda x, h: x + h, ["x", "h"], ["x"]))]),
                Record(Block(lambda x: x, ["x"], ["x"]), "x"),
            ]),
        ],
        tables=["count", "h"],
    )  # fmt: skip
    kernel = ProgramKernel(program, "refusing")
    good = {"count": [1.0, 2.0], "h": [0.5, 0.5]}
    for options, reason in (
        ({"tables": good | {"z": [1.0, 2.0]}}, "table of a program named 'z'; known: count, h"),
        ({"tables": {"h": [1.0, 2.0]}}, "count missing"),
        ({}, "count, h missing"),
        ({"tables": good | {"h": [1.0]}}, r"of one length, \(M,\), not count \(2,\), h \(1,\)"),
        ({"tables": {"count": [[1.0]], "h": [[1.0]]}}, "of one length"),
        ({"tables": good | {"count": [1.0, -1.0]}}, "whole numbers from 0 on, not -1.0"),
        ({"tables": good | {"count": [1.0, 0.5]}}, "whole numbers from 0 on, not 0.5"),
        ({"tables": good | {"h": [1.0, np.inf]}}, "h must be finite"),
        ({"tables": good | {"h": ["a", "b"]}}, "table h must be numbers"),
        ({"tables": good, "capacity": -1}, "capacity of records must be a number of rows, not -1"),
        ({"tables": good, "capacity": 1.5}, "must be a number of rows, not 1.5"),
        ({"tables": good, "capacity": {"z": 1}}, "buffer of a program named 'z'; known: records"),
        ({"tables": good, "capacity": {}}, "capacity of records missing"),
    ):
        with pytest.raises(rm.RemoraError, match=reason):
            kernel([1.0], **options)
        with pytest.raises(rm.RemoraError, match=reason):
            interpret(program, [[1.0]], **options)
    with pytest.raises(rm.RemoraError, match="number of lanes"):
        ProgramKernel(program, "refusing", lanes=3)
    assert "refusing(x (..., 1)) -> x (..., 1), float64" in repr(kernel)


# Compilation in the background -------------------------------------------------------------------


def test_programs_are_compiled_while_the_caller_goes_on(monkeypatch, tmp_path):
    monkeypatch.setenv("REMORA_CACHE", str(tmp_path))
    may_go_on, original = threading.Event(), host_module.to_object

    def waiting(*given):
        assert may_go_on.wait(60.0)
        return original(*given)

    monkeypatch.setattr(host_module, "to_object", waiting)
    kernels = [ProgramKernel(collatz(), "first"), ProgramKernel(collatz(), "second", lanes=1)]
    assert not list(tmp_path.iterdir())  # both have begun, neither is compiled
    may_go_on.set()
    x = np.arange(1.0, 20.0)[:, None]
    for kernel in kernels:
        expected = interpret(collatz().prepared("float64", fma=host().fma), [x])
        for a, b in zip(kernel(x), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failure_of_the_compiler_is_raised_where_the_code_is_needed(monkeypatch, tmp_path):
    monkeypatch.setenv("REMORA_CACHE", str(tmp_path))

    def failing(*given):
        raise RuntimeError("no code today")

    monkeypatch.setattr(host_module, "to_object", failing)
    kernel = ProgramKernel(collatz(), "failing")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no code today"):
            kernel(np.ones((3, 1)))
    assert not list(tmp_path.iterdir())
