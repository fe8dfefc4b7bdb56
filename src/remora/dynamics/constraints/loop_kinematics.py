"""Kinematics of the active constraints: residual φ(q), Jacobian G(q) and bias γ(q, v).

    φ(q) = 0,    G v = 0,    G v̇ = γ = -Ġ v.

The equation of a constraint between two bodies is the part of the relative twist of its frames
that its wrenches V resist, Λ ξ with Λ = Vᵀ(·)ˢ. Only the joints between the two bodies enter: where
both branches of the loop are carried by a joint, its contribution is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from remora.algebra import dual_quaternion, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, stack
from remora.algebra.screw import Transform
from remora.dynamics.constraints.constraint_types import constraint_type, count
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.recursive.outward_pass import accelerations_of, moving_links
from remora.model import joints
from remora.model.constraint import GEAR, Constraint
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot
from remora.model.topology import ancestors


def active_constraints(robot: Robot) -> list[Constraint]:
    """Return the constraints that act, in order."""
    return [c for c in robot.constraints if c.active]


@takes_robot
def constraint_residual(robot: Robot, q: ArrayLike) -> Array:
    """Return φ `(..., m)`: how far the active constraints are from being satisfied, m or rad.

    The equations of all active constraints in order: forces' directions (m) before torques' (rad),
    in the axes of the child's constraint frame. At φ = 0 the derivative of φ is G.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    parts: list[Array] = []
    for c in active_constraints(robot):
        if c.kind == GEAR:
            leading, driven = (_coordinate(robot, j, q) for j in (c.parent, c.child))
            parts.append(
                driven - asarray(c.ratio)[..., None] * leading - asarray(c.offset)[..., None]
            )
        else:
            parts.append(constraint_type(c).residual(c, relative_pose(robot, c, q)))
    return _joined(parts, batch_shape(q))


@takes_robot
def constraint_jacobian(robot: Robot, q: ArrayLike) -> Array:
    """Return G `(..., m, nv)` with G v = 0 for velocities that the active constraints allow.

    Rows are in the order of `constraint_residual`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    parts = [_rows(robot, c, q) for c in active_constraints(robot)]
    if not parts:
        return np.zeros((*batch_shape(q), 0, robot.nv))
    return with_batch(concatenate(parts, trailing=2), batch_shape(q), trailing=2)


@takes_robot
def constraint_bias(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return γ `(..., m)`: accelerations satisfy the active constraints where G v̇ = γ = -Ġ v.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    links = moving_links(robot, q, v)
    none = [np.zeros(6)] * len(links)
    a = accelerations_of(links, none, root=np.zeros(6))
    loops = loops_at(robot, links)
    parts = [-loop.rate(a, np.zeros(6)) for loop in loops]
    return _joined(parts, batch_shape(q, v))


class Moving(Protocol):
    """A body at a state: its transform to the parent, and its twist."""

    @property
    def X(self) -> Transform:
        """Transform from its frame to its parent's."""
        ...

    @property
    def twist(self) -> Array:
        """Its twist, `(..., 6)`, own frame."""
        ...


class Loop(NamedTuple):
    """An active constraint at a state.

    Attributes:
        constraint: the constraint.
        V: the wrenches that it exerts on the child, `(..., 6, m_c)`, child's constraint frame; for
            a gear `(..., 6, 1)`, zero.
        X: the child's constraint frame in the parent's.
        to_child: the child's constraint frame in the child body's frame.
        to_parent: the child's constraint frame in the parent body's frame.
        drift: what d/dt(G v) has besides the accelerations of both bodies, `(..., m_c)`.
        to_joint: for a gear, by joint index: the row's generalized force per unit multiplier.
    """

    constraint: Constraint
    V: Array
    X: Transform
    to_child: Transform
    to_parent: Transform
    drift: Array
    to_joint: dict[int, Array]

    @property
    def Lambda(self) -> Array:
        """Λ = Vᵀ(·)ˢ, `(..., m_c, 6)`."""
        return dual_quaternion.swap(vector.transpose(self.V))

    def on_child(self) -> Array:
        """Return the wrenches on the child, `(..., 6, m_c)`, in its body's frame and origin."""
        return screw.columns_to_outer(self.to_child, self.V)

    def on_parent(self) -> Array:
        """Return the wrenches on the parent, `(..., 6, m_c)`, in its body's frame and origin."""
        return screw.columns_to_outer(self.to_parent, -self.V)

    def rate(
        self, accelerations: Sequence[Array], ground: Array, vdots: Sequence[Array] = ()
    ) -> Array:
        """Return d/dt(G v), `(..., m_c)`.

        Args:
            accelerations: of all bodies `(..., 6)`, in their own frames.
            ground: of the inertial frame, `(..., 6)`.
            vdots: of all joints `(..., nv_i)`, for gears; zero by default.
        """
        if self.to_joint:
            parts = [force * vdots[j] for j, force in self.to_joint.items()] if vdots else []
            return np.sum(stack(parts), axis=-1) if parts else self.drift
        c = self.constraint
        child, parent = (ground if i < 0 else accelerations[i] for i in (c.child, c.parent))
        across = screw.to_inner(self.to_child, child) - screw.to_inner(self.to_parent, parent)
        return vector.apply(self.Lambda, across) + self.drift


