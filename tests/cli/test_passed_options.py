"""What options become: the arguments with which commands call the library."""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import in_process
import remora as rm
from remora.cli import kernel_timing, robot_kernels
from remora.cli.demo import _has_browser
from remora.viewer import view as view_module
from remora.viewer.report import animation_html


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
    run = rm.simulate(
        robot, rm.neutral(robot), [0.0] * robot.nv, 0.0, record=rm.Record(progress=False)
    )
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


def test_runs_of_a_batch_are_shown_as_asked(monkeypatch):
    batch, shown = object.__new__(rm.Batch), []
    page = SimpleNamespace(wait=lambda: shown.append("waited"))
    monkeypatch.setattr(view_module, "viewable", lambda *_: batch)
    monkeypatch.setattr(rm.Batch, "view", lambda _, *k, **named: shown.append((k, named)) or page)
    assert in_process.remora("view", "b", "--run", 3, "--run", 7, "--dark").returncode == 0
    assert in_process.remora("view", "b", "--no-open", "--port", 9).returncode == 0
    some = {"port": 8080, "open": True, "dark": True, "mesh_root": None}
    every = {"port": 9, "open": False, "dark": False, "mesh_root": None}
    assert shown == [((3, 7), some), "waited", ((), every), "waited"]
    assert "b is a batch" in in_process.remora("view", "b", "--html", "a.html").stderr


def test_a_page_is_written_over_a_file_only_if_forced(saved, asked, tmp_path):
    words = ("view", saved, "--html", tmp_path / "new.html")
    assert asked(animation_html, "save_html", *words)[0][1] == tmp_path / "new.html"
    (tmp_path / "new.html").write_text("mine")
    assert "exists already; --force" in in_process.remora(*words).stderr
    assert asked(animation_html, "save_html", *words, "--force")[0][1] == tmp_path / "new.html"


def test_a_campaign_has_its_settings_and_tells_how_to_resume(asked, monkeypatch, tmp_path):
    words = ("campaign", "reach_payload", "--out", "there")
    given, named = asked(rm, "campaign", *words)
    assert given == ("reach_payload", Path("there"))
    assert named == {
        "runs": None, "resume": False, "workers": None, "scheduler": None, "target": "auto",
        "progress": None,
    }  # fmt: skip
    more = ("--runs", 7, "--resume", "--workers", 0, "--target", "cpu", "--quiet")
    _, named = asked(rm, "campaign", *words, *more, "--scheduler", "tcp://a:1")
    assert named == {
        "runs": 7, "resume": True, "workers": 0, "scheduler": "tcp://a:1", "target": "cpu",
        "progress": False,
    }  # fmt: skip

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rm, "campaign", interrupted)
    for some, told in (((), ""), (("--runs", 7), " --runs 7")):
        done = in_process.remora(*words, *some)
        assert done.returncode == 130
        again = f"remora campaign reach_payload --out there{told} --resume"
        assert done.stdout.splitlines()[-1] == again


def test_replays_and_reports_are_beside_their_campaign_unless(asked, monkeypatch, tmp_path):
    folders = []

    class Run:
        save = folders.append

        def __str__(self):
            return "Run 4711"

    monkeypatch.setattr(rm, "open_campaign", lambda _: SimpleNamespace(replay=lambda k: Run()))
    done = in_process.remora("campaign", "replay", "reach", 4711)
    assert done.stdout == "Run 4711\nsaved in run_4711: remora view run_4711\n"
    in_process.remora("campaign", "replay", "reach", 4711, "--out", "mine")
    assert folders == [Path("run_4711"), Path("mine")]
    told = asked(rm, "campaign_report", "campaign", "report", "reach")[0]
    assert told[1] == Path("reach") / "report.html"
    words = ("campaign", "report", "reach", "--out", tmp_path / "a.html")
    assert asked(rm, "campaign_report", *words)[0][1] == tmp_path / "a.html"
    assert "exists already" in in_process.remora(*words[:-1], tmp_path).stderr


