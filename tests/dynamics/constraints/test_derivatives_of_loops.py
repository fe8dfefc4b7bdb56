"""Derivatives of dynamics with active constraints: CasADi, Pinocchio, differences, identities."""

import dataclasses

import casadi
import numpy as np
import pytest

import remora as rm
from closed_loops import KINDS, closed, constraint, random_loops
from mechanisms import four_bar, four_bar_angles
from numeric import assert_close
from peers import PINOCCHIO_KINDS, pinocchio_model
from remora.algebra import pose
from remora.algebra.array_ops import asarray

BOTH = {
    "forward": (rm.forward_dynamics, rm.dynamics.forward_dynamics_derivatives),
    "multipliers": (rm.loops.constraint_multipliers, rm.loops.constraint_multiplier_derivatives),
    "inverse": (rm.inverse_dynamics, rm.dynamics.inverse_dynamics_derivatives),
}


def by_casadi(function, robot, q, v, x, wrenches=None):
    """∂/∂dq, ∂/∂v and ∂/∂x of function(robot, q ⊕ dq, v, x, wrenches), of the traced equations."""
    n = robot.nv
    symbols = [casadi.SX.sym(name, n) for name in "dvx"]
    d, vs, xs = (asarray(s).reshape(-1) for s in symbols)
    y = function(robot, rm.integrate(robot, q, d), vs, xs, wrenches)
    y = casadi.vertcat(*y.tolist())
    f = casadi.Function("f", symbols, [casadi.jacobian(y, s) for s in symbols])
    return [np.array(part) for part in f(np.zeros(n), v, x)]


def compare_along_a_line(which, robot, q, v, x, rtol):
    """Compare products with random directions with central differences of fourth order."""
    function, derivatives = BOTH[which]
    h, n = 2e-4, robot.nv
    steps = h * np.random.default_rng(7).normal(size=(3, n)) / np.sqrt(n)

    def at(k, i):
        dq, dv, dx = k * steps * np.eye(3)[i][:, None]
        return function(robot, rm.integrate(robot, q, dq), v + dv, x + dx)

    for i, D in enumerate(derivatives(robot, q, v, x)):
        slope = (8.0 * (at(1, i) - at(-1, i)) - (at(2, i) - at(-2, i))) / 12.0
        assert_close(D @ steps[i] / h, slope / h, rtol=rtol, scale=max(1.0, np.max(np.abs(D))))


def compare(actual, expected, rtol):
    for ours, theirs in zip(actual, expected, strict=True):
        assert_close(ours, theirs, rtol=rtol, scale=max(1.0, np.max(np.abs(theirs))))


def state(seed, kinds=(), bodies=5, base="free"):
    robot, q, v = random_loops(seed, bodies=bodies, kinds=kinds, base=base)
    rng = np.random.default_rng(seed)
    robot = robot.replace(gravity=rng.normal(size=3))
    v = rm.loops.project_velocity(robot, q, v)
    return robot, q, v, rng.normal(size=robot.nv), rng.normal(size=(len(robot.bodies), 6))


# Against the equations ---------------------------------------------------------------------------


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("kind", [*KINDS, "rod", "gear"])
def test_each_kind_against_casadi(kind, which):
    """Gravity, wrenches, rotors, joints of several kinds, and v that breaks the constraint."""
    robot, q, v, x, w = state(4, [kind], bodies=3)
    v = v + 0.1 * x
    function, derivatives = BOTH[which]
    expected = by_casadi(function, robot, q, v, x, w)
    compare(derivatives(robot, q, v, x, w), expected, 1e-11)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops_against_differences(seed):
    """Two random loops on trees of all kinds of joints; the base in turn free and fixed."""
    robot, q, v, x, _ = state(seed, bodies=5, base=("free", "fixed")[seed % 2])
    for which in BOTH:
        compare_along_a_line(which, robot, q, v, x, 1e-7)


