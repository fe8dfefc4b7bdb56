"""Merging of rigidly connected bodies into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from remora.algebra import dual_quaternion, pose, vector
from remora.algebra.array_ops import Array, is_symbolic, select
from remora.model.numbers import frozen
from remora.model.robot import Body


def merged_body(parts: Sequence[tuple[Body, Array]]) -> Body:
    """Return one body with the mass properties and geometry of several, named as the first.

    Masses add, and the centre of mass is their weighted mean. Inertias add in common axes about the
    common centre of mass (parallel axis theorem).

    Args:
        parts: bodies with their poses in the frame of the first, `(8,)`.
    """
    if len(parts) == 1:
        return parts[0][0]
    masses = [body.mass for body, _ in parts]
    centres = [pose.transform_point(x, body.com) for body, x in parts]
    mass = sum(masses[1:], masses[0])
    weighted = sum(
        (m * c for m, c in zip(masses[1:], centres[1:], strict=True)), masses[0] * centres[0]
    )
    com = weighted / (mass if is_symbolic(np.asarray(mass)) else select(mass == 0.0, 1.0, mass))
    inertia = np.zeros((3, 3))
    for (body, x), m, c in zip(parts, masses, centres, strict=True):
        R = pose.to_rotation_matrix(x)
        d = vector.skew(c - com)
        inertia = inertia + R @ body.inertia @ vector.transpose(R) - m * (d @ d)
    geometry = tuple(
        dataclasses.replace(g, placement=frozen(dual_quaternion.mul(x, g.placement)))
        for body, x in parts
        for g in body.geometry
    )
    first = parts[0][0]
    own = first.inertial_frame
    if own is None and not is_symbolic(com) and np.any(com != first.com):
        own = tuple(pose.from_translation(first.com).tolist())
    return Body(first.name, frozen(np.asarray(mass)), frozen(com), frozen(inertia), geometry, own)
