"""The console of the commands: plain text without trailing blanks when output goes to a pipe."""

from __future__ import annotations

import re
import sys
from typing import TextIO, cast

from rich.console import Console

_TRAILING = re.compile(r"[ \t]+(?=\n)")


class _Trimmed:
    """A stream that leaves out blanks at the ends of lines; rich pads the cells of tables."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._held = stream, ""
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Write a text; blanks at its end wait for what follows."""
        whole = self._held + text
        kept = whole.rstrip(" \t")
        self._held = whole[len(kept) :]
        self._stream.write(_TRAILING.sub("", kept))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Return False: terminals get the stream itself."""
        return False

    def fileno(self) -> int:
        """Return the number of the stream's file."""
        return self._stream.fileno()


def plain_console(soft_wrap: bool = False) -> Console:
    """Return a console without highlighting.

    Args:
        soft_wrap: whether long lines are left to the terminal.
    """
    file = None if sys.stdout.isatty() else cast(TextIO, _Trimmed(sys.stdout))
    return Console(file=file, highlight=False, emoji=False, soft_wrap=soft_wrap)
