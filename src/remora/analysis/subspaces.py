"""Subspaces of a twist in which an ellipsoid is taken, and the units of their coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue, ShapeError, UnknownName
from remora.model.numbers import finite

_ROW = {"rx": 0, "ry": 1, "rz": 2, "x": 3, "y": 4, "z": 5}
#: Named subspaces: rows of the twist [ω, v].
SUBSPACES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "translation": ("x", "y", "z"),
    "rotation": ("rx", "ry", "rz"),
    "twist": ("rx", "ry", "rz", "x", "y", "z"),
    "x": ("x",), "y": ("y",), "z": ("z",),
    "xy": ("x", "y"), "xz": ("x", "z"), "yz": ("y", "z"),
    "planar": ("rz", "x", "y"),
})  # fmt: skip


def selection(subspace: str | ArrayLike, length: float) -> Array:
    """Return S `(k, 6)`: the coordinates S t of a twist t, all in units of a velocity, m/s.

    Args:
        subspace: a key of SUBSPACES, or rows `(k, 6)` on [ω, v], k from 1 to 6, independent.
        length: characteristic length in m; angular rates of a subspace that mixes both are
            multiplied by it. Pure rotations stay in rad/s.
    """
    if isinstance(subspace, str):
        if subspace not in SUBSPACES:
            raise UnknownName("subspace", subspace, SUBSPACES)
        S = np.eye(6)[[_ROW[name] for name in SUBSPACES[subspace]]]
    else:
        S = finite("subspace", subspace, 6)
        if S.ndim != 2 or not 1 <= S.shape[0] <= 6:
            raise ShapeError(f"subspace must have shape (k, 6) with k from 1 to 6, not {S.shape}")
        if np.linalg.matrix_rank(S) < S.shape[0]:
            raise InvalidValue("the rows of subspace are linearly dependent")
    if not length > 0.0 or not np.isfinite(length):
        raise InvalidValue(f"length={length!r} must be a positive number of metres")
    if not is_mixed(S):
        return S
    return S * np.array([length] * 3 + [1.0] * 3)


def is_mixed(S: Array) -> bool:
    """Tell whether the rows `(k, 6)` have both angular and linear parts."""
    return bool(np.any(S[:, :3]) and np.any(S[:, 3:]))


def unit(S: Array) -> str:
    """Return the unit of the coordinates S t: rad/s of a pure rotation, else m/s."""
    return "m/s" if np.any(S[:, 3:]) else "rad/s"
