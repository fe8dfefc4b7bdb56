"""Functions of closed chains as kernels: CPU, PTX on the small machine, C, float32."""

import subprocess

import numpy as np
import pytest

import needs
import ptx_machine
import remora as rm
from mechanisms import four_bar, four_bar_angles
from numeric import assert_close
from public_names import public

ROBOT = four_bar(closing="spherical")  # one of three equations depends on the others
FLAT = four_bar(base="free", rpy=(0.2, 0.3, 0.4))  # three of five
FUNCTIONS = (
    "forward_dynamics", "constraint_residual", "constraint_jacobian", "constraint_bias",
    "constraint_multipliers", "constraint_wrenches", "project_configuration", "project_velocity",
    "constraint_impulse", "constraint_projector", "reaction_wrenches",
)  # fmt: skip


def states(robot, n=3):
    """Return states of the closed linkage."""
    rng = np.random.default_rng(0)
    q, v = rm.random_state(robot, 1, n)
    for k in range(n):
        angle = 0.3 + 0.5 * k
        coupler, rocker = four_bar_angles(angle)
        q[k, -3:] = angle, coupler - angle, rocker
    return q, rm.loops.project_velocity(robot, q, v), rng.normal(size=(n, robot.nv))


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cpu(name):
    kernel = rm.compile(public(name), ROBOT)
    arguments = states(ROBOT)[: len(kernel.inputs)]
    for got, expected in zip(
        parts(kernel(*arguments)), parts(public(name)(ROBOT, *arguments)), strict=True
    ):
        assert_close(got, expected, rtol=1e-11)


@pytest.mark.parametrize("method", ["articulated", "composite", "newton_euler"])
def test_methods_with_redundant_equations(method):
    kernel = rm.compile(rm.forward_dynamics, FLAT, fixed={"formulation": method})
    arguments = states(FLAT)
    assert_close(kernel(*arguments), rm.forward_dynamics(FLAT, *arguments), rtol=1e-11)


def test_ptx():
    q, v, tau = states(ROBOT)
    kernel = rm.compile(rm.forward_dynamics, ROBOT, target="cuda")
    code = kernel.code(("rows",) * 4)
    out = np.full((3, 3), np.nan)
    ptx_machine.run(code.text, code.entries[0], [q, 3, v, 3, tau, 3, out, 3, 3], 1, 32)
    assert_close(out, rm.forward_dynamics(ROBOT, q, v, tau), rtol=1e-11)


def test_float32_only_without_redundancy():
    with pytest.raises(rm.errors.InvalidValue, match=r"float32: .* 'pin' depend on others"):
        rm.compile(rm.forward_dynamics, ROBOT, dtype="float32")
    rod = ROBOT.replace(constraints=())
    rod = rm.loops.add_constraint(
        rod, "strut", "rod", "crank", "rocker", length=2.0,
        parent_xyz=(1.0, 0.0, 0.0), child_xyz=(2.0, 0.0, 0.0),
    )  # fmt: skip
    kernel = rm.compile(rm.forward_dynamics, rod, dtype="float32")
    q, v = rm.close_loops(rod, np.array([0.9, 0.3, 1.5]), np.ones(3))
    single = [x.astype(np.float32) for x in (q, v, np.ones(3))]
    assert_close(kernel(*single), rm.forward_dynamics(rod, q, v, np.ones(3)), rtol=1e-4)


@needs.compiler
def test_c(tmp_path):
    kernel = rm.compile(rm.forward_dynamics, ROBOT)
    kernel.save_c(tmp_path)
    sources = [str(p) for p in tmp_path.glob("*.c")]
    subprocess.run(["gcc", "-std=c99", "-o", str(tmp_path / "test"), *sources, "-lm"], check=True)
    assert subprocess.run([str(tmp_path / "test")], check=False).returncode == 0


def test_symbolic_placements():
    """A latch whose pose is an argument of the kernel."""
    kernel = rm.compile(rm.loops.constraint_residual, ROBOT, parameters=("pin.child_placement",))
    q, _, _ = states(ROBOT, 1)
    placement = ROBOT.constraints["pin"].child_placement
    assert_close(kernel(q[0], placement), np.zeros(3), scale=1.0, rtol=1e-13)


def test_masses_too_different_have_the_verdict_of_the_reference():
    """A nearly massless slider between two gears: its equations cannot be told apart."""

    def geared(mass):
        builder = rm.Builder("geared").body("base", mass=1.0, inertia=(1, 1, 1))
        for name, own in (("a", 1.0), ("b", mass), ("c", 2.0)):
            builder = builder.body(name, mass=own, inertia=np.full(3, own))
            builder = builder.joint(name, "prismatic", "base", name, axis=(1, 0, 0))
        return builder.gear("first", "a", "b", 1.0).gear("second", "b", "c", 1.0).build("fixed")

    arguments = np.zeros(3), np.zeros(3), np.array([3.0, 0.0, 0.0])
    for mass in (1.0, 1e-9):
        robot = geared(mass)
        expected = rm.forward_dynamics(robot, *arguments)
        assert np.abs(expected - 3.0 / (3.0 + mass)).max() < 1e-6
        made = rm.compile(rm.forward_dynamics, robot)
        assert np.abs(made(*arguments) - expected).max() < 1e-6
    robot = geared(1e-18)
    with pytest.raises(rm.errors.InvalidValue, match="'second' contradicts"):
        rm.forward_dynamics(robot, *arguments)
    assert not np.isfinite(rm.compile(rm.forward_dynamics, robot)(*arguments)).any()
    with pytest.raises(rm.errors.InvalidValue, match="'second' is not satisfied"):
        rm.forward_dynamics(robot, *arguments, formulation="newton_euler")
    made = rm.compile(rm.forward_dynamics, robot, fixed={"formulation": "newton_euler"})
    assert not np.isfinite(made(*arguments)).any()
    made = rm.compile(rm.forward_dynamics, geared(1.0), fixed={"formulation": "newton_euler"})
    assert np.abs(made(*arguments) - 0.75).max() < 1e-12
    with pytest.raises(rm.errors.SimulationError, match="'second' contradicts"):
        rm.simulate(robot, np.zeros(3), np.zeros(3), 1.0, torque=arguments[2])
