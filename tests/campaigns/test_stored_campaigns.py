"""Campaigns whose numbers are known: written by hand, and read back from tables and figures.

Nothing is simulated, so that every number shown has an independent value.
"""

import io
import re
from dataclasses import replace

import numpy as np
import pandas
import pytest
import zarr
from rich.console import Console
from scipy import stats

import remora as rm
from in_process import remora
from remora.campaigns import campaign as campaign_module
from remora.campaigns import figures
from remora.campaigns.blocks import REASONS, Block, block_size
from remora.campaigns.storage import CampaignFolder
from remora.cli.campaign import _summary
from remora.viewer.report import html_page

SCENARIO = """
scenario: 1
robot: vt18_satellite
phases: [{name: spin, duration: 2}]
integrator: {name: rk4, step: 0.1}
output: {sample: 0.5}
"""
STUDY = """
campaign: 1
scenario: small.yaml
runs: 50
seed: 9
disperse:
  start.speeds.J1: {normal: {std: 0.02}}
  body_2.mass: {uniform: {low: 5, high: 15}}
  start.joints.J2: {normal: {std: 0.02}}
outputs:
  angle: {joint: J1, at: 1, unit: deg}
  speed: {speed: J2, take: max}
  tip: {frame: body_3, point: [0, 0, 0]}
  never: {joint: J3}
bands:
  elbow: {joint: J2, unit: deg}
  way: {frame: body_3, point: [0, 0, 0]}
success:
  slow: {output: speed, below: 0.5}
  turned: {output: angle, above: -10 deg, below: 60 deg}
"""
#: Runs of the study, of a block, and computed: one block is missing.
RUNS, BLOCK, DONE = 50, 20, 40
#: Runs that were not finished, with their reasons.
FAILED = {run: REASONS[1 + run % (len(REASONS) - 1)] for run in range(1, 34, 3)}
Z = stats.norm.ppf(0.975)


def columns():
    """Return the numbers of all computed runs by name, and the bands."""
    rng = np.random.default_rng(5)
    mass, start, speed1 = rng.uniform(5, 15, DONE), rng.normal(0, 0.02, DONE), rng.normal(size=DONE)
    lost = np.isin(np.arange(DONE), list(FAILED))
    angle = np.where(lost, np.nan, 0.1 * (mass - 8.0) + 0.02 * rng.normal(size=DONE))
    speed = np.where(lost, np.nan, 0.5 + 8.0 * start + 0.03 * rng.normal(size=DONE))
    tip = np.where(lost, np.nan, 2.0 + np.exp(rng.normal(size=DONE)))
    slow, turned = speed < 0.5, (angle > np.radians(-10.0)) & (angle < np.radians(60.0))
    made = {
        "start.speeds.J1": speed1, "body_2.mass": mass, "start.joints.J2": start, "angle": angle,
        "speed": speed, "tip": tip, "never": np.full(DONE, np.nan), "slow": 1.0 * slow,
        "turned": 1.0 * turned, "ok": 1.0 - lost,
        "outcome": np.array([REASONS.index(FAILED.get(k, REASONS[0])) for k in range(DONE)], float),
        "end": np.where(lost, 0.01 * np.arange(DONE), 2.0),
        "success": 1.0 * (slow & turned & ~lost),
    }  # fmt: skip
    elbow = mass[:, None] * np.linspace(-0.1, 0.2, 5)
    elbow[lost, 3:] = np.nan
    return made, {"elbow": elbow, "way": 1.0 + elbow**2}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored")
    (path / "small.yaml").write_text(SCENARIO, encoding="utf-8")
    (path / "study.yaml").write_text(STUDY, encoding="utf-8")
    folder = CampaignFolder.create(path / "out", rm.load_study(path / "study.yaml"), BLOCK)
    made, bands = columns()
    for start, processor in ((0, "cpu"), (BLOCK, "a GPU")):
        part = slice(start, start + BLOCK)
        folder.write(Block(start, {name: x[part] for name, x in made.items()},
                           {name: x[part] for name, x in bands.items()}, processor))  # fmt: skip
    return rm.open_campaign(path / "out")


def interval(held):
    """Return the ends of Wilson's interval, percent: (p - x)² = z² x (1 - x)/n."""
    p, n = np.mean(held), len(held)
    ends = np.sort(np.roots([1 + Z * Z / n, -2 * p - Z * Z / n, p * p]))
    return f"{100 * ends[0]:.4g} to {100 * ends[1]:.4g}"


