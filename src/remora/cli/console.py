"""Commands imported on demand; no trailing blanks in a pipe, no Python types in help."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Generator
from typing import Any, TextIO, cast

import typer.core
import typer.main

_TRAILING = re.compile(r"[ \t]+(?=\r?\n)")


class Trimmed:
    """A stream that leaves out blanks at the ends of lines; rich pads the cells of tables."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._held = stream, ""

    def write(self, text: str) -> int:
        """Write a text; blanks at its end wait for what follows."""
        whole = self._held + text
        kept = whole.rstrip(" \t")
        self._held = whole[len(kept) :]
        self._stream.write(_TRAILING.sub("", kept))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Return anything else of the stream."""
        return getattr(self._stream, name)


@contextlib.contextmanager
def trimmed_output() -> Generator[None]:
    """Leave out blanks at the ends of lines, unless the output is a terminal."""
    if sys.stdout.isatty():
        yield
        return
    with contextlib.redirect_stdout(cast(TextIO, Trimmed(sys.stdout))):
        yield


def _without_type(params: list[Any]) -> list[Any]:
    """Leave the types of flags and arguments, `<bool>` and `<str>`, out of the help."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
        if isinstance(param, typer.core.TyperArgument):
            param.display_type_rich = lambda ctx: None  # a Python type says less than the name
    return params


class Command(typer.core.TyperCommand):
    """A command whose help shows no Python types beside flags and arguments."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _without_type(super().get_params(ctx))


class Group(typer.core.TyperGroup):
    """Commands whose modules are imported when they are called, which keeps `--help` quick.

    A command is registered with its one line of help and `module` as a placeholder; whoever calls
    it, or asks for its help or completion, gets the function of that name in that module.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _without_type(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, and the arguments that are its own."""
        found: Any = self.commands.get(args[0])
        if isinstance(found, Placeholder):
            self.commands[args[0]] = loaded(args[0], found.module)
        return super().resolve_command(ctx, args)


class Placeholder(Command):
    """A command that is not imported yet."""

    module = ""


def placeholder(module: str) -> type[Placeholder]:
    """Return the class of a command that a module defines.

    Args:
        module: full name of the module.
    """
    return type("Placeholder", (Placeholder,), {"module": module})


def loaded(name: str, module: str) -> Any:
    """Import a command.

    Args:
        name: of the command, and of the function or the group of commands that carries it out.
        module: full name of the module.
    """
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name, cls=Command)(found)
        found = single
    return typer.main.get_command(found)
