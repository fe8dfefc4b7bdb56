"""Parameters of components: a field that carries its meaning, unit, kind and range.

    class Thruster(Component):
        frame: str = parameter("body or frame it is mounted on", "frame")
        thrust: float = parameter("along the direction", unit="N", above=0.0)

The checks when a component is made, the attributes in the class's help, the keys of scenario files
with their schema and messages, the tables of the docs and the units in reports follow from it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from remora.algebra import quaternion
from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, ShapeError, UnknownName
from remora.model.arguments import at_least, each

#: The rows of a frame's twist in inertial axes, at the frame's origin.
ROWS = ("wx", "wy", "wz", "vx", "vy", "vz")
#: Names of sets of rows.
ROW_SETS = {
    "pose": ROWS,
    "orientation": ROWS[:3],
    "position": ROWS[3:],
    "plane": ("wz", "vx", "vy"),
    "none": (),
}
#: Unit of a number that is in the unit of a signal.
OF_SIGNAL = "unit of the signal"

Kind = Literal[
    "number",  # a finite number
    "whole",  # a whole number
    "flag",  # true or false
    "text",
    "choice",  # one of `choices`
    "choices",  # some of `choices`
    "texts",  # several texts
    "frame",  # name of a body or frame
    "frames",  # names of bodies or frames
    "joints",  # names of joints
    "rows",  # rows of a twist: the name of a set, or one by one
    "numbers",  # one number, or `size` of them
    "vector",  # `size` numbers
    "direction",  # three numbers, normalized
    "orientation",  # unit quaternion; roll, pitch, yaw in files
    "matrix",  # symmetric, positive definite: one number, the diagonal, or size × size
    "by joint",  # one number, or one by joint, in order or by name
    "joint limits",  # likewise, kept as given
    "joint gains",  # one number, or by the name of a joint
    "joint places",  # coordinates by the name of a joint
    "places",  # way-points of joints
    "poses",  # way-points of a frame
    "frame poses",  # poses by the name of a frame
    "durations",  # one number, or several
    "load",  # a function of time
    "any",
]


@dataclass(frozen=True)
class Parameter:
    """What a field of a component means and may be.

    Attributes:
        doc: its meaning in a few words.
        kind: what it may be.
        unit: unit; `N m or N`: of joints that turn, and of joints that slide.
        minimum: smallest value.
        above: number that it must exceed.
        maximum: largest value.
        size: number of elements.
        choices: allowed names.
        key: key in scenario files, if it is not the name of the field.
        in_system: whether it only has a meaning in a `System`.
        optional: whether it may be None.
    """

    doc: str
    kind: Kind = "number"
    unit: str = ""
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    size: int = 0
    choices: tuple[str, ...] = ()
    key: str = ""
    in_system: bool = False
    optional: bool = False

    @property
    def range(self) -> str:
        """The range in words; empty if there is none."""
        words = [f"greater than {self.above:g}"] if self.above is not None else []
        words += [f"{self.minimum:g} or greater"] if self.minimum is not None else []
        words += [f"at most {self.maximum:.6g}"] if self.maximum is not None else []
        return " and ".join(words)

    @property
    def text(self) -> str:
        """Meaning, unit and range, for help and docs."""
        unit = f"in the {self.unit}" if self.unit == OF_SIGNAL else self.unit
        choices = ", ".join(f"`{name}`" for name in self.choices)
        return "; ".join(part for part in (self.doc, choices, unit, self.range) if part)

    def unit_of(self, angular: bool) -> str:
        """Return the unit for a joint that turns or slides."""
        turning, _, sliding = self.unit.partition(" or ")
        return turning if angular or not sliding else sliding

    def checked(self, what: str, value: Any) -> Any:
        """Return a value as it is stored, or raise an error that names `what`."""
        check = _CHECKS.get(self.kind)
        if check is None or (value is None and self.optional):
            return value
        return check(self, what, value)


def parameter(
    doc: str,
    kind: Kind = "number",
    *,
    default: Any = dataclasses.MISSING,
    fixed: bool = False,
    kw_only: bool = False,
    **options: Any,
) -> Any:
    """Return a field of a component, see `Parameter`.

    Args:
        doc: its meaning in a few words.
        kind: what it may be.
        default: value if it is not given; None: it may be left out.
        fixed: whether it is the same in all runs of a batch although it is a number.
        kw_only: whether it is given by name.
        **options: unit, range and the other attributes of `Parameter`.
    """
    own = Parameter(doc, kind, optional=default is None, **options)
    metadata = {"parameter": own, "fixed": fixed}
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


@functools.cache
def declared(component: type[Any]) -> Mapping[str, Parameter]:
    """Return the parameters that the fields of a component class carry, by name."""
    found = {own.name: own.metadata.get("parameter") for own in dataclasses.fields(component)}
    return {name: own for name, own in found.items() if isinstance(own, Parameter)}


def snake_case(name: str) -> str:
    """Return the name of a class in lower case: `rate_gyro` of `RateGyro`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def title(component: type[Any]) -> str:
    """Return what a component is called in messages: `a rate gyro`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", component.__name__).split()
    words = " ".join(part if len(part) > 1 and part.isupper() else part.lower() for part in parts)
    if words.endswith("s"):
        return words
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def documented(component: type[Any]) -> str:
    """Return the lines of a class's help that describe its parameters."""
    lines = [f"    {name}: {own.text}." for name, own in declared(component).items()]
    return "\n".join(["Attributes:", *lines]) if lines else ""


