"""What is drawn looks as it did: generated spacecraft, surfaces, sky, diagrams, pages."""

import io
from types import SimpleNamespace

import numpy as np
import pytest

import looks
import remora as rm
from remora.algebra import pose
from remora.viewer.figures.analysis_figures import (
    bar_figure,
    interval_figure,
    map_figure,
    wheel_figure,
)
from remora.viewer.figures.interconnection_figure import interconnection_figure
from remora.viewer.scene import gltf, raster, sky
from remora.viewer.scene.generated_shapes import boom_radius, generated
from remora.viewer.scene.materials import FINISHES, finish_of, is_cell_blue
from remora.viewer.scene.primitives import Primitive
from remora.viewer.scene.shapes import shapes as drawn_shapes
from remora.viewer.scene.surfaces import surface

pytest.importorskip("matplotlib")


def everything(mass=1.0):
    """Return a spacecraft with every role, oblique mounts, and limits of a slider."""
    made = rm.Builder("everything")
    inertia = (3.0 * mass, 5.0 * mass, 6.5 * mass)
    made.body("bus", mass=60.0 * mass, inertia=inertia, com=(0.02, -0.03, 0.05))

    def add(name, parent, kind="revolute", at=(0, 0, 0), rpy=(0, 0, 0), **more):
        size = more.pop("inertia", (0.02 * mass, 0.03 * mass, 0.04 * mass))
        com = more.pop("com", (0.0, 0.0, 0.0))
        made.body(name, mass=4.0 * mass, inertia=size, com=com)
        made.joint(f"to_{name}", kind, parent, name, xyz=at, rpy=rpy, **more)

    add("upper_arm", "bus", at=(0.5, 0.1, 0.3), rpy=(0.3, 0.2, -0.4), axis=(0, 0, 1))
    add("rail", "upper_arm", "prismatic", (0.1, 0.5, 0.2), axis=(0, 1, 0), lower=-0.1, upper=0.4)
    add("ball", "rail", "spherical", (0.3, 0.0, 0.4))
    add("gripper", "ball", at=(0.2, 0.1, 0.1), axis=(1, 0, 0), com=(0.1, 0.05, 0.02))
    add("solar_panel_1", "bus", at=(0.0, 0.6, 0.1), axis=(0, 1, 0), com=(0.1, 0.9, 0.0),
        inertia=(2.0 * mass, 0.4 * mass, 2.4 * mass))  # fmt: skip
    add("solar_panel_2", "bus", at=(0.0, -0.6, 0.1), axis=(0, 1, 0), com=(0.0, -0.5, 0.0),
        inertia=(0.5 * mass, 0.5 * mass, 1.0 * mass))  # fmt: skip
    add("solar_panel_3", "bus", at=(0.6, 0.0, 0.1), axis=(1, 0, 0), com=(2.5, 0.0, 0.1),
        inertia=(0.2 * mass, 5.0 * mass, 5.2 * mass))  # fmt: skip
    add("reaction_wheel", "bus", "revolute", (0.1, 0.1, 0.0), axis=(0.6, 0.0, 0.8),
        inertia=(0.03 * mass, 0.03 * mass, 0.05 * mass))  # fmt: skip
    add("antenna", "bus", at=(-0.3, 0.0, 0.9), axis=(1, 0, 0), com=(0.05, 0.0, 0.2))
    add("thruster", "bus", "fixed", (-0.4, 0.0, -0.3), com=(-0.1, 0.0, -0.1))
    made.frame("tip", "gripper", xyz=(0.2, 0.1, 0.05))
    return made.build()


def spacecraft():
    named = ("servicer_wheels", "vt18_two_arm", "spart17_planar", "wheeled_bus")
    robots = {name: rm.load(name) for name in (*named, "defunct_satellite", "vt18_satellite")}
    robots["fixed"] = rm.load("servicer", base="fixed")
    robots["merged panels"] = (
        rm.Builder("merged")
        .body("bus", mass=100.0, inertia=(20.0, 18.0, 11.0))
        .body("arm", mass=4.0, com=(0.0, 0.0, 0.4))
        .joint("turret", "revolute", "bus", "arm", xyz=(0.3, 0.1, 0.8), axis=(0, 1, 0))
        .frame("panel_left", "bus", xyz=(0.1, 0.9, 0.0))
        .frame("panel_right", "bus", xyz=(0.0, -0.9, 0.2))
        .frame("panel_top", "bus", xyz=(0.0, 0.1, 1.4))
        .build()
    )
    robots |= {"everything": everything(), "heavy": everything(50.0)}
    return robots


