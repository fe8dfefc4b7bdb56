"""Joint springs: closed forms, MuJoCo, files, batches."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close

MUJOCO_SPRINGS = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="arm">
      <joint name="shoulder" type="hinge" axis="0 0 1" stiffness="3" springref="20"/>
      <geom type="box" size=".1 .2 .3" mass="2" pos=".3 0 0"/>
      <body name="slide" pos=".5 0 0">
        <joint name="rail" type="slide" axis="1 0 0" stiffness="40" springref="-.1"/>
        <geom type="sphere" size=".1" mass="1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def oscillator(stiffness=16.0, reference=0.25, mass=4.0):
    return (
        rm.Builder("oscillator")
        .body("mass", mass=mass, inertia=(1, 1, 1))
        .joint(
            "slide", "prismatic", None, "mass", axis=(1, 0, 0),
            stiffness=stiffness, spring_reference=reference,
        )
        .build()
    )  # fmt: skip


def test_an_oscillator_moves_as_its_closed_form_says():
    robot = oscillator()
    run = rm.simulate(
        robot, [1.0], [0.5], 3.0, record=0.1, integrator=rm.Integrator(rtol=1e-12, atol=1e-13)
    )
    w = 2.0
    assert_close(run.q[:, 0], 0.25 + 0.75 * np.cos(w * run.t) + 0.25 * np.sin(w * run.t), rtol=1e-9)
    assert run.conservation().energy.relative < 1e-10  # the spring's work is among the passive


@pytest.mark.parametrize("integrator", ["radau", "rk4", "variational"])
def test_every_integrator_has_springs(integrator):
    robot = oscillator()
    run = rm.simulate(
        robot,
        [1.0],
        [0.0],
        2.0,
        integrator=rm.Integrator(integrator, step=1e-3 if integrator != "radau" else None),
        record=1.0,
    )
    assert_close(run.q[-1], [0.25 + 0.75 * np.cos(4.0)], rtol=1e-5)


def test_springs_agree_with_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    file = tmp_path / "springs.xml"
    file.write_text(MUJOCO_SPRINGS)
    robot = rm.load(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    data.qpos[:] = [0.7, 0.2]
    mujoco.mj_forward(model, data)
    assert_close(rm.dynamics.spring_forces(robot, data.qpos.copy()), data.qfrc_passive, rtol=1e-12)
    assert np.abs(data.qfrc_passive).min() > 0.1


def test_a_follower_passes_its_spring_on_to_its_leader():
    b = rm.Builder("fingers")
    for name in ("left", "right"):
        b.body(name, mass=1.0, inertia=(1, 1, 1))
    b.joint("a", "revolute", None, "left", stiffness=2.0)
    b.joint("b", "revolute", "left", "right", stiffness=3.0, mimic=("a", -0.5, 0.1))
    robot = b.build(base=None)
    q = 0.4
    assert_close(rm.dynamics.spring_forces(robot, [q]), [-2.0 * q - 0.5 * -3.0 * (-0.5 * q + 0.1)])


def test_batches_take_stiffness_from_run_to_run():
    robot, k = oscillator(reference=0.0), np.array([4.0, 16.0, 36.0])
    batch = rm.simulate_batch(
        robot,
        [1.0],
        [0.0],
        1.0,
        integrator=rm.Integrator(step=1e-3),
        runs=rm.Runs(parameters={"slide.stiffness": k[:, None]}),
    )
    assert_close(batch.q[:, -1, 0], np.cos(np.sqrt(k / 4.0)), rtol=1e-9)


def test_yaml_keeps_springs(tmp_path):
    robot = oscillator()
    rm.save_robot(robot, tmp_path / "o.yaml")
    again = rm.load(tmp_path / "o.yaml")
    assert again.joints[0].stiffness == 16.0
    assert again.joints[0].spring_reference == 0.25


def test_a_quaternion_has_no_spring():
    b = rm.Builder("ball").body("mass", mass=1.0, inertia=(1, 1, 1))
    b.joint("ball", "spherical", None, "mass", stiffness=1.0)
    with pytest.raises(rm.errors.ModelError, match="cannot have a spring"):
        b.build()
    with pytest.raises(rm.errors.ModelError, match="stiffness is negative"):
        oscillator(stiffness=-1.0)
