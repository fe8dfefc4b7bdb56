"""The command line as a user meets it: in a process of its own."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import in_process
import remora as rm
from remora.model.formats.yaml.yaml import save_robot


def remora(*arguments, columns=80):
    command = [sys.executable, "-c", "from remora.cli import main; main()", *arguments]
    environment = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )


@pytest.mark.parametrize("name", ["servicer", "vt18_satellite", "vt18_two_arm"])
def test_info_of_a_bundled_robot(name):
    done = remora("info", name)
    assert done.returncode == 0, done.stderr
    robot = rm.load(name)
    for word in (*robot.bodies.names, *robot.joints.names, *robot.frames.names, "total mass"):
        assert word in " ".join(done.stdout.split())


def test_info_json_holds_every_number():
    done = in_process.remora("info", "servicer", "--json")
    data, robot = json.loads(done.stdout), rm.load("servicer")
    assert data["nq"] == robot.nq
    assert data["mass"] == float(robot.mass)
    for body, there in zip(robot.bodies, data["bodies"], strict=True):
        assert there["inertia"] == body.inertia.tolist()
    for joint, there in zip(robot.joints, data["joints"], strict=True):
        assert there["placement"] == joint.placement.tolist()
        assert (there["kind"], there["parent"]) == (joint.kind, joint.parent)
        for end in ("lower", "upper", "velocity", "effort"):
            own = getattr(joint.limits, end)
            assert there[end] == [float(x) if np.isfinite(x) else None for x in own]


def test_info_tells_ranges_of_joints_with_one_freedom(tmp_path):
    made = rm.Builder("r").body("a", mass=1).body("b", mass=1).body("c", mass=1).body("d", mass=1)
    made.joint("turn", "revolute", "a", "b", lower=-0.5, upper=1.0)
    made.joint("slide", "prismatic", "b", "c", lower=-0.25, upper=0.25)
    made.joint("cross", "universal", "c", "d", axis=(1, 0, 0), axis2=(0, 1, 0))
    save_robot(made.build(), tmp_path / "robot.yaml")
    lines = in_process.remora("info", tmp_path / "robot.yaml").stdout.splitlines()
    rows = {name: next(x for x in lines if f" {name} " in x).split() for name in
            ("turn", "slide", "cross")}  # fmt: skip
    assert rows["turn"][-5:] == ["8", "6", f"{np.degrees(-0.5):.1f}", "to", "57.3°"]
    assert rows["slide"][-4:] == ["9", "7", "±0.25", "m"]
    assert rows["cross"][-3:] == ["universal", "10:12", "8:10"]


def test_info_json_holds_the_drive_and_what_is_followed(tmp_path):
    builder = rm.Builder("r").body("a", mass=1).body("b", mass=1).body("c", mass=1)
    drive = {"damping": 0.1, "friction": 0.2, "rotor_inertia": 0.3}
    builder.joint("lead", "helical", "a", "b", pitch=0.5, **drive)
    builder.joint("follow", "revolute", "a", "c", mimic=("lead", -2.0, 0.25))
    save_robot(builder.build(), tmp_path / "robot.yaml")
    done = in_process.remora("info", tmp_path / "robot.yaml", "--json")
    _, lead, follow = json.loads(done.stdout)["joints"]
    assert (lead["pitch"], lead["mimic"], follow["pitch"]) == (0.5, None, 0.0)
    assert {key: lead[key] for key in drive} == {key: [value] for key, value in drive.items()}
    assert follow["mimic"] == {"joint": "lead", "ratio": -2.0, "offset": 0.25}
    row = in_process.remora("info", tmp_path / "robot.yaml").stdout.partition("follow")[2]
    assert "-2 x lead" in row.partition("\n")[0]


@pytest.mark.parametrize("columns", [120, 80, 50])
def test_no_row_of_the_tree_is_folded_or_cut(columns):
    robot = rm.load("servicer", merge_fixed=False)
    rows = remora("info", "servicer", "--keep-fixed", columns=columns).stdout.splitlines()[1:]
    for row, body, joint in zip(rows, robot.bodies, robot.joints, strict=False):
        assert {body.name, joint.name, joint.kind} <= set(row.split())
    if columns >= 80:
        assert max(map(len, rows)) <= columns


def test_names_are_printed_as_they_are(tmp_path):
    name = "arm[bold]:smile:"
    save_robot(rm.Builder("[red]").body(name, mass=1).build(), tmp_path / "robot.yaml")
    done = remora("info", str(tmp_path / "robot.yaml"))
    assert name in done.stdout
    assert "[red]: 1 body, nq = 8" in done.stdout
    save_robot(rm.Builder("r").body("a\x1b[2J", mass=1).build(), tmp_path / "robot.yaml")
    assert "a\\x1b[2J" in remora("info", str(tmp_path / "robot.yaml")).stdout


def test_a_wrong_option_is_not_blamed_on_the_file():
    done = remora("info", "servicer", "--base", "wheels")
    assert done.stderr.startswith("error: base='wheels' is not a joint type; known: fixed")
    assert "servicer" not in done.stderr


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
        (["info"], ["ROBOT"]),
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


@pytest.mark.parametrize("arguments", [["--help"], ["info", "--help"], ["demo", "--help"]])
def test_help_explains(arguments):
    done = remora(*arguments)
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert remora("--version").stdout.strip() == f"remora {rm.__version__}"


def test_mesh_root_is_an_option_of_every_command_that_takes_a_robot(tmp_path):
    (tmp_path / "urdf").mkdir()
    (tmp_path / "a.stl").touch()
    file = tmp_path / "urdf" / "robot.urdf"
    file.write_text(
        '<robot name="r"><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
        '<visual><geometry><mesh filename="../a.stl"/></geometry></visual></link></robot>'
    )
    assert "leads out of" in remora("info", str(file)).stdout
    assert "leads out of" not in remora("info", str(file), "--mesh-root", str(tmp_path)).stdout
    for command in ("info", "view", "run", "compile", "bench", "report"):
        assert "--mesh-root" in remora(command, "--help").stdout


ODD = """<robot name="odd">
<link name="bus"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="bus"/><child link="arm"/></joint>
</robot>"""


def test_info_says_what_it_does_about_inertias(tmp_path):
    file = tmp_path / "odd.urdf"
    file.write_text(ODD)
    done = remora("info", str(file), columns=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("physically impossible") == 1
    assert done.stderr == ""
    done = remora("info", str(file), "--inertia", "strict")
    assert done.returncode == 2
    assert "triangle inequality" in done.stderr
    done = remora("info", str(file), "--inertia", "repair", "--json")
    assert json.loads(done.stdout)["bodies"][0]["inertia"][2][2] == pytest.approx(0.5)
    assert json.loads(done.stdout)["bodies"][0]["inertia"][0][0] == pytest.approx(0.25)
    done = remora("info", str(file), "--inertia", "maybe")
    assert done.returncode == 2
    assert "known: strict, warn, repair" in done.stderr


def test_other_commands_say_it_on_one_line(tmp_path):
    file = tmp_path / "odd.urdf"
    file.write_text(ODD)
    done = remora("compile", str(file), "--function", "poses")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: ")
    assert "physically impossible ('bus'" in line
    done = remora("compile", str(file), "--function", "poses", "--inertia", "strict")
    assert done.returncode == 2


def test_kinematics_only_on_the_command_line(tmp_path):
    file = tmp_path / "bare.urdf"
    bare = re.sub(r"<inertial>.*?</inertial>", "", ODD, flags=re.DOTALL)
    file.write_text(bare)
    done = remora("info", str(file))
    assert done.returncode == 2
    assert "--no-dynamics" in done.stderr
    done = remora("info", str(file), "--no-dynamics")
    assert done.returncode == 0, done.stderr
    assert "kinematics only" in done.stdout
    done = remora("compile", str(file), "--no-dynamics", "--function", "mass_matrix")
    assert done.returncode == 2
    assert "needs masses" in done.stderr
