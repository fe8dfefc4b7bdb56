"""Self-test programs in C: call generated code as recorded and compare every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from remora.atomic_files import write_text
from remora.codegen.export.c_module import Module, Struct, Values, header, initializer, source
from remora.codegen.export.c_text import SCALARS, comment

#: Tolerance of modules with a state: allows another rounding order, but no wrong operation.
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}


@dataclass
class RecordedCalls:
    """Arguments and results of the calls of a module.

    Attributes:
        begin: C statements before the first call; structs are variables named by their role.
        each: C statements of each call.
        given: values assigned before each call.
        expected: values after each call.
    """

    begin: Sequence[str]
    each: Sequence[str]
    given: list[Values] = field(default_factory=list[Values])
    expected: list[Values] = field(default_factory=list[Values])


def write_module(module: Module, recorded: RecordedCalls, directory: str | Path) -> list[Path]:
    """Write `NAME.h`, `NAME.c` and `NAME_test.c`; return the files."""
    return write_files(
        directory,
        {
            f"{module.name}.h": header(module),
            f"{module.name}.c": source(module),
            f"{module.name}_test.c": module_test(module, recorded),
        },
    )


def write_files(directory: str | Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by the names of their files; return the files."""
    return [
        write_text(Path(directory) / file, text, "ascii", parents=True)
        for file, text in texts.items()
    ]


def module_test(module: Module, recorded: RecordedCalls) -> str:
    """Return a C program that repeats the recorded calls and compares what they return."""
    name, roles = module.name, module.roles
    tables: list[str] = []
    assigned: list[str] = []
    compared: list[str] = []
    for what, rows in (("given", recorded.given), ("expected", recorded.expected)):
        for role in rows[0]:
            struct = roles[role]
            listed = ",\n".join(f"    {initializer(module, struct, row[role])}" for row in rows)
            tables.append(f"static const {name}_{role} {what}_{role}[CALLS] = {{\n{listed}\n}};")
            if what == "given":
                assigned.append(f"{role} = given_{role}[k];")
            else:
                compared += _comparison(struct)
    variables = [
        f"static const {name}_{s.role} {s.role} = {name.upper()}_{s.role.upper()};"
        if s.initial is not None
        else f"static {name}_{s.role} {s.role};"
        for s in module.structs
        if not s.local
    ]
    lines = (*assigned, *recorded.each, *compared)
    return test_program(
        name, module.dtype, len(recorded.given), TOLERANCE[module.dtype], tables,
        [*variables, *recorded.begin], lines,
    )  # fmt: skip


def test_program(
    name: str, dtype: str, calls: int, tolerance: float, tables: Sequence[str],
    begin: Sequence[str], each: Sequence[str],
) -> str:  # fmt: skip
    """Return a C program that calls generated code and compares its results.

    Args:
        name: name of the header, and of the source or object file.
        dtype: `float64` or `float32`.
        calls: number of calls.
        tolerance: largest error relative to the largest number of a result.
        tables: definitions of constant arguments and expected results.
        begin: declarations, then statements before the first call.
        each: statements of call `k`, which update `worst` by `error_with`.
    """
    scalar, wide = SCALARS[dtype], any("wide_error_with" in line for line in each)
    about = [
        f"Test of {name}: makes {calls} calls, one with the state that the last one left, counts",
        "the numbers that differ from those computed by Remora, prints the largest error relative",
        "to the largest number of a result, and returns 1 if that is above the tolerance.",
        f"cc -std=c99 -O2 {name}.c {name}_test.c -lm",
    ]
    inner = "\n".join(f"        {line}" for line in each)
    before = "\n".join(f"    {line}" for line in (*_COUNTERS, *begin))
    return f"""{comment(about)}
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "{name}.h"

#define CALLS {calls}
#define TOLERANCE {tolerance:.3g}

{chr(10).join(tables)}

static double larger(double a, double b)
{{
    return a > b ? a : b;
}}

static double size_of({scalar} x)
{{
    const double size = fabs((double)x);
    return size < 1e300 ? size : 0.0; /* 1e300: never */
}}

/* The size of a set of numbers, or the size so far. */
static double size_with(double so_far, const {scalar} *expected, int count)
{{
    int i;
    for (i = 0; i < count; i++) {{
        so_far = larger(so_far, size_of(expected[i]));
    }}
    return so_far;
}}

/* The largest error, or the one so far; counts the numbers and those that differ. */
static double error_with(double so_far, double size, const {scalar} *got, const {scalar} *expected,
                         int count, long *numbers, long *different)
{{
    int i;
    for (i = 0; i < count; i++) {{
        const double difference = fabs((double)got[i] - (double)expected[i]);
        const int both_nan = got[i] != got[i] && expected[i] != expected[i];
        *numbers += 1;
        if (!(got[i] == expected[i] || both_nan)) {{
            *different += 1;
            so_far = larger(so_far, difference <= DBL_MAX ? difference / size : DBL_MAX);
        }}
    }}
    return so_far;
}}

{_WIDE if wide else ""}int main(void)
{{
{before}
    for (k = 0; k < CALLS; k++) {{
{inner}
    }}
    printf("{name}: %d calls, %ld of %ld numbers differ, largest relative error %.1e, "
           "tolerance %.0e: %s\\n", CALLS, different, numbers, worst, TOLERANCE,
           worst <= TOLERANCE ? "good" : "WRONG");
    return worst <= TOLERANCE ? 0 : 1;
}}
"""


#: Comparison of numbers of type double in a module of type float.
_WIDE = """/* The relative error of a double, or the largest one so far; counts it as above. */
static double wide_error_with(double so_far, double got, double expected, long *numbers,
                              long *different)
{
    const double difference = fabs(got - expected) / larger(fabs(expected), 1.0);
    *numbers += 1;
    if (got == expected) {
        return so_far;
    }
    *different += 1;
    return larger(so_far, difference <= DBL_MAX ? difference : DBL_MAX);
}

"""

_COUNTERS = ("double worst = 0.0, size = 0.0;", "long numbers = 0, different = 0;", "int k;")


def _comparison(struct: Struct) -> list[str]:
    """Return the statements that compare the members of a struct."""
    sized: list[str] = []
    lines: list[str] = []
    for member in struct.members:
        own, table = struct.identifiers[member.name], f"expected_{struct.role}[k]"
        if member.c_type:
            items = [f"[{i}]" for i in range(member.size)] if member.shape else [""]
            for item in items:
                got, expected = f"{struct.role}.{own}{item}", f"{table}.{own}{item}"
                if member.c_type == "double":
                    numbers = f"{got}, {expected}, &numbers, &different"
                    lines.append(f"worst = wide_error_with(worst, {numbers});")
                else:
                    lines.append(f"worst = {got} != {expected} ? DBL_MAX : worst;")
            continue
        point = "" if member.shape else "&"
        got, expected = f"{point}{struct.role}.{own}", f"{point}{table}.{own}"
        sized.append(f"size = size_with(size, {expected}, {member.size});")
        lines.append(
            f"worst = error_with(worst, size, {got}, {expected}, {member.size}, &numbers, "
            "&different);"
        )
    return ["size = DBL_MIN;", *sized, *lines]
