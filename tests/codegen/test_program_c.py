"""Programs as C: the bits of the interpreter, for every statement and for random programs."""

import numpy as np
import pytest

import needs
from c_programs import run_c
from remora.algebra.array_ops import absolute, concatenate, less, select, sqrt
from remora.algebra.selections import floor, larger, smaller
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_interpreter import interpret
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    Host,
    If,
    Random,
    Record,
    Repeat,
    Run,
    Sample,
    While,
)
from remora.components.noise import standard_normals
from remora.errors import RemoraError

DTYPES = ["float64", "float32"]


def agree(program, folder, arguments, dtype="float64", tables=None, capacity=None):
    """Return the outputs of the C code, which have the bits of the interpreter's."""
    arguments = [
        np.asarray(a, "float64" if program.wide_input(s.name) else dtype)
        for a, s in zip(arguments, program.inputs, strict=True)
    ]
    ready = program.prepared(dtype, fma=False)
    with np.errstate(all="ignore"):
        expected = interpret(ready, arguments, tables, capacity or 0, dtype)
    found = run_c(program, folder, arguments, dtype, tables, capacity)
    for a, b, o in zip(found, expected, program.outputs, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=o.name)
    return found


def scalar(name, wide=False):
    return Cell(name, (1,), wide)


@needs.compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_statement(dtype, tmp_path):
    """Loops of all kinds around a wide time and a narrow state; records and samples."""

    def begin(x):
        return x, np.ones(1)

    def step(t, dt, row, index):
        return t + dt * row[:1] + 1e-9 * index, select(less(t, 3.0), 1.0, -1.0)

    def decay(x, t, row):
        return x * (1.0 - row[1] * floor(1.5 + t)) - 1e-3 * np.sqrt(x * x)

    program = Program(
        inputs=[Cell("x", (2,)), scalar("t", wide=True), scalar("dt", wide=True)],
        cells=[Cell("x", (2,)), scalar("t", wide=True), scalar("go", wide=True), scalar("left"),
               scalar("row number"), Cell("seen", (2,))],
        tables=["time", "count"],
        body=[
            Run(Block(begin, ["x"], ["seen", "left"])),
            ForEach([
                Repeat("count", [
                    For([[0.1, 0.3], [1.0 / 3.0, 0.2]], [
                        Run(Block(step, ["t", "dt", "row", "index"], ["t", "go"], wide=True)),
                        If("go", [Run(Block(decay, ["x", "t", "row"], ["x"]))]),
                    ]),
                ]),
                While("left", [
                    Record(Block(lambda x, t: (x, t), ["x", "time"], ["kept x", "kept t"],
                                 wide=True), "row number"),
                    Run(Block(lambda n, k: (n + 1.0, k - 1.0), ["row number", "left"],
                              ["row number", "left"])),
                ]),
                Run(Block(lambda k, c: k + c - 1.0, ["left", "count"], ["left"])),
                Sample(Block(lambda x, t: (x, t), ["x", "t"], ["x", "t"])),
            ]),
            Sample(Block(lambda t, s: (t, s), ["t", "seen"], ["end", "first"], wide=True)),
        ],
    )  # fmt: skip
    x = np.array([[1.0, -2.0], [0.1, 3e5], [np.nan, 0.0]])
    t, dt = np.array([[0.0], [2.5], [-7.0]]), np.array([[0.3], [0.01], [2.0]])
    tables = {"time": np.array([0.5, 1e6 + 0.1, 3.0]), "count": np.array([3.0, 0.0, 2.0])}
    found = agree(program, tmp_path, [x, t, dt], dtype, tables, {"records": 3})
    kept = found[1]
    assert np.isfinite(kept[0]).all()  # more were written than there is room for
    np.testing.assert_array_equal(found[-1], x.astype(dtype))


@needs.compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_random_numbers(kind, dtype, tmp_path):
    """Ticks beyond 2³², seeds of 64 bits; more numbers than one block has."""
    made = standard_normals if kind == "normal" else (lambda x: x)
    seed = 2**63 + 12345
    program = Program(
        inputs=[Cell("seed", (2,), True), scalar("run", True), scalar("tick", True)],
        cells=[Cell("numbers", (6,)), scalar("tick", True)],
        tables=["m"],
        body=[
            ForEach([
                Random("numbers", "seed", "run", "tick", 0xFEEDBEEF, kind),
                Sample(Block(made, ["numbers"], ["drawn"])),
                Run(Block(lambda t: t + 1.0, ["tick"], ["tick"], wide=True)),
            ])
        ],
    )  # fmt: skip
    runs = np.array([[0.0], [5.0], [2.0**32 - 1]])
    given = [np.tile([seed & (2**32 - 1), seed >> 32], (3, 1)), runs, runs + 2.0**32 - 2]
    (drawn,) = agree(program, tmp_path, given, dtype, {"m": np.arange(4.0)})
    assert len(np.unique(drawn)) == drawn.size


def test_calls_of_python_are_refused(tmp_path):
    program = Program(
        inputs=[scalar("x")], cells=[scalar("x")],
        body=[Host("law", ["x"], ["x"]), Sample(Block(lambda x: x, ["x"], ["y"]))],
    )  # fmt: skip
    with pytest.raises(RemoraError, match="C cannot call the Python function 'law'"):
        run_c(program, tmp_path, [np.zeros((1, 1))])


