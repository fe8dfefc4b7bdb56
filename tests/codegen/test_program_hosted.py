"""Programs that call Python: functions, their errors, and what a call can do with them."""

import numpy as np
import pytest

import remora as rm
from remora.codegen.integration import program_hosted
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_hosted import HostedProgram
from remora.codegen.integration.program_interpreter import interpret
from remora.codegen.integration.program_ptx import CudaProgram
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
from remora.codegen.integration.stop_request import StopRequest
from remora.codegen.llvm import fast_call


def scalar(name, wide=False):
    return Cell(name, (1,), wide)


def halving(batched=False):
    """Divide x by what a function returns until it is small; count how often."""
    return Program(
        inputs=[scalar("x")],
        cells=[scalar(n) for n in ("x", "by", "left", "count", "even")],
        body=[
            Run(Block(lambda x: x - 1.0, ["x"], ["left"])),
            While("left", [
                Host("divisor", ["x", "count"], ["by"], batched),
                Run(Block(
                    lambda x, by, n: (x / by, x / by - 1.0, n + 1.0, n - 1.5),
                    ["x", "by", "count"], ["x", "left", "count", "even"],
                )),
                If("even", [Host("note", ["x"], [])]),
            ]),
            Sample(Block(lambda *x: x, ["x", "count"], ["x", "count"])),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_runs_end_at_their_own_time(dtype, batched):
    noted = []
    functions = {"divisor": lambda x, n: 2.0 + 0.0 * n, "note": noted.append}
    program = HostedProgram(halving(batched), "halving", dtype, functions=functions)
    x = np.array([[0.5], [1.5], [9.0], [100.0], [3.0]])
    end, count = program(x.astype(dtype))
    wanted = np.maximum(np.ceil(np.log2(x)), 0.0)
    np.testing.assert_array_equal(count, wanted)
    np.testing.assert_array_equal(end, (x / 2.0**wanted).astype(dtype))
    seen = sorted(float(a[0]) for a in noted)  # called where more than two steps were made
    assert seen == sorted([9.0 / 8, 9.0 / 16] + [100.0 / 2**k for k in range(3, 8)])
    assert {a.shape for a in noted} == {(1,)}
    assert end.dtype == dtype
    noted.clear()
    expected = interpret(halving(batched), [x], dtype=dtype, functions=functions)
    np.testing.assert_array_equal(expected[1], count)


def test_one_program_serves_all_functions():
    first = HostedProgram(
        halving(), "halving", functions={"divisor": lambda x, n: [2.0], "note": print}
    )
    second = first.bound({"divisor": lambda x, n: [10.0], "note": lambda x: None})
    assert second([100.0])[1] == 2.0
    assert second._loaded is first._loaded
    assert first([4.0])[1] == 2.0
    assert "calls divisor, note" in repr(first)


def test_the_program_is_not_built_if_its_code_is_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("REMORA_CACHE", str(tmp_path))
    functions = {"divisor": lambda x, n: [2.0], "note": lambda x: None}
    made = HostedProgram(halving, "halving", key="a key", functions=functions)
    before = made([100.0])

    def fail():
        raise AssertionError("built")

    again = HostedProgram(fail, "halving", key="a key", functions=functions)
    assert again.inputs == made.inputs
    np.testing.assert_array_equal(again([100.0]), before)


def test_functions_own_their_arguments():
    kept = []

    def divisor(x, n):
        kept.append(x)
        divided, x[0] = 2.0 + 0.0 * x, -5.0  # of no effect on the run
        return divided

    program = HostedProgram(
        halving(), "halving", functions={"divisor": divisor, "note": lambda x: None}
    )
    assert program([8.0])[1] == 3.0
    assert [float(x[0]) for x in kept] == [-5.0] * 3
    assert len({id(x) for x in kept}) == 3


def test_a_call_within_a_call():
    """A function may call the program that calls it."""
    inner = HostedProgram(
        halving(), "halving", functions={"divisor": lambda x, n: [2.0], "note": lambda x: None}
    )

    def divisor(x, n):
        return 1.0 + inner(x)[1]

    outer = inner.bound({"divisor": divisor, "note": lambda x: None})
    end, count = outer([32.0])  # divided by 6, by 4 and by 2
    assert count == 3.0
    np.testing.assert_allclose(end, 32.0 / 48.0, rtol=1e-15)


@pytest.mark.parametrize("available", [True, False])
def test_all_statements_around_a_call(available, monkeypatch):
    """Rows, tables and counters reach functions and parts; records and samples are written."""
    monkeypatch.setattr(program_hosted.fast_call, "available", lambda: available)
    seen = []

    def add(total, row, h, index):
        seen.append((row.tolist(), float(h[0]), float(index[0])))
        return total + row[1] * h * (1.0 + index)

    def program(batched):
        return Program(
            inputs=[Cell("y", (2,)), Cell("seed", (2,), True), scalar("run", True)],
            cells=[scalar("total"), scalar("row of", True), Cell("drawn", (3,)), scalar("t", True)],
            body=[
                ForEach([
                    Repeat("count", [
                        For([[1.0, 2.0], [3.0, 4.0]], [
                            Host("add", ["total", "row", "h", "index"], ["total"], batched),
                        ]),
                        Run(Block(lambda x, h, row: (x + h, row + 1.0), ["t", "h", "row of"],
                                  ["t", "row of"], wide=True)),
                    ]),
                    Random("drawn", "seed", "run", "t", 7),
                    Sample(Block(lambda x, y, d: (x + y, d), ["total", "y", "drawn"],
                                 ["sum", "random"])),
                    Record(Block(lambda t: t, ["t"], ["times"], wide=True), "row of"),
                ]),
                Sample(Block(lambda t: t, ["t"], ["end"], wide=True)),
            ],
            tables=["count", "h"],
        )  # fmt: skip

    y = np.arange(8.0).reshape(4, 2)
    given = [y, np.array([3.0, 4.0]), np.arange(4.0)[:, None]]
    options = {"tables": {"count": [2.0, 0.0, 1.0], "h": [1.0, 2.0, 3.0]}, "capacity": 4}
    functions = {"add": add}
    got = HostedProgram(program(False), "all", functions=functions)(*given, **options)
    wanted = interpret(program(False), given, functions=functions, **options)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    one = [([1.0, 2.0], 1.0, 0.0), ([3.0, 4.0], 1.0, 0.0), ([1.0, 2.0], 1.0, 1.0),
           ([3.0, 4.0], 1.0, 1.0), ([1.0, 2.0], 3.0, 0.0), ([3.0, 4.0], 3.0, 0.0)]  # fmt: skip
    assert seen[:24] == one * 4

    def add_all(total, row, h, index):
        return total + row[:, 1:] * h * (1.0 + index)

    both = {"add": add_all}
    for a, b in zip(
        HostedProgram(program(True), "all", functions=both)(*given, **options), wanted, strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_a_request_ends_a_call():
    stop, calls = StopRequest(), []

    def divisor(x, n):
        calls.append(n)
        if len(calls) == 3:
            stop.make()
        return 1.0 + 0.0 * x  # never ends

    program = HostedProgram(
        halving(), "halving", functions={"divisor": divisor, "note": lambda x: None}
    )
    _, count = program([5.0], stop=stop)
    assert len(calls) == 3
    assert count == 3.0  # statements after the loop are still executed


def test_errors_of_functions_reach_the_caller():
    class Fault(Exception):
        pass

    def fail(x, n):
        raise Fault

    program = HostedProgram(halving(), "halving", functions={"divisor": fail, "note": print})
    with pytest.raises(Fault):
        program([5.0])
    assert program([0.5])[1] == 0.0  # not called


def test_refusals():
    def program(**functions):
        return HostedProgram(halving(), "halving", functions=functions)

    def note(x):
        return None

    with pytest.raises(rm.RemoraError, match="Python function of halving named 'note'; known: div"):
        program(divisor=note)([1.0])
    with pytest.raises(rm.RemoraError, match=r"'divisor' must return an array \(1,\) for 'by', no"):
        program(divisor=lambda x, n: 2.0, note=note)([5.0])
    with pytest.raises(rm.RemoraError, match=r"'divisor' must return an array \(3, 1\) for 'by'"):
        HostedProgram(
            halving(True), "halving", functions={"divisor": lambda x, n: np.ones(1), "note": note}
        )([[5.0], [0.0], [6.0], [7.0]])
    with pytest.raises(rm.RemoraError, match="'note' must return a tuple of 0 arrays"):
        program(divisor=lambda x, n: [2.0], note=lambda x: x)([5.0])
    reason = "calls the Python function 'divisor': it is compiled as a HostedProgram"
    with pytest.raises(rm.RemoraError, match=reason):
        ProgramKernel(halving(), "halving")
    with pytest.raises(rm.RemoraError, match=reason):
        CudaProgram(halving(), "halving").ptx()
    for host, reason in (
        (Host("f", ["z"], ["x"]), "value that host function 'f' reads named 'z'; known: a, x"),
        (Host("f", ["x"], ["a"]), "cell that host function 'f' writes named 'a'; known: x"),
        (Host("f", ["x"], ["x", "x"]), "host function 'f' writes 'x' twice"),
    ):
        with pytest.raises(rm.RemoraError, match=reason):
            Program([scalar("a")], [scalar("x")], [host])
    assert halving().functions == ("divisor", "note")


def test_no_runs():
    program = HostedProgram(halving(), "halving", functions={"divisor": print, "note": print})
    assert program(np.zeros((0, 1)))[0].shape == (0, 1)
    assert fast_call.available()
