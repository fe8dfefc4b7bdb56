"""The notebooks in examples/ are executed, and their stored outputs are what their cells print."""

import base64
import json
from pathlib import Path

import pytest

from notebooks import run_cell, run_notebook
from printed_text import assert_same_text

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_there_is_a_notebook():
    assert [file.name for file in NOTEBOOKS] == ["tour.ipynb"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
def test_stored_outputs_are_what_the_cells_print(file, tmp_path, monkeypatch):
    notebook = json.loads(file.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, outputs in zip(cells, run_notebook(notebook), strict=True):
        place = f"{file.name}, cell {cell['execution_count']}"
        assert [o["output_type"] for o in outputs] == [o["output_type"] for o in cell["outputs"]]
        for made, stored in zip(outputs, cell["outputs"], strict=True):
            if made["output_type"] == "stream":
                assert_same_text(made["text"], stored["text"], place)
            else:
                assert made["data"]["text/plain"] == stored["data"]["text/plain"], place
                assert made["data"].keys() == stored["data"].keys()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
def test_pictures_are_stored_and_linked_files_exist(file):
    assert file.stat().st_size < 500_000
    notebook = json.loads(file.read_text(encoding="utf-8"))
    data = [o["data"] for c in notebook["cells"] for o in c.get("outputs", ()) if "data" in o]
    pictures = [base64.b64decode(d["image/png"]) for d in data if "image/png" in d]
    assert pictures
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    for cell in notebook["cells"]:
        for part in (
            "".join(cell["source"]).split("](")[1:] if cell["cell_type"] == "markdown" else ()
        ):
            assert (file.parent / part.partition(")")[0]).exists()


def test_a_wrong_output_is_found():
    (made,) = run_cell("print(1 + 1)", {})
    with pytest.raises(AssertionError, match="does not print"):
        assert_same_text(made["text"], "3\n", "a cell")
