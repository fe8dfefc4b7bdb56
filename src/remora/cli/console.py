"""Output of the commands: no trailing blanks in a pipe or file, no type beside a flag in help."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Generator
from typing import Any, TextIO, cast

import typer.core

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
    """Leave `<bool>` out of the help of flags, which take no value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


class Command(typer.core.TyperCommand):
    """A command whose help shows no type beside a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _without_type(super().get_params(ctx))


class Group(typer.core.TyperGroup):
    """A group of commands whose help shows no type beside a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _without_type(super().get_params(ctx))