def test_between_two_trees():
    """A weld, a universal joint and a rod between a servicer and a target, and to the inertial."""
    one, two = (rm.random_robot(k, bodies=4) for k in (2, 3))
    robot = rm.combine({"servicer": one, "target": two})
    q, v = rm.random_state(robot, 5)
    rng = np.random.default_rng(5)
    n = len(one.bodies)
    ends = (("universal", 2, n + 1), ("rod", n + 2, 1), ("spherical", -1, n + 3))
    made = [constraint(kind, robot, q, a, b, rng, kind) for kind, a, b in ends]
    robot = closed(robot, *made)
    v, x = rm.loops.project_velocity(robot, q, v), rng.normal(size=robot.nv)
    for which in BOTH:
        compare_along_a_line(which, robot, q, v, x, 1e-6)


def test_mimic_joints_in_a_loop():
    make = rm.Builder("gripper").body("palm", mass=3, com=(0.1, 0, 0), inertia=(1, 1, 1))
    for k, name in enumerate(("left", "right", "tip")):
        make.body(name, mass=0.5, com=(0.1, 0.02 * k, 0), inertia=(0.1, 0.2, 0.1))
    make.joint("lead", "revolute", "palm", "left", xyz=(0.2, 0.1, 0), axis=(0, 0, 1))
    make.joint("follow", "revolute", "palm", "right", xyz=(0.2, -0.1, 0), mimic=("lead", -1.5, 0.1))
    make.joint("slide", "prismatic", "left", "tip", xyz=(0.1, 0, 0), axis=(0, 1, 0))
    robot = make.build(base="free")
    q, v = rm.random_state(robot, 3)
    robot = closed(robot, constraint("rod", robot, q, 3, 2, np.random.default_rng(1)))
    x = np.random.default_rng(1).normal(size=robot.nv)
    for which in BOTH:
        compare_along_a_line(which, robot, q, v, x, 1e-7)


# Redundant constraints ---------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_equations_that_are_dependent_everywhere(base):
    """Three of the five equations of a planar linkage; twice the same pin shares the load."""
    robot = four_bar(base=base, rpy=(0.2, 0.3, 0.4))
    (pin,) = robot.constraints
    robot = closed(robot, pin, dataclasses.replace(pin, name="again"))
    q, v = rm.random_state(robot, 1)
    coupler, rocker = four_bar_angles(0.9)
    q[-3:] = 0.9, coupler - 0.9, rocker
    v, x = rm.loops.project_velocity(robot, q, v), np.random.default_rng(0).normal(size=robot.nv)
    single = robot.replace(constraints=[pin])
    for which, (_, derivatives) in BOTH.items():
        compare_along_a_line(which, robot, q, v, x, 1e-7)
        if which != "multipliers":
            compare(derivatives(robot, q, v, x), derivatives(single, q, v, x), 1e-11)


def parallel_bars():
    """Return two bars and a coupler on three pins: the third depends where the loops are closed."""
    make = rm.Builder("bars").body("ground", mass=5, inertia=(1, 1, 1))
    bar = {"mass": 1.5, "com": (0.5, 0.1, 0), "inertia": (0.1, 0.2, 0.3)}
    for name in ("first", "middle", "last", "coupler"):
        make.body(name, **bar)
    for k, name in enumerate(("first", "middle", "last")):
        make.joint(name, "revolute", "ground", name, xyz=(k, 0, 0), axis=(0, 0, 1))
    make.joint("top", "revolute", "first", "coupler", xyz=(1, 0, 0), axis=(0, 0, 1))
    for k, name in enumerate(("middle", "last")):
        ends = {"parent_xyz": (k + 1, 0, 0), "child_xyz": (1, 0, 0)}
        make.constraint(f"pin_{name}", "spherical", "coupler", name, **ends)
    return make.build(base="fixed")


