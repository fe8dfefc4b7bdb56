"""Attitude control: through half a turn with and without unwinding, and wheels that saturate.

A dual-quaternion law takes the shorter way to its goal; with the vector part of the quaternion as
its error it turns back all the way (unwinding). Then a constant torque fills four reaction wheels:
they saturate and the attitude is lost, unless thrusters take the momentum out.
"""

import numpy as np

import remora as rm
from remora.algebra import quaternion

WHEELS = tuple(f"wheel_joint_{i}" for i in range(1, 5))
THRUSTERS = tuple(f"thruster_{i}" for i in range(1, 13))


class SolarPressure(rm.Component):
    """A constant torque on the bus."""

    torque: float = 0.01  # N m

    def act(self, at: rm.Context) -> rm.Wrench:
        """Return the torque on the bus."""
        return rm.Wrench("bus", torque=self.torque * np.array([1.0, 0.0, 0.0]))


def turned(robot: rm.Robot, error: str) -> float:
    """Return the angle by which the base turns from 200° to its goal at 0°, deg."""
    q = rm.neutral(robot)
    q[:4] = quaternion.from_axis_angle(np.array([0, 0, 1.0]), np.radians(200.0))
    law = rm.control.BasePoseTracking(0.04, 0.4, error=error, sample_time=0.05)
    system = rm.System(robot, [law])
    run = rm.simulate(
        system, q, np.zeros(robot.nv), 60.0, integrator=rm.Integrator("rk4", step=0.05), record=0.2
    )
    angle = np.unwrap(2.0 * np.arctan2(run.q[:, 3], run.q[:, 0]))
    return float(np.degrees(abs(angle[-1] - angle[0])))


def filled(robot: rm.Robot, unload: str) -> tuple[float, float, float]:
    """Return the largest wheel speed, rad/s, attitude error, deg, and impulse of thrusters, N s."""
    tick = {"sample_time": 0.2}
    attitude = rm.control.AttitudePD(
        robot, (1, 0, 0, 0), 2.0, 6.0, sample_time=0.2, torque_output=True, name="attitude"
    )
    parts = [attitude, rm.actuators.ReactionWheels(WHEELS, 0.05, 150.0, **tick), SolarPressure()]
    connect = {"reaction_wheels.command": "attitude.torque"}
    if unload != "none":
        by_thrusters = unload == "thrusters"
        parts.append(
            rm.control.WheelDesaturation(0.5, 0.03, 0.8, 0.1, torque_output=by_thrusters, **tick)
        )
        connect["reaction_wheels.external"] = "wheel_desaturation.torque"
        if by_thrusters:
            parts.append(rm.actuators.ThrusterSet(THRUSTERS, 0.1, **tick))
            connect["thruster_set.torque"] = "wheel_desaturation.torque"
            connect["reaction_wheels.external"] = "thruster_set.exerted"
    system = rm.System(robot, parts, connect)
    run = rm.simulate(
        system,
        rm.neutral(robot),
        np.zeros(robot.nv),
        300.0,
        integrator=rm.Integrator("rk4", step=0.1),
        record=1.0,
    )
    angle = np.degrees(2.0 * np.linalg.norm(run.q[:, 1:4], axis=1).max())
    impulse = run.signals["thruster_set.thrust"].sum() if unload == "thrusters" else 0.0
    return float(np.abs(run.signals["reaction_wheels.speed"]).max()), float(angle), float(impulse)


def main() -> None:
    robot = rm.load("wheeled_bus")
    print("200° of error:")
    for error in ("logarithm", "vector"):
        print(f"  {error:10} turns by {turned(robot, error):.0f}°")
    print("0.01 N m for 300 s, wheels limited to 150 rad/s:")
    for unload in ("none", "torque", "thrusters"):
        speed, angle, impulse = filled(robot, unload)
        lost = "lost" if angle > 10.0 else f"within {angle:.2f}°"
        spent = f", thrusters spend {impulse:.1f} N s" if impulse else ""
        print(f"  {unload:10} wheels up to {speed:3.0f} rad/s, attitude {lost}{spent}")


if __name__ == "__main__":
    main()
