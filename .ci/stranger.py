#!/usr/bin/env python3
"""What a stranger does: the README's two commands, in a clean copy on a machine without tools.

    python3 .ci/stranger.py [--passed FILE] [--commit NAME] [--keep] [--quick]

The committed files are copied to an empty folder whose path has a blank and an accent, with nothing
beside it. `make demo` and `make test` run there with an empty environment and an empty HOME, on a
PATH that has Python, make and the basic commands of a POSIX system, and no browser, C compiler,
emulator, git or GPU tool, whatever this machine has. Where this is run by root, the stranger is an
ordinary user.

Then, where that is cheap, again on harder terms: under nohup (SIGINT ignored), with the checkout
read-only, a HOME that does not exist, and no network.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
#: The commands that every POSIX system has, as far as make, pip and the tests call them.
BASIC = (
    "awk", "basename", "bash", "cat", "chmod", "cmp", "cp", "cut", "date", "dirname", "echo", "env",
    "expr", "false", "find", "grep", "head", "id", "kill", "ln", "ls", "mkdir", "mktemp", "mv",
    "nohup", "printf", "ps", "pwd", "rm", "sed", "sh", "sleep", "sort", "tail", "test", "touch",
    "tr", "true", "uname", "wc", "xargs", "make",
)  # fmt: skip
#: How this machine reaches a package index is its own matter.
PASSED_ON = re.compile(r"PIP_.*|SSL_CERT_.*|(https?|all|no)_proxy|(HTTPS?|ALL|NO)_PROXY|TMPDIR")
#: Tests that ask about HOME, caches, signals and files, for the second round.
AGAIN = (
    "tests/test_suite.py", "tests/cli/test_demo.py", "tests/cli/test_run.py",
    "tests/codegen/test_cache.py", "tests/simulation/test_refusals.py",
    "tests/viewer/test_report.py",
)  # fmt: skip
NOBODY = 65534


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passed", type=Path, help="write the ids of the tests that passed")
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look")
    parser.add_argument("--quick", action="store_true", help="without the second round")
    parser.add_argument("--commit", default="HEAD", help="which files to try; default: HEAD")
    asked = parser.parse_args(arguments)
    place = Path(tempfile.mkdtemp(prefix="stränger "))
    try:
        stranger = Stranger(place, asked.commit)
        stranger.does("make demo")
        if asked.passed:
            stranger.does("make test ARGS='--write-passed=../passed'")
            shutil.copy(place / "passed", asked.passed)
        else:
            stranger.does("make test")
        if not asked.quick:
            stranger.harder()
            stranger.does("nohup make demo ARGS='--out ../again'")
            stranger.does(f"nohup make test ARGS='-m \"not slow\" {' '.join(AGAIN)}'")
    except subprocess.CalledProcessError as failed:
        print(f"=== the stranger's check FAILED: {failed.cmd} ended with {failed.returncode}")
        return 1
    finally:
        if not asked.keep:
            subprocess.run(["chmod", "-R", "u+w", place], check=False)
            shutil.rmtree(place, ignore_errors=True)
    print("=== the stranger's check passed")
    return 0


class Stranger:
    """A user with nothing but the checkout, Python and make.

    Attributes:
        place: folder of the checkout, the home and the programs.
        as_user: arguments of `subprocess.run` that make it an ordinary user.
    """

    def __init__(self, place, commit):
        self.place, self.checkout, self.home = place, place / "rémora", place / "home"
        self.programs = place / "bin"
        self.prefix = []
        for folder in (self.checkout, self.home, self.programs):
            folder.mkdir()
        _copy_committed(self.checkout, commit)
        for name in BASIC:
            if found := shutil.which(name):
                (self.programs / name).symlink_to(found)
        self.as_user, interpreter = _user_and_python()
        python = self.programs / "python3"  # no link: a virtual environment would follow it
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(interpreter)} "$@"\n')
        python.chmod(0o755)
        if self.as_user:
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", place], check=True)
        who = "an ordinary user" if self.as_user or os.geteuid() else "root"
        print(f"=== the stranger's check as {who} with {interpreter}, in {place}", flush=True)

    def does(self, command):
        """Run a command in the checkout and print how long it took."""
        environment = {"HOME": str(self.home), "PATH": str(self.programs), "LANG": "C.UTF-8"}
        environment |= {k: v for k, v in os.environ.items() if PASSED_ON.fullmatch(k)}
        begun = time.monotonic()
        print(f"=== $ {command}", flush=True)
        subprocess.run(
            [*self.prefix, "/bin/sh", "-c", command], cwd=self.checkout, env=environment,
            check=True, stdin=subprocess.DEVNULL, **self.as_user,
        )  # fmt: skip
        print(f"=== {time.monotonic() - begun:.0f} s", flush=True)

    def harder(self):
        """Take the home, the right to write to the checkout and, where possible, the network."""
        shutil.rmtree(self.home)
        subprocess.run(["chmod", "-R", "a-w", self.checkout], check=True)
        tools = [shutil.which(name) for name in ("unshare", "ip", "setpriv")]
        if self.as_user and all(tools):
            unshare, ip, setpriv = tools
            drop = f"exec {setpriv} --reuid={NOBODY} --regid={NOBODY} --clear-groups"
            self.prefix = [
                unshare,
                "--net",
                "sh",
                "-c",
                f'{ip} link set lo up && {drop} "$@"',
                "sh",
            ]
            self.as_user = {}
        else:
            print("=== only root can take the network away, with unshare, ip and setpriv")


def _user_and_python():
    """Return arguments of `subprocess.run` for an ordinary user, and a Python that user can run.

    The interpreter itself, not a script that chooses one. A Python in the home of root leaves root
    as the stranger, unless the system has another.
    """
    own = os.path.realpath(sys._base_executable)
    if os.geteuid():
        return {}, own
    ordinary = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    probe = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
    for python in (own, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = subprocess.run([python, "-c", probe], capture_output=True, cwd="/", **ordinary)
        except OSError:
            continue
        if not done.returncode:
            return ordinary, python
    return {}, own


def _copy_committed(place, commit):
    archive = subprocess.run(
        ["git", "-C", REPOSITORY, "archive", commit], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)


if __name__ == "__main__":
    sys.exit(main())