def test_equations_that_are_dependent_where_loops_are_closed():
    """Along the motion that remains: the derivatives of what the linkage does."""
    robot, tau = parallel_bars(), np.array([1.0, -0.5, 0.3, 0.2])

    h, along = 1e-4, np.array([1.0 if joint.name != "top" else -1.0 for joint in robot.joints[1:]])

    def at(angle, speed):
        return angle * along, speed * along

    q, v = at(0.8, 1.3)
    report = rm.loops.constraint_report(robot, q)
    assert (report.freedoms, report.equations) == (1, 6)
    for name in ("forward", "multipliers"):
        function, derivatives = BOTH[name]
        D = derivatives(robot, q, v, tau)
        by_q, by_v = (
            (function(robot, *ahead, tau) - function(robot, *behind, tau)) / (2.0 * h)
            for ahead, behind in (
                (at(0.8 + h, 1.3), at(0.8 - h, 1.3)), (at(0.8, 1.3 + h), at(0.8, 1.3 - h)),
            )
        )  # fmt: skip
        assert_close(D.dq @ along, by_q, rtol=1e-7, scale=10.0)
        assert_close(D.dv @ along, by_v, rtol=1e-7, scale=10.0)


# Against Pinocchio -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fixed", "spherical"])
@pytest.mark.parametrize("seed", range(6))
def test_pinocchio(seed, kind):
    """By forces; and by states along motions that keep the constraint, where both mean the same."""
    pin = pytest.importorskip("pinocchio")
    kinds = tuple(k for k in PINOCCHIO_KINDS if k != "planar")
    tree = rm.random_robot(seed, bodies=6, kinds=kinds)
    q, v = rm.random_state(tree, seed)
    rng = np.random.default_rng(seed)
    loop = constraint(kind, tree, q, 1, 5, rng)
    robot, tau = closed(tree, loop), rng.normal(size=tree.nv)
    v = rm.loops.project_velocity(robot, q, v)
    model, ids, _ = pinocchio_model(tree)
    layout = rm.layouts.pinocchio(tree, model)
    ends = [
        pin.SE3(pose.to_rotation_matrix(x), pose.translation(x))
        for x in (loop.parent_placement, loop.child_placement)
    ]
    sort = pin.ContactType.CONTACT_6D if kind == "fixed" else pin.ContactType.CONTACT_3D
    rigid = pin.RigidConstraintModel(
        sort, model, ids[1], ends[0], ids[5], ends[1], pin.ReferenceFrame.LOCAL
    )
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(rigid)
    datas.append(rigid.createData())
    data, settings = model.createData(), pin.ProximalSettings(1e-16, 1e-16, 1e-8, 50)
    pin.initConstraintDynamics(model, data, models, datas)
    there = layout.q_to(q), layout.v_to(q, v), layout.tau_to(q, tau)
    pin.constraintDynamics(model, data, *there, models, datas, settings)
    theirs = pin.computeConstraintDynamicsDerivatives(model, data, models, datas, settings)
    T = np.stack([layout.v_to(q, e) for e in np.eye(tree.nv)], axis=-1)
    back = np.linalg.inv(T)
    ours = rm.dynamics.forward_dynamics_derivatives(robot, q, v, tau)
    redundant = bool(rm.loops.constraint_report(robot, q).dependent)
    rtol = 1e-7 if redundant else 1e-9  # its derivatives keep mu in redundant equations
    assert_close(ours.dtau, back @ theirs[2] @ back.T, rtol=rtol, scale=np.max(np.abs(ours.dtau)))
    # motions t with G t = 0, and changes of speed s with ∂(G v)/∂q t + G s = 0
    P, G = rm.loops.constraint_projector(robot, q), rm.loops.constraint_jacobian(robot, q)
    h = 1e-5
    for t in P.T[rng.choice(tree.nv, 3)]:
        ahead, behind = (
            rm.loops.constraint_jacobian(robot, rm.integrate(robot, q, k * h * t)) @ v
            for k in (1, -1)
        )
        s = -np.linalg.pinv(G, rcond=1e-9) @ (ahead - behind) / (2.0 * h)
        wanted = back @ (theirs[0] @ T @ t + theirs[1] @ T @ s)
        size = max(1.0, np.max(np.abs(wanted)))
        assert_close(ours.dq @ t + ours.dv @ s, wanted, rtol=1e-7, scale=size)


