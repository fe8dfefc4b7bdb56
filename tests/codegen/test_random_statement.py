"""Random numbers in programs: the bits of NumPy in every lane, also where lanes part."""

import numpy as np
import pytest

from ptx_machine import launched
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_interpreter import interpret
from remora.codegen.integration.program_plan import planned
from remora.codegen.integration.program_ptx import CudaProgram
from remora.codegen.integration.statements import (
    Block,
    Cell,
    If,
    Random,
    Record,
    Run,
    Sample,
    While,
)
from remora.codegen.llvm.host import host
from remora.components import noise
from remora.errors import InvalidValue, ShapeError, UnknownName

DTYPES = ["float64", "float32"]
STREAM, SEED = 0xFEEDBEEF, 2**63 + 12345
HALVES = np.array([SEED & (2**32 - 1), SEED >> 32], float)


def wide(name, size=1):
    return Cell(name, (size,), True)


def scalar(name):
    return Cell(name, (1,))


def random_walk(kind="normal", numbers=6, stream=STREAM):
    """A run draws as often as its `left` says; every draw is recorded, and a sum is kept."""
    size = {"normal": 4, "uniform": numbers}[kind]
    made = noise.standard_normals if kind == "normal" else lambda x: x
    inputs = [wide("seed", 2), wide("run"), wide("first"), scalar("left")]
    cells = [
        wide("tick"), scalar("left"), scalar("row"), Cell("numbers", (numbers,)),
        Cell("sum", (size,)),
    ]  # fmt: skip
    return Program(
        inputs=inputs,
        cells=cells,
        body=[
            Run(Block(lambda first: first, ["first"], ["tick"], wide=True)),
            While("left", [
                Random("numbers", "seed", "run", "tick", stream, kind),
                Record(Block(made, ["numbers"], ["drawn"]), "row"),
                Run(Block(lambda s, n: s + made(n), ["sum", "numbers"], ["sum"])),
                Run(Block(lambda row, left: (row + 1.0, left - 1.0), ["row", "left"],
                          ["row", "left"])),
                Run(Block(lambda tick: tick + 1.0, ["tick"], ["tick"], wide=True)),
            ]),
            Sample(Block(lambda *x: x, ["sum", "numbers"], ["total", "last"])),
        ],
    )  # fmt: skip


def given(n, dtype):
    """Return seeds, runs, first ticks (around 2³²) and numbers of ticks, all different."""
    runs = (np.arange(n) * 2654435761 + 5) % 2**32
    first = 2**32 - 2 + np.arange(n)
    left = np.arange(n) * 7 % 5
    return HALVES, *(
        x[:, None].astype(t) for x, t in ((runs, float), (first, float), (left, dtype))
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "numbers"), [("normal", 6), ("uniform", 5), ("uniform", 4)])
@pytest.mark.parametrize("n", [1, 3, 17, 100])
def test_lanes_draw_what_numpy_draws(kind, numbers, dtype, n):
    program, arguments = random_walk(kind, numbers), given(n, dtype)
    ready = program.prepared(dtype, fma=host().fma)
    expected = interpret(ready, arguments, capacity=4, dtype=dtype)
    for kernel in (
        ProgramKernel(program, "walk", dtype),
        ProgramKernel(program, "walk", dtype, lanes=1),
    ):
        for threads in (1, 2):
            got = kernel(*arguments, capacity=4, threads=threads)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    drawn, total, _ = expected
    _, run, first, left = (x.reshape(-1) for x in arguments)
    draws = noise.normals if kind == "normal" else noise.uniforms
    for k in range(n):
        ticks = int(first[k]) + np.arange(int(left[k]))
        wanted = draws(SEED, int(run[k]), STREAM, ticks, drawn.shape[-1])
        got = drawn[k, : len(ticks)]
        if dtype == "float64" or kind == "uniform":
            assert np.array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=2e-6)
        assert np.isnan(drawn[k, len(ticks) :]).all()
        np.testing.assert_allclose(total[k], wanted.sum(axis=0), atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "numbers"), [("normal", 6), ("uniform", 5)])
