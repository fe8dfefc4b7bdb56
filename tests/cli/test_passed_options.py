"""What options become: the arguments with which commands call the library."""

import pytest

import in_process
import remora as rm
from remora.cli import bench, robot_analyses, robot_kernels
from remora.cli.demo import _has_browser
from remora.viewer import view as view_module


class Asked(rm.RemoraError):
    """Ends a command, with what it asked of the library."""

    def __init__(self, *arguments, **named):
        super().__init__("asked")
        self.arguments, self.named = arguments, named


@pytest.fixture
def asked(monkeypatch):
    """Return what a command asks of a function of the library, which is not carried out."""

    def of(owner, name, *words):
        found = []

        def ask(*arguments, **named):
            found.append((arguments, named))
            raise Asked

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, ask)
            done = in_process.remora(*words)
        assert len(found) == 1, done.stderr
        return found[0]

    return of


@pytest.mark.parametrize("without", [False, True])
def test_masses_are_left_out_only_if_asked(asked, without):
    more = ["--no-dynamics"] if without else []
    for words in (("info", "servicer"), ("compile", "servicer", "--function", "forward_dynamics")):
        _, named = asked(rm, "load", *words, *more)
        assert named["dynamics"] is not without
    given, _ = asked(view_module, "viewable", "view", "servicer", *more)
    assert given[3] is not without


def test_fixed_links_are_merged_unless_they_are_kept(asked):
    assert asked(rm, "load", "info", "servicer")[0][1:3] == (None, True)
    kept, _ = asked(rm, "load", "info", "servicer", "--keep-fixed", "--base", "fixed")
    assert kept[1:3] == ("fixed", False)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "run.zarr"
    robot = rm.load("vt18_satellite")
    run = rm.simulate(robot, rm.neutral(robot), [0.0] * robot.nv, 0.0, progress=False)
    run.save(folder)
    return folder


def test_a_report_is_beside_its_run_and_animated_unless(saved, asked, tmp_path):
    (_, file, title, animated), _ = asked(rm, "report", "report", saved)
    assert (file, title, animated) == (saved.with_name("run.html"), None, True)
    given, _ = asked(rm, "report", "report", saved, "--no-animation", "--out", tmp_path / "a.html")
    assert (given[1], given[3]) == (tmp_path / "a.html", False)
    (tmp_path / "a.html").write_text("mine")
    refused = in_process.remora("report", saved, "--out", tmp_path / "a.html")
    assert "exists already" in refused.stderr
    words = ("report", saved, "--out", tmp_path / "a.html", "--force")
    assert asked(rm, "report", *words)[0][1] == tmp_path / "a.html"


def test_pages_are_opened_unless(saved, asked):
    (_, port, opens), named = asked(rm, "view", "view", saved)
    assert (port, opens, named["dark"]) == (8080, True, False)
    (_, port, opens), named = asked(rm, "view", "view", saved, "--no-open", "--port", 9, "--dark")
    assert (port, opens, named["dark"]) == (9, False, True)
    refused = in_process.remora("view", saved, "--run", 3)
    assert "--run is for batches" in refused.stderr
    refused = in_process.remora("view", "servicer", "--html", "a.html")
    assert "servicer is a robot" in refused.stderr