# Identities and kernels --------------------------------------------------------------------------


def test_forces_act_through_the_projector():
    """∂v̇/∂τ = P M⁻¹, symmetric; ∂v̇/∂v v and the motion itself stay on the constraints."""
    robot, q, v, tau, w = state(6, ["spherical", "rod"], bodies=8)
    D = rm.dynamics.forward_dynamics_derivatives(robot, q, v, tau, w)
    assert np.array_equal(D.dtau, D.dtau.T)
    expected = rm.loops.constraint_projector(robot, q) @ np.linalg.inv(rm.mass_matrix(robot, q))
    assert_close(D.dtau, expected, rtol=1e-10)
    assert np.max(np.abs(rm.loops.constraint_jacobian(robot, q) @ D.dtau)) < 1e-12


def test_nothing_depends_on_where_a_free_base_is():
    robot, q, v, tau, _ = state(2, ["revolute"], bodies=6)
    robot = closed(robot, constraint("revolute", robot, q, 1, 4, np.random.default_rng(0)))
    robot = robot.replace(gravity=np.zeros(3))
    v = rm.loops.project_velocity(robot, q, v)
    for derivatives in (
        rm.dynamics.forward_dynamics_derivatives,
        rm.dynamics.inverse_dynamics_derivatives,
    ):
        assert np.all(derivatives(robot, q, v, tau).dq[:, :6] == 0.0)


def test_inverse_undoes_forward():
    robot, q, v, tau, w = state(8, ["universal"], bodies=6)
    vdot = rm.forward_dynamics(robot, q, v, tau, w)
    smallest = rm.inverse_dynamics(robot, q, v, vdot, w)
    assert_close(rm.loops.constrained_inverse_dynamics(robot, q, v, vdot, w), smallest, rtol=1e-12)
    assert np.linalg.norm(smallest) <= np.linalg.norm(tau)
    assert_close(rm.forward_dynamics(robot, q, v, smallest, w), vdot, rtol=1e-10)
    for method in ("composite", "newton_euler"):
        other = rm.inverse_dynamics(
            robot.replace(joints=[dataclasses.replace(j, rotor_inertia=0.0 * j.rotor_inertia)
                                  for j in robot.joints]), q, v, vdot, w, method)  # fmt: skip
        assert np.all(np.isfinite(other))


@pytest.mark.parametrize("which", BOTH)
def test_kernels_and_batches(which):
    robot = four_bar(closing="spherical")
    q, v = rm.random_state(robot, 1, 3)
    for k in range(3):
        coupler, rocker = four_bar_angles(0.3 + 0.5 * k)
        q[k] = 0.3 + 0.5 * k, coupler - 0.3 - 0.5 * k, rocker
    v, x = (
        rm.loops.project_velocity(robot, q, v),
        np.random.default_rng(0).normal(size=(3, robot.nv)),
    )
    _, function = BOTH[which]
    many, compiled = function(robot, q, v, x), rm.compile(function, robot)(q, v, x)
    for k, (ours, fast) in enumerate(zip(many, compiled, strict=True)):
        assert_close(fast, ours, rtol=1e-11)
        assert_close(ours[1], function(robot, q[1], v[1], x[1])[k], rtol=1e-12)


def test_without_active_constraints():
    robot = four_bar().with_active(off=["pin"])
    found = rm.loops.constraint_multiplier_derivatives(robot, *np.zeros((3, 2, 3)))
    assert [part.shape for part in found] == [(2, 0, 3)] * 3
