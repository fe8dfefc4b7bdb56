"""The page of a batch without a browser: several runs in one scene."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose
from remora.viewer.page.page import FREE
from remora.viewer.page.plots import svg

ROBOT = rm.load("vt18_satellite")


@pytest.fixture(scope="module")
def batch():
    """Return five runs; the last one is stopped early."""
    v = np.zeros((5, ROBOT.nv))
    v[:, 6] = np.linspace(0.05, 0.4, 5)
    masses = {"body_2.mass": np.linspace(5.0, 15.0, 5)}
    far = rm.Event(lambda t, q, v: q[8] - 0.6, name="far")
    return rm.simulate_batch(
        ROBOT,
        rm.neutral(ROBOT),
        v,
        2.0,
        events=[far],
        integrator=rm.Integrator(step=0.1),
        record=0.25,
        runs=rm.Runs(parameters=masses),
    )


@pytest.fixture
def page(batch):
    with batch.view(3, 0, 4, port=0, open=False) as page:
        yield page


def test_all_runs_are_where_their_samples_are(page, batch):
    page.follow.value = FREE
    page.time = batch.t[5]
    x = batch.evaluate(rm.poses)[:, 5]
    for nodes, run in zip([page.scene.nodes, *page._ghosts], (3, 0, 4), strict=True):
        for node, there in zip(nodes, x[run], strict=True):
            assert np.allclose(node.wxyz, there[:4])
            assert np.allclose(node.position, pose.translation(there))


def test_between_samples_and_after_the_end_of_a_run(page, batch):
    page.time = 0.5 * (batch.t[3] + batch.t[4])
    half = 0.5 * (batch.q[4, 3, 8:] + batch.q[4, 4, 8:])
    assert np.allclose(page.configuration(2)[8:], half)
    page.time = 1e9
    last = np.flatnonzero(np.isfinite(batch.q[4, :, 0]))[-1]
    assert last < batch.t.size - 1
    assert np.array_equal(page.configuration(2), batch.q[4, last])


def test_runs_can_be_hidden_and_compared(page, batch):
    page.show("run 0", visible=False)
    assert not any(node.visible for node in page._ghosts[0])
    assert all(node.visible for node in page._ghosts[1])
    plot = page._plot("q.J1, °")
    assert plot.names == ["run 3", "run 0", "run 4"]
    assert np.allclose(plot.values[:, 2], np.degrees(batch.q[4, :, 8]), equal_nan=True)
    assert "nan" not in svg(plot)
    page.play()
    page.step(2)
    assert (page.playing, page.index) == (False, 2)


def test_the_runs_shown_without_a_choice(batch):
    with rm.view(batch, port=0, open=False) as page:
        assert [run.index for run in page.runs] == [0, 1, 2, 3, 4]
        assert "BatchPage of 'vt18_satellite'" in repr(page)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_page_is_opened_in_the_browser_unless_it_is_not_wanted(batch, wanted, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for thing in (batch, "spart17_planar"):
        with rm.view(thing, port=0, open=wanted) as page:
            assert opened == [page.url] * wanted
        opened.clear()


def test_a_batch_on_disk(batch, tmp_path):
    with rm.view(batch.save(tmp_path / "b"), port=0, open=False) as page:
        page.time = 1.0
        assert np.array_equal(page.q, batch.q[0, 4])


@pytest.mark.parametrize("runs", [(5,), (-1,), ("one",), tuple(range(5)) * 3])
def test_wrong_runs_are_refused(runs, batch):
    with pytest.raises(rm.errors.InvalidValue, match=r"has no run|at most 12"):
        batch.view(*runs, port=0, open=False)