def test_films_have_their_settings(saved, asked, tmp_path):
    words = ("render", saved, "--png", tmp_path / "a.png", "--size", "640x360", "--at", 0.5)
    (_, file), named = asked(rm, "render", *words)
    assert (file, named["size"], named["at"]) == (tmp_path / "a.png", (640, 360), 0.5)
    assert (named["clock"], named["show"]) == (True, ())
    more = ("--no-clock", "--show", "reactions", "--show", "frames")
    _, named = asked(rm, "render", *words, *more)
    assert (named["clock"], named["show"]) == (False, ("reactions", "frames"))
    (tmp_path / "a.png").write_bytes(b"")
    assert "exists already" in in_process.remora(*words).stderr
    assert asked(rm, "render", *words, "--force")[0][1] == tmp_path / "a.png"
    assert "name a file" in in_process.remora("render", saved).stderr
    assert "must end in .gif" in in_process.remora("render", saved, "--gif", "a.png").stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("forward_dynamics", "object", None, "float64", None), "needs --triple"),
        (("forward_dynamics", "c", "leon", "float64", None), "goes with --target object, not c"),
        (("forward_dynamics", "cpu", None, "float64", "x"), "cpu fills the cache"),
        (("nothing", "cpu", None, "float64", None), "function to compile"),
        (("forward_dynamics", "cpu", None, "float16", None), "dtype of a kernel"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, words):
    with pytest.raises(rm.RemoraError, match=words):
        robot_kernels.check_options(*given)
    robot_kernels.check_options("forward_dynamics", "object", "leon", "float32", "x")
    robot_kernels.check_options("forward_dynamics", "cpu", None, "float64", None)


def test_operations_are_counted_by_kind():
    class Told:
        rolled, graph = (
            False,
            type("G", (), {"count": lambda self: {"add": 1200, "sub": 3, "x": 5}})(),
        )

    kinds = robot_kernels._KINDS
    counts = {}
    for op, n in (("add", 1200), ("sub", 3), ("x", 5)):
        counts[kinds.get(op, op)] = counts.get(kinds.get(op, op), 0) + n
    listed = ", ".join(f"{n:,} {kind}" for kind, n in sorted(counts.items(), key=lambda x: -x[1]))
    assert robot_kernels._operations(Told()) == f"operations: 1,208 ({listed})"
    Told.rolled = True
    assert "loops over the bodies" in robot_kernels._operations(Told())


def test_a_browser_is_opened_only_on_a_screen(monkeypatch):
    monkeypatch.setattr("sys.stdout", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not _has_browser()
    monkeypatch.setenv("DISPLAY", ":0")
    assert _has_browser()
    monkeypatch.delenv("DISPLAY")
    monkeypatch.setattr("sys.platform", "darwin")
    assert _has_browser()
    monkeypatch.setattr("sys.stdout", type("File", (), {"isatty": lambda self: False})())
    assert not _has_browser()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--batch", 1), "at least 2 states"), (("--threads", -1), "--threads must be 0 or more"),
        (("--seconds", 0), "--seconds more than 0"), (("--seconds", "inf"), "more than 0"),
        (("--gpu", "--threads", 2), "leave them out with --gpu"),
        (("--gpu", "--no-growth"), "leave them out with --gpu"),
    ],
)  # fmt: skip
def test_settings_of_a_benchmark_are_checked(words, told):
    assert told in " ".join(
        in_process.remora("bench", "servicer", *words, columns=300).stderr.split()
    )


def test_settings_of_a_benchmark_reach_it(asked):
    words = ("--batch", 2, "--threads", 0, "--seconds", 0.5, "--no-growth")
    (robot, *given), _ = asked(bench, "benchmark", "bench", "servicer", *words)
    assert (robot.name, given) == ("servicer", [2, 0, 0.5, False, False])
    (_, *given), _ = asked(bench, "benchmark", "bench", "servicer", "--gpu", "--batch", 3)
    assert given[:2] == [3, 0]
    assert given[3:] == [True, True]


def test_samples_of_an_analysis_are_a_million_unless_they_are_given(asked, tmp_path):
    words = ("analyze", "servicer", "workspace", "--out", tmp_path / "new")
    (robot, what, frame, options), _ = asked(robot_analyses, "write_analysis", *words)
    assert (robot.name, what, frame) == ("servicer", "workspace", None)
    assert (options["samples"], options["samples_given"]) == (1_000_000, False)
    (*_, options), _ = asked(robot_analyses, "write_analysis", *words, "--samples", 500)
    assert (options["samples"], options["samples_given"]) == (500, True)
