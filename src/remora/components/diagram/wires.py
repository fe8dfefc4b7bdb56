"""Routes of the wires of a diagram: trunks in the channels between columns, lanes above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from remora.components.diagram.blocks import DiagramBlock, Port
from remora.components.diagram.shapes import Point, Shape, TextShape, Wire

#: Distance between trunks of a channel, and from the last trunk to the next column, px.
TRUNK, ARROW = 13.0, 24.0
#: Width of a character of a label, px.
CHARACTER = 6.1
#: Width of a channel without wires, px.
EMPTY = 30.0


@dataclass(frozen=True)
class PlacedBlock:
    """A block in a column.

    Attributes:
        name: of the component.
        block: its contents.
        column: index of the column.
        first: y of its first row, from the top of the blocks, px.
        row: height of a row, px.
    """

    name: str
    block: DiagramBlock
    column: int
    first: float
    row: float

    def ports(self, side: str) -> list[tuple[Port, float]]:
        """Return the ports of a side (`left`, `right`) with their y."""
        listed: Sequence[Port] = getattr(self.block, side)
        return [(port, self.first + self.row * k) for k, port in enumerate(listed)]


@dataclass
class _Net:
    """A signal, an action, or the robot's state, from its source to all places it reaches.

    Attributes:
        key: its name.
        style: `signal`, `action` or `state`.
        column: column of its source; None: the robot.
        y: of its source.
        label: text at its source.
        goals: (channel, y) of its ends; None as y: the robot.
        lane: index of its lane, if it needs one.
    """

    key: str
    style: str
    column: int | None
    y: float
    label: str = ""
    goals: list[tuple[int, float | None]] = field(default_factory=list[tuple[int, float | None]])
    lane: int | None = None

    def distant(self) -> list[tuple[int, float | None]]:
        """Return the goals that are not in the channel next to the source."""
        if self.column is None:
            return list(self.goals)
        return [goal for goal in self.goals if goal[0] != self.column + 1]

    def near(self) -> list[float | None]:
        """Return the y of the goals in the channel next to the source."""
        return [y for channel, y in self.goals
                if self.column is not None and channel == self.column + 1]  # fmt: skip


@dataclass(frozen=True)
class Routes:
    """Places of the columns, and all nets.

    Attributes:
        column_x: left edges of the columns.
        widths: their widths.
        robot_x: left edge of the robot.
        lanes: number of lanes above the blocks.
        reads: whether a component reads the robot's state.
        nets: the nets.
        trunks: x of the trunk of a net in a channel, by (channel, key).
        margin: of the page.
        lane: distance between lanes.
    """

    column_x: tuple[float, ...]
    widths: tuple[float, ...]
    robot_x: float
    lanes: int
    reads: bool
    nets: tuple[_Net, ...]
    trunks: Mapping[tuple[int, str], float]
    margin: float
    lane: float

    def wires(self, shift: float, bottom: float, robot_width: float) -> list[Shape]:
        """Return the shapes of all wires and their labels.

        Args:
            shift: y of the top of the blocks.
            bottom: y of the lower edge of the robot.
            robot_width: of the robot's block.
        """
        shapes: list[Shape] = []
        for net in self.nets:
            if net.column is None:
                shapes += self._returned(net, shift, bottom, robot_width)
            else:
                shapes += self._sent(net, net.column, shift)
        return shapes

    def _goal_x(self, channel: int) -> float:
        return self.column_x[channel] if channel < len(self.column_x) else self.robot_x

    def _sent(self, net: _Net, column: int, shift: float) -> list[Shape]:
        """Return the wires of a signal or an action."""
        x0, y0 = self.column_x[column] + self.widths[column], net.y + shift
        shapes: list[Shape] = []
        trunk = self.trunks.get((column + 1, net.key))
        paths: list[list[Point]] = []
        for y in net.near():
            end = (self._goal_x(column + 1), y0 if y is None else y + shift)
            if end[1] == y0 or trunk is None:
                paths.append([(x0, y0), end])
            else:
                paths.append([(x0, y0), (trunk, y0), (trunk, end[1]), end])
        if net.lane is not None and trunk is not None:
            level = self.margin + 10.0 + self.lane * net.lane
            start: list[Point] = [(x0, y0), (trunk, y0), (trunk, level)]
            for channel, y in net.distant():
                if y is None:
                    paths.append([*start, (self.robot_x, level)])
                else:
                    x = self.trunks[channel, net.key]
                    paths.append([*start, (x, level), (x, y + shift),
                                  (self._goal_x(channel), y + shift)])  # fmt: skip
        if not paths:  # nobody reads it, but it is recorded
            stub = x0 + (10.0 + CHARACTER * len(net.label) if net.label else 18.0)
            shapes.append(Wire(((x0, y0), (stub, y0)), net.style, arrow=False))
        shapes += [Wire(tuple(path), net.style) for path in paths]
        if len(paths) > 1 and trunk is not None:
            shapes.append(Wire(((trunk, y0), (trunk, y0)), net.style, arrow=False, dot=True))
        if net.label:
            shapes.append(TextShape(x0 + 6.0, y0 - 8.0, net.label, net.style, size=10.5))
        return shapes

    def _returned(self, net: _Net, shift: float, bottom: float, width: float) -> list[Shape]:
        """Return the wires of the robot's state, which runs below the blocks."""
        level, x0 = bottom + 24.0, self.robot_x + 0.5 * width
        start: list[Point] = [(x0, bottom), (x0, level)]
        shapes: list[Shape] = []
        for channel, y in net.goals:
            assert y is not None
            x = self.trunks[channel, net.key]
            end = (self._goal_x(channel), y + shift)
            shapes.append(Wire((*start, (x, level), (x, end[1]), end), "state"))
        shapes.append(TextShape(x0 - 8.0, level - 9.0, "state q, v", "muted", "end", 10.5))
        return shapes


