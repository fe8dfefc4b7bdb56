"""The rows and columns that closed loops, rods and gears add to VT18's S.

A loop is to S what a joint is: the wrench V λ acts on its child, -V λ on its parent, and Λ = Vᵀ(·)ˢ
of the relative acceleration is zero. A gear acts along V_act of its joints [VT18, Table 5].
"""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw, vector
from remora.algebra.array_ops import Array, concatenate
from remora.dynamics.constraints.loop_kinematics import Loop, loops_at
from remora.dynamics.maximal.joint_maps import JointMaps, constraint
from remora.dynamics.maximal.saddle_point import LoopRows
from remora.dynamics.recursive.outward_pass import Link
from remora.model.robot import Robot


def loop_rows(robot: Robot, links: list[Link], maps: list[JointMaps]) -> LoopRows:
    """Return the rows of all active constraints, in eight components about the centres of mass."""
    loops = loops_at(robot, links)
    wrenches: dict[int, list[Array]] = {i: [] for i in range(len(robot.bodies))}
    known: list[Array] = []
    touched: set[int] = set()
    for loop in loops:
        on, drift = _gear(loop, links, maps) if loop.to_joint else _between(loop)
        touched |= set(on)
        known.append(-drift)
        none = np.zeros((6, loop.V.shape[-1]))
        for i, columns in wrenches.items():
            columns.append(on.get(i, none))
    S12: dict[int, Array] = {}
    S21: dict[int, Array] = {}
    for i in sorted(touched):
        to_com = screw.transform(pose.from_translation(robot.bodies[i].com))
        V = screw.columns_to_inner(to_com, concatenate(wrenches[i]))
        S12[i] = -vector.transpose(dq.pure(vector.transpose(V)))
        S21[i] = dq.pure(constraint(V))
    return LoopRows(S12, S21, concatenate(known))


def _between(loop: Loop) -> tuple[dict[int, Array], Array]:
    """Return the wrenches on both bodies, in their frames, and what d/dt(G v) has besides."""
    c = loop.constraint
    on = {c.child: loop.on_child(), c.parent: loop.on_parent()}
    return {i: V for i, V in on.items() if i >= 0}, loop.drift


def _gear(loop: Loop, links: list[Link], maps: list[JointMaps]) -> tuple[dict[int, Array], Array]:
    """Return the wrenches on the bodies on both sides of the joints, and the drift."""
    on: dict[int, Array] = {}
    drift = np.zeros(1)
    for j, force in loop.to_joint.items():
        V = vector.apply(maps[j].V_act, force)[..., None]
        drift = drift - force * vector.apply(maps[j].L, links[j].c)
        sides = [(j, V)]
        if links[j].parent >= 0:
            sides.append((links[j].parent, -screw.columns_to_outer(links[j].X, V)))
        for i, wrench in sides:
            on[i] = on[i] + wrench if i in on else wrench
    return on, drift
