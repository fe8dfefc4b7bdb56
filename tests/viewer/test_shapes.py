"""What is drawn of a robot: own geometry where there is any, else something sensible."""

import json
import struct

import casadi
import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.viewer.scene.generated_shapes import arm_reach, bus_size
from remora.viewer.scene.gltf import to_glb
from remora.viewer.scene.materials import FINISHES, finish_of
from remora.viewer.scene.primitives import Primitive
from remora.viewer.scene.shapes import missing_meshes, shapes
from remora.viewer.scene.surfaces import SURFACES, mesh_surface, surface

STL = """solid corner
facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet
endsolid corner
"""


def of_body(robot, name, **options):
    index = robot.body_index(name)
    return [shape for shape in shapes(robot, **options) if shape.body == index]


def with_mesh(path):
    mesh = rm.Geometry("mesh", (1.0, 1.0, 1.0), pose.from_xyz_rpy((0, 0, 0)), None, str(path))
    return rm.load("servicer").replace_body("bus", geometry=(mesh,))


def test_own_geometry_is_drawn_as_it_is():
    robot = rm.load("vt18_satellite")
    for i, body in enumerate(robot.bodies):
        drawn = [shape for shape in shapes(robot) if shape.body == i]
        assert [(s.kind, s.size) for s in drawn] == [(g.kind, g.size) for g in body.geometry]
        for shape, given in zip(drawn, body.geometry, strict=True):
            assert np.array_equal(shape.placement, given.placement)
            assert shape.finish.color == given.color


@pytest.mark.parametrize("size", [(1.0, 2.6, 0.03), (1.0, 0.03, 2.6), (0.03, 1.0, 2.6)])
def test_a_thin_box_in_dark_blue_is_a_solar_panel_of_the_same_extent(size):
    blue = rm.Geometry("box", size, pose.from_xyz_rpy((0.1, 0.2, 0.3)), (0.09, 0.14, 0.42, 1.0))
    robot = rm.load("servicer").replace_body("bus", geometry=(blue,))
    frame, cells = of_body(robot, "bus")
    assert (frame.kind, cells.kind) == ("box", "cells")
    points = surface(frame).points
    assert np.allclose(np.ptp(points, axis=0), size)
    assert np.allclose((points.min(axis=0) + points.max(axis=0)) / 2, (0.1, 0.2, 0.3))


@pytest.mark.parametrize("seed", range(12))
def test_every_body_of_any_robot_is_drawn_by_finite_shapes(seed):
    robot = rm.random_robot(seed, bodies=9, base=("free", "fixed", "planar")[seed % 3])
    drawn = shapes(robot)
    moving = {i for i, joint in enumerate(robot.joints) if joint.kind not in ("fixed", "free")}
    assert moving | {0} <= {shape.body for shape in drawn}
    for shape in drawn:
        assert min(shape.size) > 0
        assert np.all(np.isfinite(shape.size))
        found = surface(shape)
        assert len(found.faces) > 0
        assert np.all(np.isfinite(found.points))


def test_a_bus_has_its_arm_at_its_surface_and_wings_where_the_arm_is_not():
    robot = bare(rm.load("servicer"))
    size, centre = bus_size(robot, 0)
    mount = pose.translation(robot.joints["shoulder_roll"].placement) - centre
    assert np.max(2 * np.abs(mount) / size) == pytest.approx(1.0)
    cells = [shape for shape in of_body(robot, "bus") if shape.kind == "cells"]
    assert len(cells) == 4
    assert all(abs(pose.translation(s.placement)[2]) < 1e-9 for s in cells)  # the arm is on top


def test_booms_reach_from_joint_to_joint():
    robot = bare(rm.load("servicer"))
    reach = arm_reach(robot)
    for i in range(2, len(robot.bodies)):
        offset = pose.translation(robot.joints[i].placement)
        length = float(np.linalg.norm(offset))
        booms = [s for s in shapes(robot) if s.body == i - 1 and s.kind == "cone"]
        if length > 0.1 * reach:
            assert any(abs(boom.size[2] - length) < 1e-12 for boom in booms)


def test_bodies_with_and_without_geometry_mix():
    robot = rm.load("servicer")
    mixed = robot.replace_body("forearm", geometry=())
    before, after = len(of_body(robot, "bus")), len(of_body(mixed, "bus"))
    assert before == after
    assert any(s.kind == "cone" for s in of_body(mixed, "forearm"))


