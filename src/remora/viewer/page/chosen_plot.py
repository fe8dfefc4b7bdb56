"""A plot on a page that the user selects, with a cursor at the displayed time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from remora.viewer.interpolation import sample_before
from remora.viewer.page.page import on
from remora.viewer.page.plots import Plot, cursor, picked, svg

#: Plots with more lines can be searched.
FEW = 3


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
            names: plots that can be chosen; the list is searched by typing in it.
            name: of the first.
            redraw: called after another was chosen.
        """
        self._make = make
        gui = server.gui
        self._choice = gui.add_dropdown("plot", names, initial_value=name)
        self._lines = gui.add_text(
            "filter", "", hint="Parts of names, such as elbow, wrist; empty: all. "
            "A click on a name below shows that line only."
        )  # fmt: skip
        # Set by a click on a name in the legend.
        self._pick = gui.add_text("pick", "", visible=False)
        self._picture = gui.add_html("")
        self._cursor = gui.add_html("")
        self._plot: Plot = self._made()
        on(self._choice.on_update, lambda: (self._chosen(), redraw()))
        on(self._lines.on_update, lambda: (self._made(), redraw()))
        on(self._pick.on_update, self._picked)

    @property
    def names(self) -> list[str]:
        """Names of the lines shown."""
        return self._plot.names

    def pick(self, text: str) -> None:
        """Show only the lines whose names contain one of these parts, separated by commas."""
        self._lines.value = text

    def _chosen(self) -> None:
        self._lines.value = ""
        self._made()

    def _picked(self) -> None:
        name = str(self._pick.value)
        if name:
            self._pick.value = ""  # so that the next click on the same name is a change
            self.pick("" if self.names == [name] else name)

    def _made(self) -> Plot:
        whole = self._make(self._choice.value)
        self._lines.visible = len(whole.names) > FEW
        self._plot = picked(whole, str(self._lines.value))
        self._picture.content = svg(self._plot)
        return self._plot

    def move(self, t: float) -> None:
        """Put the cursor at time t."""
        self._cursor.content = cursor(
            self._plot, t, int(sample_before(self._plot.t, t)), str(self._pick._impl.uuid)
        )
