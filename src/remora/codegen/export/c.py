"""Export of a graph as C99: header, source and test program; no library, no heap.

    void NAME(const double q[15], const double v[13], ..., double out[13]);

There is one pointer per input and output, each array contiguous in row-major order. All arguments
are read before any result is written, so an output may alias an input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.export.c_module import Function, Module, header, layout, source
from remora.codegen.export.c_statements import prepared, statements
from remora.codegen.export.c_test_program import test_program, write_files
from remora.codegen.export.c_text import SCALARS, arguments, identifier, number
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph, Signature, interpret

#: Number of test vectors, and of the random candidates from which the best conditioned are taken.
VECTORS, CANDIDATES = 5, 40
#: Tolerance of the test program: allows another rounding order, but no wrong operation.
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}


def write_c(
    graph: Graph,
    name: str,
    dtype: str,
    directory: str | Path,
    notes: Mapping[str, Sequence[str]] | None = None,
) -> list[Path]:
    """Write `NAME.h`, `NAME.c` and `NAME_test.c`.

    Args:
        graph: as traced.
        name: name of the function; converted to an identifier.
        dtype: `float64` (double) or `float32` (float).
        directory: output folder; created if missing.
        notes: header comments on an argument or result (units, order), by its name.

    Returns:
        The files.
    """
    module = module_of(graph, name, dtype, notes)
    texts = {
        f"{module.name}.h": header(module),
        f"{module.name}.c": source(module),
        f"{module.name}_test.c": vector_test(graph, module.name, dtype),
    }
    return write_files(directory, texts)


def module_of(
    graph: Graph,
    name: str,
    dtype: str,
    notes: Mapping[str, Sequence[str]] | None = None,
    remarks: Sequence[str] = (),
) -> Module:
    """Return the module of one function on arrays.

    Args:
        graph: as traced.
        name: name of the function; converted to an identifier.
        dtype: `float64` or `float32`.
        notes: header comments on an argument or result, by its name.
        remarks: additional comment lines.
    """
    name = identifier(name)
    names, scalar = arguments(graph, name), SCALARS[dtype]
    signatures = dict(zip(names, (*graph.inputs, *graph.outputs), strict=True))
    inputs, results = names[: len(graph.inputs)], names[len(graph.inputs) :]
    width = max(map(len, names), default=0)
    about: list[str] = []
    declared: list[str] = []
    for own, s in signatures.items():
        about.append(f"  {'in ' if own in inputs else 'out'}  {own:{width}}  {layout(s, own)}")
        about += [f"       {'':{width}}  {line}" for line in (notes or {}).get(s.name, ())]
        size = f"{own}[{s.size}]" if s.size else f"*{own}"
        declared.append(f"{'const ' if own in inputs else ''}{scalar} {size}")
    ready = prepared(graph, dtype)
    stores = [
        (f"{own}[{j}] = {{}};", i)
        for own, result in zip(results, ready.results, strict=True)
        for j, i in enumerate(result)
    ]
    body, used, math_used = statements(ready, dtype, lambda k, j: f"{inputs[k]}[{j}]", stores)
    unused = [own for k, own in enumerate(inputs) if k not in used]
    unused += [own for own in results if not signatures[own].size]
    body += [f"(void){own};" for own in unused]
    about += ["", "An output may be the same array as an input.", *remarks]
    function = Function("", (), (), None, tuple(body), tuple(declared), uses=tuple(math_used))
    sizes = {own: s.size for own, s in signatures.items()}
    return Module(name, dtype, (), (function,), tuple(about), sizes=sizes)


def vector_test(graph: Graph, name: str, dtype: str) -> str:
    """Return a C program that compares the function with the reference on a few vectors."""
    names, scalar = arguments(graph, name), SCALARS[dtype]
    inputs, results, tolerance = _vectors(graph, dtype)
    tables: list[str] = []
    for own, table in zip(names, [*inputs, *results], strict=True):
        rows = [_wrapped(number(float(x), dtype) for x in row) for row in table]
        size = max(1, table.shape[1])
        listed = ",\n".join(f"    {{{row}}}" for row in rows)
        tables.append(f"static const {scalar} given_{own}[CALLS][{size}] = {{\n{listed}\n}};")
    outputs = dict(zip(names[len(graph.inputs) :], graph.outputs, strict=True))
    passed = [f"given_{own}[k]" for own in names[: len(graph.inputs)]]
    each = [f"{name}({', '.join([*passed, *(f'got_{own}' for own in outputs)])});"]
    for own, s in outputs.items():
        each.append(f"size = size_with(DBL_MIN, given_{own}[k], {s.size});")
        numbers = f"got_{own}, given_{own}[k], {s.size}, &numbers, &different"
        each.append(f"worst = error_with(worst, size, {numbers});")
    memory = [f"static {scalar} got_{own}[{max(1, s.size)}];" for own, s in outputs.items()]
    return test_program(name, dtype, VECTORS, tolerance, tables, memory, each)


def _vectors(graph: Graph, dtype: str) -> tuple[list[Array], list[Array], float]:
    """Return inputs, results of the reference, and a tolerance.

    Candidates are drawn from [-1, 1], [0, 1] and [1, 2], regardless of what the inputs mean. Those
    with finite results and the smallest rounding errors are kept.
    """
    rng = np.random.default_rng(0)
    low = rng.choice([-1.0, -1.0, 0.0, 1.0], size=CANDIDATES)
    high = np.maximum(low + 1.0, 1.0)
    inputs: list[Array] = []
    for s in graph.inputs:
        shape = (CANDIDATES, *[1] * len(s.shape))
        drawn = rng.uniform(low.reshape(shape), high.reshape(shape), size=(CANDIDATES, *s.shape))
        inputs.append(drawn.astype(dtype))
    ready = graph_passes.prepared(graph, dtype, fma=False)
    results = _rows(interpret(graph, [x.astype(float) for x in inputs]), graph.outputs)
    rounded = _rows(interpret(ready, inputs, dtype), graph.outputs)
    error = np.zeros(CANDIDATES)
    with np.errstate(invalid="ignore"):
        for a, b in zip(results, rounded, strict=True):
            size = np.max(np.abs(a), axis=1, initial=np.finfo(float).tiny)
            error = np.maximum(error, np.max(np.abs(a - b), axis=1, initial=0.0) / size)
    error[~np.isfinite(error)] = np.inf
    best = np.argsort(error, kind="stable")[:VECTORS]
    worst = float(np.max(error[best]))
    tolerance = max(TOLERANCE[dtype], 10 * worst if math.isfinite(worst) else 0.0)
    given = [x[best] for x in _rows(inputs, graph.inputs)]
    return given, [x[best] for x in results], tolerance


def _rows(arrays: Sequence[Array], signatures: Sequence[Signature]) -> list[Array]:
    """Return the arrays with one flat row per candidate."""
    return [
        np.broadcast_to(a, (CANDIDATES, *s.shape)).reshape(CANDIDATES, s.size)
        for a, s in zip(arrays, signatures, strict=True)
    ]


def _wrapped(numbers: Iterable[str]) -> str:
    """Return numbers separated by commas, a few per line; a single zero if there are none."""
    items = list(numbers) or ["0"]
    rows = [", ".join(items[k : k + 4]) for k in range(0, len(items), 4)]
    return ",\n     ".join(rows)