def loops_at(robot: Robot, links: Sequence[Moving]) -> list[Loop]:
    """Return every active constraint at the state of all bodies."""
    return [loop_at(robot, c, links) for c in active_constraints(robot)]


def loop_at(robot: Robot, c: Constraint, links: Sequence[Moving]) -> Loop:
    """Return an active constraint at the state of all bodies."""
    if c.kind == GEAR:
        return _gear(robot, c)
    up, down = branches(robot, c)
    inner = _composed([links[j].X for j in reversed(down)], screw.transform(c.child_placement))
    outer = _composed([links[j].X for j in reversed(up)], screw.transform(c.parent_placement))
    back = vector.transpose(outer.R)
    X = Transform(back @ inner.R, vector.apply(back, inner.p - outer.p))
    placed = screw.transform(c.parent_placement)
    to_child, to_parent = screw.transform(c.child_placement), _composed([placed], X)
    row = constraint_type(c)
    V = row.wrenches(c, X)
    rest = np.zeros(6)
    moved = rest if c.child < 0 else screw.to_inner(to_child, links[c.child].twist)
    carried = rest if c.parent < 0 else screw.to_inner(to_parent, links[c.parent].twist)
    xi = moved - carried
    Lambda = dual_quaternion.swap(vector.transpose(V))
    drift = -vector.apply(Lambda, screw.cross(carried, xi))
    if row.rate is not None:
        dV = row.rate(c, X, xi)
        drift = drift + vector.apply(dual_quaternion.swap(vector.transpose(dV)), xi)
    return Loop(c, V, X, to_child, to_parent, drift, {})


def _gear(robot: Robot, c: Constraint) -> Loop:
    nowhere = Transform(np.eye(3), np.zeros(3))
    forces = {c.child: _unit(robot, c.child)}
    leading = -asarray(c.ratio)[..., None] * _unit(robot, c.parent)
    forces[c.parent] = forces[c.parent] + leading if c.parent == c.child else leading
    return Loop(c, np.zeros((6, 1)), nowhere, nowhere, nowhere, np.zeros(1), forces)


def _unit(robot: Robot, j: int) -> Array:
    """Return the speed of joint j per unit of the robot's speed, `(1,)`: a mimic joint's ratio."""
    return joints.speeds(robot.joints[j], np.ones(robot.nv))


def _coordinate(robot: Robot, j: int, q: Array) -> Array:
    return joints.coordinates(robot.joints[j], q)


def branches(robot: Robot, c: Constraint) -> tuple[list[int], list[int]]:
    """Return the joints between the bodies of a constraint: the parent's branch and the child's.

    Each from the body inward, without the joints that carry both bodies.
    """
    up, down = ancestors(robot, c.parent), ancestors(robot, c.child)
    shared = set(up) & set(down)
    return [j for j in up if j not in shared], [j for j in down if j not in shared]


def relative_pose(robot: Robot, c: Constraint, q: Array) -> Array:
    """Return the pose of the child's constraint frame in the parent's, `(..., 8)`."""
    ends: list[Array] = []
    placements = c.parent_placement, c.child_placement
    for x, branch in zip(placements, branches(robot, c), strict=True):
        for j in branch:
            x = dual_quaternion.mul(joints.relative_pose(robot.joints[j], q), x)
        ends.append(x)
    return dual_quaternion.mul(dual_quaternion.conjugate(ends[0]), ends[1])


def _rows(robot: Robot, c: Constraint, q: Array) -> Array:
    """Return the rows of G of a constraint, `(..., m_c, nv)`."""
    columns: list[Array] = [np.zeros(count(c))] * robot.nv
    if c.kind == GEAR:
        for j, force in _gear(robot, c).to_joint.items():
            place = robot.joints[j].v.start
            columns[place] = columns[place] + force
        return stack(columns, axis=-1)
    x = relative_pose(robot, c, q)
    Lambda = dual_quaternion.swap(
        vector.transpose(constraint_type(c).wrenches(c, screw.transform(x)))
    )
    up, down = branches(robot, c)
    outside = dual_quaternion.mul(c.parent_placement, x)
    for sign, branch, seen in ((-1.0, up, outside), (1.0, down, c.child_placement)):
        for j in branch:
            joint = robot.joints[j]
            S = screw.columns_to_inner(screw.transform(seen), joints.motion_subspace(joint, q))
            block = sign * (Lambda @ S)
            for k, place in enumerate(range(robot.nv)[joint.v]):
                columns[place] = columns[place] + block[..., :, k]
            seen = dual_quaternion.mul(joints.relative_pose(joint, q), seen)
    return stack(columns, axis=-1)


def _composed(outer: list[Transform], X: Transform) -> Transform:
    """Return the product of transforms from outer to inner, the last one X."""
    for A in reversed(outer):
        X = Transform(A.R @ X.R, A.p + vector.apply(A.R, X.p))
    return X


def _joined(parts: list[Array], batch: tuple[int, ...]) -> Array:
    joined = concatenate(parts) if parts else np.zeros(0)
    return with_batch(joined, batch, trailing=1)
