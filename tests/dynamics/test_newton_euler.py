"""VT18's own system and tables."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.algebra import screw
from remora.dynamics.maximal.newton_euler import system
from remora.model import joints

FORWARD = [name for name, row in rm.FORMULATIONS.items() if row.hybrid is not None]


def test_dense_system_is_vt18s(rng):
    """S of [VT18, eq. 50] for the satellite: its size, its empty corner, its solution."""
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, rng)
    tau = rng.normal(size=9)
    S, B = system(robot, q, v, tau, None, {}).dense()
    assert S.shape == (8 * 4 + 3 * 5,) * 2  # three revolute joints, five reactions each
    assert not np.any(S[32:, 32:])
    solution = np.linalg.solve(S, B)
    reference = rm.newton_euler_solution(robot, q, v, tau)
    base = screw.adjoint_inverse(
        rm.algebra.pose.from_translation(robot.bodies[0].com), reference.accelerations[0]
    )
    assert_close(dq.vec6(solution[:8]), base, rtol=1e-11)


@pytest.mark.parametrize(
    ("kind_name", "V", "V_act"),
    [
        ("revolute", [2, 3, 4, 6, 7], [8]),
        ("prismatic", [2, 3, 6, 7, 8], [4]),
        ("spherical", [2, 3, 4], [6, 7, 8]),
        ("cylindrical", [2, 3, 6, 7], [8, 4]),
        ("cartesian", [6, 7, 8], [2, 3, 4]),
    ],
)
def test_maps_are_vt18s_tables_4_and_5(kind_name, V, V_act):
    """For joints about z: V = Eᵀ keeps the rows named in Table 4, V_act those of Table 5.

    VT18 order a cylindrical joint's forces [f, τ]; ours are ordered as its speeds, [τ, f].
    """
    axis = {"axis": (0, 0, 1)} if rm.JOINTS[kind_name].axes else {}
    robot = (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .joint("j", kind_name, None, "a", **axis)
        .build(base=None)
    )
    q = rm.neutral(robot)
    ours = joints.reaction_basis(robot.joints[0], q)
    eight = np.insert(np.insert(ours, 3, 0.0, axis=0), 0, 0.0, axis=0)
    assert_close(eight, np.eye(8)[:, [i - 1 for i in V]])
    act = joints.actuation_basis(robot.joints[0], q)
    eight = np.insert(np.insert(act, 3, 0.0, axis=0), 0, 0.0, axis=0)
    assert_close(eight, np.eye(8)[:, [i - 1 for i in V_act]])
