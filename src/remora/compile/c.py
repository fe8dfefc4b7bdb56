"""C99 from a graph: a header, the function, a test program. No library, no memory but the stack.

    void NAME(const double q[15], const double v[13], ..., double out[13]);

One pointer per input and output, the numbers of each next to each other in row-major order. All
arguments are read before any result is written, so that an output may be one of the inputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from remora.algebra.namespace import Array
from remora.compile import expand
from remora.compile.graph import CONDITIONS, ELEMENTARY, Graph, Signature, interpret

SCALARS = {"float64": "double", "float32": "float"}
#: What the test program accepts: room for another order of rounding, none for a wrong operation.
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
#: How many test vectors are written, and of how many candidates they are the best conditioned.
VECTORS, CANDIDATES = 5, 40

#: Operations as C writes them; the rest are functions of <math.h>.
_WRITTEN = {
    "neg": "-{0}", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0}*{1}", "div": "{0}/{1}",
    "lt": "{0} < {1}", "le": "{0} <= {1}", "eq": "{0} == {1}", "ne": "{0} != {1}",
    "and": "{0} && {1}", "or": "{0} || {1}", "not": "!{0}", "select": "{0} ? {1} : {2}",
    "min": "({0} < {1} || {0} != {0}) ? {0} : {1}",  # NaN wins, as in the reference
    "max": "({0} > {1} || {0} != {0}) ? {0} : {1}",
}  # fmt: skip
_MATH = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "fma": "fma"} | {e: e for e in ELEMENTARY}

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof bool true false class delete explicit export friend mutable namespace new
operator private protected public template this throw try catch typeid typename using virtual and or
not xor bitand bitor compl not_eq and_eq or_eq xor_eq linux unix i386 NULL NAN INFINITY
"""
_OF_MATH_H = """
acos asin atan atan2 ceil cos cosh exp fabs floor fma fmod frexp ldexp log log10 modf pow sin sinh
sqrt tan tanh acosh asinh atanh cbrt copysign erf erfc exp2 expm1 fdim fmax fmin hypot ilogb lgamma
llrint llround log1p log2 logb lrint lround nan nearbyint nextafter nexttoward remainder remquo rint
round scalbln scalbn tgamma trunc gamma drem significand scalb exp10 pow10 sincos cexp clog cpow
cabs carg creal cimag conj cproj csin ccos ctan csqrt j0 j1 jn y0 y1 yn
"""
_OTHER_FUNCTIONS = """
main abort abs labs llabs exit _exit atexit malloc calloc realloc free printf fprintf sprintf
snprintf scanf puts putchar memcpy memmove memset memcmp memchr strcpy strcat strlen strcmp strchr
index rindex bcmp bcopy bzero alloca ffs isalpha isdigit isspace tolower toupper isnan isinf
isfinite isnormal signbit signal time clock div rand srand read write open close link system getenv
remove rename
"""
#: Words of C and C++ and functions of their library: none may be hidden or declared anew.
_RESERVED = frozenset(
    (
        *_KEYWORDS.split(),
        *(name + suffix for name in _OF_MATH_H.split() for suffix in ("", "f", "l")),
        *_OTHER_FUNCTIONS.split(),
    )
)


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """Return a C and C++ identifier for a name: `arm.mass` becomes `arm_mass`.

    Args:
        name: any text.
        taken: identifiers it must differ from.
    """
    result = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not result[:1].isalpha():
        result = "x" + result  # digits cannot, underscores should not come first
    others = set(taken)
    # t12 is a local variable
    while result in others or result in _RESERVED or re.fullmatch(r"t\d+", result):
        result += "_"
    return result


