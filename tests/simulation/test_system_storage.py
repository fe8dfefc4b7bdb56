"""Signals of systems in recordings, on disk, in tables; resuming only the same system."""

import json

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from sliders import slider


class Gyro(rm.Component):
    """Three noisy numbers."""

    spread: float = 0.1

    def interface(self, robot):
        return rm.Interface(
            outputs={"rate": rm.Signal(3, "rad/s"), "ok": rm.Signal()}, noise={"white": 3}
        )

    def outputs(self, at):
        return {"rate": self.spread * at.noise["white"], "ok": 1.0 + 0.0 * at.t}


class Filter(rm.Component):
    """A continuous state that follows the gyro."""

    bandwidth: float = 3.0

    def interface(self, robot):
        return rm.Interface(
            inputs={"rate": rm.Signal(3, "rad/s")},
            continuous={"estimate": rm.State(np.zeros(3), "rad/s")},
        )

    def derivative(self, at):
        return {"estimate": self.bandwidth * (at.inputs["rate"] - at.state["estimate"])}


def system(**gyro):
    return rm.System(slider(), [Gyro(sample_time=0.1, **gyro), Filter()])


def test_signals_have_names_units_and_shapes():
    run = rm.simulate(system(), [0.0], [0.1], 1.0, record=0.1)
    assert list(run.signals) == ["gyro.rate", "gyro.ok", "filter.estimate"]
    assert run.signals["gyro.rate"].shape == (11, 3)
    assert run.signals["gyro.ok"].tolist() == [1.0] * 11
    assert run.quantity("gyro.rate") is run.signals["gyro.rate"]
    assert "signals: gyro.rate [rad/s], gyro.ok, filter.estimate [rad/s]" in repr(run)
    with pytest.raises(rm.errors.UnknownName, match="signal of the run"):
        run.signals["gyro.rates"]
    assert not rm.simulate(slider(), [0.0], [0.1], 1.0).signals
    with pytest.raises(ValueError, match="read-only"):
        run.signals["gyro.rate"][0] = 0.0


def test_signals_are_saved_and_read(tmp_path):
    run = rm.simulate(system(), [0.0], [0.1], 1.0, record=rm.Record(folder=tmp_path / "a"))
    run.save(tmp_path / "b")
    for name in ("a", "b"):
        back = rm.open_run(tmp_path / name)
        assert list(back.signals) == list(run.signals)
        for key in run.signals:
            assert back.signals[key].tobytes() == run.signals[key].tobytes()
        assert back.signal_columns["gyro.rate"].unit == "rad/s"
        assert repr(back) == repr(run)


def test_tables_have_signals():
    pandas = pytest.importorskip("pandas")
    table = rm.simulate(system(), [0.0], [0.1], 1.0).to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert {"gyro.rate[0]", "gyro.rate[2]", "gyro.ok", "filter.estimate[1]"} <= set(table.columns)
    assert table.attrs["units"]["gyro.rate[1]"] == "rad/s"


@pytest.mark.parametrize(
    "signals",
    [
        {"../x.y": [[3], ""]},
        {"gyro.rate": [[-3], "rad/s"]},
        {"gyro.rate": [[3], 5]},
        {"gyro.rate": [3, "rad/s"]},
        ["gyro.rate"],
    ],
)
def test_damaged_descriptions_of_signals_are_refused(signals, tmp_path):
    rm.simulate(system(), [0.0], [0.1], 1.0, record=rm.Record(folder=tmp_path / "run"))
    file = tmp_path / "run" / "zarr.json"
    text = json.loads(file.read_text())
    text["attributes"]["signals"] = signals
    file.write_text(json.dumps(text))
    with pytest.raises(rm.RemoraError, match="cannot be read, or is damaged"):
        rm.open_run(tmp_path / "run")


def test_another_system_is_not_resumed(tmp_path):
    rm.simulate(system(), [0.0], [0.1], 1.0, record=rm.Record(folder=tmp_path / "run"), seed=1)

    def again(moved, **options):
        return rm.simulate(
            moved, [0.0], [0.1], 1.0, **grouped(out=tmp_path / "run", resume=True, **options)
        )

    assert again(system(), seed=1).status == "complete"
    with pytest.raises(rm.RemoraError, match=r"contains another run.*spread is 0.1 there, 0.2"):
        again(system(spread=0.2), seed=1)
    with pytest.raises(rm.RemoraError, match="seed is 1 there, 2 here"):
        again(system(), seed=2)
    with pytest.raises(rm.RemoraError, match="run is 0 there, 3 here"):
        again(system(), seed=1, run=3)
    with pytest.raises(rm.RemoraError, match="contains another run"):
        again(slider(), seed=1)

    class Filter2(Filter):
        def derivative(self, at):
            return {"estimate": 0.0 * at.state["estimate"]}

    other = rm.System(slider(), [Gyro(sample_time=0.1), Filter2(name="filter")])
    with pytest.raises(rm.RemoraError, match="contains another run"):
        again(other, seed=1)


def test_names_of_signals_are_checked():
    class Bad(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"../x": rm.Signal()})

        def outputs(self, at):
            return {"../x": 0.0 * at.t}

    with pytest.raises(rm.errors.ModelError, match=r"'\.\./x' in outputs: a name has letters"):
        rm.System(slider(), [Bad()])


def test_signals_are_drawn():
    from remora.viewer.figures.panels import choice, panels
    from remora.viewer.page.plots import offered, plot_of

    run = rm.simulate(system(), [0.0], [0.1], 1.0, record=0.1)
    (panel,) = panels(run, "gyro.rate", choice(run, degrees=False))
    assert (panel.title, panel.unit) == ("gyro.rate", "rad/s")
    assert [line.label for line in panel.lines] == ["x", "y", "z"]
    assert panel.lines[1].values.tolist() == run.signals["gyro.rate"][:, 1].tolist()
    assert len(panels(run, "signals", choice(run))) == 3
    assert len(run.plot("gyro.rate", "filter.estimate").axes) >= 2
    with pytest.raises(rm.errors.UnknownName, match="gyro"):
        run.plot("gyro.rates")
    assert offered(run)[-3:] == ["gyro.rate, rad/s", "gyro.ok", "filter.estimate, rad/s"]
    plot = plot_of(run, "gyro.rate, rad/s")
    assert (plot.unit, plot.names) == ("rad/s", ["x", "y", "z"])
    assert plot.values.shape == (11, 3)