def test_threads_draw_what_numpy_draws(kind, numbers, dtype):
    """On the GPU, from cells and from arguments."""
    n = 7
    program, (seed, *rest) = random_walk(kind, numbers), given(n, dtype)
    arguments = [np.tile(seed, (n, 1)), *rest]
    expected = interpret(program.prepared(dtype), arguments, capacity=4, dtype=dtype)
    for columns in (False, True):
        got = launched(
            CudaProgram(program, "walk", dtype), arguments, capacity=4, columns=columns, block=1
        )
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    program = cells_that_only_a_draw_reads()
    got = launched(CudaProgram(program, "draw"), [*arguments[:2], np.full((n, 1), 2.0**47)])
    runs = arguments[1].astype(int)[:, 0]
    assert np.array_equal(got[0], noise.normals(SEED, runs, STREAM, 2**47, 2))
    program = Program(
        inputs=[wide("seed", 2), wide("run")],
        cells=[Cell("numbers", (3,))],
        body=[
            Random("numbers", "seed", "run", "run", STREAM),
            Sample(Block(noise.standard_normals, ["numbers"], ["out"])),
        ],
    )
    got = launched(CudaProgram(program, "draw"), arguments[:2])
    assert np.array_equal(got[0], noise.normals(SEED, runs, STREAM, runs, 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_lanes_that_do_not_draw_keep_their_numbers(dtype):
    """Runs with an odd index draw again, at another tick; the others keep the first numbers."""
    program = Program(
        inputs=[wide("seed", 2), wide("run"), scalar("again")],
        cells=[wide("tick"), scalar("again"), Cell("numbers", (4,))],
        body=[
            Random("numbers", "seed", "run", "tick", 1, "uniform"),
            If("again", [
                Run(Block(lambda tick: tick + 1.0, ["tick"], ["tick"], wide=True)),
                Random("numbers", "seed", "run", "tick", 1, "uniform"),
            ]),
            Sample(Block(lambda x: x, ["numbers"], ["out"])),
        ],
    )  # fmt: skip
    runs = np.arange(37)
    again = (runs % 2)[:, None].astype(dtype)
    got = ProgramKernel(program, "again", dtype)(HALVES, runs[:, None].astype(float), again)
    assert np.array_equal(got, noise.uniforms(SEED, runs, 1, runs % 2, 4))
    assert np.array_equal(interpret(program, [HALVES, runs[:, None], again], dtype=dtype)[0], got)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lanes_part_on_what_they_draw(dtype):
    """Each run draws until its number is below 0.2, at ticks of its own."""
    program = Program(
        inputs=[wide("seed", 2), wide("run")],
        cells=[wide("tick"), scalar("count"), scalar("more"), scalar("u")],
        body=[
            Run(Block(lambda run: np.ones(1), ["run"], ["more"])),
            While("more", [
                Random("u", "seed", "run", "tick", STREAM, "uniform"),
                Run(Block(lambda u, n: (u - 0.2, n + 1.0), ["u", "count"], ["more", "count"])),
                Run(Block(lambda tick: tick + 1.0, ["tick"], ["tick"], wide=True)),
            ]),
            Sample(Block(lambda *x: x, ["count", "u"], ["counts", "last"])),
        ],
    )  # fmt: skip
    runs = np.arange(50)
    counts, last = ProgramKernel(program, "until", dtype)(HALVES, runs[:, None].astype(float))
    drawn = noise.uniforms(SEED, runs[:, None], STREAM, np.arange(100), 1)[..., 0]
    first = np.argmax(drawn < np.asarray(0.2, dtype), axis=1)
    assert np.array_equal(counts[:, 0], first + 1)
    assert np.array_equal(last[:, 0], drawn[runs, first])
    assert len(np.unique(first)) > 5


def cells_that_only_a_draw_reads():
    return Program(
        inputs=[wide("seed", 2), wide("run"), wide("first")],
        cells=[wide("key", 2), wide("own"), wide("tick"), Cell("numbers", (3,))],
        body=[
            Run(Block(lambda *x: x, ["seed", "run", "first"], ["key", "own", "tick"], wide=True)),
            Random("numbers", "key", "own", "tick", STREAM),
            Sample(Block(noise.standard_normals, ["numbers"], ["out"])),
        ],
    )


def test_cells_that_only_a_draw_reads():
    program, runs = cells_that_only_a_draw_reads(), np.arange(20)
    got = ProgramKernel(program, "draw")(HALVES, runs[:, None].astype(float), np.full(1, 2.0**47))
    assert np.array_equal(got, noise.normals(SEED, runs, STREAM, 2**47, 2))


def test_numbers_that_nobody_reads_are_not_drawn():
    program = Program(
        inputs=[wide("seed", 2), wide("run")],
        cells=[Cell("numbers", (3,))],
        body=[
            Random("numbers", "seed", "run", "run", 1),
            Run(Block(lambda run: np.zeros(3), ["run"], ["numbers"])),
            Sample(Block(lambda x: x, ["numbers"], ["out"])),
        ],
    )
    assert not any(isinstance(s, Random) for s in planned(program, "float64", lanes=8).body)


def test_the_stream_is_part_of_the_machine_code():
    """Two programs that differ in the stream only never share a cache entry."""
    arguments = given(5, "float64")
    one, other = (
        ProgramKernel(random_walk(stream=stream), "walk")(*arguments, capacity=4)[0]
        for stream in (1, 2)
    )
    shown = ~np.isnan(one)
    assert shown.any()
    assert not np.any(one[shown] == other[shown])


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"cell": "x"}, UnknownName, "no cell of a Random named 'x'; known: numbers"),
        ({"seed": "x"}, UnknownName, "no cell or input that is the seed of a Random named 'x'"),
        ({"seed": "run"}, ShapeError, r"must be wide and of shape \(2,\): 'run' is wide and"),
        ({"run": "narrow"}, ShapeError, "'narrow' is not wide"),
        ({"tick": "seed"}, ShapeError, r"tick of a Random must be wide and of shape \(1,\)"),
        ({"kind": "gamma"}, UnknownName, "named 'gamma'; known: normal, uniform"),
        ({"cell": "four"}, ShapeError, "must hold 3 numbers for each pair of normals, not 4"),
        ({"cell": "many"}, ShapeError, "has 196611 numbers, more than 196608"),
        ({"stream": -1}, InvalidValue, r"stream of a Random must be .* 2\^32 - 1, not -1"),
        ({"stream": 2**32}, InvalidValue, "stream of a Random must be"),
    ],
)  # fmt: skip
def test_refusals(changed, error, message):
    fields = {"cell": "numbers", "seed": "seed", "run": "run", "tick": "run", "stream": 1} | changed
    with pytest.raises(error, match=message):
        Program(
            inputs=[wide("seed", 2), wide("run"), scalar("narrow")],
            cells=[Cell("numbers", (3,)), Cell("four", (4,)), Cell("many", (196611,))],
            body=[Random(**fields)],
        )
