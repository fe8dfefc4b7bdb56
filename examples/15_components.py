"""A closed loop of components: a gyro, an attitude controller, reaction wheels and a thruster.

One description runs alone with adaptive steps, in a thousand runs with different wheels, and shows
itself as a block diagram.
"""

import numpy as np

import remora as rm


class Slosh(rm.Component):
    """Fuel as a mass on a damped spring beside the bus: a component of your own.

    m ẍ = -k x - c ẋ; the bus feels k x + c ẋ along its y axis. The acceleration of the bus, which
    is small, is neglected in the first equation.
    """

    mass: float = 8.0  # kg
    stiffness: float = 0.8  # N/m
    damping: float = 0.1  # N s/m

    def interface(self, robot: rm.Robot) -> rm.Interface:
        """Declare two continuous states and a signal."""
        return rm.Interface(
            outputs={"force": rm.Signal((), "N")},
            continuous={"place": rm.State(0.05, "m"), "speed": rm.State(0.0, "m/s")},
        )

    def outputs(self, at: rm.Context) -> dict[str, np.ndarray]:
        """Return the force on the bus."""
        return {"force": self.stiffness * at.state["place"] + self.damping * at.state["speed"]}

    def derivative(self, at: rm.Context) -> dict[str, np.ndarray]:
        """Return the rates of both states."""
        return {"place": at.state["speed"], "speed": -self.outputs(at)["force"] / self.mass}

    def act(self, at: rm.Context) -> rm.Wrench:
        """Return the force on the bus."""
        force = self.outputs(at)["force"]
        return rm.Wrench("bus", force=force * np.array([0.0, 1.0, 0.0]))


robot = rm.load("servicer")
arm = robot.joints.names[1:]
attitude = rm.control.AttitudePD(
    robot, (1, 0, 0, 0), kp=60, kd=240, sample_time=0.02, delay=0.02, name="attitude",
    rate_input=True, torque_output=True,
)  # fmt: skip
burn = rm.Profile([5, 6, 15, 16], [1, 0, 1, 0], "hold")
system = rm.System(
    robot,
    [
        rm.sensors.RateGyro("bus", noise=1e-5, sample_time=0.02, name="gyro"),
        attitude,
        rm.actuators.FirstOrderActuator(frame="bus", time_constant=0.1, limit=0.5, name="wheels"),
        rm.SignalSource(burn, name="burn"),
        rm.actuators.Thruster("tool", 0.5, (0, 1, 0)),
        rm.sensors.Threshold(0.49, "N m", size=3, name="saturated"),
        Slosh(),
    ],
    connect={
        "wheels.command": "attitude.torque",
        "thruster.command": "burn.value",
        "saturated.signal": "wheels.torque",
    },
)
print(system)

q, v = rm.neutral(robot), np.zeros(robot.nv)
q[8:] = np.radians([0, 60, 0, -110, 0, 70, 0])
adaptive, steps = rm.Integrator("dopri5", rtol=1e-8), rm.Integrator("rk4", step=0.02)
run = rm.simulate(system, q, v, 40.0, locked=arm, record=0.1, integrator=adaptive)
turned = 2 * np.degrees(np.linalg.norm(run.q[:, 1:4], axis=-1))
print(f"\nbase turned by at most {turned.max():.2f}°, at the end {turned[-1]:.2f}°")
print(f"wheels saturated {len(run.events)} times, first at {run.events[0].t:.2f} s")

lags = np.linspace(0.05, 0.5, 1000)
batch = rm.simulate_batch(
    system, q, v, 40.0, integrator=steps, locked=arm, record=0.5,
    runs=rm.Runs(parameters={"wheels.time_constant": lags}),
)  # fmt: skip
worst = 2 * np.degrees(np.linalg.norm(batch.q[..., 1:4], axis=-1)).max(axis=1)
print(batch)
print(
    f"with wheels of {lags[0]:.2f} s at most {worst[0]:.2f}°, of {lags[-1]:.2f} s {worst[-1]:.2f}°"
)

alone = rm.simulate(
    system.with_parameters({"wheels.time_constant": lags[3]}), q, v, 40.0, locked=arm, record=0.5,
    integrator=steps, seed=(0, 3),
)  # fmt: skip
same = np.abs(alone.q - batch.q[3]).max() < 1e-6
print("run 3 alone with its own noise is the same:", bool(same))
print(system.diagram())
