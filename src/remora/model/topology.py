"""The kinematic tree of a robot: incidence matrix [VT18], leaves, ancestors, subtrees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remora.model.robot import Robot


def incidence_matrix(robot: Robot) -> NDArray[np.int64]:
    """Return C `(nj, nb)`: +1 where joint i carries body j, -1 where it is mounted on body j.

    A joint mounted on the inertial frame (the base, joint 0) has no -1, since that frame is not a
    body. VT18 do not include this joint: for one spacecraft their C is
    `incidence_matrix(robot)[1:]` [VT18, eq. 34].
    """
    C = np.zeros((len(robot.joints), len(robot.bodies)), dtype=np.int64)
    for i, joint in enumerate(robot.joints):
        C[i, i] = 1
        if joint.parent >= 0:
            C[i, joint.parent] = -1
    return C


def branch_terminations(robot: Robot) -> NDArray[np.int64]:
    """Return T `(nb,)`: 1 for each body that ends a branch [VT18, eq. 35]."""
    T = np.ones(len(robot.bodies), dtype=np.int64)
    for joint in robot.joints:
        if joint.parent >= 0:
            T[joint.parent] = 0
    return T


def negatives(row: NDArray[np.int64]) -> list[int]:
    """Return N(row): the indices of the -1 entries of a row or column of C [VT18, eq. 38]."""
    return [int(i) for i in np.flatnonzero(row == -1)]


def positives(row: NDArray[np.int64]) -> list[int]:
    """Return P(row): the indices of the +1 entries of a row or column of C, or of T [VT18, 39]."""
    return [int(i) for i in np.flatnonzero(row == 1)]


def children(robot: Robot, body: str | int) -> list[int]:
    """Return the bodies mounted on a body (name or index), or on the inertial frame (-1)."""
    parent = _body_or_ground(robot, body)
    return [i for i, joint in enumerate(robot.joints) if joint.parent == parent]


def ancestors(robot: Robot, body: str | int) -> list[int]:
    """Return the bodies from a body (name or index) itself to its root; none for -1."""
    i = _body_or_ground(robot, body)
    chain: list[int] = []
    while i >= 0:
        chain.append(i)
        i = robot.joints[i].parent
    return chain


def subtree(robot: Robot, body: str | int) -> list[int]:
    """Return a body (name or index) and every body that it carries, in order."""
    root = robot.body_index(body)
    inside = {root}
    for i in range(root + 1, len(robot.joints)):
        if robot.joints[i].parent in inside:
            inside.add(i)
    return sorted(inside)


def leaves(robot: Robot) -> list[int]:
    """Return the bodies that end a branch: P(T) [VT18, eq. 40]."""
    return positives(branch_terminations(robot))


def _body_or_ground(robot: Robot, body: str | int) -> int:
    """Return the index of a body; -1, the inertial frame, is accepted."""
    return -1 if body == -1 else robot.body_index(body)
