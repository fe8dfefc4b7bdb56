"""Modules that dock: impulses and accelerations against constraints, and what a change costs."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly import module_passes
from trees import relative_error

KINDS = [k for k in rm.JOINT_TYPES if k not in ("free", "fixed")]


def module(seed):
    """A random robot on a free base that is placed somewhere, with a joint of one type."""
    return rm.random_robot(seed, bodies=2, kinds=[KINDS[seed % len(KINDS)]], base="free")


def chain(seeds=(1, 2, 3), closed=True):
    """Module b docked to a, c to b, by frames with poses of their own."""
    a, b, c = (module(seed) for seed in seeds)
    x = pose.from_xyz_rpy((0.3, -0.2, 0.4), (0.5, -1.0, 2.0))
    docks = [
        rm.papers.sa24.Connection("c", "b", "body_0", placement=x),
        rm.papers.sa24.Connection("b", "a", "body_1", placement=dq.mul(x, x)),
    ]
    return rm.ModularRobot({"a": a, "b": b, "c": c}, docks if closed else ())


def moving(robot, seed=0):
    rng = np.random.default_rng(seed)
    parts = [rm.random_state(m, rng) for m in robot.modules.values()]
    return tuple(np.concatenate([part[k] for part in parts]) for k in range(2))


def test_it_is_the_robot_that_was_welded_from_the_start():
    robot = chain()
    q, v = robot.settle(*moving(robot))
    tau = np.random.default_rng(1).normal(size=robot.nv)
    vdot = robot.forward_dynamics(q, v, tau)
    # the monolithic tree: bodies of all modules, docked bases on fixed joints
    b = rm.Builder("welded")
    docks = {dock.child: dock for dock in robot.docks}
    for name, m in robot.modules.items():
        for body in m.bodies:
            b.body(f"{name}/{body.name}", body.mass, body.com, body.inertia)
    kept = []
    for name, m in robot.modules.items():
        for i, (joint, body) in enumerate(zip(m.joints, m.bodies, strict=True)):
            if i == 0 and name in docks:
                dock = docks[name]
                parent = f"{dock.parent}/{robot.modules[dock.parent].frame(dock.at).name}"
                b.joint(f"{name}/base", "fixed", parent, f"{name}/{body.name}",
                        placement=dock.placement)  # fmt: skip
                continue
            parent = None if joint.parent < 0 else f"{name}/{m.bodies[joint.parent].name}"
            b.joint(f"{name}/{joint.name}", joint.kind, parent, f"{name}/{body.name}",
                    placement=joint.placement, axis=joint.axes[0] if len(joint.axes) else None,
                    **({"axis2": joint.axes[1]} if len(joint.axes) > 1 else {}),
                    **({"pitch": float(joint.pitch)} if joint.kind == "helical" else {}),
                    rotor_inertia=joint.rotor_inertia)  # fmt: skip
            kept.append((name, joint))
    whole = b.build()
    order = [whole.joint_index(f"{name}/{joint.name}") for name, joint in kept]
    assert order == sorted(order)
    q_in = np.concatenate([q[robot.q_of(n)][j.q] for n, j in kept])
    v_in = np.concatenate([v[robot.v_of(n)][j.v] for n, j in kept])
    t_in = np.concatenate([tau[robot.v_of(n)][j.v] for n, j in kept])
    a_in = np.concatenate([vdot[robot.v_of(n)][j.v] for n, j in kept])
    wrenches = np.zeros((len(whole.bodies), 6))
    for name in docks:
        push = tau[robot.v_of(name)][:6]
        wrenches[whole.body_index(f"{name}/body_0")] = [*push[3:], *push[:3]]
    expected = rm.forward_dynamics(whole, q_in, v_in, t_in, wrenches)
    assert relative_error(a_in, expected) < 1e-12


@pytest.mark.parametrize("seeds", [(1, 2, 3), (4, 5, 6), (0, 7, 2)])
def test_docking_transmits_the_impulse_of_the_constraint(seeds):
    """Joints of every type; then the docked modules accelerate as one robot with constraints."""
    open_robot, robot = chain(seeds, closed=False), chain(seeds)
    q, v = robot.settle(*moving(robot))
    v = moving(robot, 5)[1]  # every module moves on its own
    network = open_robot.network(q, v, robot.docks)
    whole = robot.to_robot().with_active(off=["b", "c"])
    before = rm.momentum(whole, q, v)
    for name in ("c", "b"):  # c docks to b, then both to a
        link = next(dock for dock in robot.docks if dock.child == name)
        seat = robot.seat_in(network, link)
        speeds = network.v.copy()
        jump = network.dock(network.index[name], seat, robot.placement(link))
        network.synchronize()
        whole = whole.with_active(on=[name])
        expected = rm.loops.constraint_impulse(whole, q, speeds)
        assert relative_error(network.v, expected.v) < 1e-11
        assert -jump.energy == pytest.approx(float(expected.energy_loss), rel=1e-10)
        after = rm.momentum(whole, q, network.v)
        assert np.abs(after - before).max() < 1e-12 * np.abs(before).max()
    closed = robot.to_robot()
    assert np.max(np.abs(rm.loops.constraint_residual(closed, network.q))) < 1e-13
    assert np.max(np.abs(rm.loops.constraint_jacobian(closed, network.q) @ network.v)) < 1e-12
    tau = np.random.default_rng(1).normal(size=robot.nv)  # also on the docked bases
    state = network.q.copy(), network.v.copy(), tau
    found = network.accelerations(*state)
    assert relative_error(found, rm.forward_dynamics(closed, *state)) < 1e-11
    # what b feels from a: the change of momentum of b and c
    change, end = np.zeros(6), state[1]
    for name in ("b", "c"):
        m, at = robot.modules[name], (robot.q_of(name), robot.v_of(name))
        change += rm.momentum(m, q[at[0]], end[at[1]]) - rm.momentum(m, q[at[0]], speeds[at[1]])
    port = rm.frame_pose(whole, q, "a/body_1")
    assert np.abs(screw.adjoint(port, jump.impulse) - change).max() < 1e-12 * np.abs(change).max()


def test_a_module_that_leaves_takes_its_momentum():
    robot = chain()
    q, v = robot.settle(*moving(robot))
    network = robot.network(q, v)
    push = np.array([0.0, 0.0, 0.0, 0.3, -0.2, 0.1])
    before = rm.momentum(robot.to_robot(), q, v)
    energy = rm.kinetic_energy(robot.to_robot(), q, v)
    jump = network.undock(network.index["b"], push)  # with c
    network.synchronize()
    after = rm.momentum(robot.to_robot(), q, network.v)
    assert np.abs(after - before).max() < 1e-12 * np.abs(before).max()
    gained = rm.kinetic_energy(robot.to_robot(), q, network.v) - energy
    assert jump.energy == pytest.approx(gained, rel=1e-9)
    whole = robot.to_robot()
    G = rm.loops.constraint_jacobian(whole.with_active(off=["c"]), q) @ network.v
    assert np.linalg.norm(G) == pytest.approx(np.linalg.norm(push), rel=1e-12)
    assert (
        np.max(np.abs(rm.loops.constraint_jacobian(whole.with_active(off=["b"]), q) @ network.v))
        < 1e-12
    )
    # on its own, b with c moves as a robot of its own
    tau = np.random.default_rng(2).normal(size=robot.nv)
    found = network.accelerations(network.q.copy(), network.v.copy(), tau)
    expected = rm.forward_dynamics(whole.with_active(off=["b"]), network.q, network.v, tau)
    assert relative_error(found, expected) < 1e-11
    # and back: the same state docks without a trace of having been away
    network.v[:] = v
    seat = robot.seat_in(network, robot.docks[1])
    jump = network.dock(network.index["b"], seat, robot.placement(robot.docks[1]))
    assert np.max(np.abs(jump.impulse)) < 1e-14
    found = network.accelerations(q, v, tau)
    assert relative_error(found, rm.forward_dynamics(whole, q, v, tau)) < 1e-11


def many(count, fan=2):
    """A tree of equal modules with two ports, every port taken but those of the last ones."""
    unit = rm.Builder("unit").body("hub", 5.0, (0, 0, 0.1), np.diag([0.4, 0.5, 0.6]))
    unit.body("arm", 1.0, (0, 0, 0.2), np.diag([0.1, 0.1, 0.05]))
    unit.joint("base", "free", None, "hub")
    unit.joint("turn", "revolute", "hub", "arm", axis=(0, 1, 0), xyz=(0, 0, 0.5))
    unit.frame("p0", "arm", xyz=(0, 0, 0.4)).frame("p1", "hub", xyz=(0.5, 0, 0))
    unit = unit.build()
    names = [f"m{k}" for k in range(count)]
    docks = [(names[k], names[(k - 1) // fan], f"p{(k - 1) % fan}") for k in range(1, count)]
    return rm.ModularRobot({**dict.fromkeys(names, unit), "new": unit}, docks)


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_the_cost_of_a_change_is_that_of_the_path(count, monkeypatch):
    """Rows of a table are exchanged; inertias on the path to the root are computed, no others."""
    robot = many(count)
    dock = rm.papers.sa24.Connection("new", f"m{count - 1}", "p0")
    q = robot.neutral()
    v = np.random.default_rng(0).normal(size=robot.nv) * 0.1
    q, v = robot.settle(q, v)
    network = robot.network(q, v, [dock])
    network.rest()
    made = []
    monkeypatch.setattr(Kernel, "__init__", lambda *given, **named: made.append(given))
    monkeypatch.setattr(module_passes, "Kernel", lambda *given: made.append(given))
    seen = []
    sweep = network._sweep
    monkeypatch.setattr(
        network,
        "_sweep",
        lambda kind, modules=None: (seen.append((kind, modules)), sweep(kind, modules)),
    )
    depth = len(network.order.path(network.index[dock.parent]))
    assert depth <= np.log2(count) + 1
    jump = network.dock(network.index["new"], robot.seat_in(network, dock), robot.placement(dock))
    assert np.any(jump.impulse != 0.0)
    inward = [modules for kind, modules in seen if kind == "rest"]
    assert [len(modules) for modules in inward] == [depth + 1, depth + 1]
    assert not made  # nothing was traced or compiled
    network.undock(network.index["new"])
    assert not made
    tau = np.zeros(robot.nv)
    found = network.accelerations(network.q.copy(), network.v.copy(), tau)
    assert not made
    assert np.all(np.isfinite(found))