def arguments(graph: Graph, name: str) -> list[str]:
    """Return the C names of the inputs and outputs, all different."""
    names: list[str] = []
    for signature in (*graph.inputs, *graph.outputs):
        names.append(identifier(signature.name, (name, *names)))
    return names


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
        name: of the function; made an identifier.
        dtype: `float64` (double) or `float32` (float).
        directory: where to; made if there is none.
        notes: for an argument or result, lines that the header says about it (units, order).

    Returns:
        The files.
    """
    name = identifier(name)
    prepared = without_floor(expand.prepared(graph, dtype, fma=False), dtype)
    texts = {
        f"{name}.h": header(graph, name, dtype, notes),
        f"{name}.c": _source(prepared, name, dtype),
        f"{name}_test.c": test_program(graph, name, dtype),
    }
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="ascii")
    return [folder / file for file in texts]


def without_floor(graph: Graph, dtype: str) -> Graph:
    """Return a prepared graph with floor made of sums, for where it would be a call.

    Adding and taking away 2⁵² (2²³) rounds |x| to the nearest integer; one less where that is above
    x; larger numbers are integers. The same bits, but for the sign of zero.
    """
    limit = 2.0 ** {"float64": 52, "float32": 23}[dtype]

    def rewrite(old: Graph, new: Graph, op: str, a: tuple[int, ...], _: int) -> int:
        if op != "floor":
            return new.op(op, *a)
        x, large, size = a[0], new.const(limit), new.op("abs", a[0])
        near = new.op("sub", new.op("add", size, large), large)
        near = new.op("select", new.op("lt", x, new.const(0.0)), new.op("neg", near), near)
        less = new.op("sub", near, new.const(1.0))
        below = new.op("select", new.op("lt", x, near), less, near)
        return new.op("select", new.op("lt", size, large), below, x)

    return graph.rebuilt(rewrite)


def header(
    graph: Graph,
    name: str,
    dtype: str,
    notes: Mapping[str, Sequence[str]] | None = None,
    remarks: Sequence[str] = (),
) -> str:
    """Return the text of the header.

    Args:
        graph: as traced.
        name: the function's identifier.
        dtype: `float64` or `float32`.
        notes: lines about an argument or result, by its name.
        remarks: further lines.
    """
    names = arguments(graph, name)
    signatures = (*graph.inputs, *graph.outputs)
    width = max((len(n) for n in names), default=0)
    lines = [f"{name}: written by Remora. Do not edit this file; write it again.", ""]
    for k, (own, signature) in enumerate(zip(names, signatures, strict=True)):
        way = "in " if k < len(graph.inputs) else "out"
        lines.append(f"  {way}  {own:{width}}  {_layout(signature, own)}".rstrip())
        lines += [f"       {'':{width}}  {line}" for line in (notes or {}).get(signature.name, ())]
    lines += [
        "",
        f"Each argument points to that many numbers of type {SCALARS[dtype]} next to each other, "
        "row after row.",
        "Units are those of the Python function: SI, angles in radians.",
        "An output may be the same array as an input. Values are not checked: NaN in, NaN out.",
        "The function keeps nothing between calls and may run in several threads at once.",
        *remarks,
    ]
    guard = f"REMORA_{name.upper()}_H"
    sizes = "\n".join(
        f"#define {name}_size_{own} {signature.size}"
        for own, signature in zip(names, signatures, strict=True)
    )
    return f"""{_comment(lines)}
#ifndef {guard}
#define {guard}

{sizes}

#ifdef __cplusplus
extern "C" {{
#endif

{_prototype(graph, name, dtype)};

#ifdef __cplusplus
}}
#endif

#endif
"""


def _layout(signature: Signature, own: str) -> str:
    """Return what stands where: `(13, 13)  element (i, j) is out[13*i + j]`."""
    text = f"({', '.join(map(str, signature.shape))})" if signature.shape else "one number"
    if len(signature.shape) > 1:
        letters = "ijklmn"[: len(signature.shape)]
        strides = [math.prod(signature.shape[k + 1 :]) for k in range(len(letters))]
        place = " + ".join(
            f"{s}*{x}" if s != 1 else x for s, x in zip(strides, letters, strict=True)
        )
        text += f"  element ({', '.join(letters)}) is {own}[{place}]"
    return text if signature.name == own else f"{text}  {signature.name}"


def _comment(lines: Sequence[str]) -> str:
    """Return lines as a comment that nothing in a name or note can end."""

    def safe(line: str) -> str:
        line = re.sub(r"[^ -~]|[\\?]", "_", line)
        return line.replace("*/", "*_").replace("/*", "/_")

    return "\n".join(["/*", *(f" * {safe(line)}".rstrip() for line in lines), " */"])


def _prototype(graph: Graph, name: str, dtype: str) -> str:
    names, scalar = arguments(graph, name), SCALARS[dtype]
    listed: list[str] = []
    for k, signature in enumerate((*graph.inputs, *graph.outputs)):
        const = "const " if k < len(graph.inputs) else ""
        size = f"{names[k]}[{signature.size}]" if signature.size else f"*{names[k]}"
        listed.append(f"{const}{scalar} {size}")
    return f"void {name}({', '.join(listed) or 'void'})"


def _source(graph: Graph, name: str, dtype: str) -> str:
    """Return the function: one operation per line, in the order of the graph."""
    names, scalar = arguments(graph, name), SCALARS[dtype]
    needed, body = graph.needed(), list[str]()
    values: dict[int, str] = {}
    used: set[int] = set()
    math_used: set[str] = set()
    for i, (op, a) in enumerate(graph.nodes):
        if not needed[i]:
            continue
        if op == "const":
            values[i] = number(a[0], dtype)
            if not math.isfinite(a[0]):
                math_used.add("NAN or INFINITY")
            continue
        if op == "input":
            used.add(a[0])
            text = f"{names[a[0]]}[{a[1]}]"
        elif op in _WRITTEN:
            text = _WRITTEN[op].format(*(values[k] for k in a))
        else:
            function = _MATH[op] + ("f" if dtype == "float32" else "")
            math_used.add(function)
            text = f"{function}({', '.join(values[k] for k in a)})"
        values[i] = f"t{i}"
        body.append(f"const {'int' if op in CONDITIONS else scalar} t{i} = {text};")
    for own, result in zip(names[len(graph.inputs) :], graph.results, strict=True):
        body += [f"{own}[{j}] = {values[i]};" for j, i in enumerate(result)]
        if not result:
            body.append(f"(void){own};")
    body += [f"(void){names[k]};" for k in range(len(graph.inputs)) if k not in used]
    about = [
        f"{name}: C99, written by Remora. {len(body)} statements in a straight line, with",
        f"{', '.join(sorted(math_used)) or 'nothing'} of <math.h>. See {name}.h.",
    ]
    lines = "\n".join(f"    {line}" for line in body)
    include = "#include <math.h>\n\n" if math_used else ""
    return f"""{_comment(about)}
{include}#include "{name}.h"

