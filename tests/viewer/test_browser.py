"""The pages in a real browser: they load, move, answer the mouse, and ask nobody for anything.

One headless Chromium for all tests, with WebGL in software: pictures are small and come slowly.
"""

import io
import re
import time

import numpy as np
import pytest
from PIL import Image
from scipy.integrate import solve_ivp

import needs
import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose

pytestmark = [
    needs.browser,
    pytest.mark.timeout(600),  # pictures are drawn without a GPU
]
#: Longest wait for anything on a page: a machine that does other things, too.
PATIENCE = 90.0  # s
ARGUMENTS = [
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--mute-audio",
]  # fmt: skip
HARMLESS = re.compile(r"WebGL|GPU stall|GroupMarkerNotSet", re.I)
LOCAL = re.compile(r"(https?|ws)://127\.0\.0\.1:\d+/|file://|data:|blob:")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(executable_path=needs.BROWSER, args=ARGUMENTS)
        yield started
        started.close()


class Tab:
    """A page in the browser, with all that it asked for and complained about."""

    def __init__(self, browser, url, size=(700, 420)):
        self.asked, self.errors = [], []
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("websocket", lambda socket: self.asked.append(socket.url + "/"))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda m: (
                self.errors.append(m.text)
                if m.type == "error" and not HARMLESS.search(m.text)
                else None
            ),
        )
        self.page.goto(url)
        self.page.wait_for_selector("canvas", timeout=1e3 * PATIENCE)
        # A note about software rendering covers most of a small canvas.
        self.page.add_style_tag(content=".mantine-Notifications-root { display: none !important }")

    def picture(self):
        png = self.page.locator("canvas").first.screenshot(timeout=1e3 * PATIENCE)
        return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)

    def drawn(self, seconds=PATIENCE):
        """Wait until something is drawn and return its picture."""
        end = time.monotonic() + seconds
        while colors(picture := self.picture()) < 100:
            assert time.monotonic() < end, "the canvas stays blank"
        return picture

    def check(self):
        assert self.errors == []
        assert [url for url in self.asked if not LOCAL.match(url)] == []
        self.page.close()


def colors(picture):
    return len(np.unique(picture.reshape(-1, 3), axis=0))


def changed(one, two):
    """Return how many pixels differ clearly."""
    return int(np.sum(np.abs(one - two).max(axis=2) > 30))


def wait_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def plain(page):
    """Leave out what takes long without a GPU."""
    page.set_shadows(False)
    page._grid.visible = False
    return page


def test_a_run_loads_and_plays(browser, run):
    with plain(rm.view(run, port=0, open=False, scene="studio")) as page:
        tab = Tab(browser, page.url)
        before = tab.drawn()
        tab.page.get_by_role("button", name="play", exact=True).click()
        wait_for(lambda: page.index > 40)
        tab.page.get_by_role("button", name="pause", exact=True).click()
        wait_for(lambda: not page.playing)
        wait_for(lambda: changed(before, tab.picture()) > 200)
        tab.check()


