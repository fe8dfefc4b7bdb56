"""Compilation of MJCF by MuJoCo without opening meshes, unless a mass depends on one.

Every mesh in the file is replaced by a tetrahedron. The model is compiled twice, with tetrahedra of
two sizes. A body whose mass properties agree both times has them from the file, and its meshes are
not opened. Only the other bodies need their meshes.
"""

from __future__ import annotations

import importlib
import re
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from remora.errors import Fault, ModelError, RemoraError
from remora.model.formats.mjcf.mjcf_includes import Source, SourceElement

#: The corners of the tetrahedron that replaces a mesh, and its two sizes.
_CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
_SIZES = (1.0, 2.0)
#: The mesh attributes that refer to the data in its file.
_OF_DATA = ("vertex", "normal", "texcoord", "face", "maxhullvert")


def mujoco_module() -> Any:
    """Return MuJoCo's module.

    Raises:
        RemoraError: where it is not installed.
    """
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise RemoraError(
            "reading MJCF needs MuJoCo; install it with: pip install '.[mjcf]' in Remora's folder"
        ) from None


def compiled(source: Source) -> tuple[Any, list[str]]:
    """Return MuJoCo's model of a checked file, and MuJoCo's warnings.

    Raises:
        ModelError: if MuJoCo refuses the file, or a mass depends on a missing mesh.
        RemoraError: where MuJoCo is not installed.
    """
    notes: list[str] = []
    model = _compile(source, set(), _SIZES[0], notes)
    if not source.meshes:
        return model, notes
    depending = _depending(model, _compile(source, set(), _SIZES[1], []))
    if not depending:
        return model, notes
    wanted = _meshes_of(model, depending) or set(source.meshes)
    opened = {name for name in wanted if not source.meshes[name].why}
    notes.clear()
    model = _compile(source, opened, _SIZES[0], notes)
    if opened != wanted:
        still = _depending(model, _compile(source, opened, _SIZES[1], []))
        if still:
            raise ModelError(str(source.path), _missing(source, model, still, wanted - opened))
    return model, notes


def _depending(one: Any, two: Any) -> set[int]:
    """Return the bodies whose mass properties, or sizes of shapes, differ between two models."""
    bodies: set[int] = set()
    for key in ("body_mass", "body_inertia", "body_ipos"):
        differ = getattr(one, key) != getattr(two, key)
        bodies |= set(np.nonzero(differ.reshape(len(differ), -1).any(axis=1))[0].tolist())
    fitted = (one.geom_size != two.geom_size).any(axis=1) & (one.geom_dataid < 0)
    bodies |= set(one.geom_bodyid[fitted].tolist())
    return bodies - {0}


def _meshes_of(model: Any, bodies: set[int]) -> set[str]:
    """Return the meshes of the bodies' shapes, without those a primitive was fitted to."""
    names: set[str] = set()
    for g in range(int(model.ngeom)):
        if int(model.geom_bodyid[g]) in bodies and int(model.geom_dataid[g]) >= 0:
            names.add(model.mesh(int(model.geom_dataid[g])).name)
    return names


def _missing(source: Source, model: Any, bodies: set[int], names: set[str]) -> list[Fault]:
    faults: list[Fault] = []
    for i in sorted(bodies):
        own = _meshes_of(model, {i}) & names or names
        mesh = source.meshes[sorted(own)[0]]
        file = f"mesh file {mesh.file!r} {mesh.why}" if mesh.file else "a built-in mesh"
        body = model.body(i).name or f"body_{i}"
        reason = f"its mass follows from a mesh that is not opened: {file}"
        faults.append(Fault(f"body {body!r}", reason, mesh.node.line))
    return faults


def _compile(source: Source, opened: set[str], size: float, notes: list[str]) -> Any:
    mujoco = mujoco_module()
    text, nodes = _text(source, opened, size)
    before = mujoco.get_mju_user_warning()
    # MuJoCo would write its warnings into a file in the current folder.
    mujoco.set_mju_user_warning(notes.append)
    try:
        return mujoco.MjModel.from_xml_string(text)
    except (ValueError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise ModelError(str(source.path), [_fault(source, str(error), nodes)]) from None
    finally:
        mujoco.set_mju_user_warning(before)


def _text(source: Source, opened: set[str], size: float) -> tuple[str, list[SourceElement]]:
    """Return the copy as text, and the element that starts on each of its lines."""
    stand_ins = {id(mesh.node): name for name, mesh in source.meshes.items()}
    pieces: list[str] = []
    nodes: list[SourceElement] = []

    def write(node: SourceElement) -> None:
        given = node.attributes
        name = stand_ins.get(id(node))
        if name is not None and name in opened:
            given = given | {"file": str(source.meshes[name].path)}
        elif name is not None:
            corners = " ".join(f"{x:g}" for x in (size * _CORNERS).ravel())
            given = {key: x for key, x in given.items() if key not in _OF_DATA}
            given |= {"vertex": corners}
        nodes.append(node)
        pieces.append(f"<{node.tag}" + "".join(f" {k}={quoteattr(x)}" for k, x in given.items()))
        pieces.append(">\n" if node.children else "/>\n")
        for child in node.children:
            write(child)
        if node.children:
            pieces[-1] = pieces[-1].rstrip("\n") + f"</{node.tag}>\n"

    write(source.root)
    return "".join(pieces), nodes


def _fault(source: Source, message: str, nodes: list[SourceElement]) -> Fault:
    """Return MuJoCo's message as a fault, with the element and line it refers to."""
    found = re.search(r"line(?: number=)?\s*(\d+)", message, re.IGNORECASE)
    line = int(found.group(1)) if found else 0
    reason = " ".join(message.split())
    if 0 < line <= len(nodes) and found is not None:
        label, own = source.where(nodes[line - 1])
        reason = " ".join(
            (message[: found.start()] + f"line {own}" + message[found.end() :]).split()
        )
        return Fault(f"MuJoCo, {label}", _short(reason), own)
    return Fault("MuJoCo", _short(reason))


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:297] + "..."
