"""Commands of the command line in the process of the tests: without the start of another Python.

For what a command says and returns; tests of processes, such as those of Ctrl-C, start one.
"""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from unittest import mock

from remora.cli import main


def remora(*arguments, folder=None, columns=100):
    """Return what `remora` with these arguments prints and the code with which it ends."""
    out, error, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["remora", *map(str, arguments)]),
        mock.patch.dict(os.environ, {"COLUMNS": str(columns)}),
        mock.patch.object(warnings, "showwarning", warnings.showwarning),
        contextlib.chdir(folder or "."),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), error.getvalue())
