"""Checks of single values of a robot: each returns a clean array or records a fault.

Symbols have no value yet and pass. Floats must be finite and physically possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array, ArrayLike, asarray, is_symbolic, refuse_other_arrays
from remora.errors import Fault, ShapeError
from remora.model.arguments import LARGEST_NUMBER
from remora.model.numbers import (
    UNIT_ROUNDING,
    UNIT_TOLERANCE,
    frozen,
    pose_error,
    shown_value,
)
from remora.model.robot import Geometry

#: Tolerance of symmetry, relative to the largest moment: rounding in a file.
INERTIA_TOLERANCE = 1e-6
#: Maximum number of faults recorded; a hostile description may have a million.
MAX_FAULTS = 1000
#: Visual shapes, and the number of values of their size.
SHAPES = {"box": 3, "cylinder": 2, "sphere": 1, "capsule": 2, "ellipsoid": 3, "mesh": 3}


@dataclass(frozen=True)
class Place:
    """The location of a part of a description: the element, and the line in its file."""

    element: str
    line: int | None = None


@dataclass
class Checker:
    """Collects faults for a single report."""

    faults: list[Fault] = field(default_factory=list[Fault])

    def fault(self, place: Place, reason: str) -> None:
        """Record a fault."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(place.element, reason, place.line))

    def new_name(self, place: Place, name: object, *tables: Mapping[str, object]) -> bool:
        """Tell whether a name is text and in none of the tables, else record a fault."""
        if not name:
            self.fault(place, "has no name")
        elif not isinstance(name, str):
            self.fault(place, f"its name must be text, not {name!r}")
        elif any(name in table for table in tables):
            self.fault(place, f"the name {name!r} is used twice")
        else:
            return True
        return False

    def numbers(self, place: Place, what: str, value: ArrayLike, *shape: int) -> Array:
        """Return `value` as an array of that shape and finite numbers, else zeros and a fault."""
        try:
            refuse_other_arrays(value, what)
            array = asarray(value)
        except (TypeError, ValueError) as error:
            reason = (
                str(error)
                if isinstance(error, ShapeError)
                else (f"{what} is not numeric: {shown_value(value)}")
            )
            self.fault(place, reason)
            return np.zeros(shape)
        if array.shape != shape:
            wanted = "one number" if shape == () else f"{' x '.join(map(str, shape))} numbers"
            self.fault(place, f"{what} must be {wanted}, not of shape {array.shape}")
            return np.zeros(shape)
        if not is_symbolic(array) and not np.all(np.isfinite(array)):
            self.fault(place, f"{what} is not finite: {shown_value(value)}")
            return np.zeros(shape)
        if not is_symbolic(array) and np.any(np.abs(array) > LARGEST_NUMBER):
            self.fault(place, f"{what} is larger than {LARGEST_NUMBER:g}: {shown_value(value)}")
            return np.zeros(shape)
        return frozen(array)

    def mass(self, place: Place, value: ArrayLike) -> Array:
        """Return a mass; negative is a fault (zero is checked after fixed links are merged)."""
        mass = self.numbers(place, "mass", value)
        if not is_symbolic(mass) and mass < 0.0:
            self.fault(place, f"mass is negative: {float(mass):g} kg; it must be positive")
        return mass

    def inertia(self, place: Place, value: ArrayLike | None) -> Array:
        """Return a 3x3 inertia given as matrix, as diagonal, or as xx, xy, xz, yy, yz, zz.

        Its physical consistency is checked after fixed links are merged (`consistency`).
        """
        matrix = self.inertia_matrix(place, value)
        if is_symbolic(matrix):
            return matrix
        size = float(np.max(np.abs(matrix)))
        if np.max(np.abs(matrix - matrix.T)) > INERTIA_TOLERANCE * size:
            self.fault(place, f"inertia is not symmetric: {shown_value(matrix)}")
        return matrix

    def inertia_matrix(self, place: Place, value: ArrayLike | None) -> Array:
        """Return the 3x3 matrix of an inertia in any accepted form; None is zero."""
        if value is None:
            return frozen(np.zeros((3, 3)))
        try:
            shape = asarray(value).shape
        except (TypeError, ValueError):
            shape = (3, 3)
        if shape == (3,):
            xx, yy, zz = self.numbers(place, "inertia", value, 3)
            return frozen(asarray([[xx, 0.0, 0.0], [0.0, yy, 0.0], [0.0, 0.0, zz]]))
        if shape == (6,):
            xx, xy, xz, yy, yz, zz = self.numbers(place, "inertia", value, 6)
            return frozen(asarray([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        return self.numbers(place, "inertia", value, 3, 3)

    def placement(self, place: Place, value: ArrayLike) -> Array:
        """Return a pose; it must be a unit dual quaternion."""
        x = self.numbers(place, "placement", value, 8)
        if is_symbolic(x):
            return x
        error = float(pose_error(x))
        if not error <= UNIT_TOLERANCE:
            self.fault(place, f"placement is not a unit dual quaternion: {shown_value(x)}")
            return frozen(dual_quaternion.identity())
        return x if error <= UNIT_ROUNDING else frozen(dual_quaternion.normalize(x))

    def pose(
        self,
        place: Place,
        placement: ArrayLike | None = None,
        xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Array:
        """Return a pose given as a unit dual quaternion, or else by position and angles."""
        if placement is not None:
            return self.placement(place, placement)
        position = self.numbers(place, "xyz", xyz, 3)
        angles = self.numbers(place, "rpy", rpy, 3)
        return frozen(pose.from_xyz_rpy(position, angles))

    def unit_axis(self, place: Place, what: str, value: ArrayLike) -> Array:
        """Return an axis scaled to unit length; a zero axis is a fault."""
        axis = self.numbers(place, what, value, 3)
        if is_symbolic(axis):
            self.fault(place, f"{what} is symbolic; put the symbol into the placement instead")
            return np.array([0.0, 0.0, 1.0])
        largest = float(np.max(np.abs(axis)))
        if largest == 0.0:
            self.fault(place, f"{what} is zero; it must point somewhere")
            return np.array([0.0, 0.0, 1.0])
        if largest <= 2.0 and abs(float(np.linalg.norm(axis)) - 1.0) <= UNIT_ROUNDING:
            return axis
        axis = axis / largest  # so that the squares neither overflow nor underflow
        return axis / np.linalg.norm(axis)

    def positive(self, place: Place, what: str, value: ArrayLike) -> Array:
        """Return a positive number; zero or less is a fault."""
        array = self.numbers(place, what, value)
        if not is_symbolic(array) and array <= 0.0:
            self.fault(place, f"{what} must be positive, not {shown_value(value)}")
        return array

    def per_speed(self, place: Place, what: str, value: ArrayLike, nv: int) -> Array:
        """Return one non-negative number per speed; a single number applies to all."""
        array = self._spread(place, what, value, nv)
        if not is_symbolic(array) and np.any(array < 0.0):
            self.fault(place, f"{what} is negative: {shown_value(value)}")
        return array

    def signed(self, place: Place, what: str, value: ArrayLike, nv: int) -> Array:
        """Return one number per speed; a single number applies to all."""
        return self._spread(place, what, value, nv)

    def spring(self, place: Place, value: ArrayLike, nv: int, allowed: bool) -> Array:
        """Return the stiffness of a joint's spring; `allowed`: whether the joint can have one."""
        array = self.per_speed(place, "stiffness", value, nv)
        if not allowed and (is_symbolic(array) or np.any(array != 0.0)):
            self.fault(place, "a joint whose coordinates are a quaternion cannot have a spring")
        return array

    def bound(self, place: Place, what: str, value: ArrayLike, nv: int) -> Array:
        """Return one bound per speed; infinite is allowed, NaN is not."""
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            self.fault(place, f"{what} is not numeric: {shown_value(value)}")
            return np.zeros(nv)
        if array.shape not in ((), (nv,)):
            self.fault(place, f"{what} must be one number or {nv}, not of shape {array.shape}")
            return np.zeros(nv)
        if np.any(np.isnan(array)):
            self.fault(place, f"{what} is not a number: {shown_value(value)}")
        return frozen(np.broadcast_to(array, (nv,)).copy())

    def largest(self, place: Place, what: str, value: ArrayLike, nv: int) -> Array:
        """Return one largest magnitude per speed: a bound that is not negative."""
        array = self.bound(place, what, value, nv)
        if np.any(array < 0.0):
            self.fault(place, f"{what} is negative: {shown_value(value)}")
        return array

    def geometry(self, place: Place, shape: Geometry) -> None:
        """Record a fault if a visual shape has an unknown type or an invalid size."""
        count = SHAPES.get(shape.kind)
        if count is None:
            known = ", ".join(SHAPES)
            self.fault(place, f"geometry of unknown kind {shown_value(shape.kind)}; known: {known}")
            return
        size = self.numbers(place, f"size of the {shape.kind}", shape.size, count)
        if shape.kind != "mesh" and np.any(size < 0.0):  # a mesh may be mirrored
            self.fault(place, f"size of the {shape.kind} is negative: {shown_value(shape.size)}")
        self.placement(place, shape.placement)

    def _spread(self, place: Place, what: str, value: ArrayLike, nv: int) -> Array:
        try:
            single = asarray(value).shape == ()
        except (TypeError, ValueError):
            single = True
        if not single:
            return self.numbers(place, what, value, nv)
        return frozen(np.broadcast_to(self.numbers(place, what, value), (nv,)).copy())