def shapes():
    for name, robot in spacecraft().items():
        drawn = generated(robot, range(len(robot.bodies)))
        yield f"shapes of {name}", [shape for own in drawn.values() for shape in own]


SIZES = {
    "box": (0.3, 0.4, 0.5), "cylinder": (0.2, 0.7), "cone": (0.2, 0.1, 0.6), "sphere": (0.4,),
    "capsule": (0.2, 0.5), "ellipsoid": (0.2, 0.3, 0.5), "cells": (0.8, 0.5, 0.02, 5, 3),
}  # fmt: skip


def surfaces():
    x = pose.from_xyz_rpy(np.array([0.1, -0.2, 0.3]), np.array([0.4, 0.5, -0.6]))
    yield (
        "surfaces",
        [
            tuple(surface(Primitive(0, kind, size, x, FINISHES["steel"])))
            for kind, size in SIZES.items()
        ],
    )
    colors = [None, (0.9, 0.7, 0.2, 1.0), (0.5, 0.5, 0.5, 0.4), (0.05, 0.1, 0.4, 1.0)]
    colors += [(0.1, 0.1, 0.3, 1.0), (0.2, 0.15, 0.35, 1.0), (0.8, 0.79, 0.3, 1.0)]
    yield "finishes", [(finish_of(color), is_cell_blue(color)) for color in colors]
    for part in (sky._dome(), sky._stars(), sky._earth(), sky._air()):
        uv = np.zeros(0) if part.uv is None else part.uv
        colors = np.zeros(0) if part.colors is None else part.colors
        yield f"sky of {len(part.surface.points)}", [*part.surface, uv, colors]


def pictures():
    """Return those of foil and of the Earth; the latter is a JPEG, of which means are compared."""
    image = pytest.importorskip("PIL.Image")
    with image.open(io.BytesIO(gltf.crinkled())) as foil:
        yield "foil", np.asarray(foil)[::8, ::8]
    with image.open(io.BytesIO(sky._picture())) as earth:
        shown = np.asarray(earth).astype(float)
    n = len(shown) // 16
    yield "earth", np.round(shown.reshape(16, n, 16, n, 3).mean(axis=(1, 3)) / 4.0)


def figures():
    parents = (-1, 0, 0, 1, 1, 2, 4)
    names = ("bus", "arm", "left", "wrist", "elbow", "tool", "tip")
    graph = SimpleNamespace(
        names=names, parents=parents, black_boxes={"left", "tip"}, labels=tuple("1234567")
    )
    yield "interconnections", looks.artists(interconnection_figure(graph, "seven"))
    single = SimpleNamespace(names=("a",), parents=(-1,), black_boxes=(), labels=("a",))
    yield "one system", looks.artists(interconnection_figure(single))
    x, y = np.linspace(-1.0, 2.0, 5), np.linspace(0.0, 3.0, 4)
    values = np.sin(x[:, None]) + y
    yield "map", looks.artists(map_figure({"a": x, "b": y}, values, "w", ["rad", "m"], "of both"))
    yield "bars", looks.artists(bar_figure(["a", "b"], np.array([1.0, -2.0]), "N", "two"))
    half = np.array([0.5, 0.1, 0.2])
    yield (
        "intervals",
        looks.artists(interval_figure(["a", "b", "c"], np.array([2.0, 0.01, -4.0]), half)),
    )
    axes = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, 0.6], [0.0, -0.6, 0.8], [0.6, 0.8, 0.0]])
    t = np.linspace(0.0, 4.0, 9)
    demand = np.stack([np.sin(t), 0.5 * np.cos(t), 0.1 * t], axis=-1)
    for timed in (False, True):
        drawn = wheel_figure(axes, np.array([1.0, 2.0, 0.5, 0.7]), t, demand, timed)
        yield f"wheels {timed}", looks.artists(drawn)


@pytest.mark.parametrize(
    ("size", "flat"), [((1.0, 0.02, 0.4), True), ((1.0, 0.1, 0.2), False), ((0.3, 0.3, 0.3), False)]
)
def test_a_panel_is_thin_against_its_shorter_edge(size, flat):
    made = rm.Builder("plate").body("bus", mass=1.0, inertia=(1, 1, 1)).build()
    shape = rm.Geometry("box", size, color=(0.05, 0.1, 0.4, 1.0))
    robot = made.replace_body("bus", geometry=(shape,))
    kinds = [primitive.kind for primitive in drawn_shapes(robot)]
    assert kinds == (["box", "cells"] if flat else ["box"])


