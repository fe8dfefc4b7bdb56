"""Write the block diagrams of docs/components.md: python docs/pictures/make_diagrams.py."""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import remora as rm

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "components.md"


def main() -> None:
    """Run the page up to its diagrams, and save them and the one of the bundled scenario."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        for block in blocks:
            exec(block, names)
            if "machine" in names:
                break
        os.chdir(HERE)
    diagram = names["diagram"]
    diagram.save(HERE / "diagram_pi.svg")  # type: ignore[attr-defined]
    machine = names["machine"]
    machine.save(HERE / "diagram_modes.svg")  # type: ignore[attr-defined]
    system = rm.load_scenario("hold_attitude").system
    assert system is not None
    system.diagram().save(HERE / "diagram_hold_attitude.svg")


if __name__ == "__main__":
    main()
