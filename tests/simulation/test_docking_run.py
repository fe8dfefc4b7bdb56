"""Runs in which modules dock, undock and are swapped, against runs with constraints."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.simulation import docking_run


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
    both = rm.loops.add_constraint(
        rm.combine(robot.modules), "dock", "fixed", "a/top", "box/fixture", active=False
    )
    phases = [
        rm.Phase(0.2, torque=drive), rm.Phase(0.3, torque=drive, activate="dock", latch=True),
        rm.Phase(0.2, torque=drive, release="dock", separation={"dock": (0.0, 0.0, 0.3)}),
    ]  # fmt: skip
    whole = rm.simulate(both, q, v, phases, integrator=rm.Integrator("rk4", step=0.0025))
    assert np.abs(run.v[-1] - whole.v[-1]).max() < 1e-9
    assert np.abs(rm.difference(both, run.q[-1], whole.q[-1])).max() < 1e-9
    on, off = run.switches
    assert (on.t, on.activated, on.released, on.phase) == (0.2, ("box",), (), 1)
    assert (off.t, off.activated, off.released, off.phase) == (0.5, (), ("box",), 2)
    assert on.energy_loss == pytest.approx(whole.switches[0].energy_loss, rel=1e-7)
    assert off.separation_work == pytest.approx(whole.switches[1].separation_work, rel=1e-7)
    for own, other in zip(run.switches, whole.switches, strict=True):
        assert np.allclose(own.impulses["box"], other.impulses["dock"], rtol=0, atol=1e-8)
    placed = whole.switches[0].latched["dock"]["child_placement"]
    assert np.allclose(on.latched["box"]["child_placement"], placed, rtol=0, atol=1e-9)
    assert run.phase_starts == (0.0, 0.2, 0.5)
    docked = run.active("box")
    assert np.array_equal(docked, (run.phase == 1))
    assert list(run.t[docked][[0, -1]]) == [0.2, 0.5]
    # its robot has the dock as a constraint: what follows from it is that of the other run
    assert run.constraint_violations.max() < 1e-13
    assert np.abs(run.vdot[-1] - whole.vdot[-1]).max() < 1e-8


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
    assert run.conservation().energy.relative < 1e-8  # of what captures and separations leave
    alone = rm.simulate_assembly(rm.ModularRobot(robot.modules), q, v, 0.1, rate=100.0)
    expected = rm.momentum(whole, alone.q[-1], alone.v[-1])  # before the first capture
    assert run.t[11] == run.t[10] == 0.1  # before and after the capture
    assert np.abs(momentum[10] - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.abs(momentum[11] - momentum[10]).max() < 1e-14
    assert np.abs(momentum - momentum[0]).max() < 1e-8 * np.abs(momentum[0]).max()
    assert [(*s.activated, "|", *s.released) for s in run.switches] == [
        ("b", "|"), ("box", "|"), ("|", "b"), ("|", "box"), ("a", "|")
    ]  # fmt: skip
    assert run.active("a")[-1]
    assert not run.active("box")[-1]


def test_conditions_and_placed_modules():
    robot = world([rm.papers.sa24.Connection("box", "a", "top", mount="fixture")])
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
    assert run.switches[0].t == pytest.approx(0.06)
    assert np.allclose(seen, np.arange(7) / 100)  # once a tick, until it is true
    assert not run.switches[1].impulses["b"].any()
    assert run.message == "changes whose condition never came true: 'b'"
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
    expected = rm.simulate(whole, q, v, phases, integrator=rm.Integrator(rtol=1e-11, atol=1e-12))
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
    with pytest.raises(rm.errors.UnknownName, match="no module named 'x'"):
        simulate(rm.Attach(0.0, "x", "a", "top"))
    with pytest.raises(rm.errors.UnknownName, match="connection point of subsystem 'a'"):
        simulate(rm.Attach(0.0, "box", "a", "nowhere"))
    with pytest.raises(rm.RemoraError, match="'b' docks by its base body 'hub'; 'top' is on"):
        simulate(rm.Attach(0.0, "b", "a", "side", mount="top"))
    with pytest.raises(rm.errors.InvalidValue, match=r"the run is from 0 to 0\.1 s"):
        simulate(rm.Attach(0.3, "box", "a", "top"))
    with pytest.raises(rm.errors.InvalidValue, match="must be Attach, Detach or Swap, not str"):
        simulate("box")
    with pytest.raises(rm.errors.InvalidValue, match="Detach of 'box': when must be a number"):
        rm.Detach("soon", "box")
    with pytest.raises(rm.errors.SimulationError, match="the change of 'box' raised KeyError"):
        simulate(rm.Detach(lambda t, q, v: {}[t], "box"))
    with pytest.raises(rm.errors.InvalidValue, match="'radau' is not for modules that dock"):
        rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, integrator="radau")
    with pytest.raises(rm.errors.InvalidValue, match="latch=True or place=True, not both"):
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
    return world([rm.papers.sa24.Connection("b", "a", "side")])


def test_a_failure_keeps_what_was_recorded():
    robot = world()
    q, v = start(robot)
    changes = [rm.Attach(0.02, "b", "a", "side", latch=True), rm.Attach(0.05, "box", "a", "top")]
    with pytest.raises(
        rm.errors.SimulationError, match=r"at t = 0\.05 s.*'box' is not where"
    ) as caught:
        rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, changes=changes)
    run = caught.value.recording
    assert run.status == "failed"
    assert run.t[-1] == 0.05
    assert [switch.activated for switch in run.switches] == [("b",)]


def test_an_interrupted_run_keeps_what_was_computed(monkeypatch):
    monkeypatch.setattr(docking_run, "MOST_TICKS", 4)
    robot = world()
    q, v = start(robot)
    changes = [rm.Attach(0.02, "b", "a", "side", latch=True)]
    whole = rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, changes=changes)

    def pressed(t, q, v):
        if t > 0.085:
            raise KeyboardInterrupt
        return 0.0 * v

    with pytest.warns(RuntimeWarning, match=r"interrupted at t = 0\.06 s: what was computed is"):
        run = rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, torque=pressed, changes=changes)
    assert (run.status, run.message) == ("interrupted", "interrupted at t = 0.06 s")
    assert [switch.activated for switch in run.switches] == [("b",)]
    assert np.array_equal(run.t, whole.t[: len(run)])
    assert np.array_equal(run.q, whole.q[: len(run)])  # parts of a run have its bits


def test_a_run_with_a_start_an_adaptive_method_and_a_change_at_its_end():
    robot = world()
    q, v = start(robot)
    changes = [rm.Attach(5.1, "b", "a", "side", latch=True), rm.Detach(5.3, "b")]
    run = rm.simulate_assembly(
        robot, q, v, 0.3, rate=10.0, changes=changes, start=5.0, integrator="dop853"
    )
    assert list(run.t) == pytest.approx([5.0, 5.1, 5.1, 5.2, 5.3, 5.3])
    kept = run.conservation()
    assert kept.linear_momentum.relative < 1e-13
    assert kept.angular_momentum.relative < 1e-13
    assert [switch.t for switch in run.switches] == [5.1, 5.3]
    assert run.status == "complete"


def test_docks_of_one_module_at_two_ports_are_two_constraints(tmp_path):
    robot = world()
    q, v = start(robot)
    changes = [
        rm.Attach(0.0, "box", "a", "top", latch=True), rm.Detach(0.02, "box"),
        rm.Attach(0.04, "box", "b", "side", latch=True), rm.Detach(0.06, "box"),
        rm.Attach(0.08, "box", "a", "top", place=True),
    ]  # fmt: skip
    run = rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, changes=changes)
    assert run.robot.constraints.names == ["box", "box@b/side"]
    assert run.constraint_violations.max() < 1e-13  # a latched pose does not stay
    assert run.conservation().energy.relative < 1e-8  # what places a module does work
    assert list(run.active("box@b/side")) == list(run.phase == 2)
    run.save(tmp_path / "run")
    assert len(rm.open_run(tmp_path / "run").switches) == 5