def test_booms_are_as_thick_as_their_mass_over_the_longest_way():
    made = rm.Builder("fork").body("bus", mass=50.0, inertia=(5.0, 5.0, 5.0)).body("arm", mass=3.0)
    made.body("near", mass=1.0).body("far", mass=1.0)
    made.joint("turn", "revolute", "bus", "arm", axis=(0, 0, 1), xyz=(1, 0, 0))
    made.joint("a", "revolute", "arm", "near", axis=(0, 0, 1), xyz=(0.5, 0, 0))
    made.joint("b", "revolute", "arm", "far", axis=(0, 0, 1), xyz=(0, 1.2, 0))
    robot = made.build()
    for reach, radius in ((2.0, np.sqrt(3.0 / (np.pi * 500.0 * 1.2))), (9.0, 0.014 * 9.0)):
        assert boom_radius(robot, 1, reach) == pytest.approx(max(radius, 0.014 * reach))
    assert boom_radius(robot, 1, 0.5) == pytest.approx(0.034 * 0.5)
    assert boom_radius(robot, 1, 20.0) == pytest.approx(0.014 * 20.0)


def test_triangles_are_lit_on_the_side_that_is_seen():
    corners = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    sun = sky.unit(sky.SUN)
    one = np.ones((1, 3))

    def color(normal, position, shine=0.0):
        camera = SimpleNamespace(position=np.asarray(position, float))
        made = SimpleNamespace(corners=corners, normals=np.array([normal], float), colors=0.4 * one,
                               shine=np.array([shine]))  # fmt: skip
        return raster.shaded(made, camera)[0]

    towards = 5.0 * sun + corners[0].mean(axis=0)
    lit = 0.4 * (raster._AMBIENT + raster._SUNLIGHT)
    for normal in (sun, -sun):  # both sides are seen
        assert np.allclose(color(normal, towards), np.clip(lit, 0.0, 1.0), atol=1e-12)
    assert np.allclose(color(sun, towards, 0.3), np.clip(lit + 0.3, 0.0, 1.0), atol=1e-12)
    behind = color(sun, -towards)
    earth = max(-sun @ sky.unit(sky.NADIR), 0.0) * np.asarray(raster._EARTHSHINE)
    assert np.allclose(behind, 0.4 * (raster._AMBIENT + earth), atol=1e-12)


SUBJECTS = {shapes: 1e-9, surfaces: 1e-9, figures: 1e-9, pictures: 4e-4}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_looks_as_it_did(subject):
    rough = SUBJECTS[subject]
    changed = [looks.differs(name, drawn, rough) for name, drawn in subject()]
    assert not any(changed), [text for text in changed if text]


@pytest.fixture(scope="module")
def stopped():
    """Return three runs in a batch, of which the last is stopped early."""
    robot = rm.load("vt18_satellite")
    v = np.zeros((3, robot.nv))
    v[:, 6] = 0.1, 0.2, 0.4
    far = rm.Event(lambda t, q, v: q[8] - 0.3, name="far")
    return rm.simulate_batch(
        robot,
        rm.neutral(robot),
        v,
        1.0,
        events=[far],
        integrator=rm.Integrator(step=0.1),
        record=0.25,
    )


#: Motions are those of an integrator, and numbers are rounded before they are sent.
ROUGH = 1e-7
#: Computed in a thread of their own; see test_analysis_overlays.
LATER = ("ellipsoid", "workspace", "coupling")


def test_the_page_of_a_run_looks_as_it_did(run):
    with rm.view(run, port=0, open=False, scene="studio") as page:
        changed = [looks.differs("page of a run", looks.messages(page.server), ROUGH)]
        page.show(*(name for name in page.toggles if name not in LATER))
        page.time = 2.025
        changed.append(looks.differs("all of a run", looks.messages(page.server), ROUGH))
    assert not any(changed), changed


def test_the_page_of_a_robot_looks_as_it_did():
    with rm.view("servicer", port=0, open=False, dark=True) as page:
        page.base = "held"
        page.show(*(name for name in page.toggles if name not in LATER))
        page.move(elbow_pitch=0.7, shoulder_roll=-0.3)
        changed = looks.differs("page of a robot", looks.messages(page.server), ROUGH)
    assert not changed


def test_the_page_of_a_robot_in_space_looks_as_it_did():
    with rm.view("spart17_planar", port=0, open=False, scene="space") as page:
        changed = looks.differs("page in space", looks.messages(page.server), ROUGH)
    assert not changed


def test_the_page_of_a_batch_looks_as_it_did(stopped):
    with stopped.view(2, 0, 1, port=0, open=False) as page:
        page.time = 0.6
        changed = looks.differs("page of a batch", looks.messages(page.server), ROUGH)
    assert not changed
