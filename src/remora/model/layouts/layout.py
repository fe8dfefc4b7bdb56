"""Conversion of state vectors between Remora's layout and another library's.

Velocities are related by v' = T(q) v, joint by joint. Hence v̇' = T v̇ + Ṫ v, and forces, which do
the same work, are related by τ = Tᵀ τ'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate
from remora.errors import RemoraError
from remora.model.joints import kind
from remora.model.numbers import finite
from remora.model.robot import Joint, Robot
from remora.model.state import configuration, velocity


@dataclass(frozen=True)
class Rule:
    """The conversion rule of one joint.

    Attributes:
        nq: number of coordinates in the other library.
        to_q: Remora's coordinates -> the library's.
        from_q: the library's -> Remora's.
        T: (q, Remora's) -> matrix with v' = T v; None: the same speeds.
        bias: (q, v, Remora's) -> Ṫ v; None: T does not depend on q.
    """

    nq: int
    to_q: Callable[[Array], Array]
    from_q: Callable[[Array], Array]
    T: Callable[[Array], Array] | None = None
    bias: Callable[[Array, Array], Array] | None = None


@dataclass(frozen=True)
class Entry:
    """A joint, its rule, and its slices of the library's vectors."""

    joint: Joint
    rule: Rule
    q: slice
    v: slice


@dataclass(frozen=True)
class Layout:
    """Conversion between Remora's state vectors and another library's.

    Attributes:
        robot: Remora's robot.
        nq: length of the library's configuration.
        nv: length of the library's velocity.
    """

    robot: Robot
    nq: int
    nv: int
    _entries: tuple[Entry, ...]

    def q_to(self, q: ArrayLike) -> Array:
        """Return the library's configuration for Remora's q `(..., nq)`."""
        q = configuration(self.robot, q)
        return self._joined({e.q.start: e.rule.to_q(q[..., e.joint.q]) for e in self._entries})

    def q_from(self, q: ArrayLike) -> Array:
        """Return Remora's configuration for the library's `(..., self.nq)`."""
        q = finite("q", q, self.nq)
        parts = {e.joint.q.start: e.rule.from_q(q[..., e.q]) for e in self._entries}
        return configuration(self.robot, self._joined(parts))

    def v_to(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the library's velocity for Remora's q and v."""
        q, v = configuration(self.robot, q), velocity(self.robot, v)
        return self._joined({e.v.start: _to(e, q, v[..., e.joint.v]) for e in self._entries})

    def v_from(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return Remora's velocity for Remora's q and the library's velocity."""
        q, v = configuration(self.robot, q), finite("v", v, self.nv)
        return self._joined({e.joint.v.start: _from(e, q, v[..., e.v]) for e in self._entries})

    def vdot_to(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """Return the library's acceleration for Remora's q, v and vdot."""
        q, v = configuration(self.robot, q), velocity(self.robot, v)
        vdot = velocity(self.robot, vdot, "vdot")
        return self._joined(
            {e.v.start: _to(e, q, vdot[..., e.joint.v]) + _bias(e, q, v) for e in self._entries}
        )

    def vdot_from(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """Return Remora's acceleration for Remora's q and v and the library's acceleration."""
        q, v = configuration(self.robot, q), velocity(self.robot, v)
        vdot = finite("vdot", vdot, self.nv)
        return self._joined(
            {e.joint.v.start: _from(e, q, vdot[..., e.v] - _bias(e, q, v)) for e in self._entries}
        )

    def tau_to(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """Return the library's generalized forces T⁻ᵀ τ for Remora's q and tau."""
        q, tau = configuration(self.robot, q), velocity(self.robot, tau, "tau")
        parts: dict[int, Array] = {}
        for e in self._entries:
            own = tau[..., e.joint.v]
            if e.rule.T is not None:
                T = vector.transpose(e.rule.T(q[..., e.joint.q]))
                own = _solved(T, own)
            parts[e.v.start] = own
        return self._joined(parts)

    def tau_from(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """Return Remora's generalized forces Tᵀ τ' for Remora's q and the library's."""
        q, tau = configuration(self.robot, q), finite("tau", tau, self.nv)
        parts: dict[int, Array] = {}
        for e in self._entries:
            own = tau[..., e.v]
            if e.rule.T is not None:
                own = vector.apply(vector.transpose(e.rule.T(q[..., e.joint.q])), own)
            parts[e.joint.v.start] = own
        return self._joined(parts)

    @staticmethod
    def _joined(parts: dict[int, Array]) -> Array:
        return concatenate([parts[start] for start in sorted(parts)]) if parts else np.zeros(0)


def _to(e: Entry, q: Array, v: Array) -> Array:
    return v if e.rule.T is None else vector.apply(e.rule.T(q[..., e.joint.q]), v)


def _from(e: Entry, q: Array, v: Array) -> Array:
    if e.rule.T is None:
        return v
    return _solved(e.rule.T(q[..., e.joint.q]), v)


def _solved(T: Array, b: Array) -> Array:
    return np.linalg.solve(T, b[..., None])[..., 0]


def _bias(e: Entry, q: Array, v: Array) -> Array | float:
    if e.rule.bias is None:
        return 0.0
    return e.rule.bias(q[..., e.joint.q], v[..., e.joint.v])


def entry(joint: Joint, rule: Rule, q0: int, v0: int) -> Entry:
    """Return the entry of a joint whose slices start at q0 and v0."""
    return Entry(joint, rule, slice(q0, q0 + rule.nq), slice(v0, v0 + kind(joint).nv))


def accounted(robot: Robot, nq: int, nv: int, entries: Sequence[Entry]) -> Layout:
    """Return the layout after checking that it covers all of the library's coordinates."""
    total_q, total_v = sum(e.rule.nq for e in entries), sum(kind(e.joint).nv for e in entries)
    if (total_q, total_v) != (nq, nv):
        raise RemoraError(
            f"the other model has nq={nq}, nv={nv}; robot {robot.name!r} accounts for "
            f"{total_q} and {total_v}: not the same robot"
        )
    return Layout(robot, nq, nv, tuple(entries))
