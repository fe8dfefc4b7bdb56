"""Every example runs on its own, quietly, from any folder, and prints what it is about."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
#: What each example must say.
SAYS = {
    "01_first_robot.py": ["Robot 'servicer': 8 bodies", "[0.6111 0.     3.2553] m"],
    "02_base_recoil.py": ["base turned by 2.903° all the same", "momentum below 1e-1"],
    "03_build_and_compare.py": ["spherical      4   3", "robot 'bad': 4 faults"],
    "04_dh_two_arms.py": ["ends of the branches:     ['left_lower', 'right_lower']"],
    "05_dynamics_and_reactions.py": ["hold the elbow: 3.7198 N m", "the same to 1e-12: True"],
    "06_compiled_monte_carlo.py": ["10000 cases in", "alone it has the same bits: True"],
    "08_gpu.py": ["CudaKernel forward_dynamics(q (..., 15)", "of them fused multiply-adds"],
    "07_derivatives.py": ["base floating          0.82 Hz 57 %", "1.0 kg: 78.42, by the deriv"],
    "10_first_run.py": ["'the arm is at rest' at t = 41.10", "kept to twelve digits: True"],
    "11_batch_of_runs.py": ["1000 runs, 7 samples", "to better than 1e-8: True"],
    "12_fpg11_pitch_through_90_degrees.py": [
        "passes 2.85° from a pitch of 90°", "equivalent manipulator below 1e-7 rad",
        "Euler angles           nan rad",
    ],
    "09_vt18_section_4.py": ["S   756.7 to 891.8", "[222.718295 -14.593557 133.944077] °"],
    "13_dm93_double_pendulum.py": ["10 s: 8.82 -14.39", "energy kept to 1e-10: True", "1e-8: True"],
    "45_export_a_run.py": ["run.parquet:", "tool at the end: [4.1275 4.5498 8.5397] ['m' 'm' 'm']"],
    "15_components.py": [
        "base turned by at most 0.23°, at the end 0.00°", "wheels saturated 2 times",
        "1000 runs, 81 samples to 40 s, complete", "its own noise is the same: True",
    ],
    "24_circle_with_a_floating_base.py": [
        "floating Jacobian: off the circle by below 1 mm, base turned by up to 1.66°",
        "fixed    Jacobian: off the circle by 7.2 mm",
    ],
    "22_assembly.py": [
        "composed as the whole, to 1e-13: True", "8 parts, 6 distinct modules", "1e-9: True",
        "largest wrench on the payload [N, N m]: [0.019 0.032 0.001",
    ],
    "23_sa24_control.py": ["MBM: 30 degrees of freedom", "settled below 1 % of the start: True"],
    "16_capture.py": [
        "captured at 2.744 s, 10.815 N s", "kept to 1e-12: True, constraint to 1e-12 m: True",
        "1000000 N/m: peak force  1220.3 N", "by 3.1e-09",
    ],
    "21_modular_robot.py": [
        "1.04 s: on: one (latched); impulse of one 0.7851 N s", "4.00 s: off: one",
        "(RK4 with 20 ms): True", "6.00 s: {'one': False, 'two': True}",
    ],
    "18_step_by_step.py": ["200 continuations tried", "shoulder at 60.5°", "to 1e-12: True"],
    "35_sensitivity.py": ["64 numbers with errors", "the same to 2 %: True"],
    "17_dispersed_captures.py": [
        "152 of 200 captured", "impulse 11.3 N s", "momentum kept in all runs: True",
    ],
    "14_flight_code.py": [
        "at its limit for ", "elbow.h elbow.c elbow_test.c",
        *(["0 of 150 numbers differ", "the same torques in 1000 ticks, to 1e-12: True"]
          if shutil.which("gcc") else []),
    ],
    "31_workspace.py": ["condition 2.98", "workspace 68 m³", "path_independent: 0.26 to 0.94 m"],
    "32_coupling.py": ["coupling factor 0.294", "the motion of the bus: True", "margin 1.20"],
    "43_two_arms.py": [
        "9 of 18 degrees of freedom remain", "turned by 14.0°, the bus by -8.92°",
        "kept to 1e-13: True, grips to 1e-12 m: True",
    ],
    "46_dm93_cooperating_arms.py": [
        "left arm: Φ (38, 40), rank 35; 5", "right arm: Φ (43, 40), rank 37; 3",
        "the reactions are VT18's: True", "the same: True", "less than 1e-6: True",
        "articulated bodies end there, to 1e-4: True", "energy conserved to 1e-5: True",
    ],
    "44_berthing.py": [
        "70 s  on -, off grapple", "to 1e-8 m: True", "recoiled by up to 8.86°", "1e-12: True",
    ],
    "41_four_bar.py": [
        "5 equations, 2 independent, 1 freedom", "textbook by less than 1e-10: True",
        "motor torque -8.79 to 4.67 N m", "up to 8.74 N",
    ],
    "42_stewart_platform.py": [
        "18 equations, 12 degrees of freedom remain of 30", "stays zero to 1e-12: True",
        "this motion to 1e-10: True",
    ],
    "25_optimal_reach.py": [
        "IPOPT: Solve_Succeeded", "straight joints: base turned by up to 27.3°",
        "optimized: base turned by up to 2.1°, torques up to 0.50 N m, tool within 1 mm: True",
    ],
    "26_zero_reaction.py": [
        "base turns by 0.41°;", "1e-9 rad per second: True", "locked: base turns by 0.55°",
        "less than 1e-5 rad: True, tool 0.00 mm off",
    ],
    "27_attitude_and_wheels.py": [
        "logarithm  turns by 160°", "vector     turns by 200°", "150 rad/s, attitude lost",
        "torque     wheels up to  54 rad/s, attitude within 0.29°", "thrusters spend 6.9 N s",
    ],
    "28_inverse_kinematics.py": [
        "the first misses by 256 mm", "less than 1 µm: True", "missed by 3.",
    ],
    "29_tasks_with_limits.py": [
        "within 1 mm of the circle: True", "turns by up to 3.61°", "turns by up to 0.14°",
    ],
    "30_reach_and_push.py": [
        "turns by 27.6°, tool within 1 µm: True", "at most 5.4 N, impulse 2.63 N s",
        "the same to 1 %: True", "back, to 3 mm: True",
    ],
    "34_campaign.py": ["200 of 200 runs", "success 93.0 %", "driven by flange.mass"],
    "33_identify_payload.py": ["to 1e-6: True", "10 of 10", "does not determine m cx"],
}  # fmt: skip


def test_every_example_is_here():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_example(name, tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=110
    )
    assert (run.returncode, run.stderr) == (0, "")
    for text in SAYS[name]:
        assert text in run.stdout
    assert list(tmp_path.iterdir()) == []  # it leaves nothing behind
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < 100