class Maker:
    """Random programs: nested statements around random arithmetic, all loops bounded."""

    def __init__(self, seed):
        self._rng = rng = np.random.default_rng(seed)
        self._cells = [Cell(f"c{k}", (int(rng.integers(1, 4)),), bool(rng.integers(2)))
                       for k in range(5)]  # fmt: skip
        self._counters, self._outputs, self._loops = [], 0, 0
        self._given = []

    def program(self):
        inputs = [Cell(s.name, s.shape, s.wide) for s in self._cells[:3]]
        inputs += [Cell("data", (3,)), scalar("more", True)]
        body = [*self._body(2), ForEach([*self._foreach(), *self._sample()]), *self._sample()]
        row = scalar("row number", True)
        cells = [*self._cells, *self._counters, row]
        return Program(inputs, cells, body, ["first", "second"])

    def _foreach(self):
        self._given += ["first", "second"]
        made = self._body(3)
        del self._given[-2:]
        return made

    def _body(self, depth):
        return [s for _ in range(self._rng.integers(1, 4)) for s in self._statement(depth)]

    def _statement(self, depth):
        kinds = ["run", "run", "record"]
        kinds += ["if", "while", "for"] if depth else []
        match self._rng.choice(kinds):
            case "run":
                return [self._run()]
            case "record":
                out = f"kept {self._outputs}"
                self._outputs += 1
                names = self._names()
                wide = bool(self._rng.integers(2))
                record = Block(self._function(1, None), names, [out], wide)
                count = Block(lambda n: n + 1.0, ["row number"], ["row number"], True)
                return [Record(record, "row number"), Run(count)]
            case "if":
                return [self._run("flag"), If(self._flag, self._body(depth - 1))]
            case "while":
                name = f"n{len(self._counters)}"
                self._counters.append(scalar(name))
                times = float(self._rng.integers(1, 4))
                less_by_one = Run(Block(lambda n: n - 1.0, [name], [name]))
                start = Run(Block(lambda: np.full(1, times), [], [name]))
                return [start, While(name, [*self._body(depth - 1), less_by_one])]
            case "for":
                name = f"row {self._loops}"
                self._loops += 1
                self._given.append(name)
                rows = self._rng.normal(size=(self._rng.integers(1, 4), 2))
                made = For(rows, self._body(depth - 1), name)
                self._given.remove(name)
                return [made]

    def _sample(self):
        wide = bool(self._rng.integers(2))
        names = [s.name for s in self._cells]
        self._outputs += 1
        out = [f"{name} at {self._outputs}" for name in names]
        return [Sample(Block(lambda *x: tuple(1.0 * a for a in x), names, out, wide))]

    def _names(self):
        known = [*(s.name for s in self._cells), "data", "more", *self._given]
        return list(self._rng.choice(known, size=self._rng.integers(2, 5), replace=False))

    def _run(self, what=""):
        if what:
            self._flag = f"n{len(self._counters)}"
            self._counters.append(scalar(self._flag, True))
            return Run(Block(self._function(1, None), self._names(), [self._flag], True))
        wide = bool(self._rng.integers(2))
        able = [s for s in self._cells if wide or not s.wide] or self._cells[:0]
        if not able:
            able, wide = self._cells, True
        to = self._rng.choice(len(able))
        return Run(Block(self._function(able[to].size, None), self._names(), [able[to].name], wide))

    def _function(self, size, _):
        """Return a function of arrays -> `(size,)`, of some random operations."""
        rng = self._rng
        operations = [str(x) for x in rng.choice(list(OPERATIONS), size=rng.integers(2, 6))]
        picks = rng.integers(0, 100, size=(len(operations), 2))
        numbers = rng.normal(size=3)

        def function(*arrays):
            pool = [x[..., j : j + 1] for a in arrays for x in [a] for j in range(a.shape[-1])]
            pool.append(numbers[:1] + 0.0 * pool[0])
            for name, (i, j) in zip(operations, picks, strict=True):
                pool.append(OPERATIONS[name](pool[i % len(pool)], pool[j % len(pool)]))
            return concatenate([0.5 * pool[-1 - k] for k in range(size)])

        return function


OPERATIONS = {
    "add": lambda a, b: a + b,
    "product": lambda a, b: 0.5 * a * b,
    "quotient": lambda a, b: a / (1.0 + absolute(b)),
    "sine": lambda a, b: np.sin(a) - b,
    "root": lambda a, b: sqrt(absolute(a)) + b,
    "floor": lambda a, b: floor(3.0 * a) - b,
    "select": lambda a, b: select(less(a, b), a, -b),
    "larger": lambda a, b: larger(a, smaller(b, 0.3)),
}


@needs.compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed, dtype, tmp_path):
    program = Maker(seed).program()
    rng = np.random.default_rng(seed)
    given = [rng.normal(size=(3, *s.shape)) for s in program.inputs]
    tables = {"first": rng.normal(size=3), "second": rng.normal(size=3)}
    agree(program, tmp_path, given, dtype, tables, dict.fromkeys(program.buffers, 4))
