"""Manipulability against SPART's numbers, closed formulas, definitions and refusals."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close

BASES = ("fixed", "flying", "floating")


def test_measures_and_singular_values_are_those_of_spart(reference):
    ref = reference
    for k, state in enumerate(ref.data["states"]):
        q = ref.state(k)[0]
        for link in state["end_links"]:
            frame = ref.links[link["link_id"] - 1]
            point = link["point_in_link"]
            for base, J in (("fixed", "Jm"), ("floating", "Jstar")):
                for at, suffix in (((0, 0, 0), ""), (point, "p")):
                    found = rm.manipulability(
                        ref.robot, q, frame, base=base, subspace="twist", length=1.0, point=at
                    )
                    expected = np.zeros(6)
                    told = np.array(link[f"sv_{J}{suffix}"], dtype=float)
                    expected[: len(told)] = told
                    assert_close(found.semi_axes, expected, 1e-10)
                linear = rm.manipulability(ref.robot, q, frame, base=base, point=point)
                assert_close(linear.volume, float(link[f"km_lin_{base}"]), 1e-10)


def test_a_two_link_arm_has_the_closed_form():
    robot = rm.load("spart17_planar")
    q = rm.neutral(robot)
    for angle in (0.3, -1.2, 2.0):
        q[-1] = angle
        found = rm.manipulability(robot, q, "tool", subspace="xy")
        assert_close(found.volume, 0.25 * abs(np.sin(angle)), 1e-14)  # l1 l2 |sin q2|
        assert_close(found.center, rm.algebra.pose.translation(rm.frame_pose(robot, q, "tool")))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", ["kinematic", "static", "dynamic"])
def test_the_ellipsoid_is_the_image_of_the_unit_ball(kind, base):
    """Eq. 50, tᵀ (J Jᵀ)⁻¹ t = 1, for images of random unit vectors, by definition."""
    robot = rm.random_robot(3, bodies=9)
    q, _ = rm.random_state(robot, 1)
    target = robot.bodies[-1].name
    R = rm.algebra.pose.to_rotation_matrix(rm.frame_pose(robot, q, target))
    J = (
        np.kron(np.eye(2), R)
        @ {
            "fixed": rm.jacobian(robot, q, target)[:, 6:],
            "flying": rm.jacobian(robot, q, target),
            "floating": rm.generalized_jacobian(robot, q, target),
        }[base]
    )
    S = np.random.default_rng(0).normal(size=(2, 6))
    S[:, :3] = 0.0
    found = rm.manipulability(robot, q, target, base, kind, subspace=S)
    rng = np.random.default_rng(2)
    n = J.shape[1]
    x = rng.normal(size=n)
    A = S @ J
    if kind == "kinematic":
        x = A.T @ rng.normal(size=2)  # in the row space, so that it maps to the boundary
        t = A @ (x / np.linalg.norm(x))
    elif kind == "static":
        f = rng.normal(size=2)
        t = f / np.linalg.norm(A.T @ f)  # the force that unit joint forces balance
    else:
        H = rm.mass_matrix(robot, q)
        held = {
            "fixed": H[6:, 6:],
            "flying": H,
            "floating": rm.reduced_mass_matrix(robot, q),
        }[base]
        B = A @ np.linalg.inv(held)
        tau = B.T @ rng.normal(size=2)
        t = B @ (tau / np.linalg.norm(tau))
    # on the boundary of the ellipsoid
    inside = np.linalg.norm((found.axes.T @ t) / found.semi_axes)
    assert_close(inside, 1.0, 1e-10)
    assert_close(found.condition, found.semi_axes[0] / found.smallest)


def test_a_dynamic_ellipsoid_is_made_of_accelerations():
    """Forces at the joints accelerate the tool of a floating robot as the ellipsoid says."""
    robot = rm.load("spart17_planar_3")
    q = rm.neutral(robot)
    q[8:] = 0.4, -0.9, 1.1
    found = rm.manipulability(robot, q, "tool", "floating", "dynamic", subspace="xy")
    angles = np.linspace(0.0, 2.0 * np.pi, 200)
    tau = np.zeros((200, robot.nv))
    directions = np.random.default_rng(0).normal(size=(200, 3))
    tau[:, 6:] = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    vdot = rm.forward_dynamics(robot, q, np.zeros(robot.nv), tau)
    a = rm.dynamics.frame_acceleration(robot, q, np.zeros(robot.nv), vdot, "tool")
    R = rm.algebra.pose.to_rotation_matrix(rm.frame_pose(robot, q, "tool"))
    reached = (a[:, 3:] @ R.T)[:, :2]
    inside = np.linalg.norm(reached @ found.axes / found.semi_axes, axis=-1)
    assert inside.max() <= 1.0 + 1e-9
    assert inside.max() > 0.9
    assert len(angles) == len(reached)


def test_scale_counts_joint_speeds_in_units_of_their_limits():
    robot = rm.load("spart17_planar")
    limits = rm.load("servicer").joints[1].limits
    assert np.isfinite(limits.velocity).all()
    q = rm.neutral(robot)
    q[-1] = 1.0
    one = rm.manipulability(robot, q, "tool", subspace="xy", scale=[2.0, 2.0])
    two = rm.manipulability(robot, q, "tool", subspace="xy")
    assert_close(one.semi_axes, 2.0 * two.semi_axes)
    force = rm.manipulability(robot, q, "tool", subspace="xy", kind="static", scale=[2.0, 2.0])
    assert_close(force.semi_axes[::-1], 2.0 / two.semi_axes)
    servicer = rm.load("servicer")
    speeds = [float(joint.limits.velocity[0]) for joint in servicer.joints[1:]]
    q = rm.neutral(servicer)
    q[8:] = 0.1, 0.5, 0.2, 1.0, 0.3, 0.4, 0.5
    one = rm.manipulability(servicer, q, "tool", scale="limits")
    two = rm.manipulability(servicer, q, "tool", scale=speeds)
    assert_close(one.semi_axes, two.semi_axes)


def test_the_characteristic_length_joins_angles_and_lengths():
    robot = rm.load("spart17_planar_3")
    q = rm.neutral(robot)
    q[8:] = 0.4, -0.9, 1.1
    default = rm.manipulability(robot, q, "tool", subspace="planar")
    assert_close(default.length, 1.5)
    given = rm.manipulability(robot, q, "tool", subspace="planar", length=3.0)
    assert_close(given.volume, 2.0 * default.volume)  # one angular coordinate
    alone = rm.manipulability(robot, q, "tool", subspace="rotation", length=3.0)
    assert_close(alone.semi_axes, [np.sqrt(3.0), 0.0, 0.0], 1e-14)  # rad/s, not scaled


def test_axes_of_the_target_turn_the_ellipsoid_only():
    robot = rm.load("servicer")
    q, _ = rm.random_state(robot, 4, 3)
    one = rm.manipulability(robot, q, "tool", "floating")
    two = rm.manipulability(robot, q, "tool", "floating", axes="frame")
    assert_close(one.semi_axes, two.semi_axes, 1e-12)
    R = rm.algebra.pose.to_rotation_matrix(rm.frame_pose(robot, q, "tool"))
    A = one.axes * one.semi_axes[:, None, :] ** 2 @ np.swapaxes(one.axes, -1, -2)
    B = two.axes * two.semi_axes[:, None, :] ** 2 @ np.swapaxes(two.axes, -1, -2)
    assert_close(A, R @ B @ np.swapaxes(R, -1, -2), 1e-12)


def test_joints_that_are_not_named_are_locked():
    robot = rm.load("spart17_planar_3")
    q = rm.neutral(robot)
    q[8:] = 0.4, -0.9, 1.1
    found = rm.manipulability(robot, q, "tool", "floating", subspace="xy", joints=["joint_2"])
    J = rm.generalized_jacobian(robot, q, "tool")[3:5, 1]
    assert_close(found.semi_axes, [np.linalg.norm(J), 0.0], 1e-14)
    dynamic = rm.manipulability(
        robot, q, "tool", "floating", "dynamic", subspace="xy", joints=["joint_2"]
    )
    inertia = rm.reduced_mass_matrix(robot, q)[1, 1]
    assert_close(dynamic.semi_axes[0], np.linalg.norm(J) / inertia)


@pytest.mark.parametrize(
    ("measure", "kind"),
    [
        ("volume", "kinematic"), ("condition", "dynamic"), ("smallest", "dynamic"),
        ("largest", "kinematic"),
    ],
)  # fmt: skip
def test_a_map_is_the_measure_of_every_point(measure, kind):
    robot = rm.load("spart17_planar")
    one, two = np.linspace(-1.0, 1.0, 5), np.linspace(0.2, 2.0, 4)
    found = rm.analysis.manipulability_map(
        robot, "tool", {"joint_2": two, "joint_1": one}, measure, "floating", kind, subspace="xy"
    )
    assert found.shape == (4, 5)
    q = np.tile(rm.neutral(robot), (4, 5, 1))
    q[..., 9], q[..., 8] = two[:, None], one
    ellipsoids = rm.manipulability(robot, q, "tool", "floating", kind, subspace="xy")
    expected = {"largest": ellipsoids.semi_axes[..., 0]}.get(measure)
    assert_close(found, getattr(ellipsoids, measure) if expected is None else expected, 1e-12)


REFUSED = [
    ({"frame": "camera_"}, rm.errors.UnknownName, "camera_"),
    ({"frame": "panel_left"}, rm.errors.InvalidValue, "no joint of the arm .* 'panel_left'"),
    ({"base": "swimming"}, rm.errors.UnknownName, "fixed, flying, floating"),
    ({"kind": "magic"}, rm.errors.UnknownName, "kinematic"),
    ({"subspace": "uvw"}, rm.errors.UnknownName, "translation"),
    ({"subspace": np.zeros((2, 6))}, rm.errors.InvalidValue, "dependent"),
    ({"subspace": np.zeros((7, 6))}, rm.errors.ShapeError, "k from 1 to 6"),
    ({"length": -1.0}, rm.errors.InvalidValue, "positive number of metres"),
    ({"joints": ["elbow"]}, rm.errors.UnknownName, "elbow_pitch"),
    ({"joints": ["base"]}, rm.errors.InvalidValue, "is the base"),
    ({"joints": []}, rm.errors.InvalidValue, "joints is empty"),
    ({"scale": [1.0]}, rm.errors.ShapeError, "one for each joint"),
    ({"scale": -np.ones(7)}, rm.errors.InvalidValue, "positive"),
    ({"scale": "speeds"}, rm.errors.UnknownName, "limits"),
    ({"axes": "body"}, rm.errors.UnknownName, "inertial"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED, ids=lambda x: str(x)[:30])
def test_refusals_name_what_is_wrong(options, error, words):
    robot = rm.load("servicer")
    with pytest.raises(error, match=words):
        rm.manipulability(robot, rm.neutral(robot), **{"frame": "tool", **options})


def test_a_base_that_is_not_free_does_not_float():
    robot = rm.load("servicer", base="fixed")
    q = rm.neutral(robot)
    with pytest.raises(rm.errors.InvalidValue, match="free joint"):
        rm.manipulability(robot, q, "tool", base="floating")
    free = rm.load("servicer")
    q[...] = 0.1, 0.5, 0.2, 1.0, 0.3, 0.4, 0.5
    assert_close(
        rm.manipulability(robot, q, "tool").semi_axes,
        rm.manipulability(free, np.concatenate([rm.neutral(free)[:8], q]), "tool").semi_axes,
    )


def test_missing_limits_are_named():
    robot = rm.load("spart17_planar")
    with pytest.raises(rm.errors.InvalidValue, match="'joint_1' has no velocity limit"):
        rm.manipulability(robot, rm.neutral(robot), "tool", scale="limits")


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({}, "the grid is empty"),
        ({"joint_1": []}, "'joint_1' is empty"),
        ({"floating": [0.0]}, "no single coordinate"),
        ({"elbow": [0.0]}, "joint_1"),
    ],
)
def test_an_empty_grid_is_refused(grid, words):
    robot = rm.load("spart17_planar")
    with pytest.raises(rm.RemoraError, match=words):
        rm.analysis.manipulability_map(robot, "tool", grid)


def test_active_constraints_are_refused():
    robot = rm.load("spart17_planar")
    joined = rm.loops.add_constraint(robot, "pin", "spherical", None, "tool")
    with pytest.raises(rm.errors.InvalidValue, match="does not take constraints into account"):
        rm.manipulability(joined, rm.neutral(joined), "tool")
