"""Traversal of the models of an SDF file, including nested and included models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from remora.algebra import dual_quaternion
from remora.errors import Fault, ModelError
from remora.model.building.builder import MAX_BODIES
from remora.model.building.validate import Place
from remora.model.formats.bounded_xml import Element, parse, shown
from remora.model.formats.mesh_paths import Meshes
from remora.model.formats.sdf.sdf_frames import JOINT, FrameError, PoseFrame, Scope
from remora.model.formats.sdf.sdf_text import SdfText
from remora.model.formats.urdf.urdf_text import MAX_NAME

#: Maximum number of included files, and their maximum depth.
MAX_FILES, MAX_NESTING = 100, 8


@dataclass(frozen=True)
class ScopedElement:
    """A link, joint or frame, its scope, and the mesh finder of its file."""

    element: Element
    scope: Scope
    place: Place
    meshes: Meshes
    static: bool
    minor: int

    @property
    def name(self) -> str:
        """Its name in its scope."""
        return self.element.attributes.get("name", "")[:MAX_NAME]


@dataclass(frozen=True)
class _File:
    path: Path
    meshes: Meshes
    minor: int
    depth: int


class Models:
    """Collects the links, joints and frames of all models, and their scopes."""

    def __init__(self, text: SdfText, mesh_root: str | Path | None) -> None:
        """Report to `text`; open files only below the root."""
        self._text = text
        self._root = mesh_root
        self._files = 0
        self.links: list[ScopedElement] = []
        self.joints: list[ScopedElement] = []
        self.frames: list[ScopedElement] = []

    def read(self, path: Path, top: Element, minor: int) -> Scope:
        """Read the content of a world, or of a file without one, and return its scope."""
        file = _File(path, Meshes(path, self._root), minor, 0)
        scope = Scope("", is_world=True)
        models = [child for child in top.children if child.tag in ("model", "include")]
        for child in top.children:
            place = self._text.at(child)
            if child.tag == "model":
                self._model(child, scope, file, single=len(models) == 1, static=False)
            elif child.tag == "include":
                self._include(child, scope, file, single=len(models) == 1, static=False)
            elif child.tag in ("frame", "joint"):
                self._named(child, scope, file, place, static=False)
        return scope

    def _model(
        self,
        model: Element,
        outer: Scope,
        file: _File,
        *,
        single: bool,
        static: bool,
        include: Element | None = None,
    ) -> None:
        """Read a model into its own scope; an `<include>` may rename and place it."""
        text = self._text
        place = text.at(model)
        source = model if include is None else include
        name = text.word(source, "name", place) if include is not None else ""
        name = (name or model.attributes.get("name", ""))[:MAX_NAME] or "model"
        if name in outer.models:
            text.fault(place, f"the name {shown(name)!r} is used twice")
            return
        scope = Scope("" if single else f"{outer.prefix}{name}::", outer=(outer, name))
        static = static or text.flag(model, "static", place) or text.flag(source, "static", place)
        for child in model.children:
            at = text.at(child)
            if child.tag in ("link", "joint", "frame"):
                self._named(child, scope, file, at, static)
            elif child.tag == "model":
                self._model(child, scope, file, single=False, static=static)
            elif child.tag == "include":
                self._include(child, scope, file, single=False, static=static)
        links = [part.name for part in self.links if part.scope is scope]
        nested = [f"{key}::{inner.canonical}" for key, inner in scope.models.items()]
        first = [*links, *nested, ""][0]
        scope.canonical = model.attributes.get("canonical_link", first)
        outer.models[name] = scope
        has_pose = include is not None and text.child(include, "pose", place) is not None
        x, relative_to = text.pose(source if has_pose else model, place)
        placed = text.word(source, "placement_frame", place) if include is not None else ""
        placed = placed or model.attributes.get("placement_frame", "")
        if placed:
            try:
                x = dual_quaternion.mul(x, dual_quaternion.conjugate(scope.pose(placed)))
            except FrameError as error:
                text.fault(place, f"placement_frame: {error}")
        outer.frames[name] = PoseFrame(x, relative_to, None, place)

    def _named(
        self, element: Element, scope: Scope, file: _File, place: Place, static: bool
    ) -> None:
        """Record a link, joint or frame, and the frame that it defines."""
        text = self._text
        part = ScopedElement(element, scope, place, file.meshes, static, file.minor)
        x, relative_to = text.pose(element, place)
        attached: str | None = None
        if element.tag == "joint":
            child = joint_end(text, part, "child")
            key, relative_to, attached = joint_frame(part), relative_to or child, child
            self.joints.append(part)
        elif element.tag == "link":
            key = part.name
            self.links.append(part)
            if len(self.links) > MAX_BODIES:
                fault = Fault(place.element, f"more than {MAX_BODIES} links", place.line)
                raise ModelError(str(file.path), [fault])
        else:
            key, attached = part.name, element.attributes.get("attached_to", "")[:MAX_NAME]
            relative_to = relative_to or attached
            self.frames.append(part)
        if not part.name:
            text.fault(place, "has no name")
        elif key in scope.frames and element.tag != "link":
            text.fault(place, f"the name {shown(part.name)!r} is used twice")
        scope.frames.setdefault(key, PoseFrame(x, relative_to, attached, place))
        if element.tag == "joint":  # poses may refer to it by name
            scope.frames.setdefault(part.name, scope.frames[key])

    # Includes --------------------------------------------------------------------------------

    def _include(
        self, include: Element, outer: Scope, file: _File, *, single: bool, static: bool
    ) -> None:
        text, place = self._text, self._text.at(include)
        uri = text.word(include, "uri", place)
        if include.attributes.get("merge", "").lower() in ("true", "1"):
            text.fault(place, "merge is not supported; nest the model instead")
            return
        path = self._found(uri, file, place)
        if path is None:
            return
        self._files += 1
        if self._files > MAX_FILES or file.depth >= MAX_NESTING:
            text.fault(place, f"more than {MAX_FILES} files, or {MAX_NESTING} within each other")
            return
        before, text.inside_file = text.inside_file, f" in {path.name}"
        try:
            root = parse(path)
            models = [child for child in root.children if child.tag == "model"]
            minor = sdf_minor(root)
            if root.tag != "sdf" or len(models) != 1 or minor is None:
                text.fault(place, f"{path.name} is no SDF file with one model")
                return
            inner = _File(path, Meshes(path, self._root), minor, file.depth + 1)
            self._model(models[0], outer, inner, single=single, static=static, include=include)
        except ModelError as error:
            for fault in error.faults:
                text.fault(Place(f"{fault.element} in {path.name}", fault.line), fault.reason)
        finally:
            text.inside_file = before

    def _found(self, uri: str, file: _File, place: Place) -> Path | None:
        """Return the SDF file of a URI: the file itself, or that of a model's folder."""
        text = self._text
        try:
            path = file.meshes.find(uri) if uri else None
        except ValueError as error:
            text.fault(place, f"uri {shown(uri)!r} {error}")
            return None
        if path is None:
            text.fault(place, f"uri {shown(uri)!r} is no path, file:// or model://")
            return None
        if path.is_dir():
            folder, named = path, next(_config_files(path), "model.sdf")
            path = (folder / named).resolve()
            if not path.is_relative_to(folder):
                text.fault(place, f"uri {shown(uri)!r}: its file leads out of the model's folder")
                return None
        if not path.is_file():
            text.fault(place, f"uri {shown(uri)!r} is not found; set mesh_root to its folder")
            return None
        return path


def joint_end(text: SdfText, joint: ScopedElement, role: str) -> str:
    """Return the frame that a joint names as its parent or child."""
    element, place = joint.element, joint.place
    name = text.word(element, role, place)
    if not name:  # an attribute before SDF 1.5
        child = text.child(element, role, place)
        name = "" if child is None else child.attributes.get("link", "")[:MAX_NAME]
    return name


def joint_frame(joint: ScopedElement) -> str:
    """Return the key of a joint's frame in its scope."""
    return JOINT + joint.name


def sdf_minor(root: Element) -> int | None:
    """Return n of the version 1.n, or None if there is none."""
    major, _, minor = root.attributes.get("version", "").partition(".")
    return int(minor) if major == "1" and minor.isdecimal() and len(minor) < 3 else None


def _config_files(folder: Path) -> Iterator[str]:
    """Yield the SDF files that a model's `model.config` names, the newest version first."""
    config = folder / "model.config"
    if not config.is_file():
        return
    try:
        root = parse(config)
    except ModelError:
        return
    named = [child for child in root.children if child.tag == "sdf" and child.text]
    named.sort(key=lambda child: -(sdf_minor(child) or 0))
    yield from (child.text for child in named)
