"""Reports: whole HTML, the numbers of the run, nothing fetched, no hostile name let in."""

import base64
import gzip
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.viewer import load_words
from remora.viewer.figures.figures import figure_of_panels, panels_of
from remora.viewer.report import html_page
from remora.viewer.report import report as reports
from remora.viewer.report import report_sections as sections

pytest.importorskip("matplotlib")

VOID = {"meta", "br", "img", "link", "hr", "input", "path", "use", "rect"}


class Page(HTMLParser):
    """Reads a page, and checks that what is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.rows = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    def row(self, first):
        return next(row for row in self.rows if row[0] == first)


def servicer_run(**options):
    robot = rm.load("servicer")
    q = rm.neutral(robot)
    q[8:] = np.radians([0, 30, 0, -60, 0, 45, 0])
    torque = {"shoulder_pitch": rm.Pulse(0.0, 1.0, 30.0)}
    return rm.simulate(
        robot,
        q,
        np.zeros(robot.nv),
        **grouped(
            sample=0.1,
            rtol=1e-11,
            phases=[rm.Phase(1.0, torque=torque, name="swing"), rm.Phase(1.0, name="coast")],
            events=[rm.Event(lambda t, q, v: t - 0.5, "half a second", action="record")],
            **options,
        ),
    )


@pytest.fixture(scope="module")
def run():
    return servicer_run()


@pytest.fixture(scope="module")
def text(run):
    return reports.html(run, animation=False)


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave stills and most figures out where something else is looked at."""
    monkeypatch.setattr(sections, "stills", lambda run: [])
    monkeypatch.setattr(sections, "FIGURES", sections.FIGURES[:1])


def hostile_run():
    evil = "<script>alert('x')</script>"
    build = rm.Builder(f'{evil}" onload="alert(1)').body(f"bus{evil}", mass=9, inertia=(1, 1, 1))
    build.joint("base", "free", None, f"bus{evil}")
    build.body("arm</svg></script>", mass=1, inertia=(1, 1, 1))
    build.joint(evil, "revolute", f"bus{evil}", "arm</svg></script>", effort=2)
    build.frame("</figure><img src=x onerror=alert(1)>", "arm</svg></script>")
    robot = build.build()
    return rm.simulate(
        robot,
        rm.neutral(robot),
        np.zeros(7),
        [rm.Phase(0.2, torque={evil: lambda t, q, v: 1.0}, name=f"{evil}&amp;", locked=[])],
        record=0.05,
        events=[rm.Event(lambda t, q, v: t - 0.1, f"--> {evil}", action="record")],
    )


def test_the_page_is_whole_and_says_what_was_simulated(run, text):
    page = Page(text)
    assert page.row("integrator")[1] == "dop853, order 8, adaptive: rtol 1e-11, atol 1e-12"
    assert page.row("simulated")[1].startswith("from 0 s to 2 s, ")
    assert page.row("ended")[1] == "complete"
    assert page.row("made by")[1] == f"Remora {rm.__version__}"
    said = re.sub(r"<[^>]+>", " ", text)
    assert re.search(r"1\. swing\s+0 s to 1 s\s+shoulder_pitch is driven by 30 N m from 0", said)
    assert re.search(r"2\. coast\s+1 s to 2 s\s+nothing is commanded", said)
    assert page.row("0.5") == ["0.5", "half a second", "noted"]
    for k, (body, joint) in enumerate(zip(run.robot.bodies, run.robot.joints, strict=True)):
        row = next(row for row in page.rows if row[0] == str(k) and len(row) == 9)
        assert row[1].endswith(body.name)
        assert row[2] == f"{float(body.mass):.4g}"
        assert row[4:6] == [joint.name, joint.kind]
    assert next(r for r in page.rows if "shoulder_pitch" in r and len(r) == 9)[6:] == [
        "±120.3°", "11.5 °/s", "120 N m",
    ]  # fmt: skip


def test_the_numbers_are_those_of_the_run(run, text):
    kept, page = run.conservation(), Page(text)
    for name, drift in (
        ("linear momentum", kept.linear_momentum),
        ("angular momentum", kept.angular_momentum),
        ("energy balance", kept.energy),
    ):
        row = page.row(name)
        assert row[1] == f"{drift.absolute:.2e} {drift.unit}"
        assert row[2] == f"{drift.relative:.2e}"
    assert "30 N m" in text
    assert "25.0%" in text  # of the shoulder's effort


def test_nothing_is_fetched_and_no_script_is_needed(text):
    assert re.search(r"https?:", text) is None
    page = Page(text)
    assert not any(tag in ("script", "link", "iframe", "object") for tag, _ in page.tags)
    for _, attributes in page.tags:
        for key in ("src", "href", "xlink:href", "data"):
            assert attributes.get(key, "#").startswith(("#", "data:"))
    used = re.findall(r'(?:url\(#|href="#)([^)"]+)', text)
    ids = re.findall(r' id="([^"]+)"', text)
    assert set(used) <= set(ids)
    assert len(ids) == len(set(ids))


def test_figures_are_drawings_in_the_colours_of_the_page(text):
    page = Page(text)
    drawings = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(drawings) >= 8
    assert "joint torques, N m" in " ".join(a["aria-label"] for a in drawings)
    assert "var(--c0)" in text
    assert "var(--ink)" in text
    assert "prefers-color-scheme: dark" in text
    assert len(text) < 500_000


