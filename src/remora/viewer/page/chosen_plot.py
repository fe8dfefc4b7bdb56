"""A plot on a page that the user selects, with a cursor at the displayed time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from remora.viewer.interpolation import sample_before
from remora.viewer.page.page import on
from remora.viewer.page.plots import Plot, cursor, svg


class ChosenPlot:
    """A plot selected by the user, with its cursor at the current time."""

    def __init__(
        self, server: Any, make: Callable[[str], Plot], names: Sequence[str], name: str,
        redraw: Callable[[], None],
    ) -> None:  # fmt: skip
        """Add the plot to the page.

        Args:
            server: viser's server.
            make: (name) -> plot.
            names: plots that can be chosen.
            name: of the first.
            redraw: called after another was chosen.
        """
        self._make = make
        self._choice = server.gui.add_dropdown("plot", names, initial_value=name)
        self._picture = server.gui.add_html("")
        self._cursor = server.gui.add_html("")
        self._plot: Plot = self._made()
        on(self._choice.on_update, lambda: (self._made(), redraw()))

    def _made(self) -> Plot:
        self._plot = self._make(self._choice.value)
        self._picture.content = svg(self._plot)
        return self._plot

    def move(self, t: float) -> None:
        """Put the cursor at time t."""
        self._cursor.content = cursor(self._plot, t, int(sample_before(self._plot.t, t)))
