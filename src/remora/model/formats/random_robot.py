"""Random robots with all joint types, for tests and demonstrations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.errors import InvalidValue
from remora.model.building.builder import Builder
from remora.model.building.joint_kinds import base_kind, kind_named
from remora.model.joint_types import JOINT_TYPES, lookup
from remora.model.robot import Robot


def random_robot(
    seed: int | np.random.Generator,
    bodies: int = 8,
    kinds: Sequence[str] | None = None,
    base: str = "free",
    branching: float = 0.3,
    gravity: bool = False,
) -> Robot:
    """Return a random tree with physically possible mass properties.

    Args:
        seed: a number or a generator.
        bodies: number of bodies, including the base.
        kinds: joint types to draw from; all ten by default.
        base: type of the base joint.
        branching: probability that a body is not mounted on the previous one.
        gravity: whether to draw a gravity vector of about 10 m/s²; else zero.

    Raises:
        InvalidValue: if `bodies` is less than one, `kinds` is empty or `base` is not a joint type.
        UnknownName: if one of `kinds` is not a joint type.
    """
    names = [kind_named(name) or name for name in (JOINT_TYPES if kinds is None else kinds)]
    for name in names:
        lookup(name)
    if not names:
        raise InvalidValue(f"kinds is empty; name some of {', '.join(JOINT_TYPES)}")
    if bodies < 1:
        raise InvalidValue(f"bodies={bodies!r}; a robot has at least one, its base")
    base = base_kind(base)
    rng = np.random.default_rng(seed)
    builder = Builder(
        f"random {bodies}", gravity=rng.normal(size=3) * 6.0 if gravity else (0.0, 0.0, 0.0)
    )
    for i in range(bodies):
        mass = float(np.exp(rng.normal()))
        com = rng.normal(size=3) * 0.3
        builder.body(f"body_{i}", mass, com, _random_inertia(rng, mass))
        kind = base if i == 0 else names[rng.integers(len(names))]
        axes = [rng.normal(size=3) if k < JOINT_TYPES[kind].axes else None for k in range(2)]
        builder.joint(
            f"joint_{i}",
            kind,
            None if i == 0 else f"body_{_random_parent(rng, i, branching)}",
            f"body_{i}",
            placement=pose.from_parts(
                JOINT_TYPES["spherical"].random(rng), rng.normal(size=3) * 0.5
            ),
            pitch=rng.normal() * 0.2 if kind == "helical" else 0.0,
            axis=axes[0],
            axis2=axes[1],
        )
    return builder.build()


def _random_parent(rng: np.random.Generator, i: int, branching: float) -> int:
    return int(rng.integers(i)) if rng.random() < branching else i - 1


def _random_inertia(rng: np.random.Generator, mass: float) -> Array:
    """Return the inertia of a random point cloud, which is always physically consistent."""
    points = rng.normal(size=(6, 3)) * 0.4
    points = points - points.mean(axis=0)
    second = mass / 6 * points.T @ points
    return np.trace(second) * np.eye(3) - second
