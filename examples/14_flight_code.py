"""Flight code of a controller: PI control of a joint with anti-windup, in Python and as C99.

The controller is written once, as a component. It controls the elbow in a simulation, is written as
C with its state, and the C is fed with what the controller saw in the run: it must command the same
torques. If there is no compiler, only the files are written.
"""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import remora as rm
from remora.algebra.array_ops import less, select

PERIOD = 0.02  # s


class Elbow(rm.Component):
    """τ = kp e + ki ∫e, limited; what the limit cuts off is taken back from the integral."""

    kp: float = 30.0
    ki: float = 12.0
    limit: float = 1.0

    def interface(self, robot: rm.Robot) -> rm.Interface:
        """Declare the signals and the state."""
        return rm.Interface(
            inputs={"goal": rm.Signal((), "rad")},
            outputs={"torque": rm.Signal((), "N m")},
            discrete={"integral": rm.State(0.0, "rad s")},
        )

    def law(self, at: rm.Context) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the error, the demanded torque and the limited torque."""
        error = at.inputs["goal"] - at.joint_position("elbow_pitch")[..., 0]
        demand = self.kp * error + self.ki * at.memory["integral"]
        demand = demand - 60.0 * at.joint_velocity("elbow_pitch")[..., 0]
        torque = select(less(demand, -self.limit), -self.limit, demand)
        return error, demand, select(less(self.limit, torque), self.limit, torque)

    def outputs(self, at: rm.Context) -> Mapping[str, np.ndarray]:
        """Return the signal."""
        return {"torque": self.law(at)[2]}

    def act(self, at: rm.Context) -> rm.JointForce:
        """Return the torque on the joint."""
        return rm.JointForce("elbow_pitch", self.law(at)[2])

    def update(self, at: rm.Context) -> Mapping[str, np.ndarray]:
        """Return the next value of the integral."""
        error, demand, torque = self.law(at)
        change = error - (demand - torque) / self.kp
        return {"integral": at.memory["integral"] + PERIOD * change}


robot = rm.load("servicer")
system = rm.System(robot, [Elbow(sample_time=PERIOD)], connect={"elbow.goal": -1.0})
print(system)
start, rest = rm.neutral(robot), np.zeros(robot.nv)
run = rm.simulate(system, start, rest, 20.0, record=PERIOD / 2, physics=rm.Physics(limits="ignore"))
q, v = run.q[:-1:2], run.v[:-1:2]  # at the ticks
torque = run.signals["elbow.torque"][1::2]  # between the ticks, held
place = robot.joints["elbow_pitch"].q.start
limited = PERIOD * np.count_nonzero(np.abs(torque) == 1.0)
print(f"\nat its limit for {limited:.1f} s; elbow after 20 s: {run.q[-1, place]:.3f} rad\n")

# the order of the members is that of the header; structs of doubles are arrays of doubles
with tempfile.TemporaryDirectory() as folder:
    files = rm.save_component_c(system, "elbow", folder)
    print(" ".join(file.name for file in files))
    if shutil.which("gcc"):
        build = ["gcc", "-std=c99", "-O2", "-ffp-contract=off"]
        library, program = Path(folder) / "elbow.so", Path(folder) / "elbow_test"
        source, test = str(files[1]), str(files[2])
        subprocess.run([*build, "-shared", "-fPIC", source, "-o", str(library)], check=True)
        subprocess.run([*build, source, test, "-lm", "-o", str(program)], check=True)
        done = subprocess.run([program], check=True, capture_output=True, text=True)
        print(done.stdout.strip())
        c = ctypes.CDLL(str(library))
        parameters = (ctypes.c_double * 3)(30.0, 12.0, 1.0)
        state, outputs = (ctypes.c_double * 1)(), (ctypes.c_double * 2)()
        c.elbow_init(state)
        worst = 0.0
        for k in range(len(torque)):
            inputs = (ctypes.c_double * (robot.nq + robot.nv + 1))(*q[k], *v[k], -1.0)
            c.elbow_update(parameters, state, inputs, outputs)
            worst = max(worst, abs(outputs[0] - torque[k]))
        print(f"the same torques in {len(torque)} ticks, to 1e-12: {worst < 1e-12}")
