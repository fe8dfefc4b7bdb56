"""A first run: a digital controller unfolds the arm of a servicer, and the base recoils.

The controller samples the state at 50 Hz and holds its torques in between (zero-order hold). The
run ends when the arm has come to rest. It is recorded on disk and opened again, and its
conservation of momentum and energy is checked.
"""

import tempfile
from pathlib import Path

import numpy as np

import remora as rm
from remora.algebra import pose

robot = rm.load("servicer")
start = rm.neutral(robot)
start[8:] = np.radians([0, 30, 0, -60, 0, 45, 0])
goal = np.radians([20, 60, 0, -30, 0, 20, 0])
inertia = np.diag(rm.mass_matrix(robot, start))[6:]


def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return a PD torque for each joint, zero for the base."""
    goal_now = start[8:] + min(t / 10.0, 1.0) * (goal - start[8:])
    return np.concatenate([np.zeros(6), inertia * (2.0 * (goal_now - q[8:]) - 2.0 * v[6:])])


def at_rest(t: float, q: np.ndarray, v: np.ndarray) -> float:
    """Return the event function: it falls through zero when the arm has come to rest."""
    return float(np.abs(v[6:]).max()) + float(np.abs(q[8:] - goal).max()) - 1e-3


with tempfile.TemporaryDirectory() as folder:
    place = Path(folder) / "run.zarr"
    rm.simulate(
        robot,
        start,
        np.zeros(robot.nv),
        60.0,
        torque=rm.ZeroOrderHold(law, 0.02),
        physics=rm.Physics(saturate=True),
        events=[rm.Event(at_rest, "the arm is at rest", direction=-1)],
        integrator=rm.Integrator("dopri5", rtol=1e-12, atol=1e-14, step_to_samples=True),
        record=rm.Record(0.1, folder=place),
    )
    run = rm.open_run(place)
    kept = run.conservation()
    written = sorted(path.name for path in place.iterdir())

print(f"{run.status}: {run.message}\n")
print("time   shoulder   elbow   torques there     base roll  pitch    yaw     tool x     y     z")
print("   s          °       °             N m             °      °      °          m     m     m")
for k in range(0, len(run), 40):
    shoulder, elbow = run.joint("shoulder_pitch"), run.joint("elbow_pitch")
    attitude = np.degrees(pose.to_rpy(run.frame("bus").pose[k])) + 0.0
    print(
        f"{run.t[k]:4.0f} {np.degrees(shoulder.q[k]):10.2f} {np.degrees(elbow.q[k]):7.2f}"
        f" {shoulder.torque[k]:8.3f} {elbow.torque[k]:7.3f}    ",
        *(f"{angle:6.2f}" for angle in attitude),
        "  ",
        *(f"{x:5.2f}" for x in run.frame("tool").position[k]),
    )

bearing = np.linalg.norm(run.joint("shoulder_roll").reaction[:, 3:], axis=1)
print(f"\nlargest bending moment at the first joint: {bearing.max():.2f} N m")
print(f"largest kinetic energy: {run.energy.max():.3f} J, at the end {run.energy[-1]:.0e} J")
print(f"centre of mass within 1e-12 m of its start: {kept.center_of_mass.absolute < 1e-12}")
print(f"momentum kept to twelve digits: {kept.angular_momentum.relative < 1e-12}")
print(f"on disk: {', '.join(written)}")
