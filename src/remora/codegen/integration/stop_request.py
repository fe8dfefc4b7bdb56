"""Requests that end a long call of a compiled program early."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line imports this for its help, which needs no NumPy
    from remora.algebra.array_ops import Array


class StopRequest:
    """A request to end calls, which may be made while one is in progress.

    Attributes:
        made: whether it has been made.
    """

    def __init__(self) -> None:
        """Not made yet."""
        self.made = False
        self._numbers: Array | None = None

    def make(self) -> None:
        """End the call in progress at its next step, and those that follow at their first."""
        self.made = True
        if self._numbers is not None:
            self._numbers[:] = 1

    def watch(self, perform: Callable[[], None], numbers: Array) -> None:
        """Perform a call in another thread, so that this one can handle signals meanwhile.

        Args:
            perform: the call.
            numbers: what it looks at: not zero ends it.
        """
        self._numbers = numbers
        if self.made:
            numbers[:] = 1
        failed: list[BaseException] = []

        def work() -> None:
            try:
                perform()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=work, name="remora-call", daemon=True)
        thread.start()
        try:
            thread.join()
        except BaseException:
            self.make()
            thread.join()  # it writes to memory of this call
            raise
        finally:
            self._numbers = None
        if failed:
            raise failed[0]