def test_the_numbers_that_are_read_are_those_that_were_written(stored):
    made, bands = columns()
    missing = np.full(RUNS - DONE, np.nan)
    for name, x in made.items():
        assert np.array_equal(stored[name], np.r_[x, missing], equal_nan=True)
    assert np.array_equal(stored["elbow"][:DONE], bands["elbow"], equal_nan=True)
    assert stored["elbow"].shape == (RUNS, 5)
    assert (len(stored), stored.runs, stored.processors) == (40, 50, {"cpu": 20, "a GPU": 20})
    for name in ("angle", "bands/elbow"):  # whole blocks, as other programs read them
        array = zarr.open_group(stored.folder.path / "results.zarr", mode="r")[name]
        assert array.shape[0] == 3 * BLOCK
    held = made["success"]
    assert repr(stored) == (
        f"Campaign 'study': 40 of 50 runs, success {100 * held.mean():.4g} % ({interval(held)} %), "
        f"{len(FAILED)} failed"
    )
    for name in ("slow", "turned"):
        assert stored.success_rate(name)[0] == made[name].mean()
    table = stored.to_pandas()
    assert table["run"].tolist() == list(range(DONE))
    assert table["processor"].tolist() == ["cpu"] * BLOCK + ["a GPU"] * BLOCK
    assert table["outcome"].tolist() == [FAILED.get(k, REASONS[0]) for k in range(DONE)]
    for name in ("ok", "success", "slow"):
        assert np.array_equal(table[name], made[name] == 1.0)
    written = pandas.read_parquet(stored.folder.write_summary())
    assert written.equals(table)


def test_what_drives_an_output_is_sorted_by_strength(stored):
    made, _ = columns()
    for name in ("angle", "speed", "tip", "success"):
        told = stored.drivers(name)
        y = made[name]
        for dispersion, (rank, _) in told.items():
            known = np.isfinite(y)
            expected = stats.spearmanr(made[dispersion][known], y[known]).statistic
            assert rank == pytest.approx(expected, abs=1e-12)
        sizes = [np.nanmax(np.abs(pair)) for pair in told.values()]
        assert sizes == sorted(sizes, reverse=True)
    assert next(iter(stored.drivers("angle"))) == "body_2.mass"
    assert next(iter(stored.drivers("speed"))) == "start.joints.J2"
    with pytest.raises(rm.errors.UnknownName, match="no output named 'end'"):
        stored.drivers("end")


