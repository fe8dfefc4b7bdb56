"""The README and the pages are run as they stand, and what they print is compared.

In the Markdown, an HTML comment before a fenced block says what the block is:

    <!-- not run -->      a Python block that is only shown
    <!-- output -->       what the Python block above prints
    <!-- file: NAME -->   a file that later blocks of the page load

Lines `$ remora ...` (and `$ make demo`) of `console` blocks are run too; a line `...` in what
they print stands for any lines. All blocks of a page share one namespace and one folder.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from printed_text import assert_same_text
from public_names import everywhere

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n\s*)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
PEERS = ("pinocchio", "mujoco")


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


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert [name for name in everywhere() if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    targets = re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
