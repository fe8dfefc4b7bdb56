"""Self-test program in C that checks generated code on its target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.export.c_text import SCALARS, arguments, comment, number
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph, Signature, interpret

#: Number of test vectors, and of the random candidates from which the best conditioned are taken.
VECTORS, CANDIDATES = 5, 40
#: Tolerance of the test program: allows another rounding order, but no wrong operation.
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}


def test_program(graph: Graph, name: str, dtype: str) -> str:
    """Return a C program that compares the function with the reference on a few vectors."""
    names, scalar = arguments(graph, name), SCALARS[dtype]
    inputs, results, tolerance = _vectors(graph, dtype)
    tables: list[str] = []
    for own, table in zip(names, [*inputs, *results], strict=True):
        rows = [_wrapped(number(float(x), dtype) for x in row) for row in table]
        size = max(1, table.shape[1])
        listed = ",\n".join(f"    {{{row}}}" for row in rows)
        tables.append(f"static const {scalar} given_{own}[VECTORS][{size}] = {{\n{listed}\n}};")
    outputs = names[len(graph.inputs) :]
    call = [f"given_{own}[k]" for own in names[: len(graph.inputs)]] + [
        f"got_{own}" for own in outputs
    ]
    own_memory = "\n".join(
        f"    static {scalar} got_{own}[{max(1, s.size)}];"
        for own, s in zip(outputs, graph.outputs, strict=True)
    )
    compared = "\n".join(
        f"        worst = larger(worst, error(got_{own}, given_{own}[k], {s.size}));"
        for own, s in zip(outputs, graph.outputs, strict=True)
    )
    about = [
        f"Test of {name}: compares with what the NumPy reference computed, prints the largest",
        "error relative to the largest number of a result, and returns 1 if that is above the",
        f"tolerance. cc -std=c99 -O2 {name}.c {name}_test.c -lm",
    ]
    return f"""{comment(about)}
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "{name}.h"

#define VECTORS {VECTORS}
#define TOLERANCE {tolerance:.3g}

{chr(10).join(tables)}

static double larger(double a, double b)
{{
    return a > b ? a : b;
}}

static double error(const {scalar} *got, const {scalar} *expected, int count)
{{
    double size = DBL_MIN, worst = 0.0;
    int i;
    for (i = 0; i < count; i++) {{
        const double x = fabs((double)expected[i]);
        size = x <= DBL_MAX ? larger(size, x) : size;
    }}
    for (i = 0; i < count; i++) {{
        const double difference = fabs((double)got[i] - (double)expected[i]);
        const int both_nan = got[i] != got[i] && expected[i] != expected[i];
        if (got[i] == expected[i] || both_nan) {{
            continue;
        }}
        worst = larger(worst, difference <= DBL_MAX ? difference / size : DBL_MAX);
    }}
    return worst;
}}

int main(void)
{{
{own_memory}
    double worst = 0.0;
    int k;
    for (k = 0; k < VECTORS; k++) {{
        {name}({", ".join(call)});
{compared}
    }}
    printf("{name}: %d vectors, largest relative error %.1e, tolerance %.0e: %s\\n", VECTORS, worst,
           TOLERANCE, worst <= TOLERANCE ? "good" : "WRONG");
    return worst <= TOLERANCE ? 0 : 1;
}}
"""


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
    prepared = graph_passes.prepared(graph, dtype, fma=False)
    results = _rows(interpret(graph, [x.astype(float) for x in inputs]), graph.outputs)
    rounded = _rows(interpret(prepared, inputs, dtype), graph.outputs)
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