#ifdef __FAST_MATH__
#error "-ffast-math drops roundings that sine and cosine are made of: compile without it"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* bits as in the reference; gcc: -std=c99 or -ffp-contract=off */
#endif

{_prototype(graph, name, dtype)}
{{
{lines}
}}
"""


def number(value: float, dtype: str) -> str:
    """Return a number as C writes it exactly: in hexadecimal."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if math.isnan(value):
        return f"({SCALARS[dtype]})NAN"
    if math.isinf(value):
        return f"({SCALARS[dtype]}){'-' if value < 0 else ''}INFINITY"
    if value.is_integer() and abs(value) < 1e6 and (value or math.copysign(1.0, value) > 0):
        text = repr(value)
    else:
        text = re.sub(r"\.?0*p", "p", value.hex())
    text += "f" if dtype == "float32" else ""
    return f"({text})" if text.startswith("-") else text


# The test program ------------------------------------------------------------------------------


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
    return f"""{_comment(about)}
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

    Numbers from -1 to 1, from 0 to 1 and from 1 to 2, whatever they mean; of many candidates those
    are kept whose results are finite and suffer least from rounding.
    """
    rng = np.random.default_rng(0)
    low = rng.choice([-1.0, -1.0, 0.0, 1.0], size=CANDIDATES)
    high = np.maximum(low + 1.0, 1.0)
    inputs: list[Array] = []
    for s in graph.inputs:
        shape = (CANDIDATES, *[1] * len(s.shape))
        drawn = rng.uniform(low.reshape(shape), high.reshape(shape), size=(CANDIDATES, *s.shape))
        inputs.append(drawn.astype(dtype))
    prepared = expand.prepared(graph, dtype, fma=False)
    results = _rows(interpret(graph, [x.astype(float) for x in inputs]), graph.outputs)
    rounded = _rows(in_precision(prepared, inputs, dtype), graph.outputs)
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


def in_precision(graph: Graph, inputs: Sequence[Array], dtype: str) -> list[Array]:
    """Evaluate a graph with every number, the constants too, in the precision of its target.

    Args:
        graph: prepared without fused products.
        inputs: one array per input, batch shape in front.
        dtype: `float64` or `float32`.
    """
    constants = [a[0] for op, a in graph.nodes if op == "const"]
    places = iter(range(len(constants)))
    last = len(graph.inputs)
    nodes = [("input", (last, next(places))) if op == "const" else (op, a) for op, a in graph.nodes]
    signatures = (*graph.inputs, Signature("constants", (len(constants),)))
    opened = Graph(signatures, graph.outputs, nodes, graph.results)
    with np.errstate(over="ignore"):
        given = [np.asarray(x, dtype) for x in (*inputs, constants)]
    return interpret(opened, given)


def _rows(arrays: Sequence[Array], signatures: Sequence[Signature]) -> list[Array]:
    """Return arrays with one flat row per candidate."""
    return [
        np.broadcast_to(a, (CANDIDATES, *s.shape)).reshape(CANDIDATES, s.size)
        for a, s in zip(arrays, signatures, strict=True)
    ]


def _wrapped(numbers: Iterable[str]) -> str:
    """Return numbers with commas, a few on each line; one zero where there are none."""
    items = list(numbers) or ["0"]
    rows = [", ".join(items[k : k + 4]) for k in range(0, len(items), 4)]
    return ",\n     ".join(rows)
