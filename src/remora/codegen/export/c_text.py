"""Building blocks of generated C: valid identifiers, exact literals, safe comments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from remora.codegen.ir.graph import Graph

#: C types of the precisions.
SCALARS = {"float64": "double", "float32": "float"}

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
#: Keywords of C and C++ and names of their libraries, which must not be redefined.
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
        result = "x" + result  # identifiers cannot start with a digit, should not with _
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


def number(value: float, dtype: str) -> str:
    """Return a number as an exact C literal, in hexadecimal."""
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


def decimal(value: float, dtype: str) -> str:
    """Return a finite number as a decimal literal that is read back to the same bits.

    For people, and for C++ before 2017, which has no hexadecimal ones.
    """
    if dtype == "float32":
        text = np.format_float_scientific(np.float32(value), trim="0") + "f"
        short = np.format_float_positional(np.float32(value), trim="0") + "f"
        return short if len(short) <= len(text) else text
    return repr(float(value))


# Comments --------------------------------------------------------------------------------------


def comment(lines: Sequence[str]) -> str:
    """Return lines as a comment that no name or note can terminate early."""

    def safe(line: str) -> str:
        line = re.sub(r"[^ -~]|[\\?]", "_", line)
        return line.replace("*/", "*_").replace("/*", "/_")

    return "\n".join(["/*", *(f" * {safe(line)}".rstrip() for line in lines), " */"])
