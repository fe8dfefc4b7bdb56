"""Each session of tests has caches of its own, in a folder that is removed at its end.

So no test depends on what an earlier session compiled, nor on a home that can be written. The
workers of one session share the folder, as processes of a user do: entries of the kernel cache are
written aside and moved into place.

`REMORA_TEST_CACHE` names a folder that is kept instead. Entries are found by what they were made
from, so sessions and commits may share it; what kernels a test counts or times, it counts in a
folder of its own.
"""

import os
import tempfile

import pytest

_folder = pytest.StashKey[tempfile.TemporaryDirectory]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if hasattr(config, "workerinput"):  # it has the environment of the process that started it
        return
    place = os.environ.pop("REMORA_TEST_CACHE", None)
    if not place:
        folder = tempfile.TemporaryDirectory(prefix="remora-tests-", ignore_cleanup_errors=True)
        config.stash[_folder] = folder
        place = folder.name
    os.makedirs(place, mode=0o700, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = place
    os.environ["MPLCONFIGDIR"] = os.path.join(place, "matplotlib")
    os.environ.pop("REMORA_CACHE", None)


def pytest_unconfigure(config):
    if _folder in config.stash:
        config.stash[_folder].cleanup()
