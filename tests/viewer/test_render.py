"""Films and stills: refusals, camera paths, captions, and one film by a real browser."""

import sys

import numpy as np
import pytest

import needs
import remora as rm
from remora.algebra import pose
from remora.cli import main
from remora.viewer.film import browser
from remora.viewer.film.render import CAMERA_PATHS, camera_pose, captioned


@pytest.mark.parametrize("path", CAMERA_PATHS)
@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
def test_the_camera_looks_at_its_target_upright(path, s):
    position, target = np.array([3.0, -2.0, 1.5]), np.array([0.1, 0.2, 0.3])
    there = camera_pose(path, s, position, target)
    R = pose.to_rotation_matrix(pose.from_parts(there.wxyz, np.zeros(3)))
    away = target - there.position
    assert np.allclose(R[:, 2], away / np.linalg.norm(away))
    assert R[2, 1] < 0  # y is down
    assert abs(R[2, 0]) < 1e-12  # the horizon is level
    assert np.linalg.det(R) == pytest.approx(1.0)
    if path == "still":
        assert np.allclose(there.position, position)


def test_an_orbit_is_closed():
    ends = [camera_pose("orbit", s, np.array([3.0, -2.0, 1.5]), np.zeros(3)) for s in (0.0, 1.0)]
    assert np.allclose(ends[0].position, ends[1].position)


def test_captions_are_drawn_in_the_corners_alone():
    frame = np.zeros((90, 160, 3), dtype=np.uint8)
    drawn = captioned(frame, "<b>bus</b>", "t = 1.0 s", dark=True)
    assert drawn[60:].max() > 100
    assert drawn[:50].max() == 0
    assert captioned(frame, "", "", dark=True) is frame


def test_no_browser_is_an_error_that_says_what_to_do(monkeypatch, run, tmp_path):
    monkeypatch.delenv("REMORA_BROWSER", raising=False)
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    with pytest.raises(rm.RemoraError, match="none was found: install one"):
        rm.render(run, tmp_path / "a.png")
    with pytest.raises(rm.RemoraError, match="'nothing' is not a program"):
        rm.render(run, tmp_path / "a.png", browser="nothing")


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("a.avi", {}, r"kind of film.*\.mp4, \.gif, \.png"),
        ("a", {}, "kind of film"),
        ("a.mp4", {"camera": "drone"}, "known: still, sweep, approach, orbit"),
        ("a.mp4", {"seconds": 0.0}, "seconds=0.0"),
        ("a.gif", {"seconds": float("nan")}, "seconds=nan"),
        ("a.gif", {"fps": 0}, "fps=0"),
        ("a.png", {"at": 99.0}, "from 0 to 4 s"),
        ("a.png", {"size": (641, 480)}, "even numbers"),
        ("a.png", {"scene": "moon"}, "known: space"),
        ("nowhere/a.png", {}, "no such folder"),
    ],
)
def test_refusals(run, tmp_path, name, options, told):
    with pytest.raises(rm.RemoraError, match=told):
        rm.render(run, tmp_path / name, **options)


@needs.browser
@pytest.mark.timeout(600)  # pictures are drawn without a GPU
def test_a_browser_makes_a_still_and_a_film(run, tmp_path):
    options = {"size": (160, 90), "browser": needs.BROWSER}
    image = pytest.importorskip("PIL.Image")
    still = rm.render(run, tmp_path / "a.png", at=2.0, scene="studio", **options)
    with image.open(still) as picture:
        assert picture.size == (160, 90)
        assert len(np.unique(np.asarray(picture).reshape(-1, 3), axis=0)) > 100
    film = rm.render(run, tmp_path / "a.gif", seconds=0.3, fps=10, scene="studio", **options)
    with image.open(film) as picture:
        assert picture.n_frames == 3
        assert picture.info["duration"] == 100


def test_the_command_does_not_replace_a_file(tmp_path, monkeypatch, capsys):
    file = tmp_path / "a.png"
    file.write_text("mine")
    monkeypatch.setattr(sys, "argv", ["remora", "render", str(tmp_path), str(file)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "a.png: exists already; --force replaces it" in capsys.readouterr().err
    assert file.read_text() == "mine"