@pytest.fixture(scope="module")
def page(stored, tmp_path_factory):
    """Return the report without its drawings, which other tests read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html_page, "drawing", lambda figure: "<svg></svg>")
        file = rm.campaign_report(stored, tmp_path_factory.mktemp("report") / "report.html")
    return file.read_text(encoding="utf-8").replace("\N{MINUS SIGN}", "-")


def test_tables_of_the_report(stored, page):
    made, _ = columns()
    sections = dict(re.findall(r"<h2>(.*?)</h2>(.*?)</section>", page, re.DOTALL))
    rows = {
        title: [re.findall(r"<td[^>]*>(.*?)</td>", x) for x in re.findall("<tr>(.*?)</tr>", text)]
        for title, text in sections.items()
    }  # fmt: skip
    shown = {"angle": np.degrees(made["angle"]), "speed": made["speed"], "tip": made["tip"]}
    units = {"angle": "deg", "speed": "rad/s", "tip": "m"}
    outputs, worst = list[list[str]](), list[list[str]]()
    replay = "<code>remora campaign replay out {}</code>"
    drivers = {"angle": "body_2.mass", "speed": "J2 at the start"}
    for name, x in shown.items():
        order = np.sort(x[np.isfinite(x)])
        n = len(order)
        spread = np.interp([0.05 * (n - 1), 0.5 * (n - 1), 0.95 * (n - 1)], np.arange(n), order)
        least = f"{order[0]:.4g} to {order[-1]:.4g}"
        outputs.append([name, units[name], *(f"{p:.4g}" for p in spread), least, str(n),
                        drivers.get(name, rows["Outputs"][-1][-1])])  # fmt: skip
        far = sorted(
            (-abs(value - spread[1]), run) for run, value in enumerate(x) if np.isfinite(value)
        )
        worst += [[name, str(run), f"{x[run]:.4g} {units[name]}",
                   replay.format(run)] for _, run in far[:3]]  # fmt: skip
    assert rows["Outputs"][1:] == outputs
    assert rows["Worst cases"][1:] == worst
    assert rows["Failed runs"][1:] == [
        [str(run), FAILED[run], f"{0.01 * run:.4g}", replay.format(run)]
        for run in sorted(FAILED)[:10]
    ]  # fmt: skip
    assert f"and {len(FAILED) - 10} more" in sections["Failed runs"]
    assert rows["Success"][1:] == [
        ["slow", "speed &lt; 0.5 rad/s", f"{100 * made['slow'].mean():.4g}",
         interval(made["slow"])],
        ["turned", "-10 deg &lt; angle &lt; 60 deg", f"{100 * made['turned'].mean():.4g}",
         interval(made["turned"])],
    ]  # fmt: skip
    influence = [
        [name, {"start.speeds.J1": "J1 speed", "start.joints.J2": "J2 at the start"}.get(d, d),
         *(f"{x:.2f}".replace("nan", "\N{EN DASH}") for x in pair)]
        for name in (*shown, "success")
        for d, pair in stored.drivers(name).items()
        if np.nanmax(np.abs(pair)) >= 0.1
    ]  # fmt: skip
    assert rows["Dispersions and their influence"][1:] == influence
    tiles = re.findall(r'<div class="tile"><b>(.*?)</b><span>(.*?)</span>', page)
    assert tiles == [
        ("40", "runs of 50"), (f"{100 * made['success'].mean():.4g} %", "success"),
        (f"{interval(made['success'])} %", "95 % interval (Wilson)"),
        (str(len(FAILED)), "could not be finished"),
    ]  # fmt: skip


def test_figures_of_the_report(stored):
    made, bands = columns()
    study = stored.study()
    drawn = figures.distributions(stored, study)
    assert [ax.get_title("left") for ax in drawn.axes if ax.get_visible()] == [
        "angle",
        "speed",
        "tip",
    ]
    bounds = {"angle": [60.0, -10.0], "speed": [0.5], "tip": []}
    for ax, (name, bound) in zip(drawn.axes, bounds.items(), strict=False):
        x = made[name][np.isfinite(made[name])]
        x = np.degrees(x) if name == "angle" else x
        assert ax.get_xlabel() == {"angle": "deg", "speed": "rad/s", "tip": "m"}[name]
        edges = [patch.get_x() for patch in ax.patches]
        low, high = np.percentile(x, [0.05, 99.95])
        assert edges == pytest.approx(np.linspace(low, high, 61)[:-1])
        assert sum(patch.get_height() for patch in ax.patches) == x.size
        places = [line.get_xdata()[0] for line in ax.lines]
        inside = [b for b in bound if low <= b <= high]
        assert places == pytest.approx([np.percentile(x, 50), np.percentile(x, 95), *inside])
    assert [len(ax.lines) for ax in drawn.axes] == [3, 3, 2]  # none beyond the runs

    class Same:
        """Every run has the same number."""

        def __getitem__(self, name):
            return np.full(RUNS, 0.25)

    for ax, name in zip(figures.distributions(Same(), study).axes, study.outputs, strict=False):
        middle = float(study.outputs[name].quantity.shown(np.array(0.25)))
        edges = [patch.get_x() for patch in ax.patches]
        assert edges == pytest.approx(np.linspace(middle - 0.5, middle + 0.5, 61)[:-1])

    elbow, way = figures.bands(stored, study).axes
    assert (elbow.get_title("left"), way.get_title("left")) == ("elbow, deg", "way, m")
    assert way.get_xlabel() == "time, s"
    for ax, values in ((elbow, np.degrees(bands["elbow"])), (way, bands["way"])):
        (middle,) = ax.lines
        assert np.allclose(middle.get_xdata(), [0.0, 0.5, 1.0, 1.5, 2.0])
        assert np.allclose(middle.get_ydata(), np.nanpercentile(values, 50, axis=0))
        for area, (low, high) in zip(ax.collections, ((1, 99), (5, 95), (25, 75)), strict=True):
            corners = area.get_paths()[0].vertices[:, 1]
            expected = np.nanpercentile(values, [low, high], axis=0)
            assert (corners.min(), corners.max()) == pytest.approx((expected.min(), expected.max()))

    sizes = [tuple(drawn.get_size_inches()) for drawn in
             (drawn, figures.bands(stored, study), figures.drivers(stored))]  # fmt: skip
    assert np.allclose(sizes, [(7.2, 1.9), (7.2, 3.8), (7.2, 1.4 + 0.3 * 5)])

    ax = figures.drivers(stored).axes[0]
    table = np.asarray(ax.images[0].get_array())
    rows = ("angle", "speed", "tip", "never", "success")
    assert [text.get_text() for text in ax.get_yticklabels()] == list(rows)
    for i, name in enumerate(rows):
        for j, d in enumerate(stored.dispersions):
            known = np.isfinite(made[name])
            if known.any():
                rank = stats.spearmanr(made[d][known], made[name][known]).statistic
                assert table[i, j] == pytest.approx(rank)
    written = {tuple(map(round, text.get_position())): text.get_text() for text in ax.texts}
    assert written == {
        (j, i): f"{x:+.2f}".replace("-", "\N{MINUS SIGN}")
        for (i, j), x in np.ndenumerate(table) if np.isfinite(x)
    }  # fmt: skip

    ax = figures.convergence(stored).axes[0]
    count, rate = ax.lines[0].get_data()
    held = made["success"]
    assert rate == pytest.approx([100 * held[:k].mean() for k in count.astype(int)])
    assert (count[0], count[-1]) == (10, DONE)
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    ends = [[float(x) for x in interval(held[: int(k)]).split(" to ")] for k in count]
    assert (corners.min(), corners.max()) == pytest.approx((np.min(ends), np.max(ends)), rel=1e-3)


def test_a_campaign_of_few_runs_has_no_figure_of_drivers(stored):
    class Few:
        """The first runs of a campaign."""

        def __getattr__(self, name):
            return getattr(stored, name)

        def __len__(self):
            return 29

        def __getitem__(self, name):
            return stored[name][:19]

    assert figures.drivers(Few()) is None
    assert figures.convergence(Few()) is None
    study = stored.study()
    assert figures.bands(stored, replace(study, bands={})) is None


def test_the_command_line_tells_the_rates(stored, tmp_path):
    made, _ = columns()
    text = io.StringIO()
    _summary(Console(width=80, file=text), stored)
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert lines[0] == ["study:", "40", "of", "50", "runs"]
    for line, name in zip(lines[2:], ("success", "slow", "turned"), strict=True):
        rate = f"{100 * made[name].mean():.4g}"
        assert line == [name, rate, *f"{interval(made[name])} %".split()]
    told = remora("campaign", "--list", columns=200)
    listed = {line.split()[0]: line.split() for line in told.stdout.splitlines()[1:]}
    for name in rm.bundled("studies"):
        study = rm.load_study(name)
        assert listed[name][1:3] == [study.scenario.name, f"{study.runs:,}"]
    wrong = remora("campaign", "replay", stored.folder.path, RUNS, columns=300)
    assert (wrong.returncode, "from 0 to 49, not 50" in wrong.stderr) == (2, True)
    done = remora("campaign", "report", stored.folder.path, "--out", tmp_path)
    assert "exists already" in done.stderr
    for words, message in (
        ((), "name a study file"), (("report",), "report DIR"),
        (("replay", stored.folder.path), "replay DIR RUN"), (("a", "b"), "unexpected argument 'b'"),
        (("reach_payload",), "name the folder"),
    ):  # fmt: skip
        assert message in remora("campaign", *words).stderr


def test_a_worker_keeps_its_study_until_it_gets_another(monkeypatch):
    asked, unpacked = [], []
    monkeypatch.setattr(campaign_module, "_STUDIES", {})
    monkeypatch.setattr(
        campaign_module, "run_block", lambda *given, **more: asked.append((*given, more))
    )
    monkeypatch.setattr(
        campaign_module.pickle, "loads", lambda packed: unpacked.append(packed) or packed.decode()
    )
    for packed, start in ((b"a", 0), (b"a", 8), (b"b", 16)):
        campaign_module.compute(packed, start, start + 8, "cpu")
    more = {"threads": 1, "target": "cpu"}
    assert asked == [("a", 0, 8, more), ("a", 8, 16, more), ("b", 16, 24, more)]
    assert unpacked == [b"a", b"b"]
    assert campaign_module.as_it_is(b"a") == b"a"


@pytest.mark.parametrize("workers", [1, 4])
def test_blocks_fit_into_memory_and_every_worker_gets_several(stored, workers):
    study = stored.study()
    robot, samples = study.system.robot, len(study.times)
    each = 8 * 4 * samples * (robot.nq + robot.nv)
    for runs in (50, 3_000, 100_000, 10_000_000):
        size = block_size(replace(study, runs=runs), None, workers)
        share = runs if workers == 1 else max(512, runs // (5 * workers))
        room = max(64, min(16_384, (320 << 20) // each, share))
        assert size == min(runs, 2 ** int(np.log2(room)))
    assert block_size(study, 7, workers) == 7
