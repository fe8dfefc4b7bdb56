"""Films without a browser: times, cameras, captions, files, and how a browser is started."""

import os
import stat
import time
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.viewer.film import browser, render
from remora.viewer.film.render import camera_pose, captioned

image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize(
    ("path", "turn", "closer"),
    [("sweep", 35.0, 1.0), ("approach", 25.0, 0.72), ("orbit", 360.0, 1.0)],
)
@pytest.mark.parametrize("s", [0.0, 0.2, 0.7, 1.0])
def test_the_camera_turns_about_the_vertical_through_its_target(path, turn, closer, s):
    target, away = np.array([0.1, 0.2, 0.3]), np.array([3.0, -2.0, 1.5])
    there = camera_pose(path, s, target + away, target)
    factor = 1.0 + (closer - 1.0) * np.polyval([-2.0, 3.0, 0.0, 0.0], s)
    now = complex(*(there.position - target)[:2]) / complex(*away[:2])
    assert abs(now) == pytest.approx(factor)
    off = np.angle(now * np.exp(-1j * np.radians(turn) * (s - 0.5)))
    assert off == pytest.approx(0.0, abs=1e-12)
    assert there.position[2] - target[2] == pytest.approx(factor * away[2])
    assert there.wxyz.shape == (4,)


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("high", [120, 600])
def test_captions_are_within_margins_and_grow_with_the_picture(dark, high):
    wide = 2 * high
    ground = 0 if dark else 255
    frame = np.full((high, wide, 3), ground, dtype=np.uint8)

    def ink(caption, clock):
        drawn = captioned(frame, caption, clock, dark).astype(int)
        rows, columns = np.nonzero(np.abs(drawn - ground).max(axis=-1) > 100)
        return rows.min(), rows.max(), columns.min(), columns.max()

    margin, size = round(0.028 * wide), max(11, 0.034 * high)
    top, bottom, left, _ = ink("HH", "")
    assert (bottom, left) == (pytest.approx(high - margin, abs=2), pytest.approx(margin, abs=3))
    assert bottom - top == pytest.approx(0.72 * size, abs=0.15 * size + 2)  # capitals
    _, bottom, left, right = ink("", "HH")
    assert right == pytest.approx(wide - margin, abs=3)
    assert bottom == pytest.approx(high - margin, abs=2)
    assert left > wide - margin - 2.5 * size
    shown = captioned(frame, "HH", "", dark).reshape(-1, 3)
    inks = {True: (240, 243, 248), False: (30, 34, 40)}
    assert high < 200 or (shown == inks[dark]).all(axis=1).any()  # small letters are blurred
    assert not (shown == inks[not dark]).all(axis=1).any()
    both = ink("HH", "HH")
    assert both[2:] == (pytest.approx(margin, abs=3), pytest.approx(wide - margin, abs=3))
    assert captioned(frame, "a", "", dark) is not frame


def test_times_of_films_and_stills(run):
    assert render._film_times(run, None, 20) == pytest.approx(np.linspace(0.0, 4.0, 80))
    assert render._film_times(run, 2.0, 10) == pytest.approx(np.linspace(0.0, 4.0, 20))
    assert len(render._film_times(run, 0.001, 1)) == 2
    long = SimpleNamespace(duration=100.0, t=np.array([5.0, 105.0]), __len__=lambda: 2)
    long = type("Long", (), {**vars(long), "__len__": lambda self: 2})()
    assert render._film_times(long, None, 10) == pytest.approx(np.linspace(5.0, 105.0, 120))
    assert render._still_time(long, None) == [55.0]
    assert render._still_time(long, 5.0) == [5.0]
    for at in (4.9, 105.1):
        with pytest.raises(rm.errors.InvalidValue, match="from 5 to 105 s"):
            render._still_time(long, at)
    for seconds, fps in ((0.0, 20), (601.0, 20), (1.0, 0), (1.0, 61)):
        with pytest.raises(rm.errors.InvalidValue):
            render._film_times(run, seconds, fps)


def test_pictures_are_put_on_the_ground_of_the_page():
    picture = np.zeros((1, 2, 4), dtype=np.uint8)
    picture[0] = (100, 50, 0, 51), (9, 8, 7, 255)
    mixed = np.array([[(100, 50, 0), (9, 8, 7)]])
    expected = np.round(0.2 * mixed[:, :1] + 0.8 * 20.0)
    assert np.array_equal(render._opaque(picture, dark=True)[:, :1], expected)
    expected = np.round(0.2 * mixed[:, :1] + 0.8 * 255.0)
    assert np.array_equal(render._opaque(picture, dark=False)[:, :1], expected)
    assert np.array_equal(render._opaque(picture, dark=False)[:, 1:], mixed[:, 1:])
    assert np.array_equal(render._opaque(picture[..., :3], dark=True), mixed)