# Checks -------------------------------------------------------------------------------------------


def _number(own: Parameter, what: str, value: Any) -> float:
    low = own.minimum if own.above is None else own.above
    if isinstance(value, complex):
        raise InvalidValue(f"{what} must be a number, not {value!r}")
    found = at_least(what, value, -np.inf if low is None else low, own.above is not None)
    if own.maximum is not None and found > own.maximum:
        raise InvalidValue(f"{what} must be at most {own.maximum:.6g}, not {value!r}")
    return found


def _whole(own: Parameter, what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidValue(f"{what} must be a whole number, not {value!r}")
    if own.minimum is not None and value < own.minimum:
        raise InvalidValue(f"{what} must be {own.range}, not {value}")
    return int(value)  # pyright: ignore[reportUnknownArgumentType]


def _flag(own: Parameter, what: str, value: Any) -> bool:
    return bool(value)


def _text(own: Parameter, what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{what} must be text, not {value!r}")
    return value


def _choice(own: Parameter, what: str, value: Any) -> str:
    if value not in own.choices:
        raise UnknownName(f"choice for {what}", value, own.choices)
    return value


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Iterable) else (value,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _names(own: Parameter, what: str, value: Any) -> tuple[str, ...]:
    names: tuple[Any, ...] = (value,) if isinstance(value, str) else _tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise InvalidValue(f"{what} must be names, not {value!r}")
    if own.size and len(names) != own.size:
        raise InvalidValue(f"{what} must be {own.size} names, not {len(names)}")
    if own.choices:
        for name in names:
            _choice(own, what, name)
    return names


def row_indices(rows: str | Any) -> list[int]:
    """Return the indices of rows of a twist, given as the name of a set or one by one."""
    if isinstance(rows, str):
        if rows not in ROW_SETS:
            raise UnknownName("set of rows", rows, ROW_SETS)
        rows = ROW_SETS[rows]
    for row in rows:
        if row not in ROWS:
            raise UnknownName("row of a twist", row, ROWS)
    if len(set(rows)) != len(rows):
        raise InvalidValue(f"rows of a twist must differ, not {', '.join(rows)}")
    return [ROWS.index(row) for row in rows]


def _rows(own: Parameter, what: str, value: Any) -> str | tuple[str, ...]:
    row_indices(value)
    return value if isinstance(value, str) else tuple(value)


def numbers(own: Parameter, what: str, value: Any, size: int) -> Array:
    """Return numbers `(size,)` within the range of a parameter, one standing for all, or raise."""
    found = each(what, value, size)
    least, above = own.minimum, own.above
    if (least is not None and np.any(found < least)) or (
        above is not None and np.any(found <= above)
    ):
        raise InvalidValue(f"{what} must be {own.range}, not {value!r}")
    return found


def _sized(own: Parameter, what: str, value: Any) -> Array:
    return numbers(own, what, value, own.size)


def _by_joint(own: Parameter, what: str, value: Any) -> Array:
    """Return numbers `(n,)`; their number is checked with the robot."""
    try:
        size = int(np.size(value))
    except ValueError:
        raise ShapeError(f"{what} must be one number or a list of numbers, not {value!r}") from None
    if not size:
        raise ShapeError(f"{what} must be one number or one by joint, not an empty list")
    return numbers(own, what, value, size)


def _joint_limits(own: Parameter, what: str, value: Any) -> Any:
    _by_joint(own, what, value)
    return value


def _direction(own: Parameter, what: str, value: Any) -> Array:
    found = each(what, value, 3)
    length = float(np.linalg.norm(found))
    if np.ndim(value) == 0 or not length:
        raise InvalidValue(f"{what} must be three numbers, not all zero, not {value!r}")
    return found / length


def _orientation(own: Parameter, what: str, value: Any) -> Array:
    r = each(what, value, 4)
    if abs(np.linalg.norm(r) - 1.0) > 1e-6:
        raise InvalidValue(f"{what} must be a unit quaternion, not {value!r}")
    return quaternion.normalize(r)


def _matrix(own: Parameter, what: str, value: Any) -> Array:
    """Return a symmetric, positive definite matrix; numbers are its diagonal."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue(f"{what} must be numbers, not {value!r}") from None
    if array.ndim < 2:
        return np.diag(_sized(own, what, value))
    if array.shape != (own.size, own.size):
        raise ShapeError(f"{what} must be {own.size} x {own.size}, not of shape {array.shape}")
    largest = np.abs(array).max()
    if not np.all(np.isfinite(array)) or np.abs(array - array.T).max() > 1e-12 * largest:
        raise InvalidValue(f"{what} must be a finite symmetric matrix")
    least = float(np.linalg.eigvalsh(array).min())
    if least <= 0.0:
        raise InvalidValue(f"{what} must be positive definite; its least eigenvalue is {least:.3g}")
    return array.copy()


#: How values are checked, by kind; the others are checked by the component itself.
_CHECKS: dict[str, Callable[[Parameter, str, Any], Any]] = {
    "number": _number, "whole": _whole, "flag": _flag, "text": _text, "choice": _choice,
    "choices": _names, "texts": _names, "frames": _names, "joints": _names, "rows": _rows,
    "numbers": _sized, "vector": _sized, "direction": _direction, "orientation": _orientation,
    "matrix": _matrix, "by joint": _by_joint, "joint limits": _joint_limits,
}  # fmt: skip
