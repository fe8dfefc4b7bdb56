"""Ctrl-C where the parent process ignores it (scripts with `&`), and where it must wait."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

#: Whether SIGINT was ignored when this module was imported. Python then installs no handler of
#: its own, and no interrupt ever becomes a KeyboardInterrupt.
_IGNORED_AT_IMPORT = signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@contextmanager
def interruptible(inherited: bool = _IGNORED_AT_IMPORT) -> Generator[None]:
    """Have SIGINT raise KeyboardInterrupt within a block, where the parent process ignored it.

    Shells start background commands of scripts with SIGINT ignored, and Python keeps that. What
    offers Ctrl-C installs Python's own handler for as long as it runs, and puts back what was
    there. Left alone are: handlers of the program; a program that decided by itself to ignore
    SIGINT, after Remora was imported; worker processes of `multiprocessing`, whose parent decides;
    and all threads but the main one, which receive no signals.

    Args:
        inherited: whether an ignored SIGINT comes from the parent process.
    """
    ours = (
        inherited
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        and threading.current_thread() is threading.main_thread()
        and multiprocessing.parent_process() is None
    )
    if not ours:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def uninterrupted() -> Generator[None]:
    """Have a SIGINT that comes within a short block take effect at its end.

    For what must not be left half done, such as the files that a run begins with.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        before(*received[-1])
