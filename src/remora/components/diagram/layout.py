"""Layout of a diagram: places of the blocks, and the shapes of all blocks and wires.

Components stand in columns, with a channel for vertical parts of wires left of each column and left
of the robot. Wires to a column that is not the next one run in lanes above the blocks; the state of
the robot returns in a lane below them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from remora.components.diagram.blocks import DiagramBlock, Port, short
from remora.components.diagram.columns import columns
from remora.components.diagram.shapes import Diamond, Drawing, Rectangle, Shape, TextShape
from remora.components.diagram.wires import PlacedBlock, Routes, routes
from remora.model.robot import Robot

#: Height of the head of a block, of a row, and of an event, px.
HEAD, ROW, EVENT = 60.0, 24.0, 20.0
#: Page margin, gap between blocks of a column, and distance between lanes, px.
MARGIN, GAP, LANE = 24.0, 24.0, 18.0
#: Width of a character in rows and in names, px.
CHARACTER, WIDE = 6.5, 7.9
#: Smallest width of a block, and width of the robot, px.
NARROWEST, ROBOT = 130.0, 132.0


@dataclass(frozen=True)
class _RobotText:
    """Texts of the robot's block."""

    name: str
    lines: tuple[str, ...]


def drawn(robot: Robot, blocks: Mapping[str, DiagramBlock], delayed: Sequence[str]) -> Drawing:
    """Return the drawing of a system.

    Args:
        robot: the robot.
        blocks: the components.
        delayed: names of the components with a delay.
    """
    sources = {
        n: [p.source.partition(".")[0] for p in b.left if p.kind == "input"]
        for n, b in blocks.items()
    }
    acting = [n for n, b in blocks.items() if any(p.kind == "action" for p in b.right)]
    listed = columns(list(blocks), sources, acting, delayed)
    count = len(robot.bodies)
    told = f"{count} bodies" if count != 1 else "1 body"
    plant = _RobotText(short(robot.name), (told, f"{robot.nv} DOF"))
    heights = {n: _height(b) for n, b in blocks.items()}
    tops = _tops(listed, blocks, heights)
    placed = {
        n: PlacedBlock(n, blocks[n], k, tops[n] + HEAD + 0.5 * ROW, ROW)
        for k, column in enumerate(listed) for n in column
    }  # fmt: skip
    widths = [max(_width(blocks[n]) for n in column) for column in listed]
    found = routes(placed, widths, MARGIN, LANE)
    shift = _snapped(MARGIN + LANE * found.lanes)
    bottom = shift + max((tops[n] + heights[n] for n in blocks), default=120.0)
    right = found.robot_x + ROBOT
    shapes: list[Shape] = [Rectangle(0.0, 0.0, right + MARGIN, _page(bottom, found), "page", 10.0)]
    shapes += found.wires(shift, bottom, ROBOT)
    for n, block in blocks.items():
        x, width = found.column_x[placed[n].column], widths[placed[n].column]
        shapes += _block(block, x, shift + tops[n], width, heights[n])
    shapes += _robot(plant, found.robot_x, bottom)
    count = len(blocks)
    title = f"block diagram of {plant.name!r} with {count} component{'s' if count != 1 else ''}"
    return Drawing(right + MARGIN, _page(bottom, found), tuple(shapes), title)


def _page(bottom: float, found: Routes) -> float:
    return bottom + MARGIN + (26.0 if found.reads else 0.0)


def _snapped(y: float) -> float:
    return ROW * -(-y // ROW)


def _height(block: DiagramBlock) -> float:
    rows = max(len(block.left), len(block.right))
    return HEAD + ROW * rows + EVENT * len(block.events) + (8.0 if rows or block.events else 0.0)


def _width(block: DiagramBlock) -> float:
    rows = max(len(block.left), len(block.right))
    both = 0
    for k in range(rows):
        ends = [side[k].text for side in (block.left, block.right) if k < len(side)]
        both = max(both, sum(map(len, ends)) + 3 * (len(ends) - 1))
    heads = [WIDE * len(block.name), CHARACTER * len(block.kind), CHARACTER * len(block.timing)]
    events = [CHARACTER * len(e) + 16.0 for e in block.events]
    return max(NARROWEST, CHARACTER * both + 24.0, *(x + 24.0 for x in (*heads, *events)))


def _tops(
    listed: Sequence[Sequence[str]],
    blocks: Mapping[str, DiagramBlock],
    heights: Mapping[str, float],
) -> dict[str, float]:
    """Return the top of every block, so that wires to the next column are straight if possible."""
    tops: dict[str, float] = {}
    for column in listed:
        free = 0.0
        for name in column:
            wanted = free
            for row, port in enumerate(blocks[name].left):
                source = port.source.partition(".")[0]
                if port.kind == "input" and source in tops:
                    out = [p.signal for p in blocks[source].right].index(port.source)
                    wanted = tops[source] + ROW * (out - row)
                    break
            tops[name] = max(free, wanted)
            free = _snapped(tops[name] + heights[name] + GAP)
    highest = min(tops.values(), default=0.0)
    return {name: top - highest for name, top in tops.items()}


def _block(block: DiagramBlock, x: float, y: float, width: float, height: float) -> list[Shape]:
    shapes: list[Shape] = [Rectangle(x, y, width, height, "block")]
    middle = x + 0.5 * width
    timing = "sampled" if block.sampled else "muted"
    shapes.append(TextShape(middle, y + 16.0, block.name, "ink", "middle", 13.5, True))
    shapes.append(TextShape(middle, y + 33.0, block.kind, "muted", "middle", 11.5))
    shapes.append(TextShape(middle, y + 49.0, block.timing, timing, "middle", 11.5))
    rows = max(len(block.left), len(block.right))
    for k in range(rows):
        at = y + HEAD + ROW * (k + 0.5)
        if k < len(block.left):
            shapes.append(_port(block.left[k], x + 10.0, at, "start"))
        if k < len(block.right):
            shapes.append(_port(block.right[k], x + width - 10.0, at, "end"))
    for k, event in enumerate(block.events):
        at = y + HEAD + ROW * rows + EVENT * (k + 0.5)
        shapes += [
            Diamond(x + 15.0, at, "event"),
            TextShape(x + 26.0, at, event, "event", size=11.5),
        ]
    return shapes


def _port(port: Port, x: float, y: float, anchor: str) -> TextShape:
    style = {"action": "action", "state": "muted", "constant": "muted"}.get(port.kind, "ink")
    return TextShape(x, y, port.text, style, anchor)


def _robot(robot: _RobotText, x: float, bottom: float) -> list[Shape]:
    middle, centre = x + 0.5 * ROBOT, 0.5 * (MARGIN + bottom)
    lines = [
        TextShape(middle, centre + 10.0 + 18.0 * k, line, "muted", "middle", 11.5)
        for k, line in enumerate(robot.lines)
    ]
    return [
        Rectangle(x, MARGIN, ROBOT, bottom - MARGIN, "robot"),
        TextShape(middle, centre - 12.0, robot.name, "ink", "middle", 14.0, True),
        *lines,
    ]
