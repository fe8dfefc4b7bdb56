"""A page with a timeline: playing, pausing, stepping and scrubbing."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.viewer.interpolation import sample_before
from remora.viewer.page.page import Page, on, plain
from remora.viewer.page.timeline import now_html

#: Frames per second while playing.
FPS = 40.0
SPEEDS = ("0.1×", "0.25×", "0.5×", "1×", "2×", "5×", "10×", "20×", "50×", "100×")


class TimedPage(Page):
    """A page with a displayed time; base class of the pages of runs and batches."""

    def add_timeline(self, times: Array, title: str) -> None:
        """Add the controls of time; the displayed time is that of the first sample.

        Args:
            times: of the samples, `(n,)`, s.
            title: what is shown, after the name of the robot.
        """
        self._times = times
        self._t0, self._t1 = float(times[0]), float(times[-1])
        self._time, self._playing = self._t0, False
        gui = self.server.gui
        gui.main_panel.dock_right()
        gui.main_panel.set_width(370)
        span = self._t1 - self._t0
        gui.add_markdown(f"**{plain(self.robot.name)}** · {title}")
        step = 10.0 ** np.floor(np.log10(span / 2000.0)) if span > 0.0 else 1.0
        with gui.add_folder("Time"):
            self._slider = gui.add_slider(
                "t, s", self._t0, self._t1, float(min(step, 0.1)), self._t0, marks=()
            )
            self._button = gui.add_button("play")
            steps = gui.add_button_group("sample", ("|◀", "◀", "▶", "▶|"))
            self._speed = gui.add_dropdown("speed", SPEEDS, initial_value=_fitting_speed(span))
            self._loop = gui.add_checkbox("loop", True)
            self._now = gui.add_html(now_html(self._t0))
            # Set by the timeline and by plots; the slider itself then follows as for any client.
            self._seek = gui.add_number("go to, s", self._t0, visible=False)

        def scrub(event: Any) -> None:
            if event.client_id is not None:  # None: the page's own update
                self.time = self._slider.value

        def stepped() -> None:
            size = len(self._times)
            self.step({"|◀": -size, "◀": -1, "▶": 1, "▶|": size}[steps.value])

        def sought(event: Any) -> None:
            if event.client_id is not None:
                self.time = float(self._seek.value)

        self._slider.on_update(scrub)
        self._seek.on_update(sought)
        command = gui.add_command("play or pause", hotkey="P")
        on(self._button.on_click, self.toggle)
        on(command.on_trigger, self.toggle)
        on(steps.on_click, stepped)

    def start_clock(self) -> None:
        """Start the thread that plays."""
        self._thread = threading.Thread(target=self._play_on, name="remora view", daemon=True)
        self._thread.start()

    @property
    def seek_id(self) -> str:
        """Identifier of the control that the timeline at the bottom sets."""
        return str(self._seek._impl.uuid)

    @property
    def button_id(self) -> str:
        """Identifier of the button that plays and pauses."""
        return str(self._button._impl.uuid)

    def show_time(self) -> None:
        """Move the slider to the displayed time."""
        self._slider.value = self._time
        self._now.content = now_html(self._time, self._playing)

    @property
    def time(self) -> float:
        """The displayed time, s; can be set."""
        return self._time

    @time.setter
    def time(self, t: float) -> None:
        with self._lock:
            self._time = min(max(float(t), self._t0), self._t1)
            self.redraw()

    @property
    def index(self) -> int:
        """The index of the last sample at or before the displayed time."""
        return int(sample_before(self._times, self._time))

    @property
    def playing(self) -> bool:
        """Whether it is playing."""
        return self._playing

    def play(self) -> None:
        """Start playing; at the end, from the start."""
        with self._lock:
            if self._time >= self._t1:
                self._time = self._t0
            self._playing = True
            self._button.label = "pause"
            self.show_time()

    def pause(self) -> None:
        """Stop playing."""
        with self._lock:
            self._playing = False
            self._button.label = "play"
            self.show_time()

    def toggle(self) -> None:
        """Play if paused, pause if playing."""
        if self._playing:
            self.pause()
        else:
            self.play()

    def step(self, samples: int = 1) -> None:
        """Pause, and step by a number of samples; negative: backwards."""
        self.pause()
        i = min(max(self.index + samples, 0), len(self._times) - 1)
        self.time = float(self._times[i])

    def _play_on(self) -> None:
        last = due = time.perf_counter()
        while not self._closed.wait(max(0.0, due - time.perf_counter())):
            now = time.perf_counter()
            passed, last = now - last, now
            due = max(due + 1.0 / FPS, now)  # follow the clock, but do not catch up after a delay
            if not self._playing:
                continue
            with self._lock:
                if not self._playing or self._closed.is_set():  # since the last look
                    continue
                self._time += passed * float(self._speed.value.rstrip("×"))
                if self._time >= self._t1:
                    if self._loop.value and self._t1 > self._t0:
                        self._time = self._t0
                    else:
                        self._time = self._t1
                        self.pause()
                self.redraw()


def _fitting_speed(span: float) -> str:
    """Return the speed that plays a run in about 30 s; real time for shorter runs."""
    wanted = span / 30.0
    return next((s for s in SPEEDS[3:] if float(s.rstrip("×")) >= wanted), SPEEDS[-1])
