"""Write the figure of docs/truth_to_flight.md: python docs/pictures/make_truth_to_flight.py."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from remora.viewer.figures.figures import STYLE

mpl.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams.update({**STYLE, "font.size": 9})
HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "truth_to_flight.md"


def main() -> None:
    """Run the page, and draw the distances that its steps end with."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S):
            exec(block, names)
    figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    left_out = ("ideal signals",)  # all end within 0.01 mm
    for name, step in names["steps"].items():
        if name in left_out:
            continue
        _, distance = names["success"](*step)
        share = (np.arange(distance.size) + 1) / distance.size
        dashed = "--" if name == "known payload" else "-"
        axes.step(1e3 * np.sort(distance), 100 * share, dashed, where="post", label=name, lw=1.5)
    axes.axvline(5.0, color="0.5", lw=0.8, ls=":")
    axes.text(5.1, 30.0, "limit", color="0.4")
    axes.set(xlabel="distance of tool from fixture, mm", ylabel="runs below, %", xlim=(0, 14))
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(HERE / "truth_to_flight.png", dpi=120)


if __name__ == "__main__":
    main()
