"""Digests of Remora's own source files: an edited equation changes the keys of what is made of it.

Machine code made of a graph depends on `CODEGEN`, that made of a function also on `EQUATIONS`, as a
whole. Other files count if the function's own file reaches them by imports. These are found in the
text, without running it: all import statements count, wherever they stand.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

#: Packages that make machine code of a graph, and those below them.
CODEGEN = ("errors.py", "atomic_files.py", "identity", "algebra", "codegen")
#: Packages of equations, and those below them.
EQUATIONS = (*CODEGEN, "model", "dynamics")
ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = ROOT.name
#: When this process began to import the package, ns.
_STARTED = time.time_ns()

_FROM = re.compile(rb"from %b((?:\.\w+)*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)" % _PACKAGE.encode())
_IMPORT = re.compile(rb"import %b((?:\.\w+)+)" % _PACKAGE.encode())
_WORD = re.compile(rb"\w+")
_COMMENT = re.compile(rb"#[^\n]*")


class SourceFile(NamedTuple):
    """A source file.

    Attributes:
        digest: of its content.
        content: its text.
        changed: time of its last change, ns.
    """

    digest: bytes
    content: bytes
    changed: int


class Sources:
    """The source files of a package, each read once, when it is first needed.

    Attributes:
        root: folder of the package.
        files: the files read so far, by name relative to `root`, with slashes.
    """

    def __init__(self, root: Path) -> None:
        """Store the folder; nothing is read yet."""
        self.root, self.files = root, dict[str, SourceFile]()
        self._top = len(os.path.join(root, ""))
        self._listed = dict[str, frozenset[str]]()

    def digest(self, names: Iterable[str]) -> str:
        """Return the digest of files, with their names.

        If one of them was changed after this process began, the code that runs may be older than
        its text; the digest is then one that no other process has.

        Args:
            names: relative to `root`.
        """
        made = hashlib.sha256()
        for name in sorted(names):
            file = self.file(name)
            made.update(name.encode() + b"\0" + file.digest)
            if file.changed > _STARTED:
                made.update(_only_here())
        return made.hexdigest()

    def within(self, places: Iterable[str]) -> list[str]:
        """Return the names of the files in folders; a file is in itself."""
        found: list[str] = []
        for place in places:
            full = os.path.join(self.root, place)
            files = python_files(full) if os.path.isdir(full) else (full,)
            found += [file[self._top :].replace(os.sep, "/") for file in files]
        return found

    def reached(self, modules: Iterable[str]) -> set[str]:
        """Return the files of modules, and all that they import, directly or not.

        Those in `EQUATIONS`, which import none but themselves, are left out.

        Args:
            modules: full names.
        """
        found = set[str]()
        ahead = [name for module in modules for name in self.files_of(module)]
        while ahead:
            name = ahead.pop()
            if name not in found and name.partition("/")[0] not in EQUATIONS:
                found.add(name)
                ahead += self.imported(name)
        return found

    def file(self, name: str) -> SourceFile:
        """Return a file."""
        if name not in self.files:
            with open(os.path.join(self.root, name), "rb", buffering=0) as stream:
                status, content = os.fstat(stream.fileno()), stream.read()
            changed = max(status.st_mtime_ns, status.st_ctime_ns)
            self.files[name] = SourceFile(hashlib.sha256(content).digest(), content, changed)
        return self.files[name]

    def imported(self, name: str) -> set[str]:
        """Return the files that a file imports: modules, and the packages that they are in.

        No file but those of the command line imports `remora` itself, or its public names from it.
        """
        modules, content = set[bytes](), self.file(name).content
        for home, names in _FROM.findall(content):
            words = _WORD.findall(_COMMENT.sub(b"", names))
            modules |= {home + b"." + word for word in words} | ({home} if home else set())
        modules |= set(_IMPORT.findall(content))
        found = {file for m in modules for file in self.files_of(_PACKAGE + m.decode())}
        return found - {name}

    def files_of(self, module: str) -> list[str]:
        """Return the file of a module, or of a package, as a name.

        Packages do not count for the modules in them: they hold no more than a docstring and names
        that are imported on first use.

        Args:
            module: full name of a module, or of something that a module holds.
        """
        place = ""
        for part in module.split(".")[1:]:
            listed = self._entries(place)
            if f"{part}.py" in listed:
                return [f"{place}{part}.py"]
            if part not in listed:
                break
            place += f"{part}/"
        return [f"{place}__init__.py"] if "__init__.py" in self._entries(place) else []

    def _entries(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            self._listed[folder] = frozenset(os.listdir(os.path.join(self.root, folder)))
        return self._listed[folder]


#: The source files of Remora.
SOURCES = Sources(ROOT)


@functools.cache
def source_digest(*places: str) -> str:
    """Return the digest of the Python files in folders of the package, with their names.

    Args:
        *places: folders or files relative to the package.
    """
    return SOURCES.digest(SOURCES.within(places))


@functools.cache
def digest_of_modules(modules: frozenset[str]) -> str:
    """Return the digest of the files of modules and of all that they import, without `EQUATIONS`.

    Args:
        modules: full names of modules of the package.
    """
    return SOURCES.digest(SOURCES.reached(modules))


@functools.cache
def _only_here() -> bytes:
    """Return a number that no other process has."""
    return os.urandom(32)


def digest_of_files(root: Path, places: Iterable[str]) -> str:
    """Return the digest of the Python files below `root`, with their relative names.

    Args:
        root: the folder.
        places: folders or files in it.
    """
    made, top = hashlib.sha256(), os.path.normpath(root)
    for place in places:
        found = os.path.normpath(os.path.join(top, place))
        for file in sorted(python_files(found)) if os.path.isdir(found) else [found]:
            with open(file, "rb", buffering=0) as stream:
                content = stream.read()
            name = file[len(top) + 1 :]
            made.update(f"{name.replace(os.sep, '/')}\0{len(content)}\0".encode())
            made.update(content)
    return made.hexdigest()


def python_files(folder: str) -> Iterator[str]:
    """Yield the Python files below a folder, without the cost of a `Path` for each."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from python_files(entry.path)
            elif entry.name.endswith(".py") and entry.is_file():
                yield entry.path
