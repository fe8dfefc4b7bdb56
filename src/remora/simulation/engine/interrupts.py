"""Handling of Ctrl-C (SIGINT): enabled where the parent process ignores it, deferred in blocks."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from remora.codegen.integration.stop_request import StopRequest
from remora.sigint_at_import import SIGINT_IGNORED


@contextmanager
def interruptible(inherited: bool = SIGINT_IGNORED) -> Generator[None]:
    """Make SIGINT raise KeyboardInterrupt within a block if the parent process ignored it.

    Shells start background commands of scripts with SIGINT ignored, and Python inherits that. This
    installs Python's default handler for the duration of the block and then restores the previous
    one. Not changed are: handlers installed by the program; a program that itself ignores SIGINT
    after Remora was imported; worker processes of `multiprocessing`, which their parent controls;
    and threads other than the main thread, which receive no signals.

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
def stopping() -> Generator[StopRequest | None]:
    """Yield a request to stop that Ctrl-C makes within a block, instead of KeyboardInterrupt.

    None where SIGINT does not raise KeyboardInterrupt: in threads other than the main thread, and
    where the program has its own handler.
    """
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if before is not signal.default_int_handler or not main:
        yield None
        return
    request = StopRequest()
    signal.signal(signal.SIGINT, lambda number, frame: request.make())
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def uninterrupted() -> Generator[None]:
    """Defer a SIGINT that arrives within a short block to its end.

    For operations that must not be left half done, such as creating the files of a run.
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