@pytest.mark.parametrize(
    ("target", "triple", "kept"),
    [("cpu", None, "ready"), ("c", None, "c"), ("object", "leon", "leon"), ("cuda", None, "ptx")],
)
def test_kernels_are_kept_as_their_target_says(target, triple, kept, monkeypatch, tmp_path, capsys):
    made = []
    kernel = SimpleNamespace(
        name="f", rolled=True, ready=lambda: made.append("ready"),
        save_c=lambda folder: made.append("c") or [folder / "f.c"],
        save_object=lambda folder, triple: made.append(triple) or [folder / "f.o"],
        save_ptx=lambda file: made.append("ptx") or file,
    )  # fmt: skip
    monkeypatch.setattr(robot_kernels, "compile_function",
                        lambda *_, target, **__: made.append(target) or kernel)  # fmt: skip
    robot = rm.load("vt18_satellite")
    with contextlib.chdir(tmp_path):
        robot_kernels.compile_robot(
            robot, "forward_dynamics", target, triple, "float64", None, None
        )
    assert made == ["cuda" if target == "cuda" else "cpu", kept]
    told = capsys.readouterr().out
    if target == "cpu":
        assert 0.0 <= float(re.search(r"ready in ([\d.]+) s", told)[1]) < 5.0
    else:
        end = {"c": "c", "object": "o", "cuda": "ptx"}[target]
        assert told.splitlines()[-1] == str(tmp_path / f"f.{end}")


def test_films_have_their_settings(saved, asked, tmp_path):
    words = ("render", saved, tmp_path / "a.png", "--size", "640x360", "--at", 0.5)
    (_, file), named = asked(rm, "render", *words)
    assert (file, named["size"], named["at"]) == (tmp_path / "a.png", (640, 360), 0.5)
    assert (named["clock"], named["show"]) == (True, ())
    more = ("--no-clock", "--show", "reactions", "--show", "frames")
    _, named = asked(rm, "render", *words, *more)
    assert (named["clock"], named["show"]) == (False, ("reactions", "frames"))
    (tmp_path / "a.png").write_bytes(b"")
    assert "exists already" in in_process.remora(*words).stderr
    assert asked(rm, "render", *words, "--force")[0][1] == tmp_path / "a.png"
    assert "FILE" in in_process.remora("render", saved).stderr
    assert "known: .mp4, .gif, .png" in in_process.remora("render", saved, "a.avi").stderr


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
        (("--gpu", "--threads", 2), "leave it out with --gpu"),
    ],
)  # fmt: skip
def test_settings_of_a_benchmark_are_checked(words, told):
    assert told in " ".join(
        in_process.remora("bench", "servicer", *words, columns=300).stderr.split()
    )


def test_settings_of_a_benchmark_reach_it(asked):
    words = ("--batch", 2, "--threads", 0, "--seconds", 0.5)
    (robot, *given), _ = asked(kernel_timing, "benchmark", "bench", "servicer", *words)
    assert (robot.name, given) == ("servicer", [2, 0, 0.5, False])
    (_, *given), _ = asked(kernel_timing, "benchmark", "bench", "servicer", "--gpu", "--batch", 3)
    assert given[:2] == [3, 0]
    assert given[3:] == [True]


def test_options_of_an_analysis_reach_it(asked, tmp_path):
    words = ("analyze", "workspace", "servicer", "--out", tmp_path / "new")
    (robot, what, folder, frame), named = asked(rm, "analyze", *words)
    assert (robot.name, what, folder, frame) == ("servicer", "workspace", tmp_path / "new", None)
    assert callable(named.pop("progress"))
    assert named == {
        "plane": None, "measure": "volume", "samples": 1_000_000, "cells": 100, "threads": 0,
    }  # fmt: skip
    assert asked(rm, "analyze", *words, "--samples", 500)[1]["samples"] == 500
    words = ("analyze", "sensitivity", "servicer", "--out", tmp_path, "--error", "mass=0.5")
    _, named = asked(rm, "analyze", *words, "--frame", "tool")
    assert (named["samples"], named["error"]) == (500, {"mass": 0.5})
    _, named = asked(rm, "analyze", "analyze", "coupling", "servicer", "--out", tmp_path)
    assert named == {"over": None, "threads": 0}
