"""Black boxes that dock, undock and are swapped in a run, against assemblies without changes."""

import numpy as np
import pytest

import remora as rm

POSE = rm.algebra.pose
SA = rm.papers.sa24
FULL = np.array([[0.4, 0.03, -0.02], [0.03, 0.5, 0.05], [-0.02, 0.05, 0.6]])
ASIDE = POSE.from_xyz_rpy((0.1, -0.2, 0.15), (0.4, -0.3, 0.8))
GRAVITY = (0.4, -1.0, -3.0)


def unit(name, mass, kind="free"):
    """A module with oblique axes, full inertias and two branches."""
    b = rm.Builder(name, gravity=GRAVITY).body("hub", mass, (0.02, -0.05, 0.1), FULL)
    b.body("arm", 1.5, (0.1, 0.0, 0.2), 0.3 * FULL).body("boom", 0.8, (0, 0.2, 0.1), 0.1 * FULL)
    b.joint("base", kind, None, "hub")
    b.joint("turn", "revolute", "hub", "arm", axis=(0.3, 1, 0.2), xyz=(0, 0.1, 0.5))
    b.joint("slide", "prismatic", "hub", "boom", axis=(1, 0.2, -0.3), rpy=(0.1, 0.2, 0.3))
    return (
        b.frame("top", "arm", xyz=(0, 0, 0.4), rpy=(0.5, 0.1, -0.4))
        .frame("side", "boom", xyz=(0.5, 0, 0), rpy=(-0.2, 0.7, 0.1))
        .build()
    )


class Live:
    """A program: a wrench of all that it receives."""

    def __init__(self, scale=1.0):
        self.scale, self.seen = scale, []

    def __call__(self, t, base):
        self.seen.append((float(t), base))
        turned = rm.algebra.quaternion.rotate(
            rm.algebra.quaternion.conjugate(base.pose[:4]), base.gravity
        )
        rate = np.zeros(6) if base.rate is None else base.rate
        forces = 0.2 * base.twist[3:] + 0.05 * rate[3:] + 0.1 * turned
        return SA.SensorReading(
            self.scale * np.concatenate([forces, 0.1 * base.twist[:3] + 0.02 * np.sin(9 * t)])
        )


def modular(box, at="tool"):
    docks = [SA.Connection("tool", "tug", "top", placement=ASIDE)]
    if at is not None:
        docks.append(SA.Connection("box", at, "side", placement=ASIDE))
    return rm.ModularRobot({"tug": unit("tug", 40.0), "tool": unit("tool", 3.0), "box": box}, docks)


def welded(box, at="tool"):
    """The same robot as an assembly, in which nothing changes."""
    parts = {"tug": unit("tug", 40.0), "tool": unit("tool", 3.0, "fixed")}
    links = [SA.Connection("tool", "tug", "top", placement=ASIDE)]
    if at is not None:
        parts["box"] = box
        links.append(SA.Connection("box", at, "side", placement=ASIDE))
    return rm.Assembly(parts, links, GRAVITY)


def start(robot):
    q, _ = rm.random_state(rm.combine(robot.modules), 3)
    v = 0.3 * np.cos(np.arange(robot.nv))
    return robot.settle(q, v)


def torque(nv):
    return lambda t, q, v: 0.3 * np.cos(3.0 * t + np.arange(nv)) - 0.2 * v


def split(robot, q, v):
    """The state of the assembly: without the docked base."""
    kept = np.r_[0:10, 18:20], np.r_[0:8, 14:16]
    assert robot.nq == 20
    return q[..., kept[0]], v[..., kept[1]]


def compare(run, other, robot, first, last):
    """Samples first to last of a run are those of a run of an assembly."""
    q, v = split(robot, run.q[first:last], run.v[first:last])
    assert np.abs(q - other.q).max() < 1e-12
    assert np.abs(v - other.v).max() < 1e-11


@pytest.mark.parametrize("at", ["tool", "tug"])
def test_a_docked_box_is_a_leaf_of_an_assembly(at):
    boxes = Live(), Live()
    robot, assembly = modular(rm.BlackBox(boxes[0]), at), welded(rm.BlackBox(boxes[1]), at)
    q, v = start(robot)
    own, forces = split(robot, q, v), torque(16)
    control = {
        "torque": lambda t, q, v: np.r_[forces(t, q, v)[:8], np.zeros(6), forces(t, q, v)[14:]]
    }
    run = rm.simulate_assembly(robot, q, v, 0.1, rate=100.0, **control)

    def same(t, q, v):
        full = np.zeros(16)
        full[np.r_[0:8, 14:16]] = v
        return control["torque"](t, q, full)[np.r_[0:8, 14:16]]

    other = rm.simulate_assembly(assembly, *own, 0.1, rate=100.0, torque=same)
    compare(run, other, robot, None, None)
    assert np.abs(run.v[-1] - v).max() > 0.01
    assert list(run.signals) == ["box.twist", "box.wrench"]
    for name, values in run.signals.items():
        assert np.allclose(values, other.signals[name], rtol=0.0, atol=1e-11)
    for (t, a), (s, b) in zip(*(box.seen for box in boxes), strict=True):
        assert t == s
        sign = np.sign(a.pose @ b.pose)  # of a docked base's quaternion: either
        assert np.allclose(a.pose, sign * b.pose, rtol=0.0, atol=1e-12)
        assert (a.rate is None) == (b.rate is None) == (t == 0.0)


