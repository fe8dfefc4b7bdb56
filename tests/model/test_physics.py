"""Physics of loaded robots: impossible inertias, massless links, kinematics-only models."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import pytest

import remora as rm
from public_names import public
from remora.model.building.inertia_consistency import repaired, violation
from remora.model.building.mass_matrix_check import undefined_joint

POSSIBLE = (0.2, 0.25, 0.3)
#: The largest moment exceeds the sum of the others: no body has it, yet every sum is positive.
FLAT = (0.1, 0.1, 0.5)


def inertial(mass: float, moments: tuple[float, ...], com: str = "0 0 0") -> str:
    xx, yy, zz = moments
    return (
        f'<inertial><origin xyz="{com}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def link(name: str, inside: str = "") -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(
    name: str, parent: str, child: str, kind: str = "revolute", axis: str = "0 0 1", more: str = ""
) -> str:
    if kind == "revolute" and "<limit" not in more:  # which Pinocchio wants
        more += '<limit lower="-9" upper="9" velocity="9" effort="9"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.1"/><axis xyz="{axis}"/>{more}</joint>'
    )


@pytest.fixture
def file(tmp_path: Path):
    def write(*parts: str) -> Path:
        path = tmp_path / "robot.urdf"
        path.write_text("\n".join(['<robot name="probe">', *parts, "</robot>"]))
        return path

    return write


def quiet(path: Path, **options: Any) -> rm.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.errors.ModelWarning)
        return rm.load(path, **options)


def assert_agrees_with_pinocchio(path: Path, robot: rm.Robot) -> None:
    """Compare mass matrix and forward dynamics of a fixed robot of revolute joints."""
    model = pinocchio.buildModelFromUrdf(str(path))
    model.gravity.linear = np.array(robot.gravity)
    data = model.createData()
    rng = np.random.default_rng(3)
    for _ in range(5):
        q, v, tau = rng.uniform(-1, 1, (3, robot.nv))
        names = [j.name for j in robot.joints if j.v.stop > j.v.start]
        order = [model.joints[model.getJointId(name)].idx_v for name in names]
        there = np.empty(robot.nv)
        there[order] = q
        fast, force = np.empty(robot.nv), np.empty(robot.nv)
        fast[order], force[order] = v, tau
        H = np.triu(pinocchio.crba(model, data, there))
        H = (H + np.triu(H, 1).T)[np.ix_(order, order)]
        np.testing.assert_allclose(rm.mass_matrix(robot, q), H, atol=1e-12 * np.abs(H).max())
        vdot = pinocchio.aba(model, data, there, fast, force)[order]
        found = rm.forward_dynamics(robot, q, v, tau)
        np.testing.assert_allclose(found, vdot, atol=1e-11 * np.abs(vdot).max())


# Impossible inertias ------------------------------------------------------------------------------

ARM = (
    link("bus", inertial(5, POSSIBLE)),
    link("arm", inertial(2, FLAT, "0.1 0 0.2")),
    joint("j", "bus", "arm", axis="1 2 3"),
)


def test_impossible_inertia_is_told_and_used_as_it_is(file) -> None:
    path = file(*ARM)
    with pytest.warns(rm.errors.ModelWarning) as caught:
        robot = rm.load(path)
    (only,) = caught
    assert str(path) in str(only.message)
    assert "inertia of 1 of 2 bodies is physically impossible ('arm'" in str(only.message)
    assert "triangle inequality: principal moments 0.1, 0.1, 0.5" in str(only.message)
    np.testing.assert_array_equal(robot.bodies["arm"].inertia, np.diag(FLAT))
    assert_agrees_with_pinocchio(path, quiet(path, base="fixed", gravity=(0, 0, -9.81)))


def test_strict_refuses_it(file) -> None:
    with pytest.raises(
        rm.errors.ModelError, match=r'line 3, <link name="arm">: .*triangle inequality'
    ):
        rm.load(file(*ARM), inertia="strict")


def test_repair_replaces_it_by_the_nearest_possible(file) -> None:
    path = file(*ARM)
    with pytest.warns(
        rm.errors.ModelWarning, match="replaced by the nearest.*change of an entry is 0.1"
    ):
        robot = rm.load(path, inertia="repair")
    body = robot.bodies["arm"]
    # Σ = diag(0.25, 0.25, -0.15) becomes diag(0.25, 0.25, 0).
    np.testing.assert_allclose(body.inertia, np.diag([0.25, 0.25, 0.5]), atol=1e-15)
    assert (float(body.mass), body.com.tolist()) == (2.0, [0.1, 0.0, 0.2])
    assert any("0.1, 0.1, 0.5 became 0.25, 0.25, 0.5" in w for w in robot.warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.robot_to_yaml(robot)
        assert violation(body.inertia) is None


def test_no_possible_inertia_is_nearer_than_the_repaired_one() -> None:
    rng = np.random.default_rng(5)

    def second_moment(I):
        return 0.5 * np.trace(I) * np.eye(3) - I

    for _ in range(20):
        A = rng.normal(size=(3, 3))
        given = A + A.T
        found = repaired(given)
        assert violation(found) is None
        distance = np.linalg.norm(second_moment(found) - second_moment(given))
        for scale in (1e-3, 1e-1, 1.0):
            B = rng.normal(size=(3, 3)) * scale
            values, axes = np.linalg.eigh(second_moment(found) + B + B.T)
            other = (axes * np.maximum(values, 0.0)) @ axes.T
            assert np.linalg.norm(other - second_moment(given)) >= distance - 1e-12
        np.testing.assert_allclose(repaired(found), found, atol=1e-14 * np.abs(found).max())


def test_a_possible_inertia_is_not_repaired(file) -> None:
    parts = (link("bus", inertial(5, POSSIBLE)),)
    assert rm.load(file(*parts), inertia="repair").warnings == ()


def test_links_are_judged_after_they_are_merged(file) -> None:
    path = file(
        link("bus", inertial(5, (1.0, 1.0, 1.0))),
        link("plate", inertial(0.1, FLAT)),
        joint("weld", "bus", "plate", "fixed"),
    )
    assert rm.load(path, inertia="strict").warnings == ()
    with pytest.raises(rm.errors.ModelError, match=r"'?plate'?.*triangle inequality"):
        rm.load(path, inertia="strict", merge_fixed=False)


def test_the_floor_grows_with_mass_and_size(file) -> None:
    tiny = (1e-12, 1e-12, 1e-11)  # impossible, but nothing beside m d² = 0.1 kg m²
    path = file(link("bus", inertial(1, POSSIBLE)), link("arm", inertial(1, tiny, "0 0 0.3")),
                joint("j", "bus", "arm", axis="1 0 0"))  # fmt: skip
    assert rm.load(path, inertia="strict").warnings == ()
    small = path.read_text().replace('value="1"', 'value="1e-9"')
    path.write_text(small)
    with pytest.raises(rm.errors.ModelError, match="triangle inequality"):
        rm.load(path, inertia="strict")


def test_an_inertia_that_makes_the_mass_matrix_indefinite_is_refused(file) -> None:
    path = file(
        link("bus", inertial(5, POSSIBLE)),
        link("arm", inertial(2, (-0.1, 0.7, 0.5))),
        joint("j", "bus", "arm", axis="1 0 0"),
    )
    with pytest.raises(rm.errors.ModelError) as caught:
        rm.load(path)
    text = str(caught.value)
    assert "line 3," in text
    assert "joint 'j' feels a negative inertia" in text
    assert "inertia='repair'" in text
    robot = quiet(path, inertia="repair")
    assert undefined_joint(robot) is None
    assert rm.load(path, dynamics=False).nv == 7


def test_yaml_and_the_builder_are_strict_unless_told(tmp_path: Path) -> None:
    builder = rm.Builder().body("bus", 1.0, inertia=FLAT)
    with pytest.raises(rm.errors.ModelError, match="triangle"):
        builder.build()
    path = tmp_path / "robot.yaml"
    path.write_text(f"remora: 1\nbodies:\n  - {{name: bus, mass: 1, inertia: {list(FLAT)}}}\n")
    with pytest.raises(rm.errors.ModelError, match="triangle"):
        rm.load(path)
    assert np.array_equal(quiet(path, inertia="warn").bodies["bus"].inertia, np.diag(FLAT))
    with pytest.raises(rm.RemoraError, match="known: strict, warn, repair"):
        rm.load(path, inertia="ignore")


def test_a_run_of_a_robot_with_impossible_inertia_can_be_opened(file, tmp_path: Path) -> None:
    robot = quiet(file(*ARM))
    run = rm.simulate(
        robot, rm.neutral(robot), np.ones(robot.nv), 0.1, record=rm.Record(folder=tmp_path / "run")
    )
    again = rm.open_run(tmp_path / "run")
    np.testing.assert_array_equal(again.q, run.q)
    np.testing.assert_array_equal(again.robot.bodies["arm"].inertia, np.diag(FLAT))


# Massless links -----------------------------------------------------------------------------------


def chain(*axes: str, tip: str = inertial(2, POSSIBLE, "0.1 0.2 0.3")) -> tuple[str, ...]:
    """Return an arm whose links are all massless but the last."""
    names = ["ground", *(f"l{k}" for k in range(len(axes)))]
    links = [link(name) for name in names[:-1]] + [link(names[-1], tip)]
    joints = [joint(f"j{k}", names[k], names[k + 1], axis=a) for k, a in enumerate(axes)]
    return (*links, *joints)


def test_massless_links_inside_a_chain(file) -> None:
    path = file(*chain("1 0 0", "0 1 0", "0 0 1"))
    with pytest.warns(rm.errors.ModelWarning, match="root has no mass: mounted on the ground"):
        robot = rm.load(path, gravity=(0, 0, -9.81))
    assert [j.kind for j in robot.joints] == ["fixed", "revolute", "revolute", "revolute"]
    assert_agrees_with_pinocchio(path, robot)
    q, v = rm.random_state(robot, 2)
    tau = np.array([0.3, -0.2, 0.1])
    expected = rm.forward_dynamics(robot, q, v, tau)
    for formulation in ("articulated", "composite"):
        found = rm.forward_dynamics(robot, q, v, tau, formulation=formulation)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(rm.compile(rm.forward_dynamics, robot)(q, v, tau), expected)


def test_a_massless_root_floats_if_told_and_if_it_can(file) -> None:
    arms = [link("hub")]
    for k in range(2):
        arms.append(link(f"arm{k}", inertial(2, POSSIBLE)))
        arms.append(joint(f"j{k}", "hub", f"arm{k}", axis=f"{k} 1 0"))
    path = file(*arms)
    assert quiet(path).joints[0].kind == "fixed"
    robot = rm.load(path, base="free")
    assert robot.joints[0].kind == "free"
    assert undefined_joint(robot) is None
    q, v = rm.random_state(robot, 1)
    tau = np.arange(8.0)
    back = rm.inverse_dynamics(robot, q, v, rm.forward_dynamics(robot, q, v, tau))
    np.testing.assert_allclose(back, tau, atol=1e-11)


def test_mass_fixed_to_a_massless_root_counts_as_its_own(file) -> None:
    bus = link("bus", inertial(5, POSSIBLE))
    path = file(link("world"), bus, joint("w", "world", "bus", "fixed"))
    for merge in (True, False):
        robot = rm.load(path, merge_fixed=merge)
        assert robot.joints[0].kind == "free"


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ((link("bus", inertial(5, POSSIBLE)), link("b"), joint("j", "bus", "b")), "j"),
        ((link("bus", inertial(5, POSSIBLE)), *chain("0 0 1", "0 0 1")[1:]), "j0"),
    ],
    ids=["tip", "coaxial"],
)
def test_a_joint_that_nothing_resists_is_named_when_loading(file, parts, name) -> None:
    if name == "j0":  # two coaxial joints with a massless link between them
        origin = '<origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.1"/><axis'
        parts = [p.replace('"ground"', '"bus"').replace(origin, "<axis") for p in parts]
    path = file(*parts)
    told = f"forward dynamics is not defined.*what joint '{name}'"
    with pytest.warns(rm.errors.ModelWarning, match=told):
        robot = rm.load(path)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    assert np.all(np.isfinite(rm.inverse_dynamics(robot, q, v, v)))
    with pytest.raises(rm.RemoraError, match=f"joint '{name}'"):
        rm.compile(rm.forward_dynamics, robot)
    with pytest.raises(rm.RemoraError, match=f"joint '{name}'"):
        rm.simulate(robot, q, v, 0.1)
    v[:6] = 1.0
    run = rm.simulate(robot, q, v, 0.1, locked=[name])
    assert run.status == "complete"
    with pytest.raises(
        rm.errors.ModelError, match=f"mass is zero on a body that moves .joint '{name}'"
    ) as e:
        rm.load(path, inertia="strict")
    assert ("what it carries has no inertia along" in str(e.value)) == (name == "j0")


def test_a_point_mass_on_its_axis_is_named_too() -> None:
    robot = (
        rm.Builder()
        .body("bus", 1.0, inertia=POSSIBLE)
        .body("bead", 1.0, com=(0, 0, 1))
        .joint("spin", "revolute", "bus", "bead", axis=(0, 0, 1))
        .build()
    )
    assert "what joint 'spin' (revolute) carries has no inertia" in robot.warnings[0]
    armed = robot.replace_joint("spin", rotor_inertia=0.1)
    assert undefined_joint(armed) is None


def test_followers_need_no_inertia_of_their_own() -> None:
    def built(ratio: float) -> rm.Robot:
        return (
            rm.Builder()
            .body("bus", 1.0, inertia=POSSIBLE)
            .body("one", 1.0, inertia=POSSIBLE)
            .body("two", 0.0)
            .joint("lead", "revolute", "bus", "one")
            .joint("follow", "revolute", "bus", "two", mimic=("lead", ratio, 0.0))
            .build()
        )

    robot = built(-1.0)
    assert robot.warnings == ()
    q, v = rm.random_state(robot, 1)
    assert np.all(np.isfinite(rm.forward_dynamics(robot, q, v, v)))


# Kinematics-only models ---------------------------------------------------------------------------

BARE = chain("1 0 0", "0 1 0", tip="")


def test_a_robot_without_masses_is_refused_with_the_way_out(file) -> None:
    with pytest.raises(rm.errors.ModelError, match=r"mass is zero.*dynamics=False"):
        quiet(file(*BARE))


def test_kinematics_only(file) -> None:
    path = file(*BARE)
    robot = quiet(path, dynamics=False)
    twin = quiet(file(*chain("1 0 0", "0 1 0")))
    q, v = rm.random_state(twin, 4)
    assert not robot.dynamics
    assert twin.dynamics
    np.testing.assert_array_equal(rm.jacobian(robot, q, "l1"), rm.jacobian(twin, q, "l1"))
    np.testing.assert_array_equal(rm.poses(robot, q), rm.poses(twin, q))
    np.testing.assert_allclose(rm.compile(robot).twists(q, v), rm.twists(twin, q, v), atol=1e-15)


def test_every_function_of_masses_explains_why_it_refuses(file) -> None:
    robot = quiet(file(*BARE), dynamics=False)
    q, v = rm.random_state(robot, 4)
    tried = {
        "forward_dynamics": (q, v, v), "inverse_dynamics": (q, v, v), "mass_matrix": (q,),
        "coriolis_matrix": (q, v), "bias_force": (q, v), "reaction_wrenches": (q, v, v),
        "hybrid_dynamics": (q, v, v, {}), "newton_euler_solution": (q, v, v),
        "momentum": (q, v), "momentum_matrix": (q,), "center_of_mass": (q,),
        "center_of_mass_jacobian": (q,), "centroidal_momentum": (q, v),
        "centroidal_momentum_matrix": (q,), "locked_inertia": (q,), "kinetic_energy": (q, v),
        "potential_energy": (q,), "generalized_jacobian": (q, "l1"),
        "generalized_jacobian_rate": (q, v, "l1"), "base_response": (q,),
        "base_response_rate": (q, v), "floating_inverse_dynamics": (q, v, v),
        "forward_dynamics_derivatives": (q, v, v), "inverse_dynamics_derivatives": (q, v, v),
    }  # fmt: skip
    for name, arguments in tried.items():
        with pytest.raises(rm.RemoraError, match=f"{name} needs masses.*dynamics=False"):
            public(name)(robot, *arguments)
        with pytest.raises(rm.RemoraError, match="needs masses"):
            rm.compile(public(name), robot)
    with pytest.raises(rm.RemoraError, match="a simulation needs masses"):
        rm.simulate(robot, q, v, 1.0)
    with pytest.raises(rm.RemoraError, match="a simulation needs masses"):
        rm.simulate_batch(robot, q[None], v[None], 1.0, integrator=rm.Integrator(step=0.1))
    with pytest.raises(rm.RemoraError, match="mass_matrix needs masses"):
        rm.mass_matrix(robot=robot, q=q)


def test_kinematics_only_survives_saving(file, tmp_path: Path) -> None:
    robot = quiet(file(*BARE), dynamics=False)
    rm.save_robot(robot, tmp_path / "again.yaml")
    again = rm.load(tmp_path / "again.yaml")
    assert not again.dynamics
    (tmp_path / "odd.yaml").write_text("remora: 1\ndynamics: maybe\nbodies: []\n")
    with pytest.raises(rm.errors.ModelError, match=r"line 2.*dynamics must be true or false"):
        rm.load(tmp_path / "odd.yaml")


# What files say that means little -----------------------------------------------------------------


def test_mimic_on_a_fixed_joint_is_ignored(file) -> None:
    path = file(
        link("bus", inertial(5, POSSIBLE)), link("a", inertial(1, POSSIBLE)),
        link("b", inertial(1, POSSIBLE)), joint("j", "bus", "a"),
        joint("k", "a", "b", "fixed", more='<mimic joint="j"/>'),
    )  # fmt: skip
    robot = rm.load(path)
    assert robot.nv == 7
    assert "<mimic>" in robot.warnings[0]
    assert "fixed joint; ignored" in robot.warnings[0]


def test_mimic_of_an_unknown_joint_moves_by_itself(file) -> None:
    more = '<mimic joint="nobody"/>'
    path = file(*ARM[:1], link("arm", inertial(2, POSSIBLE)), joint("j", "bus", "arm", more=more))
    with pytest.warns(
        rm.errors.ModelWarning, match="no joint 'nobody' to follow; this one moves by"
    ):
        robot = rm.load(path)
    assert robot.joints["j"].mimic is None


def test_crossed_limits_mean_none(file) -> None:
    more = '<limit lower="1" upper="-1" velocity="2"/>'
    path = file(*ARM[:1], link("arm", inertial(2, POSSIBLE)), joint("j", "bus", "arm", more=more))
    robot = rm.load(path)
    limits = robot.joints["j"].limits
    assert (limits.lower[0], limits.upper[0], limits.velocity[0]) == (-np.inf, np.inf, 2.0)
    assert "lower 1 is above upper -1; taken as unlimited" in robot.warnings[0]


def test_commas_and_an_axis_said_twice(file) -> None:
    text = joint("j", "bus", "arm", axis="0, 1, 0", more='<axis xyz="0, 1, 0"/>')
    robot = rm.load(file(*ARM[:1], link("arm", inertial(2, POSSIBLE)), text))
    np.testing.assert_array_equal(robot.joints["j"].axes, [[0, 1, 0]])
    assert any("by commas" in w for w in robot.warnings)
    assert any("given twice" in w for w in robot.warnings)


def test_blanks_before_the_declaration_and_zeros_after_the_end(file) -> None:
    path = file(*ARM[:1])
    path.write_bytes(b'\n \n<?xml version="1.0"?>\n' + path.read_bytes() + b"\n\0\0")
    assert rm.load(path).bodies.names == ["bus"]
    path.write_bytes(path.read_bytes().replace(b"bus", b"b\0s"))
    with pytest.raises(rm.errors.ModelError, match="line 5, XML: is not well-formed"):
        rm.load(path)


def test_a_world_that_is_no_link_is_the_inertial_frame(file) -> None:
    robot = rm.load(file(*ARM[:1], joint("weld", "world", "bus", "fixed")))
    assert [(j.name, j.kind, j.parent) for j in robot.joints] == [("weld", "fixed", -1)]
    assert "no link 'world': taken for the inertial frame" in robot.warnings[0]