def routes(
    placed: Mapping[str, PlacedBlock], widths: Sequence[float], margin: float, lane: float
) -> Routes:
    """Return the routes of all wires, and the places of the columns between them."""
    last = len(widths)
    nets: dict[str, _Net] = {}
    for block in placed.values():
        for k, (port, y) in enumerate(block.ports("right")):
            if port.kind == "action":
                key = f"{block.name} acts {k}"
                nets[key] = _Net(key, "action", block.column, y, goals=[(last, None)])
            else:
                nets[port.signal] = _Net(port.signal, "signal", block.column, y, port.label)
    state = _Net("state", "state", None, 0.0)
    for block in placed.values():
        for port, y in block.ports("left"):
            if port.kind == "input":
                nets[port.source].goals.append((block.column, y))
            elif port.kind == "state":
                state.goals.append((block.column, y))
    if state.goals:
        nets["state"] = state
    lanes = 0
    for net in nets.values():
        if net.column is not None and net.distant():
            net.lane, lanes = lanes, lanes + 1
    x, column_x, trunks = margin, list[float](), dict[tuple[int, str], float]()
    for channel in range(last + 1):
        labels = [net.label for net in nets.values() if net.column == channel - 1]
        x += max((CHARACTER * len(label) + 14.0 for label in labels if label), default=8.0)
        for key in _ordered(channel, nets.values()):
            trunks[channel, key] = x
            x += TRUNK
        x += ARROW if channel else (10.0 if any(c == 0 for c, _ in trunks) else -8.0)
        if channel < last:
            column_x.append(x)
            x += widths[channel]
    x = max(x, margin + EMPTY)
    return Routes(
        tuple(column_x), tuple(widths), x, lanes, bool(state.goals), tuple(nets.values()), trunks,
        margin, lane,
    )  # fmt: skip


def _ordered(channel: int, nets: Iterable[_Net]) -> list[str]:
    """Return the nets with a trunk in a channel, from left to right.

    Where a wire comes from the left at the height at which another goes on to the right, its trunk
    comes first, so that they do not overlap.
    """
    ends: dict[str, tuple[float | None, list[float]]] = {}
    for net in nets:
        here = net.column is not None and net.column + 1 == channel
        goals = [y for c, y in net.goals if c == channel and y is not None]
        bends = any(y != net.y for y in goals) or net.lane is not None
        if (here and bends) or (not here and goals):
            ends[net.key] = (net.y if here else None, goals)
    left = dict(ends)
    order: list[str] = []
    while left:
        free = [k for k in left if not any(
            start is not None and start in left[k][1]
            for other, (start, _) in left.items() if other != k
        )]  # fmt: skip
        key = min(free or left, key=lambda k: (min(left[k][1], default=-1.0), k))
        order.append(key)
        del left[key]
    return order
