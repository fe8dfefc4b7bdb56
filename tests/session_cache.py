"""Each session of tests has caches of its own, in a folder that is removed at its end.

So no test depends on what an earlier session compiled, nor on a home that can be written. The
workers of one session share the folder, as processes of a user do: entries of the kernel cache are
written aside and moved into place.
"""

import os
import tempfile

import pytest

_folder = pytest.StashKey[tempfile.TemporaryDirectory]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if hasattr(config, "workerinput"):  # it has the environment of the process that started it
        return
    folder = tempfile.TemporaryDirectory(prefix="remora-tests-", ignore_cleanup_errors=True)
    config.stash[_folder] = folder
    os.environ["XDG_CACHE_HOME"] = folder.name
    os.environ["MPLCONFIGDIR"] = os.path.join(folder.name, "matplotlib")
    os.environ.pop("REMORA_CACHE", None)


def pytest_unconfigure(config):
    if _folder in config.stash:
        config.stash[_folder].cleanup()
