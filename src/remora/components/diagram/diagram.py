"""Block diagrams of systems, as SVG or as pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from pathlib import Path

from remora.algebra.array_ops import Array
from remora.atomic_files import replacing, write_text
from remora.components.diagram.blocks import blocks_of
from remora.components.diagram.figure import figure
from remora.components.diagram.layout import drawn
from remora.components.diagram.shapes import Drawing
from remora.components.diagram.svg import svg
from remora.components.layout import ComponentLayout
from remora.errors import RemoraError
from remora.model.robot import Robot

#: Formats that are written by matplotlib.
PICTURES = (".png", ".pdf")


class Diagram:
    """A block diagram of a system, from left to right in the order of its signals.

    Blue: signals, with unit and number of elements. Orange: actions on the robot. Dashed grey: the
    robot's state. Purple: timing of sampled components. Red diamonds: events. A notebook shows it.

    Attributes:
        drawing: the shapes.
    """

    drawing: Drawing

    def __init__(
        self,
        robot: Robot,
        layouts: Mapping[str, ComponentLayout],
        connections: Mapping[str, str | Array],
        reads_robot: Set[str],
    ) -> None:
        """Lay out the diagram; see `System` for the arguments."""
        delayed = [name for name, layout in layouts.items() if layout.component.delay]
        self.drawing = drawn(robot, blocks_of(layouts, connections, reads_robot), delayed)

    def svg(self) -> str:
        """Return the diagram as a self-contained SVG document."""
        return svg(self.drawing)

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the diagram into a file, `.svg`, or `.png` or `.pdf` with matplotlib.

        Raises:
            RemoraError: for another suffix, without matplotlib, or if the file cannot be written.
        """
        file = Path(path)
        suffix = file.suffix.lower()
        if suffix not in (".svg", *PICTURES):
            known = ", ".join((".svg", *PICTURES))
            raise RemoraError(f"{file}: a diagram is saved as {known}, not as {suffix!r}")
        if suffix == ".svg":
            return write_text(file, self.svg())
        drawn_figure = figure(self.drawing)
        with replacing(file) as part:
            drawn_figure.savefig(part, dpi=192, facecolor="white")
        return file

    def __repr__(self) -> str:
        """Return the title and how to see the diagram."""
        return f"<{self.drawing.title}; save('diagram.svg') writes it>"
