"""`remora analyze`: pages, pictures and data, and refusals."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from remora.cli import app
from remora.errors import RemoraError


def analyzed(*arguments):
    return CliRunner().invoke(app, ["analyze", *map(str, arguments)])


@pytest.mark.parametrize("what", ["workspace", "manipulability", "coupling"])
def test_a_page_with_pictures_and_data_is_written(tmp_path, what):
    result = analyzed(
        "spart17_planar", what, "--out", tmp_path, "--plane", "xy", "--samples", 20000,
        "--cells", 30, "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    text = (tmp_path / f"{what}.html").read_text(encoding="utf-8")
    assert "spart17_planar" in text
    assert "default-src data:" in text
    assert not re.search(r"(src|href)=[\"']?https?:", text)
    assert (tmp_path / f"{what}_1.png").read_bytes()[:4] == b"\x89PNG"
    with np.load(tmp_path / f"{what}.npz") as data:
        assert all(np.asarray(data[name]).size for name in data.files)
    if what != "workspace":
        table = np.genfromtxt(tmp_path / f"{what}.csv", delimiter=",", names=True)
        assert table.dtype.names[:2] == ("joint_1", "joint_2")
        assert len(table) == 200 * 200
    assert not (tmp_path / "workspace.checkpoint.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("spart17_planar", "magic"), "workspace, manipulability, coupling"),
        (("spart17_planar", "workspace", "--frame", "base"), "no joint of the arm"),
        (("spart17_planar", "coupling", "--over", "joint_1"), "two joints"),
        (("spart17_planar", "coupling", "--over", "joint_1", "--over", "x"), "joint_2"),
        (("spart17_planar", "manipulability", "--measure", "size"), "volume"),
    ],
)
def test_refusals_name_what_is_wrong(tmp_path, arguments, words):
    with pytest.raises(RemoraError, match=words):
        raise analyzed(*arguments, "--out", tmp_path).exception
