"""Several robots in one world: names, indices, and all of the library on several trees."""

import functools

import numpy as np
import pytest

import remora as rm
from remora.dynamics.derivatives.derivatives import forward_dynamics_derivatives
from remora.model.constraint import Constraint

HERE = np.eye(8)[0]


@functools.cache
def pair(gravity=(0.0, 0.0, 0.0)):
    """A servicer with mimic joints, a frame and a constraint, and a target; and their states."""
    b = rm.Builder("a", gravity=gravity)
    b.body("bus", mass=5.0, com=(0.1, 0.0, 0.2), inertia=(1.0, 1.2, 1.4))
    for name in ("arm", "left", "right"):
        b.body(name, mass=0.7, com=(0.0, 0.2, 0.0), inertia=(0.2, 0.1, 0.2))
    b.joint("base", "free", None, "bus", xyz=(0.5, 0.0, 0.0))
    b.joint("elbow", "universal", "bus", "arm", xyz=(0.3, 0, 0), axis=(0, 0, 1), axis2=(0, 1, 0))
    b.joint("left", "revolute", "arm", "left", axis=(1, 0, 0))
    b.joint("right", "revolute", "arm", "right", axis=(1, 0, 0), mimic=("left", -1.0, 0.1))
    b.frame("tool", "arm", xyz=(0.0, 0.6, 0.0)).frame("dock", None, xyz=(2.0, 0.0, 0.0))
    b.constraint("latch", "fixed", None, "arm", active=False)
    b.gear("gear", "left", "wheel", ratio=2.0, active=False)
    b.body("wheel", mass=0.1, inertia=(0.1, 0.1, 0.1)).joint("wheel", "revolute", "bus", "wheel")
    first, second = b.build(), rm.random_robot(4, bodies=3).replace(gravity=gravity)
    states = rm.random_state(first, 1), rm.random_state(second, 2)
    return first, second, *(np.concatenate(x) for x in zip(*states, strict=True))


@functools.cache
def both(gravity=(0.0, 0.0, 0.0)):
    first, second, *_ = pair(gravity)
    return rm.combine({"servicer": first, "target": second})


def test_names_and_indices():
    first, second, *_ = pair()
    robot, n = both(), len(first.bodies)
    assert robot.name == "servicer+target"
    assert robot.bodies.names[:2] == ["servicer/bus", "servicer/arm"]
    assert robot.joints[n].name == f"target/{second.joints[0].name}"
    assert [j.parent for j in robot.joints].count(-1) == 2
    assert robot.joints[n].q == slice(first.nq, first.nq + 8)
    assert (robot.nq, robot.nv) == (first.nq + second.nq, first.nv + second.nv)
    assert robot.frames["servicer/dock"].body == -1
    assert robot.constraints.names == ["servicer/latch", "servicer/gear"]
    swapped = rm.combine({"t": second, "s": first}, name="pair")
    assert swapped.name == "pair"
    right = swapped.joints["s/right"]
    assert swapped.joints[right.mimic.joint].name == "s/left"
    assert right.q == swapped.joints["s/left"].q
    latch, gear = swapped.constraints
    assert (latch.parent, latch.child) == (-1, swapped.body_index("s/arm"))
    assert gear.parent == swapped.joint_index("s/left")
    assert gear.child == swapped.joint_index("s/wheel")
    assert np.array_equal(robot.mass, first.mass + second.mass)


def test_combined_robots_can_be_combined_saved_and_looked_up():
    robot = rm.combine({"x": both(), "y": pair()[1]})
    assert "x/servicer/arm" in robot.bodies
    assert robot.frame("x/servicer/tool").body == robot.body_index("x/servicer/arm")
    assert robot == rm.combine({"x": both(), "y": pair()[1]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"(?s)dictionary of robots by prefix.* not an empty one"),
        ([1], r"(?s)dictionary of robots by prefix.* not list"),
        ({"": None}, "a prefix must be a name without '/'"),
        ({"a/b": None}, "a prefix must be a name without '/'"),
        ({3: None}, "a prefix must be a name without '/'"),
        ({"a": "servicer"}, "combine takes a robot first"),
    ],
)
def test_what_is_no_dictionary_of_robots_is_refused(given, message):
    with pytest.raises(rm.RemoraError, match=message):
        rm.combine(given)


