"""Conservation checks of a run in words and as a table: one line if nothing drifts."""

from __future__ import annotations

from remora.simulation.recording.conservation import Conservation, Drift
from remora.viewer.run_tables import TextTable

#: Relative drifts, and violations of unit quaternions and constraints, below which all is well.
WELL = 1e-6
#: A drift that is nothing, whatever it is compared with: of a robot at rest, in SI units.
NOTHING = 1e-12


def drifts(kept: Conservation) -> list[tuple[str, Drift]]:
    """Return the quantities that are conserved in this run, by name."""
    return [(name, drift) for name, drift in kept.drifts.items() if not drift.broken_by]


def violations(kept: Conservation) -> list[str]:
    """Return a sentence for each conservation error above `WELL`; none if all is well."""
    said = [
        f"{name} drifts by {drift.absolute:.2g} {drift.unit}, {drift.relative:.2g} of "
        f"{drift.scale:.4g} {drift.unit} ({drift.compared})"
        for name, drift in drifts(kept)
        if not (drift.relative <= WELL or drift.absolute <= NOTHING)
    ]
    for name, value, unit in (
        ("quaternions are off unit length", kept.quaternion, ""),
        ("dual quaternions are off", kept.dual_quaternion, " m"),
        ("constraints that act are violated", kept.constraint or 0.0, " m or rad"),
    ):
        if not value <= WELL:
            said.append(f"{name} by {value:.2g}{unit}")
    return said


def conserved_line(kept: Conservation) -> str:
    """Return one line about the conserved quantities of a run in which all is well."""
    own = drifts(kept)
    parts = [f"{name} {drift.relative:.1e}" for name, drift in own]
    text = f"Relative conservation errors: {', '.join(parts)}. "
    broken = kept.linear_momentum.broken_by
    if broken:
        text += f"Momentum is not conserved in this run: {broken}. "
    if kept.constraint is not None:
        text += f"Constraints hold to {kept.constraint:.1e} m or rad. "
    return text.rstrip()


def conservation_table(kept: Conservation) -> TextTable:
    """Return the rows of `run.conservation()`."""
    rows: list[tuple[str, ...]] = []
    for name, drift in kept.drifts.items():
        if drift.broken_by:
            rows.append((name, "", "", f"not conserved: {drift.broken_by}"))
            continue
        to = f"{drift.scale:.4g} {drift.unit}, {drift.compared}"
        rows.append((name, f"{drift.absolute:.2e} {drift.unit}", f"{drift.relative:.2e}", to))
    rows.append(("unit quaternions, | |r|² − 1 |", f"{kept.quaternion:.2e}", "", ""))
    rows.append(("dual quaternions, | r·d |", f"{kept.dual_quaternion:.2e} m", "", ""))
    if kept.constraint is not None:
        text = f"{kept.constraint:.2e} m or rad"
        rows.append(("constraints that act, violation", text, "", ""))
    return TextTable(("conserved quantity", "#largest error", "#relative", "to"), rows)
