"""Composed dynamics as one function, with readings of black boxes as arguments, also in C."""

import subprocess

import numpy as np
import pytest

import needs
import remora as rm
from dynamics.assembly.modules import WheelBody, arm

ASIDE = rm.algebra.pose.from_xyz_rpy((0.1, -0.2, 0.3), (0.3, 0.1, -0.6))
GRAVITY = (0.3, 0.2, -9.0)


def answers(t, base):
    x = rm.algebra.pose.from_xyz_rpy((0, 0.1 * np.sin(t), 0), (t, 0.2, 0.1 * t))
    at = rm.papers.sa24.PointReading([1, 0.2 * t, 0.1, 0, 0.1, 0], [0, 0.2, 0, 0.3, 0, 0.1], x)
    wrench = None if base is None else 0.3 * base.twist
    return rm.papers.sa24.SensorReading(wrench, {"point": at})


def assembly_with(where, gravity=GRAVITY, sensor="reaction", accelerometer=False):
    """A branched robot with a box that carries an arm, in the middle or at the root, and a leaf."""
    carrier = rm.BlackBox(answers, ("point",), sensor, accelerometer)
    leaf = rm.BlackBox(lambda t, base: rm.papers.sa24.SensorReading(0.2 * base.twist))
    link = rm.papers.sa24.Connection
    tree = rm.random_robot(6, bodies=5, base="revolute", kinds=["revolute", "prismatic"])
    parts = {"c": carrier, "b": tree, "leaf": leaf, "more": arm()}
    links = [
        link("b", "c", "point", placement=ASIDE),
        link("leaf", "b", "body_4", placement=ASIDE),
        link("more", "b", "body_2"),
    ]
    if where == "middle":
        parts, links = {"a": arm(), **parts}, [link("c", "a", "tip", placement=ASIDE), *links]
    return rm.Assembly(parts, links, gravity)


def called(assembly, kernel, q, v, w, t=0.3):
    """Return the kernel's result with what the black boxes report now."""
    given = {"q": q, "v": v, "vdot": w, "tau": w}
    for name, reading in assembly.readings(q, v, t).items():
        given[f"{name}.wrench"] = reading.wrench
        for point, at in reading.points.items():
            parts = {"twist": at.twist, "rate": at.rate, "pose": at.pose}
            given |= {f"{name}.{point}.{key}": value for key, value in parts.items()}
    arguments = [np.asarray(given[signature.name], dtype=float) for signature in kernel.inputs]
    return kernel(*arguments), arguments


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("where", ["middle", "root"])
@pytest.mark.parametrize("options", [{}, {"sensor": "actuation", "accelerometer": True}])
def test_it_is_the_assemblys_own_dynamics(function, where, options):
    assembly = assembly_with(where, **options)
    kernel = rm.papers.sa24.assembly_kernel(assembly, function)
    q, v = assembly.random_state(3)
    w = np.cos(np.arange(assembly.nv))
    found, _ = called(assembly, kernel, q, v, w)
    expected = getattr(assembly, function)(q, v, w, t=0.3)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    names = [signature.name for signature in kernel.inputs]
    assert ("c.point.pose" in names) == (not options)
    assert ("c.wrench" in names) == (where == "middle")


@needs.compiler
def test_it_is_c(tmp_path):
    """The test program that is written with the C compares with the kernel's own numbers."""
    kernel = rm.papers.sa24.assembly_kernel(assembly_with("middle"), "forward_dynamics")
    kernel.save_c(tmp_path, "robot")
    assert "const double c_point_pose[8]" in (tmp_path / "robot.h").read_text(encoding="utf-8")
    sources = [str(path) for path in tmp_path.glob("*.c")]
    subprocess.run(["gcc", "-std=c99", "-o", str(tmp_path / "test"), *sources, "-lm"], check=True)
    assert subprocess.run([str(tmp_path / "test")], check=False).returncode == 0


def test_refusals():
    with pytest.raises(rm.errors.UnknownName, match="no function of an assembly named 'inverse'"):
        rm.papers.sa24.assembly_kernel(assembly_with("root"), "inverse")
    own = rm.Assembly({"a": arm(), "own": WheelBody()}, [("own", "a", "tip")])
    with pytest.raises(rm.RemoraError, match="subsystem 'own' is not a robot or black box"):
        rm.papers.sa24.assembly_kernel(own)
