"""Separately compiled modules, called in sequence, give the results of the equations."""

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import WheelBody, arm, cut
from remora.dynamics.assembly import module_passes
from trees import Case, relative_error


@pytest.mark.parametrize("seed", [3, 5, 8])
def test_random_trees(seed):
    case = Case(seed, largest=8)
    split, at = cut(case, 0.5)
    fast = split.assembly.compile()
    tau = fast.inverse_dynamics(at.q, at.v, at.vdot)
    expected = rm.inverse_dynamics(case.robot, case.q, case.v, case.vdot)[split.v]
    assert relative_error(tau, expected) < 1e-13
    vdot = fast.forward_dynamics(at.q, at.v, at.tau)
    expected = rm.forward_dynamics(case.robot, case.q, case.v, case.tau)[split.v]
    assert relative_error(vdot, expected) < 1e-12


def branched():
    three = arm(axes=((0, 0, 1), (0, 1, 0)))
    names = "abcde"
    links = [("b", "a", "tip"), ("c", "a", "tip"), ("d", "a", "link0"), ("e", "b", "tip")]
    return rm.Assembly(dict.fromkeys(names, three), links, gravity=(0.1, 0.2, -9.81))


def test_batches_of_any_shape_in_chunks():
    assembly = branched()
    fast = assembly.compile()
    assert fast.modules == 3  # a; b with one successor; c, d and e without
    q, v = assembly.random_state(1, (3, 401))
    w = np.random.default_rng(2).normal(size=v.shape)
    for name in ("inverse_dynamics", "forward_dynamics"):
        found = getattr(fast, name)(q, v, w)
        assert fast._made[name.partition("_")[0]].chunk < 1203  # several chunks, the last partial
        expected = getattr(assembly, name)(q, v, w)
        assert relative_error(found, expected) < 1e-12
        one = getattr(fast, name)(q[1, 7], v[1, 7], w[1, 7])
        assert np.array_equal(one, found[1, 7])  # bits do not depend on the batch
        shared = getattr(fast, name)(q[0, 0], v, w[:, :1])
        expected = getattr(assembly, name)(q[0, 0], v, w[:, :1])
        assert relative_error(shared, expected) < 1e-12
    assert fast.inverse_dynamics(q[:0], v[:0], w[:0]).shape == (0, 401, 10)


def test_only_changed_modules_are_compiled(monkeypatch):
    made = []
    kernel = module_passes.Kernel
    monkeypatch.setattr(
        module_passes, "Kernel", lambda *given: made.append(given[2]) or kernel(*given)
    )
    monkeypatch.setattr(module_passes, "_KERNELS", {})
    assembly = branched()
    zero = np.zeros(10)
    assembly.compile().forward_dynamics(zero, zero, zero)
    assert len(made) == 3 + 3 + 2  # three passes; a module without successors has two
    other = assembly.remove("e").add("f", assembly.subsystems["a"], "d", "tip")
    other.compile().forward_dynamics(zero, zero, zero)
    assert len(made) == 8  # d is now a module with one successor, as b was
    swapped = assembly.swap("c", arm(axes=((0, 0, 1),), tip=(0, 0, 0.1)))
    swapped.compile().forward_dynamics(zero[:9], zero[:9], zero[:9])
    assert len(made) == 10  # the new module's two passes
    q, v = swapped.random_state(3)
    expected = rm.forward_dynamics(swapped.to_robot(), q, v, v)
    assert relative_error(swapped.compile().forward_dynamics(q, v, v), expected) < 1e-12


def test_parts_are_kept_in_changed_assemblies():
    assembly = branched()
    same = assembly.add("f", arm(), "e", "tip").remove("f")
    kept = [part.module for part in same.parts[:4]]  # the points of e changed twice
    assert kept == [part.module for part in assembly.parts[:4]]
    assert assembly.remove("b").names == ["a", "c", "d"]
    with pytest.raises(rm.RemoraError, match="'a' is the root; it cannot be removed"):
        assembly.remove("a")
    with pytest.raises(rm.RemoraError, match="there is a subsystem 'b' already"):
        assembly.add("b", arm(), "a", "tip")
    with pytest.raises(rm.RemoraError, match="no subsystem named 'x'"):
        assembly.swap("x", arm())


def test_what_is_not_compiled():
    box = rm.BlackBox(lambda t, base: rm.papers.sa24.SensorReading(np.zeros(6)))
    with pytest.raises(rm.RemoraError, match="subsystem 'box' is a black box: only assemblies of"):
        rm.Assembly({"a": arm(), "box": box}, [("box", "a", "tip")]).compile()
    with pytest.raises(rm.RemoraError, match="subsystem 'w' is not a robot: only assemblies of"):
        rm.Assembly({"w": WheelBody()}).compile()
    long = rm.random_robot(1, bodies=250)
    with pytest.raises(rm.RemoraError, match="subsystem 'a' has 250 bodies; a module is compiled"):
        rm.Assembly({"a": long}).compile()
    fast = branched().compile()
    with pytest.raises(rm.errors.ShapeError, match=r"q must have shape \(..., 10\), not \(9,\)"):
        fast.inverse_dynamics(np.zeros(9), np.zeros(10), np.zeros(10))
    with pytest.raises(rm.errors.ShapeError, match=r"tau must have shape \(..., 10\)"):
        fast.forward_dynamics(np.zeros(10), np.zeros(10), np.zeros(4))


def test_fixed_and_free_joints_and_parts_without_speeds():
    welded = rm.random_robot(3, bodies=2, kinds=["fixed"], base="fixed")
    free = rm.random_robot(4, bodies=2, kinds=["spherical"], base="free")
    assembly = rm.Assembly(
        {"a": free, "b": welded, "c": arm()}, [("b", "a", "body_1"), ("c", "b", "body_1")]
    )
    q, v = assembly.random_state(5)
    w = np.random.default_rng(6).normal(size=assembly.nv)
    fast, robot = assembly.compile(), assembly.to_robot()
    assert (
        relative_error(fast.forward_dynamics(q, v, w), rm.forward_dynamics(robot, q, v, w)) < 1e-12
    )
    assert (
        relative_error(fast.inverse_dynamics(q, v, w), rm.inverse_dynamics(robot, q, v, w)) < 1e-13
    )


def test_ten_thousand_modules():
    """A tree of 10,000 bodies: one table of calls for three distinct modules."""
    link = arm(axes=((0, 1, 0),))
    names = [f"p{k}" for k in range(10_000)]
    links = [(names[k], names[(k - 1) // 2], "tip") for k in range(1, 10_000)]
    assembly = rm.Assembly(dict.fromkeys(names, link), links)
    fast = assembly.compile()
    assert fast.modules == 4
    rng = np.random.default_rng(0)
    q, v, vdot = rng.normal(size=(3, 10_000)) * 0.1
    tau = fast.inverse_dynamics(q, v, vdot)
    assert relative_error(fast.forward_dynamics(q, v, tau), vdot) < 1e-9
