"""The README and the pages are run as they stand, and what they print is compared.

In the Markdown, an HTML comment before a fenced block says what the block is:

    <!-- not run -->      a Python block that is only shown
    <!-- output -->       what the Python block above prints
    <!-- file: NAME -->   a file that later blocks of the page load

Lines `$ remora ...` (and `$ make demo`) of `console` blocks are run too; a line `...` in what
they print stands for any lines. All blocks of a page share one namespace and one folder.
"""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import remora as rm
from printed_text import assert_same_text
from public_names import everywhere, public

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n\s*)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
PEERS = ("pinocchio", "mujoco")
GENERATOR = ROOT / "docs" / "reference_pages.py"
#: Public names whose docstrings have an example: all main ones, and some others.
EXAMPLES = (
    "load", "Builder", "combine", "jacobian", "generalized_jacobian", "forward_dynamics",
    "inverse_dynamics", "reaction_wrenches", "close_loops", "inverse_kinematics", "manipulability",
    "workspace", "compile", "simulate", "Simulation", "simulate_batch", "Integrator", "Record",
    "Runs", "Phase", "Event", "Component", "System", "campaign", "view", "report",
    "analyze", "box_inertia", "bundled", "configuration", "load_scenario",
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    language: str
    mark: str
    text: str
    line: int


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(found["language"], found["mark"] or "", found["text"], line)


@pytest.mark.timeout(400)  # a page may run many commands
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_says_is_true(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "__main__"}, None
    with np.printoptions():  # a page may set its own
        for block in blocks(page):
            place = f"{page.name}:{block.line}"
            if block.mark.startswith("file: "):
                Path(block.mark.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
            elif block.language == "python" and block.mark != "not run":
                printed = output_of(block, place, namespace)
            elif block.mark == "output":
                assert printed is not None, f"{place}: the output of what?"
                assert_same_text(printed, block.text, place)
                printed = None
            elif block.language == "console":
                run_commands(block, place)


def output_of(block, place, namespace):
    """Run a Python block and return what it prints; its tracebacks show the page's lines."""
    code = compile("\n" * (block.line - 1) + block.text, place.rpartition(":")[0], "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(code, namespace)
        except ModuleNotFoundError as error:
            if error.name in PEERS:
                pytest.skip(f"{place} needs {error.name}")
            raise
    return out.getvalue()


def run_commands(block, place):
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        command = command.replace("make demo", "remora demo")
        if command == "remora demo --no-open":
            continue  # it takes long, and tests/cli/test_demo.py compares what it prints
        if command.startswith("remora "):
            assert_same_text(shell(command), expected, f"{place} {command}")


def shell(command):
    folder = Path(sys.executable).parent
    if not (folder / "remora").exists():
        pytest.skip("the command line is not installed beside this Python")
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "COLUMNS": "80"}
    environment.update(NO_COLOR="1", TERM="dumb")
    run = subprocess.run(
        ["sh", "-c", command],
        env=environment, text=True, encoding="utf-8", timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return run.stdout


@cache
def reference():
    """Return the module that makes the reference, and the text of its pages by file."""
    spec = importlib.util.spec_from_file_location("reference_pages", GENERATOR)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.Reference().files()


def test_the_reference_has_every_public_name():
    _, files = reference()
    entries = re.findall(r"^\.\. (?:auto\w+|py:data):: (.+)$", "".join(files.values()), re.M)
    known = {entry.rpartition(".")[2] for entry in entries}
    assert [name for name in everywhere() if name not in known] == []
    assert [name for name in rm.__all__ if not re.search(rf"\b{name}\b", files["index.rst"])] == []


def test_every_source_file_is_listed():
    module, files = reference()
    sources = [file.name for file in module.SOURCE.rglob("*.py")]
    assert files["files.rst"].count(".py``") == len(sources)


def test_examples_are_those_that_run_here():
    named = (value for value in everywhere().values() if hasattr(value, "__name__"))
    examples = {value.__name__ for value in named if ">>>" in (value.__doc__ or "")}
    assert examples == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = public(name).__doc__
    example = doctest.DocTestParser().get_doctest(text, {"np": np, "rm": rm}, name, None, 0)
    assert example.examples
    with np.printoptions(), contextlib.redirect_stdout(io.StringIO()) as out:
        failed, _ = doctest.DocTestRunner(verbose=False).run(example, out=out.write)
    assert not failed, out.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    targets = re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