def test_a_slider_in_the_page_turns_the_base_as_momentum_demands(browser):
    with plain(rm.view("servicer", port=0, open=False, dark=True)) as page:
        robot, start = page.robot, page.q
        tab = Tab(browser, page.url)
        before = tab.drawn()
        assert before.mean() < 100  # dark
        slider = tab.page.get_by_role("slider").nth(1)  # shoulder_pitch
        slider.focus()
        tab.page.keyboard.press("End")
        place = robot.joints["shoulder_pitch"].q
        wait_for(lambda: page.q[place][0] > 2.0)
        reached = page.q
        assert np.array_equal(np.delete(reached[8:], 1), np.zeros(6))
        wanted = floated(robot, start, "shoulder_pitch", float(reached[place][0]))
        error = np.abs(pose.to_matrix(reached[:8]) - pose.to_matrix(wanted)).max()
        assert error < 1e-8
        turned = np.degrees(pose.to_axis_angle(reached[:8])[1])
        assert turned > 20
        wait_for(lambda: changed(before, tab.picture()) > 200)

        # The slider is filled from zero, its label is on one line, and its field has the unit.
        def filled():
            zero, left, width = slider.evaluate(
                """x => { const s = x.closest('.mantine-Slider-root'), v = s.style;
                return [s.dataset.remoraZero, v.getPropertyValue('--remora-left'),
                        v.getPropertyValue('--remora-width')].map(x => parseFloat(x) || -1) }"""
            )
            return abs(left - zero) < 0.01 and abs(width - (100.0 - zero)) < 0.01

        wait_for(filled)
        label = "document.querySelectorAll('label[for]:not([class])')"
        heights = tab.page.evaluate(f"[...{label}].map(x => x.getBoundingClientRect().height)")
        assert len(heights) > len(page.freedoms)
        assert max(heights) < 25
        units = "document.querySelectorAll('[data-remora-unit=\"°\"]').length"
        wait_for(lambda: tab.page.evaluate(units) == len(page.freedoms))
        # And what the page itself shows of it.
        pitch = np.degrees(pose.to_rpy(reached[:8]))[1]
        tab.page.get_by_text(f"{pitch:.3f}").wait_for(timeout=1e3 * PATIENCE)
        tab.check()


def floated(robot, q, joint, angle):
    """Return the base's pose after one joint went to an angle: zero momentum, by SciPy."""
    here, column = q.copy(), robot.joints[joint].v.start

    def rate(s, x):
        here[:8], here[robot.joints[joint].q] = dq.normalize(x), s
        A = rm.dynamics.momentum_matrix(robot, here)
        twist = -np.linalg.solve(A[:, :6], A[:, column])
        return 0.5 * dq.mul(x, dq.pure(twist))

    return solve_ivp(rate, (float(q[robot.joints[joint].q][0]), angle), q[:8], rtol=1e-11,
                     atol=1e-12).y[:, -1]  # fmt: skip


def test_a_file_plays_from_disk(browser, run, tmp_path):
    assert rm.save_html(run, tmp_path / "space.html").stat().st_size < 1.5e6
    file = rm.save_html(run, tmp_path / "run.html", scene="studio")  # quicker without a GPU
    text = file.read_text(encoding="utf-8")
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="?https?:', text)
    tab = Tab(browser, file.as_uri(), (320, 240))
    first = tab.drawn()
    wait_for(lambda: changed(first, tab.picture()) > 80)
    assert "Remora" in tab.page.title()

    def clock():
        text = tab.page.evaluate("document.querySelector('.remora-clock').textContent")
        return float(text.split()[2])

    # The timeline: pause, seek to a quarter of the run, and another scene. The script does what
    # the mouse would do: a page that draws in software answers the mouse late.
    do = tab.page.evaluate
    assert do("document.querySelector('.remora-play').textContent") == "❚❚"
    do("document.querySelector('.remora-play').click()")
    wait_for(lambda: do("document.querySelector('.remora-play').textContent") == "▶")
    do(
        """() => { const track = document.querySelector('.remora-track');
        const box = track.getBoundingClientRect();
        const at = { bubbles: true, clientX: box.left + 0.25 * box.width, clientY: box.top + 20 };
        track.dispatchEvent(new PointerEvent('pointerdown', at));
        window.dispatchEvent(new PointerEvent('pointerup', at)); }"""
    )
    quarter = float(run.t[0]) + 0.25 * run.duration
    wait_for(lambda: abs(clock() - quarter) < 0.02 * run.duration)
    for scene, is_there in (("dark", lambda x: x < 60), ("studio", lambda x: x > 200)):
        do(
            f"""() => {{ const list = document.querySelector('.remora-scenes');
            list.value = '{scene}'; list.dispatchEvent(new Event('change')); }}"""
        )
        wait_for(lambda is_there=is_there: is_there(np.median(tab.picture())))
    assert all(url.startswith(("file:", "data:", "blob:")) for url in tab.asked)
    tab.check()
