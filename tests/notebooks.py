"""Notebooks run without Jupyter: cells are executed in order, and their outputs stored.

python tests/notebooks.py examples/tour.ipynb     # runs it and stores its outputs
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path

#: Dots per inch of stored figures.
DPI = 80


def run_notebook(notebook):
    """Run the code cells of a notebook; return the outputs of each as Jupyter stores them."""
    namespace = {"__name__": "__main__"}
    return [
        run_cell("".join(cell["source"]), namespace)
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def run_cell(source, namespace):
    """Run one cell: what it prints, and the value of an expression at its end."""
    tree, shown = ast.parse(source), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, "<cell>", "exec"), namespace)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    outputs = []
    if out.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": out.getvalue()})
    if shown is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data_of(shown)})
    return outputs


def data_of(value):
    """Return what a notebook shows of a value: a picture of a figure, else its text."""
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=DPI, bbox_inches="tight")
        return {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": "figure"}
    return {"text/plain": repr(value)}


def main(file):
    """Run a notebook and store its outputs."""
    notebook = json.loads(file.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for k, (cell, outputs) in enumerate(zip(cells, run_notebook(notebook), strict=True)):
        cell["execution_count"], cell["outputs"] = k + 1, outputs
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
