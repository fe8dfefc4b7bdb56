"""The command line as a user meets it: in a process of its own."""

import json
import subprocess
import sys

import pytest

import remora as rm


def remora(*arguments):
    command = [sys.executable, "-c", "from remora.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", ["servicer", "vt18_satellite", "vt18_two_arm"])
def test_info_of_a_bundled_robot(name):
    done = remora("info", name)
    assert done.returncode == 0, done.stderr
    robot = rm.load(name)
    for word in (*robot.bodies.names, *robot.joints.names, *robot.frames.names, "total mass"):
        assert word in " ".join(done.stdout.split())


def test_info_json_holds_every_number():
    done = remora("info", "servicer", "--json")
    data, robot = json.loads(done.stdout), rm.load("servicer")
    assert data["nq"] == robot.nq
    assert data["mass"] == float(robot.mass)
    for body, there in zip(robot.bodies, data["bodies"], strict=True):
        assert there["inertia"] == body.inertia.tolist()
    for joint, there in zip(robot.joints, data["joints"], strict=True):
        assert there["placement"] == joint.placement.tolist()
        assert (there["kind"], there["parent"]) == (joint.kind, joint.parent)


def test_info_options():
    done = remora("info", "servicer", "--base", "fixed", "--json")
    assert json.loads(done.stdout)["nv"] == 7
    done = remora("info", "servicer", "--keep-fixed", "--json")
    assert "fixed" in {j["kind"] for j in json.loads(done.stdout)["joints"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "missing.urdf"], ["missing.urdf"]),
        (["info", "nobody"], ["nobody", "servicer"]),
        (["info", "servicer", "--base", "wheels"], ["wheels", "free"]),
        (["info"], ["FILE"]),
        (["fly"], ["fly"]),
    ],
)
def test_mistakes_get_a_message_and_exit_code_2(arguments, words):
    done = remora(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word.lower() in done.stderr.lower()


def test_a_broken_file_is_reported_with_all_its_faults(tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text(
        '<robot name="r">\n<link name="a"><inertial><mass value="-1"/></inertial></link>\n'
        '<link name="b"/>\n'
        '<joint name="j" type="hinge"><parent link="a"/><child link="c"/></joint>\n'
        "</robot>"
    )
    done = remora("info", str(file))
    assert done.returncode == 2
    for word in ("broken.urdf", "line 2", "mass", "line 4", "hinge", "faults"):
        assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_demo_shows_recoil_and_no_momentum():
    done = remora("demo")
    assert done.returncode == 0, done.stderr
    for word in ("servicer", "Jacobian", "centre of mass", "base turns", "total momentum"):
        assert word in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["info", "--help"], ["demo", "--help"]])
def test_help_explains(arguments):
    done = remora(*arguments)
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert remora("--version").stdout.strip() == f"remora {rm.__version__}"