def test_a_hostile_name_stays_text():
    run = hostile_run()
    text = reports.html(run, animation=False)
    page = Page(text)
    assert not any(tag in ("script", "iframe") for tag, _ in page.tags)
    pictures = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert all(src.startswith("data:image/jpeg;base64,") for src in pictures)
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    assert "<script>alert('x')</script>" in "".join(page.text)
    assert next(row for row in page.rows if "revolute" in row)[4] == "<script>alert('x')</script>"


def test_the_animation_is_packed_and_unpacked_on_demand(run, no_pictures, monkeypatch):
    film = "<html><script>play('</script>')</script>"
    monkeypatch.setattr(sections, "html_of", lambda run: film)
    text = reports.html(run)
    packed = re.search(r'id="packed">([^<]*)</script>', text)[1]
    assert gzip.decompress(base64.b64decode(packed)).decode() == film
    assert "play('" not in text
    assert "DecompressionStream" in text
    Page(text)


def test_where_the_viewer_is_missing_one_line_says_so(run, no_pictures, monkeypatch):
    def missing(run):
        raise rm.RemoraError("the viewer needs viser")

    monkeypatch.setattr(sections, "html_of", missing)
    text = reports.html(run)
    assert "Left out: the viewer needs viser" in text
    assert "<script" not in text


def test_a_run_that_was_killed_or_failed_says_so(run, no_pictures):
    killed = replace(run, status="running")
    assert "was killed" in reports.html(killed, animation=False)
    failed = replace(run, status="failed", message="<the step> became too small")
    text = reports.html(failed, animation=False)
    assert "before its time: failed. &lt;the step&gt; became too small" in text


def test_one_sample_a_fixed_base_and_a_title(no_pictures):
    robot = rm.load("servicer", base="fixed", gravity=(0, 0, -9.81))
    one = rm.simulate(robot, np.zeros(7), np.zeros(7), 0.0)
    text = reports.html(one, title="A & B", animation=False)
    page = Page(text)
    assert "<h1>A &amp; B</h1>" in text
    assert page.row("linear momentum")[3].startswith("not conserved: the base is held")


def test_what_came_near_has_a_section_where_there_is_an_arm(text, no_pictures):
    assert '<section id="near">' in text
    assert "condition number of the Jacobian of tool" in text
    bus = rm.Builder("bus").body("bus", mass=5.0, inertia=(1, 1, 1)).joint("b", "free", None, "bus")
    alone = bus.build()
    run = rm.simulate(alone, rm.neutral(alone), np.zeros(6), 0.1, record=0.1)
    page = reports.html(run, animation=False)
    assert 'id="near"' not in page
    assert "Singularities" not in page


def test_settings_that_are_damaged_do_no_harm(run, no_pictures):
    odd = {
        "phases": [7, {"torque": {"pulse": [1]}, "locked": "x"}, {"torque": [[1], [2, 3]]}],
        "integrator": None,
        "stops": ["a", "b"],
    }
    for settings in (odd, {}, {"phases": "no"}):
        Page(reports.html(replace(run, settings=settings, phase_starts=()), animation=False))


def test_loads_are_told_in_words():
    assert load_words.loaded({"elbow": 4.0}) == "elbow: 4"
    assert load_words.loaded(
        {"sampled": {"function": "law", "source": ""}, "sample_time": 0.1}
    ) == ("function law, every 0.1 s")
    cubic = {"profile": "cubic", "times": [0, 1, 3], "values": [0, 1, 2]}
    assert load_words.loaded(cubic) == "cubic profile, 3 points, 0 s to 3 s"
    assert load_words.loaded(np.zeros((8, 6)).tolist()) == "zero"
    assert load_words.loaded(list(range(20))).endswith(", 11, ...)")


def test_the_source_of_a_law_is_in_the_report(no_pictures):
    def law(t, q, v):
        return np.zeros(13)  # a < b

    robot = rm.load("servicer")
    q = rm.neutral(robot)
    text = reports.html(rm.simulate(robot, q, np.zeros(13), 0.1, torque=law), animation=False)
    assert "# a &lt; b" in text


def test_a_drawing_that_is_too_large_becomes_a_picture(run, monkeypatch):
    monkeypatch.setattr(html_page, "LARGEST_DRAWING", 1000)
    drawn = html_page.drawing(figure_of_panels(run, panels_of(run, "q")))
    data = re.fullmatch(r'<img alt="[^"]*" src="data:image/png;base64,([^"]+)">', drawn)[1]
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_the_file_is_written_into_a_new_folder(run, no_pictures, tmp_path):
    file = rm.report(run, tmp_path / "new" / "report.html", animation=False)
    assert file == tmp_path / "new" / "report.html"
    assert [path.name for path in file.parent.iterdir()] == ["report.html"]
    with pytest.raises(rm.RemoraError, match="is a folder; name a file"):
        rm.report(run, tmp_path, animation=False)
    with pytest.raises(rm.RemoraError, match="cannot be written"):
        rm.report(run, file / "below.html", animation=False)


def test_a_run_without_samples_is_refused(run, tmp_path):
    empty = replace(run, columns={name: x[:0] for name, x in run.columns.items()})
    with pytest.raises(rm.RemoraError, match="no samples yet"):
        rm.report(empty, tmp_path / "report.html")
