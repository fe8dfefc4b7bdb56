"""A robot of subsystems: composed, compiled, with a black box in the loop, and rebuilt.

SA24's branched manipulator has eight arms, modelled separately. Its dynamics is composed from
theirs. One arm is then replaced by a black box, a program that answers twists with wrenches.
"""

import numpy as np

import remora as rm

screw = rm.algebra.screw
robot = rm.load_assembly("sa24_branched")
print(robot)

# Composition equals the recursion over the whole robot
q, v = robot.random_state(1)
vdot = np.linspace(-1.0, 1.0, robot.nv)
tau = robot.inverse_dynamics(q, v, vdot)
whole = rm.inverse_dynamics(robot.to_robot(), q, v, vdot)
print(
    "composed as the whole, to 1e-13:", bool(np.abs(tau - whole).max() < 1e-13 * np.abs(tau).max())
)

# Wrenches at all joints by the interconnection matrix
graph = robot.graph(q, v, vdot)
print("A", graph.A.shape, " Γ of arm 8:", np.round(np.linalg.norm(graph.of("8"), axis=-1), 3))

# Every distinct module is compiled once; modules are exchanged without compiling the others
fast = robot.compile()
found = fast.forward_dynamics(q, v, tau)
print(f"{len(robot.parts)} parts, {fast.modules} distinct modules, forward dynamics to 1e-9:",
      bool(np.abs(found - vdot).max() < 1e-9))  # fmt: skip
smaller = robot.remove("6").swap("4", robot.subsystems["3"])
print("after a change:", smaller.names, "nv =", smaller.nv)


class Payload:
    """A live program: a rigid body that is known only by its answers."""

    def __init__(self, mass):
        self.inertia = screw.inertia(np.array(mass), np.zeros(3), 0.02 * np.eye(3))

    def __call__(self, t, base):
        """Return the reaction that a sensor at its base reads."""
        rate = np.zeros(6) if base.rate is None else base.rate
        momentum = screw.momentum(self.inertia, base.twist)
        wrench = screw.momentum(self.inertia, rate) + screw.cross(base.twist, momentum)
        return rm.papers.sa24.SensorReading(-wrench, time=t)


# Hardware in the loop: motions out, wrenches in, 100 times a second
arm = rm.Assembly({"arm": robot.subsystems["1"]})
carrying = arm.add("payload", rm.BlackBox(Payload(0.3), max_age=0.001), "arm", "link3_dh")
start = np.zeros(3), np.array([0.5, -0.3, 0.2])
run = rm.simulate_assembly(carrying, *start, duration=1.0, rate=100.0)
free = rm.simulate_assembly(arm, *start, duration=1.0, rate=100.0)
largest = np.abs(run.signals["payload.wrench"]).max(axis=0)
print("largest wrench on the payload [N, N m]:", np.round(largest, 3))
print("without the payload the joints would be elsewhere by", np.round(run.q[-1] - free.q[-1], 3))
