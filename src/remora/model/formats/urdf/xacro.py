"""The xacro reader: expands a template to URDF with the package `xacro`, in a subprocess.

A xacro file is a program: its expressions are evaluated by Python. The subprocess opens only files
below the allowed root, starts no processes and no connections, and has limits of time and memory.
Still, expand only files from people you trust.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from remora.errors import Fault, ModelError
from remora.model.building.builder import Builder
from remora.model.formats.bounded_xml import MAX_BYTES, shown
from remora.model.formats.urdf.urdf import read_urdf

#: Maximum time to expand a template, s.
MAX_SECONDS = 60.0

# Runs in the subprocess; its arguments are the root, the file and the maximum size.
_PROGRAM = r"""
import errno, os, sys
import xacro, yaml, xml.dom.minidom, xml.dom.expatbuilder, encodings.utf_8, encodings.ascii
from xacro import substitution_args
root, file, largest = sys.argv[1], sys.argv[2], int(sys.argv[3])
libraries = tuple(os.path.realpath(p) + os.sep for p in sys.path if p)

def allowed(path, mode, flags):
    if not isinstance(path, (str, bytes)):
        return True
    path = os.path.realpath(os.fsdecode(path))
    if set(mode or "r") & set("wax+") or (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return False
    library = path.startswith(libraries) and path.endswith((".py", ".pyc", ".so", ".pyd"))
    return library or path == root or path.startswith(root.rstrip(os.sep) + os.sep)

FORBIDDEN = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pty.", "webbrowser.")
HARMLESS = ("os.listdir", "os.scandir", "os.walk", "os.fspath")

def hook(event, arguments):
    if event == "open" and not allowed(*arguments[:3]):
        raise PermissionError(errno.EACCES, f"is not a file below {root}", arguments[0])
    if event.startswith(FORBIDDEN) and event not in HARMLESS:
        raise PermissionError(f"{event} is not allowed in a template")

def found(package):
    folder = os.path.dirname(file)
    while folder.startswith(root):
        for place in (folder, os.path.join(folder, package)):
            if os.path.basename(place) == package and os.path.isdir(place):
                return place
        if folder == root:
            break
        folder = os.path.dirname(folder)
    raise LookupError(f"there is no package {package!r} in the folders up to {root}")

substitution_args._eval_find = found
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
except (ImportError, ValueError, OSError):
    pass
sys.addaudithook(hook)
try:
    text = xacro.process_file(file).toprettyxml(indent=" ")
except BaseException as error:
    sys.stderr.write(f"{type(error).__name__}: {error}"[:2000])
    raise SystemExit(1)
if len(text) > largest:
    sys.stderr.write(f"it becomes larger than {largest} characters")
    raise SystemExit(1)
sys.stdout.buffer.write(text.encode())
"""


def read_xacro(path: str | Path, mesh_root: str | Path | None = None) -> Builder:
    """Expand a xacro file and read the resulting URDF into a builder.

    Args:
        path: the file.
        mesh_root: the folder that must contain every mesh and included file; default: the nearest
            parent folder with a `package.xml`, else the folder of the file.

    Raises:
        ModelError: if the package `xacro` is not installed, or the template is refused.
    """
    path = Path(path)
    if importlib.util.find_spec("xacro") is None:
        _refuse(
            path,
            "is a xacro template, and the package xacro, which expands it, is not installed: "
            "pip install '.[xacro]' in Remora's folder, or expand it elsewhere: "
            f"xacro {path.name} > robot.urdf",
        )
    try:
        file = path.resolve(strict=True)
        root = _root(file) if mesh_root is None else Path(mesh_root).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        _refuse(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")
    return read_urdf(path, mesh_root, _expanded(path, file, root))


def _expanded(path: Path, file: Path, root: Path) -> bytes:
    command = [sys.executable, "-I", "-c", _PROGRAM, str(root), str(file), str(MAX_BYTES)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        _refuse(path, f"takes longer than {MAX_SECONDS:g} s to expand")
    if done.returncode != 0:
        reason = " ".join(done.stderr.decode(errors="replace").split())
        _refuse(path, f"is a template that xacro cannot expand: {shown(reason, 500)}")
    return done.stdout


def _root(file: Path) -> Path:
    """Return the nearest parent folder with a package.xml, else the file's own."""
    return next((f for f in file.parents if (f / "package.xml").is_file()), file.parent)


def _refuse(path: Path, reason: str) -> NoReturn:
    raise ModelError(str(path), [Fault("file", reason)])
