"""Block diagrams: everything of a system is in them, and nothing overlaps."""

import itertools
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import looks
import remora as rm
from remora.components.diagram.columns import columns
from remora.components.diagram.shapes import Rectangle, TextShape, Wire

SERVICER = rm.load("servicer")


class Filter(rm.Component):
    """A component in a loop with the controller, which has a delay."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"rate": rm.Signal(3, "rad/s"), "torque": rm.Signal(3, "N m")},
            outputs={"filtered": rm.Signal(3, "rad/s")},
        )

    def outputs(self, at):
        return {"filtered": at.inputs["rate"] + 0.01 * at.inputs["torque"]}


def looped():
    attitude = rm.control.AttitudePD(
        SERVICER, (1, 0, 0, 0), 5, 2, 0.02, delay=0.02, name="attitude", rate_input=True,
        torque_output=True,
    )  # fmt: skip
    parts = [
        attitude,
        rm.sensors.RateGyro("bus", sample_time=0.02, name="gyro"),
        Filter(name="filter"),
        rm.actuators.FirstOrderActuator(frame="bus", name="wheels"),
        rm.actuators.Thruster("tool", 1.0, name="jet_1"),
        rm.sensors.Threshold(1.0, "N m", 3, action="stop", name="overload"),
        rm.world.Spring("bus", "tool", 2.0, name="tether"),
    ]
    wires = {
        "filter.rate": "gyro.rate", "filter.torque": "attitude.torque",
        "attitude.rate": "filter.filtered", "wheels.command": "attitude.torque",
        "overload.signal": "wheels.torque", "jet_1.command": 0.5,
    }  # fmt: skip
    return rm.System(SERVICER, parts, wires)


SYSTEMS = {
    "looped": looped,
    "bundled": lambda: rm.load_scenario("hold_attitude").system,
    "one": lambda: rm.System(SERVICER, [rm.world.Spring("bus", "tool", 2.0)]),
    "none": lambda: rm.System(SERVICER),
    "alone": lambda: rm.System(SERVICER, [rm.SignalSource(1.0)]),
}


@pytest.fixture(params=SYSTEMS, scope="module")
def system(request):
    return SYSTEMS[request.param]()


def texts(diagram):
    return [shape.text for shape in diagram.drawing.shapes if isinstance(shape, TextShape)]


def test_every_name_class_signal_unit_and_event_is_written(system):
    written = texts(system.diagram())
    for name, component in system.components.items():
        assert name in written
        assert type(component).__name__ in written
        interface = system.layouts[name].interface
        assert all(key in written for key in interface.outputs)
        assert all(f"{k}: {e.action}" in written for k, e in interface.events.items())
    assert system.robot.name in written


def test_timing_units_actions_and_constants_are_told():
    written = texts(looped().diagram())
    assert "50 Hz, delay 20 ms" in written
    assert "rad/s × 3" in written
    assert "wrench on bus, tool" in written
    assert "command = 0.5" in written


def boxes(diagram):
    found = [s for s in diagram.drawing.shapes if isinstance(s, Rectangle)]
    return [s for s in found if s.style in ("block", "robot")]


def test_blocks_do_not_overlap_and_lie_on_the_page(system):
    drawing = system.diagram().drawing
    for a, b in itertools.combinations(boxes(system.diagram()), 2):
        apart = a.x + a.width < b.x or b.x + b.width < a.x
        assert apart or a.y + a.height < b.y or b.y + b.height < a.y
    for box in boxes(system.diagram()):
        assert box.x > 0
        assert box.y > 0
        assert box.x + box.width < drawing.width
        assert box.y + box.height < drawing.height


def test_no_wire_runs_through_a_block(system):
    diagram = system.diagram()
    for wire in (s for s in diagram.drawing.shapes if isinstance(s, Wire)):
        for (x0, y0), (x1, y1) in itertools.pairwise(wire.points):
            assert x0 == x1 or y0 == y1
            for box in boxes(diagram):
                inside_x = max(min(x0, x1), box.x) < min(max(x0, x1), box.x + box.width)
                inside_y = max(min(y0, y1), box.y) < min(max(y0, y1), box.y + box.height)
                level = box.y < y0 < box.y + box.height and y0 == y1
                upright = box.x < x0 < box.x + box.width and x0 == x1
                assert not (level and inside_x)
                assert not (upright and inside_y)


def test_wires_of_different_signals_do_not_lie_on_each_other():
    diagram = looped().diagram()
    horizontal = {}
    for wire in (s for s in diagram.drawing.shapes if isinstance(s, Wire)):
        for (x0, y0), (x1, y1) in itertools.pairwise(wire.points):
            if y0 == y1 and x0 != x1:
                horizontal.setdefault(y0, []).append((wire.points[0], *sorted((x0, x1))))
    for parts in horizontal.values():
        for (start, a, b), (other, c, d) in itertools.combinations(parts, 2):
            assert start == other or min(b, d) <= max(a, c)


def test_as_many_arrows_as_connections_actions_and_readers():
    system = looped()
    wires = [s for s in system.diagram().drawing.shapes if isinstance(s, Wire) and s.arrow]
    by_style = {style: sum(w.style == style for w in wires) for style in ("signal", "action")}
    connected = sum(isinstance(source, str) for source in system.connections.values())
    assert by_style == {"signal": connected, "action": 3}
    assert sum(w.style == "state" for w in wires) == len(system.reads_robot) == 3
    assert system.reads_robot == {"attitude", "gyro", "tether"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_diagram_looks_as_it_did(name):
    assert not looks.differs(f"diagram: {name}", SYSTEMS[name]().diagram().drawing)


def test_sources_stand_left_of_their_readers_and_a_cycle_is_cut_at_the_delay():
    sources = {"law": ["filter"], "filter": ["gyro", "law"], "gyro": [], "wheels": ["law"]}
    assert columns(list(sources), sources, ["wheels"], ["law"]) == [
        ["gyro"], ["filter"], ["law"], ["wheels"],
    ]  # fmt: skip
    late = {"sun": [], "gyro": [], "filter": ["gyro"], "law": ["filter", "sun"], "log": ["sun"]}
    assert columns(list(late), late, [], []) == [["sun", "gyro"], ["log", "filter"], ["law"]]
    loop = {"a": ["b"], "b": ["a"]}
    assert columns(["a", "b"], loop, [], []) == [["b"], ["a"]]


def test_the_svg_is_whole_needs_nothing_and_is_dark_on_dark_pages(system):
    text = system.diagram().svg()
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert system.diagram()._repr_svg_() == text
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme: dark" in text
    shapes = system.diagram().drawing.shapes
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    wires = [shape for shape in shapes if isinstance(shape, Wire)]
    assert tags.count("circle") == sum(wire.dot for wire in wires)
    assert text.count('marker-end="') == sum(wire.arrow for wire in wires)
    bold = {e.text for e in root.iter() if e.get("font-weight") == "600"}
    assert bold == {s.text for s in shapes if isinstance(s, TextShape) and s.bold}


def test_files(tmp_path):
    diagram = looped().diagram()
    assert diagram.save(tmp_path / "a.svg").read_text(encoding="utf-8") == diagram.svg()
    assert diagram.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(rm.RemoraError, match=r"saved as \.svg, \.png, \.pdf, not as '\.gif'"):
        diagram.save(tmp_path / "a.gif")
    with pytest.raises(rm.RemoraError, match="cannot be written"):
        diagram.save(tmp_path / "no" / "a.svg")
    assert "7 components" in repr(diagram)


def test_without_matplotlib_a_picture_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.patches", None)
    with pytest.raises(rm.RemoraError, match="need matplotlib"):
        looped().diagram().save(tmp_path / "a.png")


def test_components_that_cannot_be_traced_may_read_the_robot():
    class Opaque(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"x": rm.Signal()})

        def outputs(self, at):
            return {"x": float(np.asarray(at.t))}

    assert rm.System(SERVICER, [Opaque()]).reads_robot == {"opaque"}
