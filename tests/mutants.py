"""Faults put into the source one at a time: does a test notice?

    python tests/mutants.py                   all faults of the list
    python tests/mutants.py viewer wheels     those whose file or fault has one of these words
    python tests/mutants.py --quick           without the long tests, as `make test`
    python tests/mutants.py --list            print the list
    python tests/mutants.py --random 40 --seed 7 viewer cli      faults drawn in these packages

Each fault is an exact replacement in one file: a sign, a factor of two, a dropped term, a wrong
frame, an inverted condition. It is made in a copy of the source, so that the checkout stays as it
is whatever happens, and the tests named with it are run until one fails, the long ones last. The
faults that no test noticed are listed at the end, and so are those whose text is not in the source
any more: mend the list. The named tests must pass without a fault. A new capability adds its own
faults. Those drawn at random (`drawn_faults.py`) are tried with all tests of their package, files
that name the module first; some of them change nothing that can be seen: judge those not noticed
one by one.
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

from drawn_faults import Change, changed, drawn

ROOT = Path(__file__).resolve().parents[1]
LONG = "long test: "
#: Tests outside a package's folder that are about it, too.
ALSO = {
    **dict.fromkeys(("control", "actuators", "sensors", "world"), "components"),
    "analysis": "test_any_scalar.py",
    "planning": "test_any_scalar.py simulation/test_reach.py",
    "cli": "viewer/test_command.py",
    "components": "simulation/test_systems.py simulation/test_scenario_components.py "
    "simulation/test_run_signals.py simulation/test_what_components_read.py "
    "control/test_law_settings.py world/test_wall.py",
    "model": "simulation/test_scenario.py simulation/test_recording.py dynamics/test_kinematics.py "
    "cli/test_cli.py viewer/test_report.py",
}


class Fault(NamedTuple):
    """One fault.

    Attributes:
        file: below src/remora.
        old: text that occurs exactly once in it.
        new: what stands there instead.
        tests: files below tests that should notice, separated by blanks; few, so that a trial
            takes seconds.
        change: of a fault drawn at random: where it is; `old` and `new` are its line.
    """

    file: str
    old: str
    new: str
    tests: str
    change: Change | None = None

    @property
    def title(self) -> str:
        """One line about the fault."""
        where = f"{self.file}:{self.change.line}" if self.change else self.file
        return f"{where}: {' '.join(self.old.split())}  ->  {' '.join(self.new.split())}"


FAULTS = [
    Fault("actuators/thruster_set.py",
          "scale = select(beyond, self.thrust / select(beyond, most, 1.0), 1.0)",
          "scale = select(beyond, select(beyond, most, 1.0) / self.thrust, 1.0)",
          "actuators/test_actuators.py"),
    Fault("analysis/jacobian_conditioning.py", "np.minimum(x - low, high - x)",
          "np.maximum(x - low, high - x)", "analysis/test_conditioning.py"),
    Fault("analysis/jacobian_conditioning.py", "(share[:, k] < limit) | beyond[:, k]",
          "(share[:, k] < limit) & ~beyond[:, k]", "analysis/test_conditioning.py"),
    Fault("analysis/payload.py", "np.eye(A.shape[1]) - hat", "np.eye(A.shape[1])",
          "analysis/test_payload.py"),
    Fault("campaigns/campaign_report.py", "np.abs(x[known] - np.median(x[known]))",
          "np.abs(x[known])", "campaigns/test_stored_campaigns.py"),
    Fault("campaigns/campaign_report.py", "np.percentile(x, [5, 50, 95])",
          "np.percentile(x, [1, 50, 99])", "campaigns/test_stored_campaigns.py"),
    Fault("campaigns/dispersions.py", "@ factor.T", "@ factor", "campaigns/test_dispersions.py"),
    Fault("campaigns/figures.py", "np.cumsum(held)[count - 1]", "np.cumsum(held)[count - 2]",
          "campaigns/test_stored_campaigns.py"),
    Fault("campaigns/outputs.py", "np.degrees(x) if self.shown_unit", "x if self.shown_unit",
          "campaigns/test_outputs.py"),
    Fault("campaigns/outputs.py",
          "return quaternion.rotate(turned, frame_twist(robot, q, v, target)[..., :3])",
          "return frame_twist(robot, q, v, target)[..., :3]", "campaigns/test_outputs.py"),
    Fault("campaigns/outputs.py", "np.argmin(np.abs(batch.t - self.at))",
          "np.argmin(batch.t - self.at)", "campaigns/test_outputs.py"),
    Fault("campaigns/outputs.py", "above = x > settings.above", "above = x < settings.above",
          "campaigns/test_outputs.py"),
    Fault("campaigns/outputs.py", '"angular_impulse": np.sqrt(np.sum(pull[:, 3:]',
          '"angular_impulse": np.sqrt(np.sum(pull[:, :3]', "campaigns/test_outputs.py"),
    Fault("campaigns/outputs.py", "first[..., batch.events.names.index(event)]", "first[..., 0]",
          "campaigns/test_outputs.py"),
    Fault("campaigns/outputs.py", "x = x - np.asarray(settings.minus, float)",
          "x = x + np.asarray(settings.minus, float)", "campaigns/test_outputs.py"),
    Fault("campaigns/outputs.py", "parts = 0.5 * (x[:, 1:] + x[:, :-1])", "parts = x[:, 1:]",
          "campaigns/test_outputs.py"),
    Fault("campaigns/result.py", "key=strength, reverse=True", "key=strength",
          "campaigns/test_stored_campaigns.py"),
    Fault("campaigns/statistics.py", "(between - noise) / whole", "between / whole",
          "campaigns/test_dispersions.py"),
    Fault("campaigns/statistics.py", "z * z / (4.0 * n * n)", "z * z / (2.0 * n * n)",
          "campaigns/test_dispersions.py"),
    Fault("campaigns/targets.py", "array[:, j, i] = array[:, i, j]",
          "array[:, i, j] = array[:, j, i]", "campaigns/test_outputs.py"),
    Fault("viewer/report/path_analyses.py", "half = 0.5 * np.diff", "half = np.diff",
          "cli/test_analyze.py"),
    Fault("viewer/report/path_analyses.py", "/ samples**0.5", "/ samples",
          "cli/test_analysis_pages.py"),
    Fault("viewer/report/path_analyses.py", "float(np.nanmin(found.limit_share))",
          "float(np.nanmax(found.limit_share))", "cli/test_analysis_pages.py"),
    Fault("viewer/report/path_analyses.py", 'found.condition[worst]:.4g}", "largest',
          'found.condition[0]:.4g}", "largest', "cli/test_analysis_pages.py"),
    Fault("viewer/report/analyses.py", "low + 0.25 * (high - low)", "low + 0.5 * (high - low)",
          "cli/test_analysis_pages.py"),
    Fault("viewer/report/analyses.py", "key=lambda n: -float(", "key=lambda n: float(",
          "cli/test_analysis_pages.py"),
    Fault("viewer/report/analyses.py", "(names[int(here.per_joint.argmax())]",
          "(names[int(here.per_joint.argmin())]", "cli/test_analysis_pages.py"),
    Fault("viewer/report/analyses.py", 'f"{found.min():.3f}"', 'f"{found.mean():.3f}"',
          "cli/test_analysis_pages.py"),
    Fault("cli/robot_tables.py", "float(x) if math.isfinite(x) else None for x",
          "float(x) if math.isfinite(x) else 0.0 for x", "cli/test_cli.py"),
    Fault("cli/robot_tables.py", 'f"ratio {float(constraint.ratio):.6g}"',
          'f"ratio {1 / float(constraint.ratio):.6g}"', "cli/test_info_constraints.py"),
    Fault("cli/robot_tables.py", 'f"{joint.mimic.ratio:g} x', 'f"{1 / joint.mimic.ratio:g} x',
          "cli/test_cli.py"),
    Fault("cli/run.py", "end = made.phase_starts[k + 1] if", "end = made.phase_starts[k] if",
          "cli/test_told_numbers.py"),
    Fault("viewer/report/path_analyses.py", "duration = JERK_PEAKS[0] * fastest",
          "duration = fastest",
          "cli/test_analysis_pages.py"),
    Fault("viewer/report/path_analyses.py", "return speeds * np.asarray(spin",
          "return speeds + 0.0 * np.asarray(spin", "cli/test_analysis_pages.py"),
    Fault("viewer/report/path_analyses.py", "apply(transpose(R), momentum", "apply(R, momentum",
          "cli/test_analyze.py"),
    Fault("viewer/report/path_analyses.py", "1.0 / margin[worst]:.2f", "margin[worst]:.2f",
          "cli/test_analysis_pages.py"),
    Fault("codegen/integration/program_c.py", "_braced(f\"while ({self._positive(s.cell)})\"",
          "_braced(f\"if ({self._positive(s.cell)})\"", "codegen/test_program_c.py"),
    Fault("codegen/integration/program_c.py", "(uint64_t)(uint32_t){high} << 32",
          "(uint64_t)(uint32_t){high} << 31", "codegen/test_program_c.py"),
    Fault("codegen/integration/program_c.py", "{index} >= 0.0 && {index} <",
          "{index} >= 0.0 && {index} <=", "codegen/test_program_c.py"),
    Fault("codegen/llvm/lowering.py", "{missing}, {t} {a[0]}, {t} {picked}",
          "{missing}, {t} {picked}, {t} {picked}", "codegen/test_graph.py"),
    Fault("components/run_signals.py", "asarray(now) * (1.0 - seen)", "asarray(now)",
          "simulation/test_run_signals.py"),
    Fault("components/run_signals.py", "changed[..., place.start] = phase",
          "changed[..., place.start] = phase + 1", "simulation/test_run_signals.py"),
    Fault("simulation/batch/batch_loads.py", "self.law(at.clock, at.q, at.v)",
          "self.law(at.t, at.q, at.v)", "simulation/test_batch_scenarios.py"),
    Fault("simulation/batch/batch.py", "*(Break(t) for t in (*breaks, *system.breaks))",
          "*(Break(t, phase.own_clock) for t in (*breaks, *system.breaks))",
          "simulation/test_batch_scenarios.py"),
    Fault("simulation/program/step_blocks.py", "return change + last * h * k",
          "return change + h * k", "simulation/test_batch.py"),
    Fault("model/state.py", "change[..., start:stop] + rest", "change[..., start:stop]",
          "model/test_state.py"),
    Fault("simulation/program/event_search.py", "flag(less(close, width))",
          "flag(less(1e6 * close, width))", "simulation/test_located_events.py"),
    Fault("simulation/engine/simulation.py",
          "copied.restore(copy.deepcopy(self.save()._replace(owner=None), memo)",
          "copied.restore(self.save()", "simulation/test_simulation.py"),
    Fault("simulation/program/run_program.py", "phase if b.of_phase else 0.0 * t",
          "0.0 * t if b.of_phase else phase", "simulation/test_batch_scenarios.py"),
    Fault("simulation/program/event_search.py", "occurred(places, z, now, reported(t, begin))",
          "occurred(places, z, now, begin)", "simulation/test_run_signals.py"),
    Fault("components/system.py", "return first + ticks", "return ticks + first",
          "simulation/test_systems.py"),
    Fault("control/laws/admittance.py", "own = quaternion.rotate(quaternion.conjugate(r),",
          "own = quaternion.rotate(r,", "components/test_at_an_instant.py"),
    Fault("control/laws/desired_reaction.py", "offset = base.offset[..., :3] + apply",
          "offset = base.offset[..., :3] - apply", "control/test_reactions.py"),
    Fault("control/laws/impedance.py", "-self.joint_damping * at.v", "self.joint_damping * at.v",
          "components/test_at_an_instant.py"),
    Fault("control/laws/joint_pid.py", "(torque - demand) / self.kp",
          "(demand - torque) / self.kp", "components/test_at_an_instant.py"),
    Fault("actuators/reaction_wheels.py", "(speeds - self.speeds)", "(speeds + self.speeds)",
          "control/test_wheels.py"),
    Fault("actuators/reaction_wheels.py",
          "asarray(about) + asarray(joint.rotor_inertia)[..., 0]", "asarray(about)",
          "control/test_wheels.py"),
    Fault("control/laws/resolved_rate.py", "fastest = absolute(rate[..., 0])",
          "fastest = rate[..., 0]", "control/test_resolved_rate.py"),
    Fault("control/laws/wheel_desaturation.py", "self.lower * self.lower",
          "self.upper * self.upper", "components/test_at_an_instant.py"),
    Fault("dynamics/derivatives/constrained_derivatives.py",
          "needed = required_forces(tree, A, wrenches) + rotor_forces(tree, vdot)",
          "needed = required_forces(tree, A, wrenches)",
          "dynamics/constraints/test_derivatives_of_loops.py"),
    Fault("dynamics/derivatives/sharing_derivatives.py",
          "needed = required_forces(tree, A, wrenches) + rotor_forces(tree, vdot)",
          "needed = required_forces(tree, A, wrenches)",
          "dynamics/constraints/test_sharing_derivatives.py"),
    Fault("model/building/tree.py", "R @ body.inertia @ vector.transpose(R)",
          "body.inertia", "model/test_build.py"),
    Fault("planning/joint_ranges.py", "low, high = ends.min(axis=0), ends.max(axis=0)",
          "low, high = ends[0], ends[1]", "planning/test_inverse_kinematics.py"),
    Fault("planning/joint_ranges.py", "- joint.mimic.offset) / joint.mimic.ratio",
          "- joint.mimic.offset) * joint.mimic.ratio", "planning/test_inverse_kinematics.py"),
    Fault("planning/starts.py", "and joint.mimic is None and i not in leaders",
          "and joint.mimic is None", "planning/test_inverse_kinematics.py"),
    Fault("planning/task_limits.py", "joint.limits.velocity / ratio",
          "joint.limits.velocity * ratio", "planning/test_inverse_kinematics.py"),
    Fault("planning/task_limits.py", "2.0 * distance / a", "distance / a",
          "planning/test_solve_tasks.py"),
    Fault("planning/task_limits.py", "low, high = v[i] - a[i] * dt, v[i] + a[i] * dt",
          "low, high = v[i] - a[i], v[i] + a[i]", "planning/test_solve_tasks.py"),
    Fault("sensors/rate_gyro.py", "math.sqrt(self.sample_time)", "self.sample_time",
          "components/test_at_an_instant.py"),
    Fault("sensors/threshold.py", "self.level * absolute(asarray(self.level))",
          "asarray(self.level)", "components/test_at_an_instant.py"),
    Fault("simulation/program/phase_entry.py", "impulse + impulses.get(name, 0.0 * impulse)",
          "impulse", "simulation/test_batch_captures.py"),
    Fault("simulation/engine/hosted_parts.py", "speeds = v + y[i, nv : 2 * nv]", "speeds = v",
          "simulation/test_located_events.py"),
    Fault("simulation/engine/phase_program.py", "direction=event.direction or int(truth)",
          "direction=event.direction", "simulation/test_located_events.py"),
    Fault("simulation/engine/step_faults.py", "ahead *= 8.0", "break",
          "simulation/test_system_events.py"),
    Fault("simulation/program/event_search.py", "off = larger(off, flag(still) * third * own)",
          "off = off", "simulation/test_located_events.py"),
    Fault("simulation/program/event_search.py", "flag(negated(less(0.0, signs * g)))",
          "flag(less(signs * g, 0.0))", "simulation/test_events.py"),
    Fault("simulation/export/loop_module.py", "((double)state->steps + 1.0)*{h}",
          "((double)state->steps + 2.0)*{h}", "simulation/test_c_runs.py"),
    Fault("simulation/export/loop_program.py", "return event, event, select(",
          "return over, over, select(", "simulation/test_c_runs.py"),
    Fault("simulation/program/phase_entry.py", "concatenate([residual, watched * slip])",
          "residual", "simulation/test_c_runs.py"),
    Fault("simulation/program/phase_entry.py", "select(less(0.5, bad), float(BAD_HOLD), status)",
          "select(less(1.5, bad), float(BAD_HOLD), status)", "simulation/test_c_runs.py"),
    Fault("simulation/program/phase_entry.py", "return found.v, found.misfit,",
          "return v, found.misfit,", "simulation/test_c_runs.py"),
    Fault("simulation/program/phase_entry.py", "wanted - v)))", "speed - speed)))",
          "simulation/test_held.py"),
    Fault("dynamics/constraints/switch_equations.py", "push = -vector.apply(",
          "push = 0.0 * vector.apply(", "simulation/test_held.py"),
    Fault("simulation/batch/runs_in_turn.py", "reversed(done[k].events)", "done[k].events",
          "simulation/test_batch_capabilities.py"),
    Fault("simulation/batch/phase_starts.py", "occurred.astype(float), first[..., None]",
          "0.0 * occurred, first[..., None]", "simulation/test_batch_capabilities.py"),
    Fault("simulation/inputs/moves.py", "q0 + size * (s - np.sin(phase))", "q0 + size * s",
          "simulation/test_held.py"),
    Fault("simulation/inputs/profiles.py", "rate = 60.0 * s * (1.0 - s)",
          "rate = 30.0 * s * (1.0 - s)", "simulation/test_held.py"),
    Fault("simulation/inputs/reach.py", "peak, limit = np.abs(speeds(joint, peaks))",
          "peak, limit = np.abs(peaks[joint.v])", "simulation/test_reach.py"),
    Fault("simulation/recording/conservation.py", "np.sum(torque + lever, axis=1)",
          "np.sum(torque, axis=1)", "simulation/test_recording.py"),
    Fault("simulation/program/event_search.py", "less(ROUGH * size, absolute(before - middle))",
          "less(ROUGH * size, 0.0 * middle)", "simulation/test_located_events.py"),
    Fault("simulation/program/event_search.py", "shown = hit * flag(less(changes, 1.5))",
          "shown = hit * flag(less(changes, 9.5))", "simulation/test_located_events.py"),
    Fault("simulation/program/event_search.py", "side = select(less(0.5, goes_on), way, -way)",
          "side = select(less(0.5, goes_on), way, way)", "simulation/test_system_events.py"),
    Fault("simulation/program/event_search.py", "y, rate = inner * theta, rate * theta + inner",
          "y, rate = inner * theta, rate * theta", "simulation/test_events.py"),
    Fault("simulation/inputs/events.py", "gain = fast.ratio * rate[nv + fast.speed]",
          "gain = -fast.ratio * rate[nv + fast.speed]", "simulation/test_events.py"),
    Fault("simulation/program/run_equations.py", "q * s + row, v * s + q, a * s + 2.0 * v",
          "q * s + row, v * s + q, a * s + v", "simulation/test_held.py"),
    Fault("simulation/engine/phase_program.py", "reached = int(np.count_nonzero(out",
          "reached = int(np.count_nonzero(-out", "simulation/test_phase_program.py"),
    Fault("simulation/program/run_program.py", "theta = (time - begin) / select",
          "theta = 0.99 * (time - begin) / select", "simulation/test_phase_program.py"),
    Fault("simulation/recording/conservation.py",
          "L = omega @ body.inertia.T + vector.cross(p + c, P)",
          "L = omega @ body.inertia.T + vector.cross(p, P)", "simulation/test_recording.py"),
    Fault("simulation/recording/conservation.py", "+ np.max(potential) - np.min(potential)",
          "+ np.max(potential)", "simulation/test_recording.py"),
    Fault("simulation/recording/conservation.py", "(momentum[0, :3]", "(momentum[-1, :3]",
          "simulation/test_recording.py"),
    Fault("simulation/recording/quantities.py", 'columns["phase"], side="right") - 1',
          'columns["phase"], side="left")', "simulation/test_recording.py"),
    Fault("viewer/command_words.py", "2.0 * math.pi / float(wave", "1.0 / float(wave",
          "viewer/test_command_words.py"),
    Fault("viewer/command_words.py", 'f"{self.shift + t:.6g} s"', 'f"{t:.6g} s"',
          "viewer/test_command_words.py"),
    Fault("viewer/command_words.py", "{math.degrees(angle):.4g}°", "{angle:.4g}°",
          "viewer/test_command_words.py"),
    Fault("viewer/figures/panels.py",
          "turned = dual_quaternion.mul(dual_quaternion.conjugate(x[:1]), x)",
          "turned = dual_quaternion.mul(x, dual_quaternion.conjugate(x[:1]))",
          "viewer/test_report_story.py"),
    Fault("viewer/figures/panels.py", "(30.0 / math.pi,", "(60.0 / math.pi,",
          "viewer/test_report_story.py"),
    Fault("viewer/figures/panels.py", "share = 100.0 * peak / most", "share = 50.0 * peak / most",
          "viewer/test_plots.py"),
    Fault("viewer/figures/panels.py", "run.tau[:, joint.v] * run.v[:, joint.v]",
          "run.tau[:, joint.v] * run.vdot[:, joint.v]", "viewer/test_report_story.py"),
    Fault("viewer/figures/panels.py", "vectors = 2.0 * quaternion.log", "vectors = quaternion.log",
          "viewer/test_report_story.py"),
    Fault("viewer/figures/panels.py", "(energy - energy[0]) - (work - work[0])",
          "(energy - energy[0]) + (work - work[0])", "viewer/test_report_story.py"),
    Fault("viewer/figures/panels.py", "_columns(XYZ, h[:, 3:])", "_columns(XYZ, h[:, :3])",
          "viewer/test_report_story.py"),
    Fault("viewer/figures/percentile_bands.py", "np.degrees(values) if turned", "values if turned",
          "simulation/test_batch_single_runs.py"),
    Fault("viewer/figures/analysis_figures.py", "start = -edges.sum(axis=0)",
          "start = -0.5 * edges.sum(axis=0)", "viewer/test_wheel_figure.py"),
    Fault("viewer/report/conditioning_rows.py", "np.argmax(found.condition)",
          "np.argmin(found.condition)", "viewer/test_report_story.py"),
    Fault("viewer/report/conditioning_rows.py", "100 * share", "share",
          "viewer/test_report_story.py"),
    Fault("viewer/report/peak_loads.py", "np.abs(2.0 * q - low - high) / (high - low)",
          "np.abs(q) / np.maximum(abs(low), abs(high))", "viewer/test_report_story.py"),
    Fault("viewer/report/peak_loads.py", "return float(size[k]), float(t[k])",
          "return float(size[k]), float(t[-1])", "viewer/test_report_story.py"),
    Fault("viewer/report/peak_loads.py", "range_text(low, high, turns)",
          "range_text(-high, high, turns)", "viewer/test_report_story.py"),
    Fault("viewer/report/peak_loads.py", "most / limit if bound else math.nan, when,",
          "most / limit**2 if bound else math.nan, when,", "viewer/test_report_story.py"),
    Fault("viewer/report/tool_story.py", "angle = 2.0 * np.linalg.norm", "angle = np.linalg.norm",
          "viewer/test_report_story.py"),
    Fault("viewer/report/tool_story.py", "run.frame_twist(name)[:, 3:]",
          "run.frame_twist(name)[:, :3]", "viewer/test_report_story.py"),
    Fault("viewer/report/tool_story.py", "_off(far, angle, -1)", "_off(far, angle, 0)",
          "viewer/test_report_story.py"),
    Fault("viewer/report/tool_story.py", 'f"{1e3 * s.separation_work:.4g}"',
          'f"{s.separation_work:.4g}"', "viewer/test_report_story.py"),
    Fault("viewer/report/tool_story.py", "np.diff(p, axis=0), axis=1)",
          "np.diff(p[::2], axis=0), axis=1)", "viewer/test_report_story.py"),
    Fault("viewer/report/conservation_words.py", "if not drift.broken_by]", "if drift.broken_by]",
          "viewer/test_report_story.py"),
    Fault("viewer/run_tables.py", "turned = 2.0 * quaternion.log", "turned = quaternion.log",
          "viewer/test_report_story.py"),
    Fault("viewer/run_tables.py", 'f"{joint.mimic.ratio:g} ×', 'f"{1 / joint.mimic.ratio:g} ×',
          "viewer/test_report_story.py"),
    Fault("viewer/run_tables.py", "(float(np.linalg.norm(x[:3])), name)",
          "(float(np.linalg.norm(x)), name)", "viewer/test_report_story.py"),
    Fault("viewer/run_tables.py", "lost = sum(s.energy_loss for s",
          "lost = max(s.energy_loss for s", "viewer/test_report_story.py"),
    Fault("viewer/run_tables.py", "run.reactions[:, i, 3:]", "run.reactions[:, i, :3]",
          "viewer/test_report_story.py"),
    Fault("viewer/run_tables.py", "worst = max(drift.relative, kept.linear_momentum.relative)",
          "worst = min(drift.relative, kept.linear_momentum.relative)",
          "viewer/test_report_story.py"),
    Fault("actuators/thruster_set.py", "force=wrench[..., 3:], torque=wrench[..., :3]",
          "force=wrench[..., :3], torque=wrench[..., 3:]", "components/test_at_an_instant.py"),
    Fault("analysis/cells.py", "/ (0.5 * math.pi) + 0.5", "/ math.pi + 0.5",
          "analysis/test_cells.py"),
    Fault("analysis/sampling.py", "high[k] = low[k] + 2.0 * math.pi", "high[k] = low[k] + math.pi",
          "analysis/test_cells.py"),
    Fault("cli/capture_demo.py", "run.frame_pose(x)[k - 1]", "run.frame_pose(x)[k]",
          "cli/test_told_numbers.py"),
    Fault("control/references/circle_reference.py", "/ sqrt(dot(n, n))", "/ dot(n, n)",
          "components/test_at_an_instant.py"),
    Fault("planning/floating_path.py", "once = -screw.cross(first, second)",
          "once = screw.cross(first, second)", "planning/test_search_parts.py"),
    Fault("planning/damped_step.py", "usable = usable * (1.0 - beyond)", "usable = usable",
          "planning/test_search_parts.py"),
    Fault("viewer/figures/analysis_figures.py", "drawn * found.deviations", "drawn",
          "viewer/test_analysis_figures.py"),
    Fault("viewer/film/render.py", "c * x - d * y, d * x", "c * x + d * y, d * x",
          "viewer/test_film.py"),
    Fault("viewer/report/stills.py", "size, start = max(gaps)", "size, start = min(gaps)",
          "viewer/test_told_numbers.py"),
    Fault("viewer/scene/bus_shapes.py", "half = 0.5 * np.array(size)", "half = np.array(size)",
          "viewer/test_looks.py"),
    Fault("world/bushing.py", "about_a = torque + vector.cross(position, force)",
          "about_a = torque", "components/test_at_an_instant.py"),
    Fault("world/capture_conditions.py", "np.sin(0.5 * asarray(angle)", "np.sin(asarray(angle)",
          "components/test_at_an_instant.py"),
    Fault("world/compliant_capture.py",
          "quaternion.mul(pose.rotation(motion.pose), quaternion.conjugate(pose.rotation(rest)))",
          "quaternion.mul(quaternion.conjugate(pose.rotation(rest)), pose.rotation(motion.pose))",
          "components/test_at_an_instant.py"),
    Fault("world/relative_motion.py", "- twist_a, -p)", "- twist_a, p)",
          "components/test_at_an_instant.py"),
    Fault("world/spring.py", "self.damping * speed", "-1.0 * self.damping * speed",
          "components/test_at_an_instant.py"),
    Fault("world/wall.py", "closing = -asarray(", "closing = asarray(",
          "components/test_at_an_instant.py"),
    Fault("world/wall.py", "select(less(push, 0.0), 0.0, push)", "push",
          "components/test_at_an_instant.py"),
    Fault("control/laws/frame_pose_tracking.py",
          "a = a + least_squares.projected(map_.matrix, inverse, rest)", "a = a",
          "components/test_at_an_instant.py"),
    Fault("control/laws/coordinated_tracking.py",
          "a = a + least_squares.projected(J_c, inverse, rest)",
          "a = a - least_squares.projected(J_c, inverse, rest)",
          "components/test_at_an_instant.py"),
    Fault("control/references/segments.py", "end - duration + ramp, end - ramp, end",
          "end - duration, end - ramp, end", "control/test_references.py"),
    Fault("analysis/manipulability.py", "    if is_symbolic(sigma):\n        return 1.0 / sigma",
          "    if is_symbolic(sigma):\n        return 1.0 * sigma", "test_any_scalar.py"),
    Fault("cli/run.py", "--allow-code\" if allow_code", "--allow-code\" if not allow_code",
          "cli/test_told_numbers.py"),
    Fault("cli/robot_tables.py", "if kind(joint).nv != 1:", "if kind(joint).nv != 2:",
          "cli/test_cli.py"),
    Fault("viewer/figures/interconnection_figure.py", "_FILLS[i % len(_FILLS)]",
          "_FILLS[i // len(_FILLS)]", "viewer/test_analysis_figures.py"),
    Fault("viewer/report/report_sections.py", "run.robot.frames[:50]", "run.robot.frames[:100]",
          "viewer/test_told_numbers.py"),
    Fault("viewer/page/plots.py", "wide = len(fixed(-size, size))", "wide = len(fixed(size, size))",
          "viewer/test_page_parts.py"),
    Fault("viewer/page/timed_page.py", '{"|◀": -size, "◀": -1,', '{"|◀": size, "◀": 1,',
          "viewer/test_pages.py"),
    Fault("viewer/page/analysis_folder.py", "0.024 * self._radius", "0.048 * self._radius",
          "viewer/test_analysis_overlays.py"),
    Fault("viewer/report/stills.py", "b.triangles.corners) + pose", "b.triangles.corners) - pose",
          "viewer/test_stills.py"),
    Fault("planning/path_search.py", "problem.reach(full)) else slow + 1",
          "problem.reach(full)) else slow - 1", "planning/test_search_parts.py"),
    Fault("planning/configuration_search.py", "    if n == 1:", "    if n != 1:",
          "planning/test_search_parts.py"),
    Fault("planning/problem.py", "self.weights.size > 0", "self.weights.size > 1",
          "planning/test_search_parts.py"),
    Fault("planning/tasks.py", "np.max(np.abs(point)) > FARTHEST", "np.max(point) > FARTHEST",
          "planning/test_bad_arguments.py"),
    Fault("analysis/free_floating_workspace.py", "np.diff(values) > width",
          "np.diff(values) <= width",
          "analysis/test_floating_workspaces.py"),
    Fault("campaigns/campaign.py", "sum(stop - start for start, stop in",
          "sum(stop for start, stop in", "campaigns/test_campaign.py"),
    Fault("campaigns/storage.py", "(-(-shape[0] // block) * block", "(-(-shape[0]) * block",
          "campaigns/test_stored_campaigns.py"),
    Fault("components/diagram/wires.py", "10.0 + CHARACTER * len(net.label) if", "10.0 if",
          "components/test_diagram.py"),
    Fault("components/wiring.py", "return done, loop[::-1]", "return done, loop[::-2]",
          "components/test_component_refusals.py"),
    Fault("control/laws/joint_rate_servo.py", "-1.0 * self.limit", "1.0 * self.limit",
          "components/test_at_an_instant.py"),
    Fault("model/formats/sdf/sdf_links.py", "count, None), 1.0][:4]", "count, None), 1.0]",
          "model/test_sdf.py"),
    Fault("model/formats/sdf/sdf_links.py", "if min(size) < 0.0:", "if max(size) < 0.0:",
          "model/test_sdf.py"),
    Fault("model/formats/yaml/yaml_map.py", "{own.value[:60]!r}", "{own.value!r}",
          "model/test_yaml.py"),
    Fault("planning/path_search.py", "min(REFUSED * damping, LARGEST", "min(REFUSED, LARGEST",
          "planning/test_search_parts.py"),
    Fault("planning/problem.py", "reach / np.sqrt(np.maximum(before, 1e-300))", "reach",
          "planning/test_search_parts.py"),
    Fault("planning/problem.py", "        if not self.compiled:\n", "        if self.compiled:\n",
          "planning/test_search_parts.py"),
    Fault("planning/tasks.py", "return array / length", "return array * length",
          "planning/test_task_equations.py"),
    Fault("viewer/report/report.py", '"" if near is None else parts', '"" if near else parts',
          "viewer/test_report.py"),
    Fault("viewer/scene/backdrops.py", "enabled=not chosen.stars", "enabled=chosen.stars",
          "viewer/test_looks.py"),
    Fault("viewer/scene/gltf.py", "        if normalized:", "        if not normalized:",
          "viewer/test_looks.py"),
    Fault("viewer/view.py", "    if open:\n        page", "    if not open:\n        page",
          "viewer/test_batch_pages.py"),
    Fault("analysis/sampling.py", "asarray(given), (-1, 2))", "asarray(given), (1, 2))",
          "analysis/test_cells.py"),
    Fault("analysis/workspace.py", "rest = [a for a in range(3) if a != axis]",
          "rest = [a for a in range(3) if a == axis]", "analysis/test_workspace.py"),
    Fault("campaigns/study.py", "if all(name in names for name in group.names):",
          "if all(name not in names for name in group.names):", "campaigns/test_campaign.py"),
    Fault("cli/campaign.py", '"" if runs is None else', '"" if runs is not None else',
          "cli/test_passed_options.py"),
    Fault("cli/capture_demo.py", "time.perf_counter() - begun", "time.perf_counter()",
          "cli/test_demo.py"),
    Fault("cli/view.py", "chosen = run or ()", "chosen = run and ()", "cli/test_passed_options.py"),
    Fault("components/diagram/columns.py", "min(rank[m] for m in readers[name]) - 1",
          "max(rank[m] for m in readers[name]) - 1", "components/test_diagram.py"),
    Fault("components/system.py", "(int, float)) or isinstance(value, bool)",
          "(int, float)) and isinstance(value, bool)",
          "components/test_component_refusals.py"),
    Fault("model/building/physical_checks.py", 'beyond = "" if rest else',
          'beyond = "" if not rest else', "model/test_physics.py"),
    Fault("model/degrees_of_freedom.py", "Freedom(name, False, name if force_name is None",
          "Freedom(name, False, name if force_name is not None", "simulation/test_recording.py"),
    Fault("model/formats/sdf/sdf_models.py", "placed = placed or model",
          "placed = placed and model", "model/test_sdf.py"),
    Fault("model/formats/sdf/sdf_text.py", "r = np.roll(numbers[3:], 1)", "r = numbers[3:]",
          "model/test_sdf.py"),
    Fault("planning/damped_step.py", "clip(factor * damping, SMALLEST", "clip(factor, SMALLEST",
          "planning/test_search_parts.py"),
    Fault("planning/reach_path.py", "quaternion.exp(0.5 * s * turn)", "quaternion.exp(s * turn)",
          "simulation/test_reach.py"),
    Fault("viewer/figures/workspace_figures.py", "(1, 0, 2, 3, 5)[k % 5]",
          "(1, 0, 2, 3, 5)[k // 5]", "viewer/test_analysis_figures.py"),
    Fault("viewer/scene/bus_shapes.py", "np.abs(p - centre).max()", "np.abs(p + centre).max()",
          "viewer/test_spacecraft_shapes.py"),
    Fault("components/feedthrough.py", "if names == known:", "if names != known:",
          "components/test_component_refusals.py"),
    Fault("components/wiring.py", "for m in waits[n] if timing[m] != timing[n]]",
          "for m in waits[n] if timing[m] == timing[n]]", "components/test_component_refusals.py"),
    Fault("components/diagram/svg.py", 'if shape.dot else ""', 'if not shape.dot else ""',
          "components/test_diagram.py"),
    Fault("control/end_effector_wrench.py", "- regularization * kv * v", "- regularization * kv",
          "control/test_end_effector_wrench.py"),
    Fault("planning/floating_path.py", "np.max(np.abs(fine[-1] - coarse[-1]))",
          "np.max(fine[-1] - coarse[-1])", "planning/test_search_parts.py"),
    Fault("viewer/page/analysis_folder.py", "int(color[1]), int(color[2]))",
          "int(color[2]), int(color[2]))", "viewer/test_analysis_overlays.py"),
    Fault("viewer/page/plots.py", "if panel.lines}", "}", "viewer/test_page_parts.py"),
]  # fmt: skip


def noticed(fault: Fault, folder: Path, quick: bool) -> str | None:
    """Return the test that fails with the fault, "" if none does, None if the text is not there."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    file = source / "remora" / fault.file
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if fault.change is not None:
        file.write_bytes(changed(file.read_bytes(), fault.change))
    elif text.count(fault.old) == 1:
        file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    else:
        return None
    short = _failed(fault, source, "not slow")
    if short or quick:
        return short
    long = _failed(fault, source, "slow")
    return f"{LONG}{long}" if long else ""


