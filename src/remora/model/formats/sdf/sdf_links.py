"""Conversion of SDF links: mass properties and visual shapes, in the link's frame."""

from __future__ import annotations

from functools import partial

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array
from remora.model.building.validate import Place
from remora.model.formats.bounded_xml import Element, shown
from remora.model.formats.mesh_paths import Meshes
from remora.model.formats.sdf.sdf_text import SdfText
from remora.model.numbers import frozen
from remora.model.robot import Geometry

#: The solids, with the elements that give their size and the number of values of each.
_SOLIDS = {
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),),
    "ellipsoid": (("radii", 3),),
}
#: Shapes that Remora does not display.
_NOT_DRAWN = ("plane", "heightmap", "polyline", "image", "cone", "empty")


def inertial_of(text: SdfText, link: Element, owner: Place) -> tuple[float, Array, Array]:
    """Return mass, centre of mass `(3,)` and inertia `(3, 3)`, in the link's frame.

    SDF's defaults are a mass of 1 kg and unit moments of inertia.
    """
    inertial = text.child(link, "inertial", owner)
    if inertial is None:
        return 1.0, np.zeros(3), np.eye(3)
    place, faults = text.at(inertial, owner), text.faults
    if inertial.attributes.get("auto", "").lower() in ("true", "1"):
        text.fault(place, "auto: a mass computed from shapes is not supported; write the numbers")
        return 1.0, np.zeros(3), np.eye(3)
    mass = text.value(inertial, "mass", place, 1.0)
    x, relative_to = text.pose(inertial, place)
    if relative_to:
        text.fault(place, "its pose is relative to the link; relative_to is not allowed")
    moments = np.eye(3)
    inertia = text.child(inertial, "inertia", place)
    if inertia is not None:
        at = text.at(inertia, place)
        xx, yy, zz = (text.value(inertia, key, at, 1.0) for key in ("ixx", "iyy", "izz"))
        xy, xz, yz = (text.value(inertia, key, at, 0.0) for key in ("ixy", "ixz", "iyz"))
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if text.child(inertial, "fluid_added_mass", place) is not None:
        text.fault(place, "fluid_added_mass is not supported")
    if text.faults > faults:  # an incomplete inertia must not be checked
        return mass, np.zeros(3), np.zeros((3, 3))
    R = pose.to_rotation_matrix(x)
    moments = R @ moments @ R.T
    return mass, pose.translation(x), 0.5 * (moments + moments.T)


def shapes_of(text: SdfText, link: Element, meshes: Meshes, owner: Place) -> list[Geometry]:
    """Return the visual shapes of a link; a faulty one is omitted with a warning."""
    found: list[Geometry] = []
    for visual in link.children:
        if visual.tag == "visual":
            with text.cosmetic("the shape is left out") as spoilt:
                shape = _shape(text, visual, meshes, text.at(visual, owner))
            if shape is not None and not spoilt():
                found.append(shape)
    return found


def _shape(text: SdfText, visual: Element, meshes: Meshes, place: Place) -> Geometry | None:
    x, relative_to = text.pose(visual, place)
    if relative_to:
        text.fault(place, f"its pose is relative to {shown(relative_to)!r}, not to the link")
    geometry = text.child(visual, "geometry", place)
    if geometry is None or not geometry.children:
        text.fault(place, "has no <geometry>")
        return None
    solid = geometry.children[0]
    at, color = text.at(solid, place), _color(text, visual, place)
    if solid.tag in _NOT_DRAWN:
        return None
    if solid.tag == "mesh":
        uri = text.word(solid, "uri", at)
        scale = tuple(text.values(solid, "scale", at, 3, (1.0, 1.0, 1.0)))
        fault, warn = partial(text.fault, at), partial(text.warn, at)
        file = meshes.named(uri, f"uri {shown(uri)!r}", fault, warn) if uri else None
        if not uri:
            text.fault(at, "has no <uri>")
        return None if file is None else Geometry("mesh", scale, frozen(x), color, file)
    if solid.tag not in _SOLIDS:
        text.fault(at, f"unknown shape; known: {', '.join((*_SOLIDS, 'mesh'))}")
        return None
    keys = _SOLIDS[solid.tag]
    size = tuple(v for key, count in keys for v in text.values(solid, key, at, count, None))
    if min(size) < 0.0:
        text.fault(at, f"has a negative size: {size}")
    return Geometry(solid.tag, size, frozen(x), color)


def _color(
    text: SdfText, visual: Element, place: Place
) -> tuple[float, float, float, float] | None:
    material = text.child(visual, "material", place)
    diffuse = None if material is None else text.child(material, "diffuse", place)
    if material is None or diffuse is None:
        return None
    words = diffuse.text.split()
    count = 3 if len(words) == 3 else 4
    rgba = [*text.values(material, "diffuse", text.at(material, place), count, None), 1.0][:4]
    r, g, b, a = (min(max(x, 0.0), 1.0) for x in rgba)
    return r, g, b, a


def moved_shapes(shapes: list[Geometry], back: Array) -> list[Geometry]:
    """Transform shapes from the link's frame to the body's."""
    return [
        Geometry(g.kind, g.size, frozen(dual_quaternion.mul(back, g.placement)), g.color, g.mesh)
        for g in shapes
    ]
