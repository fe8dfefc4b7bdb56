"""Faults put into the source one at a time: does a test notice?

    python tests/mutants.py                   all faults of the list
    python tests/mutants.py viewer wheels     those whose file or fault has one of these words
    python tests/mutants.py --quick           without the long tests, as `make test`
    python tests/mutants.py --list            print the list

Each fault is an exact replacement in one file: a sign, a factor of two, a dropped term, a wrong
frame, an inverted condition. It is made in a copy of the source, so that the checkout stays as it
is whatever happens, and the tests named with it are run until one fails, the long ones last. The faults that no test
noticed are listed at the end, and so are those whose text is not in the source any more: mend the
list. A new capability adds its own faults.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LONG = "long test: "


class Fault(NamedTuple):
    """One fault.

    Attributes:
        file: below src/remora.
        old: text that occurs exactly once in it.
        new: what stands there instead.
        tests: files below tests that should notice, separated by blanks; few, so that a trial
            takes seconds.
    """

    file: str
    old: str
    new: str
    tests: str

    @property
    def title(self) -> str:
        """One line about the fault."""
        return f"{self.file}: {' '.join(self.old.split())}  ->  {' '.join(self.new.split())}"


FAULTS = [
    # What is loaded and built
    Fault("model/building/merged_body.py", "R @ body.inertia @ vector.transpose(R)",
          "body.inertia", "model/test_build.py"),
    # Laws
    Fault("control/laws/resolved_rate.py", "fastest = absolute(rate[..., 0])",
          "fastest = rate[..., 0]", "control/test_resolved_rate.py"),
    Fault("control/laws/reaction_wheels.py", "(speeds - self.speeds)", "(speeds + self.speeds)",
          "control/test_wheels.py"),
    Fault("control/laws/reaction_wheels.py",
          "asarray(about) + asarray(joint.rotor_inertia)[..., 0]", "asarray(about)",
          "control/test_wheels.py"),
    # Campaigns
    Fault("campaigns/outputs.py", "np.degrees(x) if self.shown_unit", "x if self.shown_unit",
          "campaigns/test_outputs.py"),
    Fault("campaigns/statistics.py", "(between - noise) / whole", "between / whole",
          "campaigns/test_dispersions.py"),
    # What people read
    Fault("viewer/run_tables.py", "turned = 2.0 * quaternion.log", "turned = quaternion.log",
          "viewer/test_report_story.py"),
    Fault("viewer/run_tables.py", 'f"{joint.mimic.ratio:g} ×', 'f"{1 / joint.mimic.ratio:g} ×',
          "viewer/test_report_story.py"),
    Fault("viewer/report/tool_story.py", "angle = 2.0 * np.linalg.norm", "angle = np.linalg.norm",
          "viewer/test_report_story.py"),
    Fault("viewer/report/peak_loads.py", "np.abs(2.0 * q - low - high) / (high - low)",
          "np.abs(q) / np.maximum(abs(low), abs(high))", "viewer/test_report_story.py"),
    Fault("viewer/report/trust.py", "if not drift.broken_by]", "if drift.broken_by]",
          "viewer/test_report_story.py"),
    Fault("cli/robot_tables.py", "float(x) if math.isfinite(x) else None for x",
          "float(x) if math.isfinite(x) else 0.0 for x", "cli/test_cli.py"),
    Fault("cli/wheel_analysis.py", "duration = JERK_PEAKS[0] * fastest", "duration = fastest",
          "cli/test_analyze.py"),
    Fault("cli/wheel_analysis.py", "np.array(r.lower) + 0.5 * halves[r.name]",
          "np.array(r.lower)", "cli/test_analyze.py"),
    # Planning with mimic joints
    Fault("planning/joint_ranges.py", "low, high = ends.min(axis=0), ends.max(axis=0)",
          "low, high = ends[0], ends[1]", "planning/test_inverse_kinematics.py"),
    Fault("planning/joint_ranges.py", "- joint.mimic.offset) / joint.mimic.ratio",
          "- joint.mimic.offset) * joint.mimic.ratio", "planning/test_inverse_kinematics.py"),
    Fault("planning/task_limits.py", "joint.limits.velocity / ratio",
          "joint.limits.velocity * ratio", "planning/test_inverse_kinematics.py"),
    Fault("planning/starts.py", "and joint.mimic is None and i not in leaders",
          "and joint.mimic is None", "planning/test_inverse_kinematics.py"),
    # Derivatives with rotors, code, runs
    Fault("dynamics/derivatives/constrained_derivatives.py",
          "needed = required_forces(tree, A, wrenches) + rotor_forces(tree, vdot)",
          "needed = required_forces(tree, A, wrenches)", "dynamics/constraints/test_derivatives_of_loops.py"),
    Fault("dynamics/derivatives/sharing_derivatives.py",
          "needed = required_forces(tree, A, wrenches) + rotor_forces(tree, vdot)",
          "needed = required_forces(tree, A, wrenches)", "dynamics/constraints/test_sharing_derivatives.py"),
    Fault("codegen/llvm/lowering.py", "{missing}, {t} {a[0]}, {t} {picked}",
          "{missing}, {t} {picked}, {t} {picked}", "codegen/test_graph.py"),
    Fault("simulation/batch/batch_switching.py", "impulse + impulses.get(name, 0.0 * impulse)",
          "impulse", "simulation/test_batch_captures.py"),
    Fault("components/system.py", "return first + ticks", "return ticks + first",
          "simulation/test_systems.py"),
    Fault("simulation/engine/event_location.py", "item.direction * value >= 0.0:",
          "item.direction * value > 0.0:", "simulation/test_events.py"),
    Fault("analysis/payload.py", "np.eye(A.shape[1]) - hat", "np.eye(A.shape[1])",
          "analysis/test_payload.py"),
]  # fmt: skip


def noticed(fault: Fault, folder: Path, quick: bool) -> str | None:
    """Return the test that fails with the fault, "" if none does, None if the text is not there."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    file = source / "remora" / fault.file
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if text.count(fault.old) != 1:
        return None
    file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    short = _failed(fault, source, "not slow")
    if short or quick:
        return short
    long = _failed(fault, source, "slow")
    return f"{LONG}{long}" if long else ""


def _failed(fault: Fault, source: Path, which: str) -> str:
    """Return the first test that fails; "" if none does."""
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0",
        "-m", which, *(f"tests/{name}" for name in fault.tests.split()),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode in (0, 5):  # 5: none of them is asked for
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode != 1 or not failed:
        raise RuntimeError(f"{fault.title}\nno test ran:\n{done.stdout}{done.stderr}")
    return failed[0].split(" - ")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="faults whose title has one of these")
    parser.add_argument("--quick", action="store_true", help="without the long tests")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at a time")
    parser.add_argument("--list", action="store_true", help="print the faults")
    asked = parser.parse_args()
    chosen = [f for f in FAULTS if not asked.words or any(w in f.title for w in asked.words)]
    if asked.list:
        print("\n".join(fault.title for fault in chosen))
        return 0

    def tried(fault: Fault) -> str | None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return noticed(fault, Path(folder), asked.quick)

    missed: list[str] = []
    long = 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        for fault, by in zip(chosen, pool.map(tried, chosen), strict=True):
            verdict = {None: "NOT IN THE SOURCE", "": "NOT NOTICED"}.get(by, by)
            print(f"{fault.title}\n    {verdict}", flush=True)
            missed += [] if by else [f"{verdict}: {fault.title}"]
            long += (by or "").startswith(LONG)
    found = len(chosen) - len(missed)
    print(f"{found} of {len(chosen)} noticed, {long} by long tests only", *missed, sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
