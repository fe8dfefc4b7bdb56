"""The code names of the pages exist: dotted names and Python files in inline code.

A dotted name begins with `rm` or `remora`, with a module or class of the package, with one of the
objects that pages speak of, or with a name of the page's code blocks. Other libraries are listed.
"""

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest

import remora as rm

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "remora"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
DOTTED = re.compile(r"(?<![\w./\"'<:@{}-])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?<!_)(?![\w/-])")
PYTHON = re.compile(r"(?<![\w./])((?:[\w-]+/)*[a-z_]\w*\.py)\b")
FILES = ("csv", "html", "json", "mp4", "parquet", "py", "urdf", "xml", "yaml", "zarr")
#: Objects that pages speak of by one name, with their classes, and short names of modules.
MEANT = {
    "assembly": "Assembly", "at": "Context", "batch": "Batch", "body": "Body",
    "builder": "Builder", "campaign": "Campaign", "dq": "dual_quaternion", "error": "ModelError",
    "fast": "CompiledRobot", "final": "Recording", "graph": "InterconnectionGraph", "j": "Joint",
    "joint": "Joint", "kernel": "Kernel", "limits": "Limits", "page": "RobotPage",
    "robot": "Robot", "run": "Recording", "sim": "Simulation", "system": "System",
}  # fmt: skip
#: Columns, signals and parameters of the pages' examples.
DATA = re.compile(
    r"(attitude|component|design|elbow_pitch|flange|grip|gyro)\.|arm\.(mass|com)$|unfold\.run$"
    r"|motion\.(acceleration|wrenches)$"
    r"|campaign\.processors$|(events|phase)\.(NAME|grip_|slow_|index|time)"
)
#: Other libraries, and what pages quote of them.
FOREIGN = (
    "cupy", "dask_jobqueue", "data.ctrl", "dataclasses", "frame.attrs", "functools", "jax",
    "keys.", "math", "model.config", "model.joints", "mujoco", "np", "numpy", "package.",
    "pandas", "pin", "pinocchio", "plt", "robot.con", "robot.n_links_joints", "robot.n_q", "scipy",
)  # fmt: skip


@functools.cache
def modules():
    """Return the dotted paths of all modules by every ending of them."""
    found = {}
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        for k in range(1, len(parts)):
            found.setdefault(".".join(parts[k:]), []).append(".".join(parts))
    return found


@functools.cache
def classes():
    """Return the modules of all classes by their names."""
    found = {}
    for file in SOURCE.rglob("*.py"):
        path = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts)
        for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.M):
            found.setdefault(name, []).append(path)
    return found


def has(value, names):
    """Tell whether a value has an attribute, or one of attributes; instances of classes too."""
    if not names:
        return True
    first, rest = names[0], names[1:]
    if inspect.ismodule(value) and not hasattr(value, first):
        try:
            return has(importlib.import_module(f"{value.__name__}.{first}"), rest)
        except ImportError:
            return False
    if hasattr(value, first):
        return has(getattr(value, first), rest)
    if not inspect.isclass(value):
        return not inspect.ismodule(value) and not callable(value)  # of an instance: unknown
    kin = [base for base in value.__mro__ if base.__module__.startswith("remora")]
    return any(
        first in vars(base).get("__annotations__", {})
        or re.search(rf"self\.{first}\b[^=\n]*= ", inspect.getsource(base))
        for base in kin
    )


def defined(page):
    """Return the names that the page's code blocks define or mention."""
    names = set()
    for block in FENCE.finditer(page):
        if block["language"] != "python":
            names |= set(re.findall(r"[A-Za-z_]\w*", block["text"]))
            continue
        for node in ast.walk(ast.parse(block["text"])):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    names.add(name)
                case ast.Constant(value=str() as text):
                    names |= set(re.findall(r"[A-Za-z_]\w*", text))
    return names


def exists(name, page):
    """Tell whether a dotted name means something; `page` is the text of its page."""
    head, *rest = name.split(".")
    if head in ("rm", "remora"):
        return has(rm, rest)
    if name.startswith(FOREIGN) or DATA.match(name):
        return True
    given, head = head, MEANT.get(head, head)
    for k in range(len(rest), 0, -1):
        paths = modules().get(".".join([head, *rest[: k - 1]]), ())
        if any(has(importlib.import_module(path), rest[k - 1 :]) for path in paths):
            return True
    for path in classes().get(head, ()):
        if has(getattr(importlib.import_module(path), head), rest):
            return True
    own = given != head or not (head in modules() or head in classes())
    return own and given in defined(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_names_in_inline_code_exist(page):
    text = page.read_text(encoding="utf-8")
    spans = SPAN.findall(FENCE.sub("", text))
    names = {name for span in spans for name in DOTTED.findall(span)}
    code = {name for name in names if name.rpartition(".")[2] not in FILES}
    assert sorted(name for name in code if not exists(name, text)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_files_in_inline_code_exist(page):
    spans = SPAN.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    named = {file for span in spans for file in PYTHON.findall(span)}
    known = "\n".join(f"/{file.relative_to(ROOT)}" for file in ROOT.rglob("*.py"))
    missing = [name for name in named if not re.search(rf"/{re.escape(name)}$", known, re.M)]
    assert sorted(missing) == []


def test_names_that_do_not_exist_are_noticed():
    page = "```python\nrun = links = 1\n```\n"
    for name in (
        "rm.papers.spart17.nothing", "remora.dynamics.nothing", "saddle_point.nothing",
        "Recording.nothing", "nowhere.thing", "rm.Recording.nothing", "joints.nothing",
    ):  # fmt: skip
        assert not exists(name, page)
    for name in ("rm.papers.vt18", "saddle_point.solve", "Recording.t", "links.x", "dq.exp"):
        assert exists(name, page)
