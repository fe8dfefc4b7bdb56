"""LLVM IR of counter-based random numbers: the same bits as `ir/philox.py`, on lanes or a thread.

The caller holds the parts of the key and of the counter as whole numbers in float64, one per lane,
and stores the numbers returned here; `components.noise.standard_normals` makes normals of them. The
code consists of integer operations on vectors of lanes (scalars if there is one lane, as on a GPU)
and exact conversions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remora.codegen.ir import philox
from remora.codegen.llvm.lowering import SCALARS, Writer, constant, operation, vector
from remora.errors import UnknownName

_TWO_52 = 2.0**52


def emit(
    w: Writer,
    lanes: int,
    dtype: str,
    kind: str,
    seed: Sequence[str],
    run: str,
    stream: int,
    tick: str,
    block: int,
) -> list[str]:
    """Emit the numbers of one block and return their names.

    Args:
        w: destination of the IR; declare `declared(lanes)` in its module.
        lanes: number of lanes.
        dtype: type of the numbers returned, `float64` or `float32`.
        kind: a row of `NUMBERS`.
        seed: lower and upper 32 bits of the seed, names of float64 values.
        run: index of the run, the name of a float64 value.
        stream: number of the stream.
        tick: number of the tick, the name of a float64 value below 2⁴⁸.
        block: number of the block.
    """
    if kind not in NUMBERS:
        raise UnknownName("kind of random numbers", kind, NUMBERS)
    key = [_low(w, lanes, _whole(w, lanes, half)) for half in seed]
    when = _whole(w, lanes, tick)
    above = w.emit(f"lshr {vector('i64', lanes)} {when}, {_integer(32, 'i64', lanes)}")
    shifted = _binary(w, lanes, "shl", _low(w, lanes, above), philox.BLOCK_BITS)
    counter = [
        _low(w, lanes, _whole(w, lanes, run)),
        _low(w, lanes, when),
        _integer(stream, "i32", lanes),
        _binary(w, lanes, "or", shifted, block),
    ]
    return NUMBERS[kind](w, lanes, dtype, words(w, lanes, key, counter))


def words(w: Writer, lanes: int, key: Sequence[str], counter: Sequence[str]) -> list[str]:
    """Emit the rounds of Philox4x32-10 and return the names of the four words, i32.

    Args:
        w: destination of the IR.
        lanes: number of lanes.
        key: names of two i32 values.
        counter: names of four i32 values.
    """
    c, k = list(counter), list(key)
    for number in range(philox.ROUNDS):
        if number:
            k = [_binary(w, lanes, "add", x, d) for x, d in zip(k, philox.INCREMENTS, strict=True)]
        high0, low0 = _multiplied(w, lanes, c[0], philox.MULTIPLIERS[0])
        high1, low1 = _multiplied(w, lanes, c[2], philox.MULTIPLIERS[1])
        c = [
            _xor(w, lanes, _xor(w, lanes, high1, c[1]), k[0]), low1,
            _xor(w, lanes, _xor(w, lanes, high0, c[3]), k[1]), low0,
        ]  # fmt: skip
    return c


def declared(lanes: int) -> list[str]:
    """Return the declarations of the intrinsics that the emitted code calls."""
    t = vector("i32", lanes)
    return [f"declare {t} @llvm.{_count_zeros(lanes)}({t}, i1)"]


# Words to numbers --------------------------------------------------------------------------------


def _normal_numbers(w: Writer, lanes: int, dtype: str, block: Sequence[str]) -> list[str]:
    """Emit e, f and w of a pair of normals, see `philox.normal_numbers`."""
    t, bits = vector("i32", lanes), vector("i1", lanes)
    zero = _integer(0, "i32", lanes)
    first, second = (
        w.emit(f"call {t} @llvm.{_count_zeros(lanes)}({t} {x}, i1 false)") for x in block[:2]
    )
    empty = w.emit(f"icmp eq {t} {block[0]}, {zero}")
    more = w.emit(f"select {bits} {empty}, {t} {second}, {t} {zero}")
    exponent = _float(w, lanes, dtype, w.emit(f"add {t} {first}, {more}"))
    fraction = _scaled_odd(w, lanes, dtype, block[2], 10, 2.0**-23)
    mantissa = operation(w, "add", [fraction, constant(1.0, dtype, lanes)], dtype, lanes)
    return [exponent, mantissa, _scaled_odd(w, lanes, dtype, block[3], 9, 2.0**-24)]


def _uniform_numbers(w: Writer, lanes: int, dtype: str, block: Sequence[str]) -> list[str]:
    """Emit a uniform number for each word, see `philox.uniform_numbers`."""
    return [_scaled_odd(w, lanes, dtype, word, 9, 2.0**-24) for word in block]


#: Kinds of numbers a block can be turned into.
NUMBERS: dict[str, Callable[[Writer, int, str, Sequence[str]], list[str]]] = {
    "normal": _normal_numbers,
    "uniform": _uniform_numbers,
}
#: Numbers of each kind that a block is turned into.
PER_BLOCK = {"normal": philox.NUMBERS_PER_PAIR, "uniform": philox.UNIFORMS_PER_BLOCK}


def _scaled_odd(w: Writer, lanes: int, dtype: str, word: str, drop: int, scale: float) -> str:
    """Emit (2 m + 1) scale, with m the word without its `drop` lowest bits."""
    m = _binary(w, lanes, "lshr", word, drop)
    odd = _binary(w, lanes, "or", _binary(w, lanes, "shl", m, 1), 1)
    x = _float(w, lanes, dtype, odd)
    return operation(w, "mul", [x, constant(scale, dtype, lanes)], dtype, lanes)


def _float(w: Writer, lanes: int, dtype: str, x: str) -> str:
    """Emit a whole number below 2²⁴ as a float, exactly."""
    return w.emit(f"sitofp {vector('i32', lanes)} {x} to {vector(SCALARS[dtype], lanes)}")


def _count_zeros(lanes: int) -> str:
    return f"ctlz.{'' if lanes == 1 else f'v{lanes}'}i32"


# Integers ----------------------------------------------------------------------------------------


def _whole(w: Writer, lanes: int, x: str) -> str:
    """Emit a float64 whole number below 2⁵² as i64: the mantissa of x + 2⁵²."""
    shifted = operation(w, "add", [x, constant(_TWO_52, "float64", lanes)], "float64", lanes)
    t = vector("i64", lanes)
    bits = w.emit(f"bitcast {vector('double', lanes)} {shifted} to {t}")
    return w.emit(f"and {t} {bits}, {_integer(2**52 - 1, 'i64', lanes)}")


def _low(w: Writer, lanes: int, x: str) -> str:
    """Emit the lower 32 bits of an i64."""
    return w.emit(f"trunc {vector('i64', lanes)} {x} to {vector('i32', lanes)}")


def _multiplied(w: Writer, lanes: int, x: str, by: int) -> tuple[str, str]:
    """Emit the upper and lower 32 bits of a product."""
    t = vector("i64", lanes)
    wide = w.emit(f"zext {vector('i32', lanes)} {x} to {t}")
    product = w.emit(f"mul {t} {wide}, {_integer(by, 'i64', lanes)}")
    upper = w.emit(f"lshr {t} {product}, {_integer(32, 'i64', lanes)}")
    return _low(w, lanes, upper), _low(w, lanes, product)


def _xor(w: Writer, lanes: int, x: str, y: str) -> str:
    return w.emit(f"xor {vector('i32', lanes)} {x}, {y}")


def _binary(w: Writer, lanes: int, op: str, x: str, by: int) -> str:
    """Emit an operation of i32 values with a constant."""
    return w.emit(f"{op} {vector('i32', lanes)} {x}, {_integer(by, 'i32', lanes)}")


def _integer(value: int, scalar: str, lanes: int) -> str:
    """Return an integer as an IR literal."""
    if lanes == 1:
        return str(value)
    return "<" + ", ".join([f"{scalar} {value}"] * lanes) + ">"
