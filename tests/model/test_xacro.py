"""Xacro templates: expanded where the package is installed, and only from the allowed folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import remora as rm

HEAD = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="templated">'
INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
ARM = f"""{HEAD}
<xacro:property name="mass" value="${{2 * 3}}"/>
<xacro:macro name="body" params="name">
  <link name="${{name}}"><inertial><mass value="${{mass}}"/>{INERTIA}</inertial></link>
</xacro:macro>
<xacro:body name="bus"/>
<xacro:body name="arm"/>
<joint name="j" type="continuous">
  <parent link="bus"/><child link="arm"/><axis xyz="0 0 1"/><origin rpy="0 0 ${{pi / 2}}"/>
</joint>
</robot>
"""


def test_a_template_is_expanded(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf.xacro").write_text(ARM)
    robot = rm.load(tmp_path / "arm.urdf.xacro")
    assert (robot.name, robot.bodies.names, robot.nv) == ("templated", ["bus", "arm"], 7)
    assert float(robot.bodies["arm"].mass) == 6.0
    np.testing.assert_allclose(robot.joints["j"].placement[3], np.sqrt(0.5))


def test_packages_are_found_below_the_root(tmp_path: Path) -> None:
    folder = tmp_path / "arm_description" / "urdf"
    folder.mkdir(parents=True)
    (folder.parent / "package.xml").touch()
    (folder / "parts.xacro").write_text(ARM)
    file = folder / "all.urdf.xacro"
    include = '<xacro:include filename="$(find arm_description)/urdf/parts.xacro"/>'
    file.write_text(f"{HEAD}{include}</robot>")
    assert rm.load(file).nv == 7


@pytest.mark.parametrize(
    "inside",
    [
        '<xacro:include filename="{}"/>',
        "<link name=\"${{xacro.load_yaml('{}')}}\"/>",
    ],
)
def test_files_outside_the_root_are_not_opened(inside: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.xacro"
    secret.write_text(ARM)
    folder = tmp_path / "inner"
    folder.mkdir()
    file = folder / "robot.urdf.xacro"
    file.write_text(f"{HEAD}{inside.format(secret)}</robot>")
    with pytest.raises(rm.errors.ModelError, match=r"xacro cannot expand: .*is not a file below"):
        rm.load(file)
    (folder / "link.xacro").symlink_to(secret)
    file.write_text(f"{HEAD}{inside.format('link.xacro')}</robot>")
    with pytest.raises(rm.errors.ModelError, match=r"xacro cannot expand"):
        rm.load(file)


def test_what_cannot_be_expanded_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf.xacro"
    file.write_text(f'{HEAD}<link name="${{nothing}}"/></robot>')
    with pytest.raises(rm.errors.ModelError, match=r"nothing.*is not defined"):
        rm.load(file)
    with pytest.raises(rm.errors.ModelError, match="No such file"):
        rm.load(tmp_path / "none.urdf.xacro")


def test_faults_of_what_it_becomes_are_those_of_a_urdf(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf.xacro"
    file.write_text(ARM.replace("2 * 3", "-1"))
    with pytest.raises(rm.errors.ModelError, match="mass is negative"):
        rm.load(file)


def test_without_the_package_there_is_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "arm.urdf.xacro").write_text(ARM)
    hint = r"pip install .\.\[xacro\].*xacro arm.urdf.xacro > robot.urdf"
    with pytest.raises(rm.errors.ModelError, match=hint):
        rm.load(tmp_path / "arm.urdf.xacro")