def test_an_unknown_module_is_appended_moved_and_taken_off():
    """The motivation of SA24: a box attaches to a flying robot, and is moved."""
    robot = modular(rm.BlackBox(Live()), None)
    q, v = start(robot)
    changes = [
        rm.Attach(0.05, "box", "tool", "side", placement=ASIDE),
        rm.Detach(lambda t, q, v: t > 0.095, "box"),
        rm.Attach(0.15, "box", "tug", "side", placement=ASIDE),
    ]
    run = rm.simulate_assembly(robot, q, v, 0.2, rate=100.0, changes=changes, start=0.0)
    assert run.status == "complete"
    assert np.allclose(run.phase_starts, [0.0, 0.05, 0.1, 0.15])
    for phase, at in enumerate((None, "tool", None, "tug")):
        (samples,) = np.nonzero(run.phase == phase)
        first, last = samples[0], samples[-1] + 1
        begin = split(robot, run.q[first], run.v[first])
        assembly = welded(rm.BlackBox(Live()), at)
        other = rm.simulate_assembly(assembly, *begin, 0.05, 100.0, start=0.05 * phase)
        compare(run, other, robot, first, last)
        docked = run.signals["box.docked"][first : last - 1]
        assert np.all(docked == (at is not None))
        zero = run.signals["box.wrench"][first : last - 1]
        assert np.any(zero) == (at is not None)
    assert run.switches == ()  # boxes have no impulses


def test_a_box_is_swapped_for_another_and_for_a_robot():
    first, second = Live(), Live(-2.0)
    robot = rm.ModularRobot(
        {"tug": unit("tug", 40.0), "tool": unit("tool", 3.0), "a": rm.BlackBox(first),
         "b": rm.BlackBox(second)},
        [("a", "tug", "side")],
    )  # fmt: skip
    q, v = start(robot)
    changes = [
        rm.Swap(0.02, "a", by="b"),
        rm.Swap(0.04, "b", by="tool", place=True),
        rm.Swap(0.06, "tool", by="a"),
    ]
    run = rm.simulate_assembly(robot, q, v, 0.08, rate=100.0, changes=changes)
    times = np.arange(8) / 100.0
    assert np.allclose([t for t, _ in first.seen], times[[0, 1, 6, 7]])
    assert np.allclose([t for t, _ in second.seen], times[[2, 3]])
    assert first.seen[2][1].rate is None  # it was away: no rate until its second tick
    assert str(run.switches[0]).startswith("on: tool")
    alone = rm.simulate(
        rm.combine(robot.modules),
        run.q[0],
        run.v[0],
        0.01,
        integrator=rm.Integrator("rk4", step=0.01),
    )
    assert np.abs(alone.v[-1] - run.v[1]).max() > 1e-6  # the box has an effect
    # the momentum changes by the impulse of the wrench on the tug, without gravity
    still = rm.combine(robot.modules)
    P = rm.momentum(still, run.q[:2], run.v[:2])
    x = rm.frame_pose(still, run.q[0], "tug/side")
    pull = -rm.algebra.quaternion.rotate(x[:4], run.signals["a.wrench"][0][:3])
    fall = 0.01 * 47.6 * np.array(GRAVITY)
    assert np.allclose((P[1] - P[0])[:3], 0.01 * pull + fall, rtol=0.0, atol=2e-4)


def test_docks_of_boxes_that_cannot_be():
    box, other = rm.BlackBox(Live()), rm.BlackBox(Live())
    parts = {"tug": unit("tug", 40.0), "tool": unit("tool", 3.0), "box": box, "other": other}

    def docked(*docks):
        return rm.ModularRobot(parts, docks)

    for docks, words in (
        ([("tool", "box", "top")], "module 'box' is a black box: 'tool' cannot dock to it"),
        (
            [("box", "tug", "side"), ("other", "tug", "side")],
            "port 'side' of module 'tug' is taken",
        ),
        ([("tool", "tug", "side"), ("box", "tug", "side")], "is taken by 'tool'"),
        ([("box", "tug", "side"), ("box", "tug", "top")], "module 'box' is docked twice"),
        ([("box", "tug", "side", "hub")], "module 'box' is a black box: its dock has no mount="),
        ([("box", "tug", "nose")], "connection point of subsystem 'tug' named 'nose'"),
        ([("box", "moon", "top")], "no module named 'moon'"),
    ):
        with pytest.raises(rm.RemoraError, match=words):
            docked(*docks)
    robot = docked(("box", "tug", "side"))
    assert "box (black box)  at 'side' of 'tug'" in repr(robot)
    assert robot == docked(("box", "tug", "side")) != docked(("box", "tug", "top"))
    q, v = start(robot)
    with pytest.raises(rm.RemoraError, match="module 'box' is a black box: its wrench is known in"):
        robot.forward_dynamics(q, v, v)
    with pytest.raises(rm.RemoraError, match="'box' is a black box: no robot can be made of it"):
        robot.to_robot()
    for change, words in (
        (rm.Attach(0.01, "other", "tug", "side"), "port 'side' of module 'tug' is taken by 'box'"),
        (rm.Attach(0.01, "tool", "tug", "side", place=True), "is taken by 'box'"),
        (rm.Attach(0.01, "box", "tug", "top"), "module 'box' is docked already, to 'tug'"),
        (rm.Attach(0.01, "other", "tug", "top", latch=True), "docks without latch and place"),
        (rm.Detach(0.01, "box", separation=(0, 0, 1)), "it undocks without separation"),
        (rm.Detach(0.01, "other"), "module 'other' is not docked; docked are: 'box'"),
    ):
        with pytest.raises(rm.errors.SimulationError, match=words) as caught:
            rm.simulate_assembly(robot, q, v, 0.02, rate=100.0, changes=[change])
        assert caught.value.time == 0.01
    with pytest.raises(rm.RemoraError, match="'box' is a black box: 'tool' cannot dock to it"):
        rm.simulate_assembly(
            robot, q, v, 0.02, rate=100.0, changes=[rm.Attach(0.01, "tool", "box", "top")]
        )