def test_gravity_must_agree():
    first, second, *_ = pair()
    with pytest.raises(rm.errors.InvalidValue, match=r"same gravity: 'a' has .*'b' has .*9\.8"):
        rm.combine({"a": first, "b": second.replace(gravity=(0.0, 0.0, -9.8))})


@pytest.mark.parametrize("formulation", ["articulated", *list(rm.dynamics.FORMULATIONS)[2:]])
def test_both_trees_move_as_they_do_alone(formulation):
    """Every formulation, under gravity: the dynamics is block diagonal."""
    first, second, q, v = pair((0.1, -0.2, 0.3))
    if not rm.dynamics.FORMULATIONS[formulation].followers:
        first = first.replace(joints=first.joints[:3] + first.joints[4:])
        first, second = rm.random_robot(3, bodies=4), rm.random_robot(4, bodies=3)
        first, second = (r.replace(gravity=(0.1, -0.2, 0.3)) for r in (first, second))
        states = rm.random_state(first, 1), rm.random_state(second, 2)
        q, v = (np.concatenate(x) for x in zip(*states, strict=True))
    robot, tau = rm.combine({"a": first, "b": second}), np.cos(np.arange(v.size))
    parts = (first, q[: first.nq], v[: first.nv], tau[: first.nv]), (
        second, q[first.nq :], v[first.nv :], tau[first.nv :],
    )  # fmt: skip
    alone = np.concatenate([rm.forward_dynamics(*p, formulation=formulation) for p in parts])
    found = rm.forward_dynamics(robot, q, v, tau, formulation=formulation)
    np.testing.assert_allclose(found, alone, rtol=1e-10, atol=1e-10)
    back = rm.inverse_dynamics(robot, q, v, found)
    np.testing.assert_allclose(back, tau, rtol=1e-10, atol=1e-10)


def test_quantities_of_the_whole_are_sums():
    first, second, q, v = pair()
    parts = (first, q[: first.nq], v[: first.nv]), (second, q[first.nq :], v[first.nv :])
    robot = both()
    np.testing.assert_allclose(
        rm.momentum(robot, q, v), sum(rm.momentum(*p) for p in parts), atol=1e-12
    )
    np.testing.assert_allclose(
        rm.kinetic_energy(robot, q, v), sum(rm.kinetic_energy(*p) for p in parts), atol=1e-12
    )
    moments = sum(p[0].mass * rm.center_of_mass(p[0], p[1]) for p in parts)
    np.testing.assert_allclose(rm.center_of_mass(robot, q), moments / robot.mass, atol=1e-12)


def test_derivatives_are_block_diagonal_under_gravity():
    first, second, q, v = pair((0.1, -0.2, 0.3))
    robot, tau = both((0.1, -0.2, 0.3)), np.cos(np.arange(v.size))
    n = first.nv
    whole = forward_dynamics_derivatives(robot, q, v, tau)
    for own, part in zip(
        (
            forward_dynamics_derivatives(first, q[: first.nq], v[:n], tau[:n]),
            forward_dynamics_derivatives(second, q[first.nq :], v[n:], tau[n:]),
        ),
        (slice(0, n), slice(n, None)),
        strict=True,
    ):
        for a, b in zip(whole, own, strict=True):
            np.testing.assert_allclose(a[part, part], b, rtol=1e-9, atol=1e-9)
            rest = np.delete(a[part], np.arange(robot.nv)[part], axis=1)
            np.testing.assert_allclose(rest, 0.0, atol=1e-12)


