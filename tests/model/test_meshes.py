"""Where meshes are looked for, and where not."""

from pathlib import Path

from remora.model.formats.bounded_reading import default_root
from remora.model.formats.load import load

ROBOT = """<robot name="r"><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>{}</link></robot>"""


def test_meshes_are_found_in_the_package_that_the_file_lies_in(tmp_path: Path) -> None:
    (tmp_path / "urdf").mkdir()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").touch()
    (tmp_path / "package.xml").touch()
    file = tmp_path / "urdf" / "robot.urdf"
    visual = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    names = ("package://arm/meshes/a.stl", "../meshes/a.stl")
    file.write_text(ROBOT.format("".join(map(visual.format, names))))
    found = [g.mesh for g in load(file).bodies["a"].geometry]
    assert found == [str((tmp_path / "meshes" / "a.stl").resolve())] * 2


def test_meshes_are_found_in_the_package_that_the_address_names(tmp_path: Path) -> None:
    robots, arm, plain = (tmp_path / name for name in ("robots_description", "arm", "plain"))
    for folder in (robots / "urdf", arm / "meshes", plain / "meshes"):
        folder.mkdir(parents=True)
    for package in (robots, arm, plain):
        (package / "a.stl").touch()
    (arm / "package.xml").touch()
    visual = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    names = (
        "package://robots_description/a.stl",  # a parent folder of that name
        "package://arm/a.stl",  # a package beside it
        "package://plain/a.stl",  # a folder that does not say that it is a package
        "package://arm/../plain/a.stl",
    )
    file = robots / "urdf" / "robot.urdf"
    file.write_text(ROBOT.format("".join(map(visual.format, names))))
    robot = load(file)
    found = [g.mesh for g in robot.bodies["a"].geometry]
    assert found[:2] == [str((package / "a.stl").resolve()) for package in (robots, arm)]
    assert not any(str(plain.resolve()) in mesh for mesh in found if mesh)
    assert any("leads out" in warning for warning in robot.warnings)


def test_a_python_package_is_a_root_as_a_whole(tmp_path: Path) -> None:
    robots = tmp_path / "package" / "inner" / "robots"
    robots.mkdir(parents=True)
    for folder in (tmp_path / "package", tmp_path / "package" / "inner"):
        (folder / "__init__.py").touch()
    assert default_root(robots / "robot.xml") == (tmp_path / "package").resolve()
    assert default_root(tmp_path / "robot.xml") == tmp_path.resolve()
