"""Physical consistency of inertias: the triangle inequality of the principal moments.

The second-moment matrix Σ = ∫ r rᵀ dm about the centre of mass is related to the inertia matrix I
by

    Σ = ½ tr(I) 1 - I,    I = tr(Σ) 1 - Σ.

An inertia is consistent with a positive mass distribution if and only if Σ is positive
semi-definite, which is the triangle inequality of the principal moments of I [WSK18].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, is_symbolic
from remora.errors import UnknownName
from remora.model.numbers import frozen
from remora.model.robot import Body, Joint

#: Treatments of an inconsistent inertia.
Treatment: TypeAlias = Literal["strict", "warn", "repair"]
TREATMENTS: tuple[Treatment, ...] = ("strict", "warn", "repair")
#: Tolerance of the inequality, relative to the largest moment: rounding in a file.
RELATIVE = 1e-6
#: Tolerance relative to m d², d the size of the body: smaller moments do not affect motion.
FLOOR = 1e-9


class Impossible(NamedTuple):
    """A body with a physically inconsistent inertia.

    Attributes:
        body: its index.
        reason: which condition it violates, with its principal moments.
    """

    body: int
    reason: str


def treatment(name: str) -> Treatment:
    """Return the treatment of that name, or raise `UnknownName`, which lists the known ones."""
    for known in TREATMENTS:
        if name == known:
            return known
    raise UnknownName("treatment of inertia", name, TREATMENTS)


def impossible(bodies: Sequence[Body], joints: Sequence[Joint]) -> list[Impossible]:
    """Return the bodies whose inertia is inconsistent beyond rounding in a file.

    Args:
        bodies: after fixed links are merged.
        joints: joint i carries body i.
    """
    sizes = _sizes(bodies, joints)
    found: list[Impossible] = []
    for i, (body, size) in enumerate(zip(bodies, sizes, strict=True)):
        if is_symbolic(body.inertia) or is_symbolic(body.mass):
            continue
        reason = violation(body.inertia, FLOOR * float(body.mass) * size * size)
        if reason is not None:
            found.append(Impossible(i, reason))
    return found


def violation(inertia: Array, floor: float = 0.0) -> str | None:
    """Return which condition an inertia `(3, 3)` violates by more than rounding, or None.

    Args:
        inertia: about the centre of mass, kg m².
        floor: moments below this count as zero, kg m².
    """
    a, b, c = np.linalg.eigvalsh(inertia)
    allowed = max(RELATIVE * max(abs(a), abs(c)), floor)
    moments = f"principal moments {a:g}, {b:g}, {c:g} kg m²"
    if a < -allowed:
        return f"inertia is not positive semi-definite: {moments}"
    if a + b < c - allowed:
        return (
            f"inertia violates the triangle inequality: {moments}; no mass distribution has it: "
            "the two smaller must add up to at least the largest"
        )
    return None


def repaired(inertia: Array) -> Array:
    """Return the nearest physically consistent inertia `(3, 3)`, kg m².

    Nearest in the Frobenius norm of Σ: its negative eigenvalues become zero. Mass and centre of
    mass are unchanged.
    """
    moments, axes = np.linalg.eigh(inertia)
    second = np.maximum(0.5 * np.sum(moments) - moments, 0.0)
    nearest = (axes * (np.sum(second) - second)) @ axes.T
    return frozen(0.5 * (nearest + nearest.T))


def moments_text(inertia: Array) -> str:
    """Return the principal moments as text, smallest first."""
    return ", ".join(f"{x:.6g}" for x in np.linalg.eigvalsh(inertia))


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return quoted names as text, limited to the first few."""
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:most]) + (f" and {len(quoted) - most} more" * (len(quoted) > most))


def _sizes(bodies: Sequence[Body], joints: Sequence[Joint]) -> list[float]:
    """Return the size of each body, m: distance to its centre of mass or farthest joint."""
    sizes = [0.0] * len(bodies)
    for i, (body, joint) in enumerate(zip(bodies, joints, strict=True)):
        if not is_symbolic(body.com):
            sizes[i] = max(sizes[i], float(np.linalg.norm(body.com)))
        if joint.parent >= 0 and not is_symbolic(joint.placement):
            offset = float(np.linalg.norm(pose.translation(joint.placement)))
            sizes[i] = max(sizes[i], offset)
            sizes[joint.parent] = max(sizes[joint.parent], offset)
    return sizes