def test_a_mesh_that_is_there_is_drawn(tmp_path):
    file = tmp_path / "corner.stl"
    file.write_text(STL)
    (shape,) = of_body(with_mesh(file), "bus", mesh_root=tmp_path)
    assert shape.kind == "mesh"
    assert len(surface(shape).faces) == 1


@pytest.mark.parametrize("fault", ["missing", "outside", "linked", "format", "garbage"])
def test_a_mesh_that_may_not_or_cannot_be_opened_gives_way(tmp_path, fault):
    root, elsewhere = tmp_path / "root", tmp_path / "corner.stl"
    root.mkdir()
    elsewhere.write_text(STL)
    file = root / ("corner.exe" if fault == "format" else "corner.stl")
    if fault == "linked":
        file.symlink_to(elsewhere)
    elif fault in ("format", "garbage"):
        file.write_bytes(b"\x00garbage" * 30)
    robot = with_mesh(elsewhere if fault == "outside" else file)
    drawn = of_body(robot, "bus", mesh_root=root)
    assert {shape.kind for shape in drawn} >= {"box", "cells"}


def test_a_robot_of_symbols_cannot_be_drawn():
    robot = rm.load("servicer").replace_body("bus", mass=np.array(casadi.SX.sym("m"), dtype=object))
    with pytest.raises(rm.RemoraError, match=r"'bus'.*symbols"):
        shapes(robot)


SIZES = {
    "box": (1.0, 2.0, 0.5), "cells": (1.0, 2.0, 0.02, 3, 6), "cylinder": (0.3, 1.2),
    "cone": (0.3, 0.2, 1.0), "sphere": (0.7,), "capsule": (0.2, 1.0), "ellipsoid": (0.2, 0.4, 0.9),
}  # fmt: skip
VOLUMES = {
    "box": 1.0, "cylinder": np.pi * 0.3**2 * 1.2, "cone": np.pi / 3 * (0.09 + 0.06 + 0.04),
    "sphere": 4 / 3 * np.pi * 0.7**3, "capsule": np.pi * 0.04 * 1.0 + 4 / 3 * np.pi * 0.008,
    "ellipsoid": 4 / 3 * np.pi * 0.2 * 0.4 * 0.9,
}  # fmt: skip


