"""Rows of a report on singularities and joint limits that a run came close to."""

from __future__ import annotations

import numpy as np

from remora.analysis.arm import last_moved_frame
from remora.analysis.jacobian_conditioning import Conditioning, conditioning
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.errors import RemoraError
from remora.model.formats.bounded_xml import shown
from remora.model.joints import is_free
from remora.simulation.recording.recording import Recording
from remora.viewer.run_tables import TextTable

#: Largest number of samples that are looked at, of bodies of a robot, and of warnings.
MOST_SAMPLES, MOST_BODIES, MOST_WARNINGS = 400, 60, 8


def conditioning_of(run: Recording) -> Conditioning | None:
    """Return the conditioning of the last frame that the arm moves; None where it has none.

    The twist is considered, on a floating base if the robot floats. Of a long run as many samples
    are taken as the report can show.
    """
    robot = run.robot
    if len(robot.bodies) > MOST_BODIES or active_constraints(robot) or not len(run):
        return None
    floats = is_free(robot.joints[0])
    if floats and not robot.dynamics:
        return None
    every = np.unique(np.linspace(0, len(run) - 1, min(len(run), MOST_SAMPLES)).astype(int))
    try:
        return conditioning(
            robot, run.q[every], last_moved_frame(robot), "floating" if floats else "fixed",
            "twist", t=run.t[every], joint_distances=False,
        )  # fmt: skip
    except RemoraError:  # nothing that an arm moves: nothing to say
        return None


def conditioning_warnings(found: Conditioning) -> list[str]:
    """Return the warnings of a report."""
    said = found.warnings()
    more = len(said) - MOST_WARNINGS
    return said[:MOST_WARNINGS] + ([f"and {more} more of the same kind"] if more > 0 else [])


def conditioning_table(found: Conditioning) -> TextTable:
    """Return a table of what came nearest to a singularity and to limits."""
    worst = int(np.argmax(found.condition))
    frame = shown(found.frame)
    rows = [
        (f"condition number of the Jacobian of {frame}", f"{found.condition[worst]:.4g}",
         f"{found.t[worst]:.6g}"),
        ("its smallest singular value", f"{found.smallest[worst]:.4g} m/s per rad/s",
         f"{found.t[worst]:.6g}"),
    ]  # fmt: skip
    for k, name in enumerate(found.joints):
        at = int(np.argmin(found.limit_distance[:, k]))
        share = found.limit_share[at, k]
        part = f", {100 * share:.1f} % of the range" if np.isfinite(share) else ""
        rows.append(
            (f"{shown(name)}: distance to the nearer limit",
             f"{found.distance_text(found.limit_distance[at, k], k)}{part}", f"{found.t[at]:.6g}")
        )  # fmt: skip
    return TextTable(("nearest to singularities and limits", "#value", "#at, s"), rows[:30])