class Drawn:
    """A browser that writes time and camera into its pictures, and needs a while for the first."""

    def __init__(self, page):
        self.page, self.asked = page, []

    def get_render(self, high, wide, **camera):
        self.asked.append((self.page.time, camera))
        made = np.zeros((high, wide, 3), dtype=np.uint8)
        made[: high // 2] = 10 * min(len(self.asked), 4) + round(10 * self.page.time)
        return made


def test_frames_are_taken_along_the_path_at_their_times(monkeypatch):
    monkeypatch.setattr(render.time, "sleep", lambda seconds: None)
    still = SimpleNamespace(position=(4.0, 0.0, 2.0), look_at=(1.0, 0.0, 0.0), fov=0.7)
    page = SimpleNamespace(time=0.0)
    client = Drawn(page)
    page.server = SimpleNamespace(initial_camera=still, get_clients=lambda: {0: client})
    times = np.array([1.0, 2.0, 5.0])
    shot = render._Shot(times, (64, 32), "orbit", "", False, True, True)
    frames = list(render._frames(page, shot))
    settled = len(client.asked) - len(times)
    assert settled == 6  # it draws something else until the fourth; then two that are the same
    assert [t for t, _ in client.asked[settled:]] == times.tolist()
    assert [int(frame[0, 0, 0]) for frame in frames] == [50, 60, 90]
    for k, (_, camera) in enumerate(client.asked[settled:]):
        near = np.array([1.0, 0.0, 0.0]) + 0.8 * np.array([3.0, 0.0, 2.0])
        there = camera_pose("orbit", k / 2, near, np.array([1.0, 0.0, 0.0]))
        assert np.allclose(camera["position"], there.position)
        assert np.allclose(camera["wxyz"], there.wxyz)
        assert (camera["fov"], camera["transport_format"]) == (0.7, "png")
    told = render._Shot(np.array([3.0]), (64, 64), "orbit", "bus", True, True, False)
    (frame,) = render._frames(page, told)
    assert frame[40:].max() > 100  # caption and clock
    half = camera_pose("orbit", 0.5, near, np.array([1.0, 0.0, 0.0]))
    assert np.allclose(client.asked[-1][1]["position"], half.position)
    assert client.asked[-1][1]["transport_format"] == "jpeg"


def test_gifs_and_stills_hold_their_frames(tmp_path):
    ramp = np.linspace(0, 255, 8 * 6 * 3).reshape(8, 6, 3).astype(np.uint8)
    frames = [ramp, ramp[::-1], ramp[:, ::-1]]
    render.WRITERS[".gif"](tmp_path / "a.gif", iter(frames), 8, (6, 8))
    with image.open(tmp_path / "a.gif") as film:
        assert (film.n_frames, film.info["duration"], film.info["loop"]) == (3, 120, 0)  # of 10 ms
        assert film.size == (6, 8)
        for k, frame in enumerate(frames):
            film.seek(k)
            shown = np.asarray(film.convert("RGB")).astype(int)
            assert np.abs(shown - frame).max() < 40
    render.WRITERS[".png"](tmp_path / "a.png", iter(frames), 8, (6, 8))
    with image.open(tmp_path / "a.png") as picture:
        assert np.array_equal(np.asarray(picture), frames[0])


@pytest.fixture
def program(tmp_path):
    """Return a program that writes its arguments into a file and waits."""
    file = tmp_path / "chrome"
    file.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/part\n'
                    f"mv {tmp_path}/part {tmp_path}/asked\nexec sleep 60\n")  # fmt: skip
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def test_the_browser_is_the_one_that_is_named(program, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    monkeypatch.delenv("REMORA_BROWSER", raising=False)
    assert browser.find_browser() == program
    other = tmp_path / "mine"
    other.write_bytes((tmp_path / "chrome").read_bytes())
    other.chmod(0o755)
    monkeypatch.setenv("REMORA_BROWSER", str(other))
    assert browser.find_browser() == str(other)
    assert browser.find_browser(program) == program
    with pytest.raises(rm.RemoraError, match="'none' is not a program"):
        browser.find_browser("none")
    monkeypatch.delenv("REMORA_BROWSER")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(rm.RemoraError, match="none was found"):
        browser.find_browser()


def test_the_browser_has_a_window_for_the_picture_and_ends(program, tmp_path):
    with browser.opened(program, "http://localhost:1", (640, 360)):
        end = time.monotonic() + 20.0
        while not (tmp_path / "asked").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[-2:] == ["--window-size=640,560", "http://localhost:1"]
    assert ("--no-sandbox" in asked) == (os.geteuid() == 0)
    assert "--headless=new" in asked


def test_the_settings_of_a_film_reach_the_browser(run, program, tmp_path, monkeypatch):
    monkeypatch.setattr(render, "_client", lambda page: Drawn(page))
    monkeypatch.setattr(render.time, "sleep", lambda seconds: None)
    file = rm.render(run, tmp_path / "a.png", size=(64, 32), browser=program, at=1.0, clock=False,
                     caption="", scene="studio")  # fmt: skip
    with image.open(file) as picture:
        shown = np.asarray(picture)
    assert shown.shape == (32, 64, 3)
    assert shown[0, 0].tolist() == [50, 50, 50]  # 10 for each second, 40 for those before
    for size in ((15, 32), (64, 4098), (63, 32)):
        with pytest.raises(rm.errors.InvalidValue, match="even numbers from 16 to 4096"):
            rm.render(run, file, size=size, browser=program)
    with pytest.raises(rm.RemoraError, match="no such folder"):
        rm.render(run, tmp_path / "none" / "a.png", browser=program)