def random_faults(count: int, seed: int, packages: list[str]) -> list[Fault]:
    """Return faults drawn in packages, with the tests of their package."""
    source, made = ROOT / "src" / "remora", list[Fault]()
    for file, change in drawn(count, seed, [source / name for name in packages]):
        before = file.read_bytes()
        old, new = (x.splitlines()[change.line - 1].decode() for x in
                    (before, changed(before, change)))  # fmt: skip
        package = file.relative_to(source).parts[0]
        tests = sorted((ROOT / "tests" / package).rglob("test_*.py"), key=lambda test: (
            file.stem not in test.read_text(encoding="utf-8"), test))  # fmt: skip
        names = [str(test.relative_to(ROOT / "tests")) for test in tests]
        names += ALSO.get(package, "").split()
        made.append(Fault(str(file.relative_to(source)), old, new, " ".join(names), change))
    return made


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
    if done.stderr.startswith("ImportError while loading conftest") and str(source) in done.stderr:
        return "no test can be loaded"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode != 1 or not failed:
        raise RuntimeError(f"{fault.title}\nno test ran:\n{done.stdout}{done.stderr}")
    return failed[0].split(" - ")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="faults whose title has one of these; packages")
    parser.add_argument("--random", type=int, metavar="N", help="faults drawn at random instead")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing")
    parser.add_argument("--quick", action="store_true", help="without the long tests")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at a time")
    parser.add_argument("--list", action="store_true", help="print the faults")
    asked = parser.parse_args()
    chosen = [f for f in FAULTS if not asked.words or any(w in f.title for w in asked.words)]
    if asked.random:
        chosen = random_faults(asked.random, asked.seed, asked.words or ["."])
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
