"""Tools that some tests need beyond the packages of the extra `test`.

A test that lacks its tool is skipped with the tool's sentence below, and the end of the session
says how many tests each tool kept from running (`skip_summary`).

    @needs.compiler                      # a mark
    needs.programs("qemu-ppc")           # within a test
"""

import os
import shutil

import pytest

from remora.codegen.gpu import cuda_kernel
from remora.errors import RemoraError
from remora.viewer.film.browser import find_browser

BROWSER_NEED = "needs a browser (apt install chromium, or REMORA_BROWSER)"
FLIGHT_NEED = "needs an emulator and a cross compiler (apt install qemu-user gcc-...: see .ci/run)"


def _browser():
    try:
        return find_browser()
    except RemoraError:
        return None


def _cupy():
    try:
        return cuda_kernel.cupy_with_device()
    except RemoraError:
        return None


#: Path of a browser, of a C and of a C++ compiler, and CuPy with a GPU; None where there is none.
BROWSER = _browser()
CC = shutil.which("gcc") or shutil.which("cc")
CXX = shutil.which("g++")
CUPY = _cupy()

browser = pytest.mark.skipif(BROWSER is None, reason=BROWSER_NEED)
compiler = pytest.mark.skipif(CC is None, reason="needs a C compiler (apt install gcc)")
cxx = pytest.mark.skipif(CXX is None, reason="needs a C++ compiler (apt install g++)")
gpu = pytest.mark.skipif(CUPY is None, reason="needs CuPy and an NVIDIA GPU")
no_gpu = pytest.mark.skipif(CUPY is not None, reason="needs a machine without a GPU")
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which this system lacks")
ORACLE_NEED = "needs the reference numbers, shared/oracle beside the checkout"


def programs(*names):
    """Skip the test unless these programs, emulators and cross compilers, are on the PATH."""
    if not all(map(shutil.which, names)):
        pytest.skip(FLIGHT_NEED)
