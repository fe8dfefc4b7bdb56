"""Processes that tests start: they never outlive their block, and SIGINT may be ignored in them."""

import contextlib
import subprocess

#: Before a command: start it as a script starts its background jobs, with SIGINT ignored.
IGNORING_SIGINT = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


@contextlib.contextmanager
def started(command, **options):
    """Start a process with pipes for its text; kill it at the end of the block if it still runs."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    process = subprocess.Popen([*map(str, command)], **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
