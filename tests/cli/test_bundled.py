"""Bundled files, completion in the shell, and what the output looks like in a pipe."""

import importlib
import io
import os
import re
import subprocess
import sys

import pytest
import typer
import typer.testing

import remora as rm
from remora.cli import COMMANDS, app
from remora.cli.bundled import summary
from remora.cli.console import Trimmed
from remora.cli.options import complete_robot, complete_scenario

MAIN = "import sys; sys.argv[0] = 'remora'; from remora.cli import main; main()"


def remora(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "COLUMNS": "80", **environment},
    )  # fmt: skip


def invoked(*arguments):
    return typer.testing.CliRunner(env={"COLUMNS": "80"}).invoke(app, arguments)


@pytest.mark.parametrize("what", ["robots", "scenarios"])
def test_what_is_bundled_is_listed_and_printed(what):
    files = rm.bundled(what)
    listed = invoked(what).stdout
    for name, file in files.items():
        assert f"\n{name} " in listed
        assert invoked(what, name).stdout == file.read_text(encoding="utf-8")
    with pytest.raises(rm.errors.UnknownName, match="named 'unfolt'"):
        typer.testing.CliRunner().invoke(app, [what, "unfolt"], catch_exceptions=False)


def test_every_robot_says_what_it_is_and_spells_out_papers():
    for name, file in rm.bundled("robots").items():
        told = summary(file)
        assert told.endswith("."), name
        for key, authors in {"VT18": "Valverde", "SPART17": "Virgili-Llop"}.items():
            assert (key in told) == (authors in told), told


def test_scenarios_spell_out_papers():
    listed = " ".join(invoked("run", "--list").stdout.split())
    assert "VT18 (Valverde and Tsiotras 2018)" in listed
    assert listed == " ".join(invoked("scenarios").stdout.split())


def test_a_template_is_a_robot(tmp_path):
    file = tmp_path / "mine.urdf"
    file.write_text(invoked("robots", "servicer").stdout, encoding="utf-8")
    assert rm.load(file).nv == 13


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_no_python_types(command):
    told = invoked(*([command] if command else []), "--help")
    assert told.exit_code == 0
    assert not re.search(r"<(bool|str|int|float|path|list)", told.stdout)
    assert "--help" in told.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(command):
    file, line = COMMANDS[command]
    function = getattr(importlib.import_module(f"remora.cli.{file}"), command)
    if isinstance(function, typer.Typer):  # a command with commands of its own
        function = function.registered_callback.callback
    assert function.__doc__.split("\n\n")[0] == line


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
)
def test_help_does_not_load_the_library(arguments):
    watched = f"import atexit; atexit.register(lambda: print('numpy' in sys.modules)); {MAIN}"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {watched}", *arguments],
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "False"


def test_completion_knows_what_is_bundled():
    assert complete_robot("") == sorted(rm.bundled("robots"))
    assert complete_scenario("") == sorted(rm.bundled("scenarios"))


def test_no_trailing_blanks_in_a_pipe():
    for arguments in (("info", "vt18_two_arm"), ("--help",)):
        done = remora(*arguments)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) > 10
        assert [line for line in lines if line != line.rstrip()] == []


def test_blanks_within_lines_and_at_breaks_of_writes_are_kept():
    stream = io.StringIO()
    trimmed = Trimmed(stream)
    for text in ("a  ", " b \t", "\n", "  c ", "d", "  \r\n", "e  "):
        assert trimmed.write(text) == len(text)
    assert stream.getvalue() == "a   b\n  c d\r\ne"


def test_completion_in_bash():
    def completed(words, index):
        environment = {"_REMORA_COMPLETE": "complete_bash", "COMP_WORDS": words}
        return remora(**environment, COMP_CWORD=str(index)).stdout.split()

    assert completed("remora sc", 1) == ["scenarios"]
    assert completed("remora info vt18", 2) == ["vt18_satellite", "vt18_two_arm"]
    assert "--allow-code" in completed("remora run --al", 2)
    script = remora(_REMORA_COMPLETE="source_bash").stdout
    assert "_REMORA_COMPLETE=complete_bash" in script
    assert "complete -o default -F" in script  # files where nothing else fits