def test_functions_of_one_base_refuse_several():
    q = pair()[2]
    for function in (rm.generalized_jacobian, rm.dynamics.base_response, rm.reduced_mass_matrix):
        given = (both(), q) + (("servicer/arm",) if function is rm.generalized_jacobian else ())
        with pytest.raises(rm.errors.InvalidValue, match=r"'servicer\+target' must have one base"):
            function(*given)
    with pytest.raises(rm.RemoraError, match="has several"):
        rm.layouts.spart(both())


def test_a_run_keeps_the_momentum_of_both_and_tells_what_changes_it():
    body = rm.Builder("body").body("bus", mass=2.0, inertia=(1.0, 1.5, 2.0)).build()
    robot = rm.combine({"a": body, "b": body})
    q, v = rm.random_state(robot, 3)
    run = rm.simulate(robot, q, 0.1 * v, 0.2, record=rm.Record(progress=False))
    kept = run.conservation()
    assert kept.linear_momentum.broken_by == ""
    assert kept.angular_momentum.relative < 1e-9
    push = np.zeros(robot.nv)
    push[robot.joints["b/base"].v] = 0.1
    run = rm.simulate(robot, q, 0.1 * v, 0.1, torque=push, record=rm.Record(progress=False))
    assert run.conservation().linear_momentum.broken_by == "forces on the base 'b/bus'"


def test_a_batch_of_both_is_a_run_of_each():
    body = rm.Builder("body").body("bus", mass=2.0, inertia=(1.0, 1.5, 2.0)).build()
    robot = rm.combine({"a": body, "b": body})
    q, v = rm.random_state(robot, 3)
    done = rm.simulate_batch(
        robot,
        q[None],
        v[None],
        0.1,
        integrator=rm.Integrator(step=0.01),
        record=rm.Record(progress=False),
    )
    alone = rm.simulate_batch(
        body,
        q.reshape(2, 8),
        v.reshape(2, 6),
        0.1,
        integrator=rm.Integrator(step=0.01),
        record=rm.Record(progress=False),
    )
    np.testing.assert_allclose(done.q[0, -1].reshape(2, 8), alone.q[:, -1], atol=1e-12)


def test_the_equality_of_the_parts_is_kept():
    assert isinstance(both().constraints[0], Constraint)
    assert np.array_equal(both().constraints[0].parent_placement, HERE)


def two_arms():
    """Two one-jointed robots, and MJCF of both in one world."""
    parts, robots = [], {}
    for name, at in (("a", "1 2 3"), ("b", "-1 0 2")):
        b = rm.Builder(name).body("bus", mass=2.0, inertia=(1.0, 1.5, 2.0))
        b.body("arm", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.2, 0.2))
        b.joint("hinge", "revolute", "bus", "arm", xyz=(0.5, 0.0, 0.0), axis=(0, 0, 1))
        robots[name] = b.build()
        parts.append(
            f'<body name="{name}/bus" pos="{at}"><freejoint name="{name}/base"/>'
            '<inertial pos="0 0 0" mass="2" diaginertia="1 1.5 2"/>'
            f'<body name="{name}/arm" pos="0.5 0 0"><joint name="{name}/hinge" axis="0 0 1"/>'
            '<inertial pos="0.5 0 0" mass="1" diaginertia="0.1 0.2 0.2"/></body></body>'
        )
    option = '<option gravity="0 0 0"/>'
    return rm.combine(robots), f"<mujoco>{option}<worldbody>{''.join(parts)}</worldbody></mujoco>"


def test_states_and_accelerations_of_several_trees_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    robot, text = two_arms()
    model = mujoco.MjModel.from_xml_string(text)
    data, layout = mujoco.MjData(model), rm.layouts.mujoco(robot, model)
    q, v = rm.random_state(robot, 7)
    tau = np.cos(np.arange(robot.nv))
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    data.qfrc_applied[:] = layout.tau_to(q, tau)
    mujoco.mj_forward(model, data)
    expected = layout.vdot_to(q, v, rm.forward_dynamics(robot, q, v, tau))
    np.testing.assert_allclose(data.qacc, expected, rtol=1e-9, atol=1e-9)
