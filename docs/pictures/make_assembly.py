"""Draw the pictures of docs/assembly.md: the graph of SA24's Figure 4."""

from pathlib import Path

import numpy as np

import remora as rm

HERE = Path(__file__).parent
CONNECTIONS = [
    ("2", "1", "link2"), ("3", "1", "link1"), ("5", "1", "link2"), ("7", "1", "link1"),
    ("4", "2", "link3"), ("6", "5", "link3"), ("8", "7", "link3"),
]  # fmt: skip


def arm():
    """A serial arm with three revolute joints."""
    b = rm.Builder("arm")
    for k in (1, 2, 3):
        b.body(f"link{k}", 1.0, (0, 0, 0.2), 0.1 * np.eye(3))
        parent = f"link{k - 1}" if k > 1 else None
        b.joint(f"joint{k}", "revolute", parent, f"link{k}", axis=(0, 1, 0))
    return b.build()


robot = rm.Assembly({str(k): arm() for k in range(1, 9)}, CONNECTIONS)
figure = robot.graph(*np.ones((3, 24))).plot()
figure.savefig(HERE / "assembly_graph.png", dpi=130)
