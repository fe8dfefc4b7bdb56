"""Checking of MJCF files before MuJoCo: one sanitized text of a file and its includes.

MuJoCo opens every file its input names and expands all repetitions in it. Remora therefore reads
the text itself, within the limits of its XML reader, and passes on a copy:

- included files are read here, below the allowed root only, and inlined in the copy;
- textures and skins, which no robot needs, are removed; a height field becomes flat;
- meshes are resolved here, and opened only if a mass has to be computed from one
  (`mjcf_compile`);
- elements that could exhaust the memory or run code are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import NoReturn

from remora.errors import Fault, ModelError
from remora.model.formats.bounded_reading import allowed_root, located
from remora.model.formats.bounded_xml import MAX_DEPTH, MAX_ELEMENTS, Element, parse, shown

#: Maximum number of included files.
MAX_FILES = 100
#: Maximum value of an attribute that determines memory use.
MAX_COUNT = 10_000
#: Maximum size of a mesh that is opened, bytes.
MAX_MESH = 64 << 20

#: Elements that Remora does not use and that could make MuJoCo run without bound.
_REFUSED = {
    "attach": "sub-models are not supported; write one model in one file",
    "composite": "deformable bodies are not supported",
    "flexcomp": "deformable bodies are not supported",
    "flex": "deformable bodies are not supported",
    "extension": "plugins are not supported",
    "plugin": "plugins are not supported",
}
#: Attributes that make MuJoCo allocate memory, by element ("*": any attribute).
_COUNTS = {
    "hfield": ("nrow", "ncol"),
    "size": ("*",),
    "numeric": ("size",),
    "replicate": ("count",),
}
#: Attributes about the memory of a simulation, which is never started.
_MEMORY = ("memory", "nstack", "njmax", "nconmax")
_FOLDERS = ("meshdir", "texturedir", "assetdir")


@dataclass(frozen=True)
class SourceElement:
    """An element of the copy, with the file and line it comes from."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[SourceElement] = field(default_factory=list["SourceElement"])

    @property
    def label(self) -> str:
        """The element as an error message shows it."""
        return Element(self.tag, self.attributes, self.line, []).label


@dataclass(frozen=True)
class MeshFile:
    """A mesh that the model names.

    Attributes:
        node: its element in the copy, which names no file.
        file: the file as it is written.
        path: its expected path; None if it must not be opened.
        why: why it is not opened; empty if it can be.
    """

    node: SourceElement
    file: str
    path: Path | None
    why: str = ""


@dataclass(frozen=True)
class Source:
    """A checked MJCF file.

    Attributes:
        path: the main file.
        root: the root of the copy.
        meshes: by their MuJoCo name.
        warnings: omitted parts.
    """

    path: Path
    root: SourceElement
    meshes: dict[str, MeshFile]
    warnings: list[str]

    def where(self, node: SourceElement) -> tuple[str, int]:
        """Return the name of an element in reports, and its line."""
        inside = "" if node.file == self.path else f" in {node.file.name}"
        return node.label + inside, node.line


def read_files(path: str | Path, mesh_root: str | Path | None = None) -> Source:
    """Read and check an MJCF file with its includes.

    Raises:
        ModelError: if a file is not XML, is too large, is outside the root, or has refused content;
            with all faults.
    """
    main = Path(path)
    root = parse(main)
    if root.tag != "mujoco":
        hint = {"robot": "; name it .urdf", "sdf": "; name it .sdf"}.get(root.tag, "")
        if root.tag == "mujocoinclude":
            hint = "; this one is a part that others include"
        reason = f"the root of an MJCF file must be <mujoco>{hint}"
        raise ModelError(str(path), [Fault(root.label, reason, root.line)])
    look = _Look(main, allowed_root(main, mesh_root))
    copy = look.copied(root, main, 1, 0)
    look.find_meshes()
    if look.faults:
        raise ModelError(str(path), look.faults)
    return Source(main, copy, look.meshes, look.warnings)


