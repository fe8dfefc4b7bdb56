"""Programs in every way to run them on this machine, against the interpreter, bit by bit."""

from dataclasses import replace

import numpy as np

from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_hosted import HostedProgram
from remora.codegen.integration.program_interpreter import interpret
from remora.codegen.integration.statements import Host, Run, whole_block
from remora.codegen.ir.graph import interpret as evaluate
from remora.codegen.llvm.host import host


def agree(program, given, dtype="float64", **options):
    """Return the kernel's results, which have the bits of the interpreter's in every way to run."""
    given = [
        np.asarray(a, "float64" if program.wide_input(s.name) else dtype)
        for a, s in zip(given, program.inputs, strict=True)
    ]
    pairs = list(zip(given, program.inputs, strict=True))
    ready = program.prepared(dtype, fma=host().fma)
    expected = interpret(ready, given, dtype=dtype, **options)
    kernel = ProgramKernel(program, "test", dtype)
    for made, threads in (
        (kernel, 1), (kernel, 2), (ProgramKernel(program, "test", dtype, lanes=1), 1)
    ):  # fmt: skip
        got = made(*given, threads=threads, **options)
        got = got if isinstance(got, tuple) else (got,)
        for a, b, o in zip(got, expected, program.outputs, strict=True):
            assert a.dtype == ("float64" if o.wide else dtype)
            np.testing.assert_array_equal(a, b, err_msg=f"{o.name}, {made.lanes} lanes")
    for every, batched, most in ((2, False, 3), (1, True, None)):
        called, functions = with_hosts(ready, dtype, every, batched)
        hosted = HostedProgram(called, "test", dtype, functions=functions)
        some = [a[:most] if a.ndim > len(s.shape) else a for a, s in pairs]
        got = hosted(*some, **options)
        got = got if isinstance(got, tuple) else (got,)
        for a, b, o in zip(got, expected, program.outputs, strict=True):
            assert a.dtype == ("float64" if o.wide else dtype)
            wanted = b[:most] if any(x.ndim > len(s.shape) for x, s in pairs) else b
            np.testing.assert_array_equal(a, wanted, err_msg=f"{o.name}, hosted")
    return expected


def with_hosts(program, dtype, every, batched):
    """Return a program in which Python evaluates every so many blocks, and the functions."""
    functions, count = {}, 0

    def changed(body):
        nonlocal count
        found = []
        for s in body:
            if isinstance(s, Run):
                count += 1
            if isinstance(s, Run) and count % every == 0:
                name, block = f"block {count}", whole_block(s.block)
                precision = "float64" if block.wide else dtype

                def function(*arrays, graph=block.graph, precision=precision):
                    values = evaluate(graph, arrays, precision)
                    return values[0] if len(values) == 1 else tuple(values)

                functions[name] = function
                reads, writes = (
                    [x.name for x in part] for part in (block.graph.inputs, block.graph.outputs)
                )
                # a batched function that reads nothing does not know how many runs there are
                s = Host(name, reads, writes, batched and bool(reads))
            elif hasattr(s, "body"):
                s = replace(s, body=changed(s.body))
            found.append(s)
        return found

    return replace(program, body=changed(program.body)), functions