@pytest.mark.parametrize("kind", SIZES)
def test_surfaces_face_outwards_and_enclose_the_right_volume(kind):
    x = pose.from_xyz_rpy((0.4, -0.2, 0.1), (0.3, 0.2, -0.5))
    found = surface(Primitive(0, kind, SIZES[kind], x, FINISHES["white"]))
    assert np.allclose(np.linalg.norm(found.normals, axis=1), 1.0)
    a, b, c = (found.points[found.faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    mean = found.normals[found.faces].mean(axis=1)
    large = np.linalg.norm(normals, axis=1) > 1e-9
    assert np.all(np.sum(normals * mean, axis=1)[large] > 0)
    if kind in VOLUMES:
        volume = np.sum(a * np.cross(b, c)) / 6
        assert volume == pytest.approx(VOLUMES[kind], rel=0.02)  # flat sides, bevelled edges
    assert set(SIZES) == set(SURFACES) - {"mesh"}


def test_glb_is_what_its_headers_say():
    data = to_glb(of_body(rm.load("servicer"), "bus"))
    magic, version, length = struct.unpack("<4sII", data[:12])
    assert (magic, version, length) == (b"glTF", 2, len(data))
    size, kind = struct.unpack("<I4s", data[12:20])
    tree = json.loads(data[20 : 20 + size])
    assert kind == b"JSON"
    rest, kind = struct.unpack("<I4s", data[20 + size : 28 + size])
    assert (rest, kind) == (tree["buffers"][0]["byteLength"], b"BIN\x00")
    assert len(data) == 28 + size + rest
    for view in tree["bufferViews"]:
        assert view["byteOffset"] % 4 == 0
        assert view["byteOffset"] + view["byteLength"] <= rest


def test_gold_shines_and_grey_does_not():
    assert finish_of((0.83, 0.63, 0.22, 1.0)).metal > 0.3 > finish_of((0.35, 0.36, 0.4, 1.0)).metal


def bare(robot):
    for body in robot.bodies:
        robot = robot.replace_body(body.name, geometry=())
    return robot


COLLADA = """<?xml version="1.0"?>{}<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"
 version="1.4.1"><asset><unit name="cm" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="9">
0 0 0 100 0 0 0 200 0</float_array><technique_common><accessor source="#a" count="3" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
</accessor></technique_common></source><vertices id="v"><input semantic="POSITION" source="#p"/>
</vertices><triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p>
</triangles></mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="s">
<node id="n"><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_collada_is_read_in_its_own_unit(tmp_path):
    pytest.importorskip("collada")
    file = tmp_path / "a.dae"
    file.write_text(COLLADA.format(""))
    found = mesh_surface(str(file))
    np.testing.assert_allclose(found.points.max(axis=0), [1.0, 2.0, 0.0])
    assert len(found.faces) == 1
    # A material that is not there hides nothing.
    material = '<instance_geometry url="#g"><bind_material><technique_common><instance_material \
symbol="m" target="#gone"/></technique_common></bind_material></instance_geometry>'
    text = COLLADA.format("").replace('<instance_geometry url="#g"/>', material)
    assert "#gone" in text
    broken = tmp_path / "c.dae"
    broken.write_text(text)
    assert len(mesh_surface(str(broken)).faces) == 1
    entity = tmp_path / "b.dae"
    entity.write_text(COLLADA.format('<!DOCTYPE a [<!ENTITY b "c">]>'))
    assert len(mesh_surface(str(entity)).faces) == 0


def test_meshes_that_are_not_drawn_are_counted(tmp_path):
    robot = with_mesh(tmp_path / "gone.stl")
    told = "1 of 1 meshes not found: use --mesh-root (mesh_root= in Python)"
    assert missing_meshes(robot, shapes(robot)) == told
    outside = robot.replace(warnings=("<mesh>: leads out of /x; allow another mesh_root for it",))
    assert missing_meshes(outside, shapes(outside)).startswith("2 of 2 meshes not found")
    (tmp_path / "gone.stl").write_text("no mesh")
    assert "1 of 1 meshes cannot be read" in missing_meshes(robot, shapes(robot))
    assert missing_meshes(rm.load("servicer"), shapes(rm.load("servicer"))) is None


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "spherical"])
def test_a_robot_whose_joints_sit_at_the_centre_of_its_base(kind):
    robot = (
        rm.Builder("slider")
        .body("bus", mass=8, inertia=(1, 1, 1))
        .body("load", mass=2, inertia=(0.1, 0.1, 0.1))
        .joint("rail", kind, "bus", "load")
        .build()
    )
    drawn = shapes(robot)
    assert {shape.body for shape in drawn} == {0, 1}
    panels = [shape for shape in drawn if shape.kind == "cells"]
    assert len(panels) > 1
    assert all(np.all(np.isfinite(surface(shape).points)) for shape in drawn)


@pytest.mark.parametrize("base", ["free", "fixed"])
def test_bodies_without_mass_are_drawn(base):
    builder = rm.Builder().body("bus")
    for k, parent in enumerate(("bus", "link0", "bus")):
        builder.body(f"link{k}").joint(f"j{k}", "revolute", parent, f"link{k}", xyz=(k, 0, 0))
    drawn = shapes(builder.build(base=base, dynamics=False))
    assert drawn
    assert all(np.all(np.isfinite(surface(shape).points)) for shape in drawn)


def test_a_run_whose_meshes_are_left_out_says_how_to_show_them(tmp_path):
    pytest.importorskip("viser")
    (tmp_path / "corner.stl").write_text(STL)
    robot = with_mesh(tmp_path / "corner.stl")
    rm.simulate(
        robot, rm.neutral(robot), np.zeros(robot.nv), 0.1, record=rm.Record(folder=tmp_path / "run")
    )
    shown = tmp_path / "run.html"
    with pytest.warns(
        rm.errors.ModelWarning, match=rf"meshes left out: 1, .* --mesh-root {tmp_path} to"
    ):
        rm.save_html(rm.open_run(tmp_path / "run"), shown)
    rm.save_html(rm.open_run(tmp_path / "run", tmp_path), shown, mesh_root=tmp_path)
