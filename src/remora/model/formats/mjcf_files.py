"""What MuJoCo may be given: MJCF files looked through before its compiler sees them.

MuJoCo opens every file its input names and expands what the input tells it to repeat. So the
text is first read by Remora's own bounded XML reader; paths that leave the folder of the file,
elements that multiply, and sizes that would fill the memory are refused.
"""

from __future__ import annotations

from pathlib import Path

from remora.errors import Fault, ModelError
from remora.model.formats.xml import MAX_ELEMENTS, Element, parse, shown

#: The most files that one robot may include.
MAX_FILES = 100
#: The largest value of an attribute that says how much memory to take.
MAX_COUNT = 10_000

#: Elements that Remora cannot use and that could make MuJoCo work without bound.
_REFUSED = {
    "attach": "sub-models are not supported; write one model in one file",
    "composite": "deformable bodies are not supported",
    "flexcomp": "deformable bodies are not supported",
    "flex": "deformable bodies are not supported",
    "skin": "deformable bodies are not supported",
    "extension": "plugins are not supported",
    "plugin": "plugins are not supported",
}
#: Attributes that make MuJoCo take memory, by element ("*": any attribute).
_COUNTS = {
    "texture": ("width", "height"),
    "hfield": ("nrow", "ncol"),
    "size": ("*",),
    "numeric": ("size",),
    "replicate": ("count",),
}


def read_files(path: str | Path) -> Element:
    """Return the root element of an MJCF file after looking through it and what it includes.

    Raises:
        ModelError: if a file is not XML or too large, names files outside the folder, or holds
            what is refused; with every such fault of the file.
    """
    main = Path(path)
    root = parse(main)
    if root.tag != "mujoco":
        hint = "; name it .urdf" if root.tag == "robot" else ""
        reason = f"the root of an MJCF file must be <mujoco>{hint}"
        raise ModelError(str(path), [Fault(root.label, reason, root.line)])
    look = _Look(main)
    waiting = [(main, root)]
    while waiting:
        file, element = waiting.pop()
        look.walk(element, file)
        for included in look.take_included():
            if look.files > MAX_FILES:
                raise ModelError(str(path), [Fault("XML", f"includes more than {MAX_FILES} files")])
            waiting.append((included, _parse_included(main, included)))
    look.check_paths()
    if look.faults:
        raise ModelError(str(path), look.faults)
    return root


def _parse_included(main: Path, file: Path) -> Element:
    """Return the root of an included file; a refusal names both files."""
    try:
        return parse(file)
    except ModelError as error:
        faults = [Fault(f"{f.element} in {file.name}", f.reason, f.line) for f in error.faults]
        raise ModelError(str(main), faults) from None


class _Look:
    """One look through a file and those it includes."""

    def __init__(self, main: Path) -> None:
        self.faults: list[Fault] = []
        self.files = 1
        self._main = main
        self._folder = main.parent.resolve()
        self._included: list[Path] = []
        self._seen: set[Path] = {main.resolve()}
        self._folders: dict[str, list[str]] = {"meshdir": [], "texturedir": [], "assetdir": []}
        self._named: list[tuple[Element, Path, str]] = []
        self._weight = 0

    def take_included(self) -> list[Path]:
        """Return the files included since the last call."""
        included, self._included = self._included, []
        self.files += len(included)
        return included

    def walk(self, element: Element, file: Path, times: int = 1) -> None:
        """Look at an element that stands for `times` elements (the XML reader bounds the depth)."""
        self._weight += times
        if self._weight > MAX_ELEMENTS:
            reason = f"<replicate> makes more than {MAX_ELEMENTS} elements"
            raise ModelError(str(self._main), [Fault(element.label, reason, element.line)])
        if element.tag in _REFUSED:
            self._fault(element, file, _REFUSED[element.tag])
        if element.tag == "model" and "file" in element.attributes:
            self._fault(element, file, _REFUSED["attach"])
        if element.tag == "mesh" and "builtin" in element.attributes:
            self._fault(element, file, "built-in meshes are not supported; name a file")
        for key in _COUNTS.get(element.tag, ()):
            for name in element.attributes if key == "*" else (key,):
                self._check_count(element, file, name)
        for key, value in element.attributes.items():
            if key in self._folders:
                self._folders[key].append(value)
                self._check_inside(element, file, value, "")
            elif key.startswith("file"):  # also fileright, fileleft, ... of a texture
                if element.tag == "include":
                    self._include(element, file, value)
                else:
                    self._named.append((element, file, value))
        if element.tag == "replicate":
            times *= max(1, _integer(element.attributes.get("count", "1")) or 1)
        for child in element.children:
            self.walk(child, file, times)

    def check_paths(self) -> None:
        """Check the assets' paths: folders may be named after the files that lie in them."""
        for element, file, value in self._named:
            keys = ("texturedir" if element.tag == "texture" else "meshdir", "assetdir")
            folders = [folder for key in keys for folder in self._folders[key]]
            for folder in folders or [""]:
                self._check_inside(element, file, value, folder)

    def _include(self, element: Element, file: Path, value: str) -> None:
        # MuJoCo looks beside the main file; beside the including file is looked at to be safe.
        for folder in {self._folder, file.parent.resolve()}:
            target = self._check_inside(element, file, value, str(folder))
            if target is not None and target.is_file() and target not in self._seen:
                self._seen.add(target)
                self._included.append(target)

    def _check_count(self, element: Element, file: Path, key: str) -> None:
        text = element.attributes.get(key)
        if text is None or (element.tag == "size" and key == "memory"):
            return  # memory is for MuJoCo's simulation, which is never started
        number = _integer(text)
        if number is not None and number > MAX_COUNT:
            self._fault(element, file, f'{key}="{shown(text)}" is more than {MAX_COUNT}')

    def _check_inside(self, element: Element, file: Path, value: str, folder: str) -> Path | None:
        """Return the path if, its links followed, it stays below the folder of the main file."""
        try:
            target = Path(self._folder, folder, value.replace("\\", "/")).resolve()
            if ":" not in value and target.is_relative_to(self._folder):
                return target
            reason = f"{shown(value)!r} leads out of the folder of the file"
        except (OSError, ValueError, RuntimeError):
            reason = f"{shown(value)!r} is not a path"
        self._fault(element, file, reason)
        return None

    def _fault(self, element: Element, file: Path, reason: str) -> None:
        inside = "" if file == self._main else f" in {file.name}"
        fault = Fault(element.label + inside, reason, element.line)
        if fault not in self.faults and len(self.faults) < 100:
            self.faults.append(fault)


def _integer(text: str) -> int | None:
    """Return a count, None for what MuJoCo itself will refuse."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return None if "inf" not in text.lower() else MAX_COUNT + 1