class _Look:
    """The traversal of a file and its includes."""

    def __init__(self, main: Path, root: Path) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[str] = []
        self.meshes: dict[str, MeshFile] = {}
        self._main = main
        self._folder = main.parent.resolve()
        self._root = root
        self._seen: set[Path] = {main.resolve()}
        self._meshdir = ""
        self._strip = False
        self._named: list[tuple[SourceElement, str]] = []
        self._weight = 0

    def copied(self, element: Element, file: Path, times: int, depth: int) -> SourceElement:
        """Return a copy of an element that expands to `times` elements."""
        self._weight += times
        node = SourceElement(element.tag, dict(element.attributes), file, element.line)
        if self._weight > MAX_ELEMENTS:
            self._stop(node, f"<replicate> makes more than {MAX_ELEMENTS} elements")
        if depth > MAX_DEPTH:
            self._stop(node, f"is nested deeper than {MAX_DEPTH} elements")
        self._check(node)
        if node.tag == "replicate":
            times *= max(1, _integer(node.attributes.get("count", "1")) or 1)
        for child in element.children:
            if child.tag == "include":
                node.children.extend(self._included(child, file, times, depth))
            elif child.tag == "skin":
                name = child.attributes.get("name") or f"on line {child.line}"
                self.warnings.append(f"skin {shown(name)!r} is left out")
            elif child.tag not in ("texture", "layer"):
                node.children.append(self.copied(child, file, times, depth + 1))
        return node

    def find_meshes(self) -> None:
        """Resolve the mesh files last: the mesh folder may be set after the meshes."""
        for node, value in self._named:
            stem = PureWindowsPath(value).stem  # accepts both kinds of slashes
            name = node.attributes.setdefault("name", stem)
            value = PureWindowsPath(value).name if self._strip else value
            given = self._meshdir.replace("\\", "/")
            own = node.file.parent.resolve()
            folders = [self._folder / given, own / given, own]
            path, why = located(self._root, folders, value)
            if path is not None and not why and path.stat().st_size > MAX_MESH:
                path, why = None, f"is larger than {MAX_MESH >> 20} MiB"
            if name in self.meshes:
                self._fault(node, f"the name {shown(name)!r} is used twice")
            self.meshes[name] = MeshFile(node, value, path, why)

    def _check(self, node: SourceElement) -> None:
        """Report refused content, and remove files that MuJoCo must not open from the copy."""
        given = node.attributes
        if node.tag in _REFUSED:
            self._fault(node, _REFUSED[node.tag])
        elif node.tag == "model" and "file" in given:
            self._fault(node, _REFUSED["attach"])
        elif node.tag == "size":
            for key in _MEMORY:
                given.pop(key, None)
        elif node.tag == "hfield" and given.pop("file", None) is not None:
            given |= {"nrow": "2", "ncol": "2"}
        elif node.tag == "compiler":
            folders = {key: given.pop(key, None) for key in _FOLDERS}
            folder = folders["meshdir"] or folders["assetdir"]
            self._meshdir = self._meshdir if folder is None else folder
            self._strip = given.pop("strippath", str(self._strip)).lower() == "true"
        elif node.tag == "mesh" and ("file" in given or "builtin" in given):
            for key in ("content_type", "builtin", "params"):
                given.pop(key, None)
            self._named.append((node, given.pop("file", "")))
        given.pop("texture", None)
        if any(key.startswith("file") for key in given):
            self._fault(node, "names a file, which this element may not")
        for key in _COUNTS.get(node.tag, ()):
            for name in given if key == "*" else (key,):
                number = _integer(given.get(name, "0"))
                if number is not None and number > MAX_COUNT:
                    self._fault(node, f'{name}="{shown(given[name])}" is more than {MAX_COUNT}')

    def _included(
        self, element: Element, file: Path, times: int, depth: int
    ) -> list[SourceElement]:
        """Return the content of an included file, searched first beside the including file."""
        node = SourceElement(element.tag, dict(element.attributes), file, element.line)
        name = element.attributes.get("file", "")
        path, why = located(self._root, [file.parent.resolve(), self._folder], name)
        if path is None or why or path in self._seen:
            self._fault(node, f"file {shown(name)!r} {why or 'is included a second time'}")
            return []
        self._seen.add(path)
        if len(self._seen) > MAX_FILES:
            self._stop(node, f"includes more than {MAX_FILES} files")
        try:
            root = parse(path)
        except ModelError as error:
            faults = [Fault(f"{f.element} in {path.name}", f.reason, f.line) for f in error.faults]
            raise ModelError(str(self._main), faults) from None
        return self.copied(root, path, times, depth).children

    def _stop(self, node: SourceElement, reason: str) -> NoReturn:
        raise ModelError(str(self._main), [self._of(node, reason)])

    def _fault(self, node: SourceElement, reason: str) -> None:
        fault = self._of(node, reason)
        if fault not in self.faults and len(self.faults) < 100:
            self.faults.append(fault)

    def _of(self, node: SourceElement, reason: str) -> Fault:
        inside = "" if node.file == self._main else f" in {node.file.name}"
        return Fault(node.label + inside, reason, node.line)


def _integer(text: str) -> int | None:
    """Return a count, or None for text that MuJoCo itself will refuse."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return None if "inf" not in text.lower() else MAX_COUNT + 1
