"""Inertias of homogeneous boxes, cylinders and spheres, about their centre of mass."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_symbolic, stack
from remora.errors import InvalidValue, UnknownName
from remora.model.numbers import finite, shown_value

#: Directions of the axis of a cylinder.
_AXES = ("x", "y", "z")


def box_inertia(mass: ArrayLike, size: ArrayLike) -> Array:
    """Return the inertia of a homogeneous box, `(..., 3, 3)`, kg m².

    I_xx = m (b² + c²) / 12 for edges a, b, c along x, y, z, and so on.

    Args:
        mass: `(...)`, kg.
        size: full lengths along x, y and z, `(..., 3)`, m.

    Raises:
        InvalidValue: for a negative number.

    Example:
        >>> rm.box_inertia(12.0, (1.0, 2.0, 3.0)).diagonal()
        array([13., 10.,  5.])
    """
    m, edges = _not_negative("mass", mass), _not_negative("size", size, 3)
    xx, yy, zz = edges[..., 0] ** 2, edges[..., 1] ** 2, edges[..., 2] ** 2
    return _diagonal(m * (yy + zz) / 12.0, m * (xx + zz) / 12.0, m * (xx + yy) / 12.0)


def cylinder_inertia(
    mass: ArrayLike, radius: ArrayLike, length: ArrayLike, axis: str = "z"
) -> Array:
    """Return the inertia of a homogeneous cylinder, `(..., 3, 3)`, kg m².

    m r² / 2 about its axis, m (3 r² + l²) / 12 about the other two.

    Args:
        mass: `(...)`, kg.
        radius: `(...)`, m.
        length: along its axis, `(...)`, m.
        axis: direction of its axis: `x`, `y` or `z`.

    Raises:
        InvalidValue: for a negative number.
        UnknownName: for another axis.
    """
    if axis not in _AXES:
        raise UnknownName("axis", axis, _AXES)
    m, r, l = (
        _not_negative(what, value)
        for what, value in (("mass", mass), ("radius", radius), ("length", length))
    )
    along, across = m * r**2 / 2.0, m * (3.0 * r**2 + l**2) / 12.0
    return _diagonal(*(along if axis == own else across for own in _AXES))


def sphere_inertia(mass: ArrayLike, radius: ArrayLike) -> Array:
    """Return the inertia of a homogeneous sphere, 2/5 m r² about every axis, `(..., 3, 3)`, kg m².

    Args:
        mass: `(...)`, kg.
        radius: `(...)`, m.

    Raises:
        InvalidValue: for a negative number.
    """
    moment = 0.4 * _not_negative("mass", mass) * _not_negative("radius", radius) ** 2
    return _diagonal(moment, moment, moment)


def _not_negative(what: str, value: ArrayLike, *shape: int) -> Array:
    array = finite(what, value, *shape)
    if not is_symbolic(array) and np.any(array < 0.0):
        raise InvalidValue(f"{what} must not be negative: {shown_value(value)}")
    return array


def _diagonal(xx: Array, yy: Array, zz: Array) -> Array:
    zero = 0.0 * xx
    rows = [[xx, zero, zero], [zero, yy, zero], [zero, zero, zz]]
    return stack([stack(row) for row in rows], axis=-2)
