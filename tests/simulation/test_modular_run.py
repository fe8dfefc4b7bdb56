"""Runs in which modules dock, undock and are swapped, against runs with constraints."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose


def unit(gravity=(0, 0, 0)):
    b = rm.Builder("unit", gravity=gravity)
    b.body("hub", 4.0, (0.02, 0, 0.1), np.diag([0.4, 0.5, 0.6]))
    b.body("arm", 1.5, (0, 0.05, 0.2), np.diag([0.1, 0.12, 0.05]))
    b.joint("base", "free", None, "hub")
    b.joint("turn", "revolute", "hub", "arm", axis=(0, 1, 0), xyz=(0, 0, 0.5))
    b.frame("top", "arm", xyz=(0, 0, 0.4), rpy=(0.1, 0.2, 0)).frame("side", "hub", xyz=(0.5, 0, 0))
    b.frame("foot", "hub", xyz=(0, 0, -0.1))
    return b.build()


def cargo():
    b = rm.Builder("cargo").body("box", 2.0, (0, 0, 0.1), np.diag([0.2, 0.3, 0.25]))
    return b.joint("base", "free", None, "box").frame("fixture", "box", xyz=(0, 0, -0.2)).build()


UNIT, CARGO = unit(), cargo()  # few kernels for all tests


def world(docks=()):
    return rm.ModularRobot({"a": UNIT, "b": UNIT, "box": CARGO}, docks)


def start(robot):
    q = robot.neutral()
    q[robot.q_of("b").start : robot.q_of("b").start + 8] = pose.from_xyz_rpy((1.0, 0.2, 0.1))
    q[robot.q_of("box").start : robot.q_of("box").start + 8] = pose.from_xyz_rpy(
        (0.1, 0, 1.2), (0, 0.1, 0)
    )
    rng = np.random.default_rng(3)
    return q, 0.2 * rng.normal(size=robot.nv)


def test_a_capture_and_a_release_as_simulate_does_them():
    robot = world()
    q, v = start(robot)
    drive = np.zeros(robot.nv)
    drive[6] = 0.1
    changes = [
        rm.Attach(0.2, "box", "a", "top", mount="fixture", latch=True),
        rm.Detach(0.5, "box", separation=(0.0, 0.0, 0.3)),
    ]
    run = rm.simulate_assembly(
        robot, q, v, 0.7, rate=100.0, steps=4, torque=lambda t, q, v: drive, changes=changes
    )
    both = rm.add_constraint(
        rm.combine(robot.modules), "dock", "fixed", "a/top", "box/fixture", active=False
    )
    phases = [
        rm.Phase(0.2, torque=drive), rm.Phase(0.3, torque=drive, activate="dock", latch=True),
        rm.Phase(0.2, torque=drive, release="dock", separation={"dock": (0.0, 0.0, 0.3)}),
    ]  # fmt: skip
    whole = rm.simulate(both, q, v, phases=phases, step=0.0025, integrator="rk4")
    assert np.abs(run.v[-1] - whole.v[-1]).max() < 1e-9
    assert np.abs(rm.difference(both, run.q[-1], whole.q[-1])).max() < 1e-9
    on, off = run.changes
    assert (on.t, on.attached, on.parent, on.at) == (0.2, True, "a", "top")
    assert on.energy_loss == pytest.approx(whole.switches[0].energy_loss, rel=1e-7)
    assert off.separation_work == pytest.approx(whole.switches[1].separation_work, rel=1e-7)
    size = np.linalg.norm(on.impulse[:3])
    assert size == pytest.approx(np.linalg.norm(whole.switches[0].impulses["dock"][:3]), rel=1e-7)
    assert [str(n) for n in np.unique(run.carriers["box"][20:50])] == ["a"]
    assert not any(run.carriers["box"][:20])
    assert not any(run.carriers["box"][50:])


def test_momentum_is_kept_while_modules_come_and_go():
    robot = world()
    q, v = start(robot)
    changes = [
        rm.Attach(0.1, "b", "a", "side", latch=True),
        rm.Attach(0.2, "box", "b", "top", latch=True),
        rm.Detach(0.3, "b"),  # with the box
        rm.Swap(0.4, "box", "a", latch=True),  # a docks to b, where the box was
    ]
    run = rm.simulate_assembly(robot, q, v, 0.5, rate=100.0, changes=changes)
    whole = rm.combine(robot.modules)
    momentum = rm.momentum(whole, run.q, run.v)
    alone = rm.simulate_assembly(rm.ModularRobot(robot.modules), q, v, 0.1, rate=100.0)
    expected = rm.momentum(whole, alone.q[-1], alone.v[-1])  # before the first capture
    assert np.abs(momentum[10] - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.abs(momentum - momentum[0]).max() < 1e-8 * np.abs(momentum[0]).max()
    assert [(c.module, c.attached) for c in run.changes] == [
        ("b", True), ("box", True), ("b", False), ("box", False), ("a", True)
    ]  # fmt: skip
    assert list(run.carriers["a"][-2:]) == ["b", "b"]


def test_conditions_and_placed_modules():
    robot = world([rm.Connection("box", "a", "top", mount="fixture")])
    q, v = robot.settle(*start(robot))
    seen = []

    def crossed(t, q, v):
        seen.append(t)
        return t > 0.055

    changes = [
        rm.Swap(crossed, "box", "b", mount="foot", place=True),
        rm.Detach(lambda t, q, v: False, "b"),
    ]
    run = rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, changes=changes)
    assert run.changes[0].t == pytest.approx(0.06)
    assert seen[-1] == pytest.approx(0.06)
    assert not run.changes[1].impulse.any()
    assert run.pending == (changes[1],)
    there = rm.frame_pose(robot.modules["b"], run.q[-1][robot.q_of("b")], "foot")
    port = rm.frame_pose(robot.modules["a"], run.q[-1][robot.q_of("a")], "top")
    off = dq.mul(dq.conjugate(port), there)
    assert np.abs(off * np.sign(off[0]) - dq.identity()).max() < 1e-14


def test_a_module_on_a_fixed_base_with_gravity():
    g = (0, 0, -9.81)
    fixed = rm.Builder("tower", gravity=g).body("mast", 10.0, (0, 0, 1), np.diag([1, 1, 1.0]))
    fixed = fixed.joint("hinge", "revolute", None, "mast", axis=(0, 1, 0))
    fixed = fixed.frame("tip", "mast", xyz=(0, 0, 2)).build()
    robot = rm.ModularRobot({"tower": fixed, "u": unit(gravity=g)}, [("u", "tower", "tip")])
    q, v = robot.settle(np.r_[0.1, robot.neutral()[1:]], np.zeros(robot.nv))
    run = rm.simulate_assembly(robot, q, v, 0.5, rate=200.0, changes=[rm.Detach(0.25, "u")])
    whole = robot.to_robot()
    phases = [rm.Phase(0.25), rm.Phase(0.25, release="u")]
    expected = rm.simulate(whole, q, v, phases=phases, rtol=1e-11, atol=1e-12)
    assert np.abs(run.v[-1] - expected.v[-1]).max() < 1e-7
    fall = run.v[-1][robot.v_of("u")]
    assert np.all(np.isfinite(fall))


def test_refusals():
    robot = world()
    q, v = start(robot)

    def simulate(*changes):
        rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, changes=changes)

    with pytest.raises(rm.RemoraError, match="'box' is not where it would dock, at 'top' of 'a'"):
        simulate(rm.Attach(0.0, "box", "a", "top"))
    with pytest.raises(rm.RemoraError, match="module 'box' is not docked; docked are: none"):
        simulate(rm.Detach(0.0, "box"))
    with pytest.raises(rm.UnknownName, match="no module named 'x'"):
        simulate(rm.Attach(0.0, "x", "a", "top"))
    with pytest.raises(rm.UnknownName, match="connection point of subsystem 'a'"):
        simulate(rm.Attach(0.0, "box", "a", "nowhere"))
    with pytest.raises(rm.RemoraError, match="'b' docks by its base body 'hub'; 'top' is on"):
        simulate(rm.Attach(0.0, "b", "a", "side", mount="top"))
    with pytest.raises(rm.InvalidValue, match=r"the run is from 0 to 0\.1 s"):
        simulate(rm.Attach(0.3, "box", "a", "top"))
    with pytest.raises(rm.InvalidValue, match="must be Attach, Detach or Swap, not str"):
        simulate("box")
    with pytest.raises(rm.InvalidValue, match="latch=True or place=True, not both"):
        rm.Attach(0.0, "box", "a", "top", latch=True, place=True)
    with pytest.raises(rm.RemoraError, match="'a' cannot dock to 'b', which it carries"):
        simulate(
            rm.Attach(0.0, "b", "a", "side", latch=True),
            rm.Attach(0.0, "a", "b", "side", latch=True),
        )
    with pytest.raises(rm.RemoraError, match="port 'top' of module 'a' is taken by 'b'"):
        simulate(
            rm.Attach(0.0, "b", "a", "top", latch=True),
            rm.Attach(0.0, "box", "a", "top", latch=True),
        )
    fixed = rm.Builder("arm").body("link", 1.0, (0, 0, 0.1), np.eye(3))
    fixed = fixed.joint("turn", "revolute", None, "link", axis=(0, 0, 1)).build()
    with pytest.raises(rm.RemoraError, match=r"'arm' cannot dock .* it has 'turn' \(revolute\)"):
        rm.ModularRobot({"a": UNIT, "arm": fixed}, [("arm", "a", "top")])
    with pytest.raises(rm.RemoraError, match=r"cannot dock to '.', which it carries"):
        rm.ModularRobot({"a": UNIT, "b": UNIT}, [("a", "b", "top"), ("b", "a", "top")]).neutral()
    assembly = rm.Assembly({"arm": fixed})
    with pytest.raises(rm.RemoraError, match="do not change during a run"):
        rm.simulate_assembly(assembly, [0], [0], 0.1, 10.0, changes=[rm.Detach(0.0, "arm")])
    with pytest.raises(AttributeError, match="immutable"):
        robot.docks = ()
    assert robot == world()
    assert hash(robot) == hash(world())
    assert robot != chained()


def chained():
    return world([rm.Connection("b", "a", "side")])
