"""Runs of the control laws and their pictures: `python docs/pictures/make_control.py [name ...]`.

Every run is digital control at the rate that is printed, with fixed Runge-Kutta steps.
"""

import runpy
import sys
from pathlib import Path

import matplotlib
import numpy as np

import remora as rm
from remora.algebra import dual_quaternion, pose, quaternion
from remora.viewer.figures.figures import STYLE

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
plt.rcParams.update(
    {**STYLE, "text.parse_math": True, "font.size": 9, "axes.titlesize": 9, "figure.dpi": 130}
)


def planar(name, arms, links, base="planar"):
    """Return SPART17's Table 2: a base of 100 kg, links of 10 kg and 0.5 m, in a plane."""
    builder = rm.Builder(name).body("bus", mass=100.0, inertia=(9.4, 9.4, 9.375))
    builder = builder.joint("base", base, None, "bus")
    for arm, (xyz, side) in arms.items():
        parent, place, rpy = "bus", xyz, (0, 0, side)
        for i in range(links):
            body = f"{arm}{i + 1}"
            builder = builder.body(body, mass=10, com=(0.25, 0, 0), inertia=(0.01, 0.21, 0.2104))
            builder = builder.joint(
                f"{body}_joint", "revolute", parent, body, axis=(0, 0, 1), xyz=place, rpy=rpy
            )
            parent, place, rpy = body, (0.5, 0, 0), (0, 0, 0)
        builder = builder.frame(f"{arm}tool", parent, xyz=(0.5, 0, 0))
    return builder.build()


ONE = {"": ((0.375, 0, 0), 0.0)}
BOTH = {"a": ((0.375, 0.2, 0), 0.4), "b": ((0.375, -0.2, 0), -0.4)}


def shape(robot, q, arm, links):
    """Return the joints of an arm and its tool, (n, 2)."""
    names = [f"{arm}{i + 1}" for i in range(links)] + [f"{arm}tool"]
    return np.array([pose.translation(rm.frame_pose(robot, q, name))[:2] for name in names])


def draw(axes, robot, q, arms, links, color, alpha=1.0):
    """Draw base and arms."""
    x = rm.frame_pose(robot, q, "bus")
    corners = 0.375 * np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0], [1, 1, 0]])
    box = np.array([pose.transform_point(x, c) for c in corners])
    axes.fill(box[:, 0], box[:, 1], color=color, alpha=0.15 * alpha)
    axes.plot(box[:, 0], box[:, 1], color=color, lw=0.8, alpha=alpha)
    for arm in arms:
        joints = shape(robot, q, arm, links)
        axes.plot(joints[:, 0], joints[:, 1], "o-", ms=2.5, color=color, lw=1.6, alpha=alpha)


def two_arms():
    """One arm works, the other keeps the attitude of the base; 100 Hz."""
    robot = planar("two_arms", BOTH, 3)
    q, tick = np.array([0, 0, 0, 0.5, -1.2, 0.7, -0.5, 1.2, -0.7]), {"sample_time": 0.01}
    x = rm.frame_pose(robot, q, "atool")
    goal = pose.from_parts(x[:4], pose.translation(x) + np.array([0.1, 0.15, 0.0]))
    line = rm.control.PoseReference([x, goal], 10.0, **tick)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1.2, 1))
    arm = tuple(f"a{i + 1}_joint" for i in range(3))
    for joints, held, label in (
        ((), ("wz",), "other arm compensates"),
        (arm, "none", "other arm locked"),
    ):
        law = rm.control.OperationalComputedTorque("atool", 4.0, 4.0, rows="plane", base_rows=held,
                                           joints=joints, **tick)  # fmt: skip
        system = rm.System(robot, [line, law])
        locked = [f"b{i + 1}_joint" for i in range(3)] if joints else []
        run = rm.simulate(
            system,
            q,
            np.zeros(9),
            12.0,
            integrator=rm.Integrator("rk4", step=0.01),
            record=0.1,
            locked=locked,
            physics=rm.Physics(limits="ignore"),
        )
        off = np.linalg.norm(run.signals["operational_computed_torque.error"][:, 3:], axis=1).max()
        print(f"two arms, {label}: base turned by up to {np.abs(run.q[:, 2]).max():.2e} rad, "
              f"tool off by "
              f"{1e3 * off:.3f} mm")  # fmt: skip
        right.semilogy(run.t[1:], np.abs(run.q[1:, 2]) + 1e-18, label=label)
        if not joints:
            draw(left, robot, run.q[0], "ab", 3, "0.6")
            draw(left, robot, run.q[-1], "ab", 3, "tab:blue")
    left.set(aspect="equal", xlabel="x, m", ylabel="y, m")
    right.set(xlabel="t, s", ylabel="attitude of the base, rad", ylim=(1e-13, 1))
    right.legend(fontsize=7)
    save(figure, "control_two_arms.png")


def unwinding():
    """The base starts at 200 degrees, and follows a reference through 450 degrees; 20 Hz."""
    robot = (
        rm.Builder("bus")
        .body("bus", mass=100.0, inertia=(9, 10, 11))
        .joint("base", "free", None, "bus")
        .build()
    )
    tick = {"sample_time": 0.05}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    start = np.concatenate(
        [quaternion.from_axis_angle(np.array([0, 0, 1.0]), np.radians(200)), np.zeros(4)]
    )
    for error in ("logarithm", "vector"):
        law = rm.control.BasePoseTracking(0.04, 0.4, error=error, **tick)
        run = rm.simulate(
            rm.System(robot, [law]),
            start,
            np.zeros(6),
            40.0,
            integrator=rm.Integrator("rk4", step=0.05),
            record=0.2,
        )
        angle = np.degrees(np.unwrap(2 * np.arctan2(run.q[:, 3], run.q[:, 0])))
        left.plot(run.t, angle, label=f"{error}: turns by {abs(angle[-1] - angle[0]):.0f}°")
        print(f"200 deg of error, {error}: turns by {abs(angle[-1] - angle[0]):.1f} deg")
    ways = [pose.from_quaternion(quaternion.from_axis_angle(np.array([0, 0, 1.0]), a))
            for a in np.radians([0, 150, 300, 450])]  # fmt: skip
    line = rm.control.PoseReference(ways, 20.0, **tick)
    connect = {
        f"base_pose_tracking.base_{x}": f"pose_reference.{x}"
        for x in ("pose", "twist", "twist_rate")
    }
    law = rm.control.BasePoseTracking(1.0, 2.0, **tick)
    system = rm.System(robot, [line, law], connect)
    run = rm.simulate(
        system,
        dual_quaternion.identity(),
        np.zeros(6),
        65.0,
        integrator=rm.Integrator("rk4", step=0.05),
        record=0.2,
    )
    angle = np.degrees(np.unwrap(2 * np.arctan2(run.q[:, 3], run.q[:, 0])))
    error = np.degrees(np.linalg.norm(run.signals["base_pose_tracking.error"][:, :3], axis=1))
    print(f"through {angle[-1]:.1f} deg: error at most {error.max():.3f} deg")
    right.plot(run.t, angle, label="angle, deg")
    right.plot(run.t, 100 * error, label="100 × error, deg")
    for axes in (left, right):
        axes.set(xlabel="t, s", ylabel="deg")
        axes.legend(fontsize=7)
    save(figure, "control_unwinding.png")


def wall():
    """An arm presses on a wall by its impedance: held, and with a floating base; 500 Hz."""
    q, tick = np.array([0, 0, 0, 0.7, -1.4, 0.7]), {"sample_time": 0.002}
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), sharex="row")
    for row, base in enumerate(("fixed", "floating")):
        robot = planar("wall", ONE, 3, "fixed" if base == "fixed" else "planar")
        x = rm.frame_pose(robot, q[-robot.nq :], "tool")
        deep = 0.15 if base == "fixed" else 0.065
        goal = pose.from_parts(x[:4], pose.translation(x) + np.array([deep, 0.0, 0.0]))
        ways = [x, goal] if base == "fixed" else [x, goal, x]
        line = rm.control.PoseReference(ways, 4.0 if base == "fixed" else 3.0, **tick)
        surface = pose.translation(x) + np.array([0.05, 0.0, 0.0])
        stiffness, damping = [20.0] * 3 + [200.0] * 3, [4.0] * 3 + [80.0] * 3
        law = rm.control.Impedance("tool", stiffness, damping, rows="plane", base=base, **tick)
        block = rm.world.Wall("tool", surface, (-1, 0, 0), 5e3, 50.0)
        run = rm.simulate(
            rm.System(robot, [line, law, block]),
            q[-robot.nq :],
            np.zeros(robot.nv),
            10.0 if base == "fixed" else 7.0,
            integrator=rm.Integrator("rk4", step=0.002),
            record=0.02,
            physics=rm.Physics(limits="ignore"),
        )
        force = -run.signals["wall.force"][:, 0]
        place = np.array([pose.translation(rm.frame_pose(robot, s, "tool"))[0] for s in run.q])
        wanted = 2 * run.signals["pose_reference.pose"][:, 5]
        left, right = axes[row]
        left.plot(run.t, force, label=f"{base} base")
        right.plot(run.t, 1e3 * (place - surface[0]), label="tool")
        right.plot(run.t, 1e3 * (wanted - surface[0]), "k--", lw=0.8, label="reference")
        touched = sum(e.name == "wall.contact" for e in run.events)
        print(f"wall, {base}: {touched} contacts, force at most "
              f"{force.max():.2f} N, at the end {force[-1]:.2f} N")  # fmt: skip
        if base == "floating":
            impulse = float(np.sum(0.5 * (force[1:] + force[:-1]) * np.diff(run.t)))
            print(f"impulse {impulse:.4f} N s, momentum {run.momentum[-1, 0]:.4f} N s, base moves "
                  f"at {1e3 * run.v[-1, 0]:.2f} mm/s, tool {1e3 * (place[-1] - wanted[-1]):.3f} mm"
                  f" from the reference")  # fmt: skip
            right.plot(
                run.t, 1e3 * run.q[:, 0], color="tab:green", lw=1.1, label="base, from start"
            )
        else:
            left.axhline(20.0, color="0.5", ls="--", lw=0.8, label="K × 0.1 m = 20 N")
        left.set(ylabel="force on the wall, N")
        right.set(ylabel="beyond the surface, mm")
        left.legend(fontsize=7)
        right.legend(fontsize=7)
    for place in axes[1]:
        place.set(xlabel="t, s")
    save(figure, "control_wall.png")


def wheels():
    """A constant torque fills four wheels; with desaturation the attitude is kept; 5 Hz."""
    builder = (
        rm.Builder("wheeled")
        .body("bus", mass=60.0, inertia=(4, 5, 6))
        .joint("base", "free", None, "bus")
    )
    for i in range(4):
        angle = np.pi / 4 + i * np.pi / 2
        axis = np.array([np.cos(angle), np.sin(angle), 0.7]) / np.sqrt(1.49)
        builder = builder.body(f"wheel_{i}", mass=2.0, inertia=(5e-3, 5e-3, 5e-3))
        builder = builder.joint(f"w{i}", "revolute", "bus", f"wheel_{i}", axis=tuple(axis))
    robot, tick, names = builder.build(), {"sample_time": 0.2}, tuple(f"w{i}" for i in range(4))

    class Push(rm.Component):
        torque: float = 0.01  # N m

        def act(self, at):
            return rm.Wrench("bus", torque=self.torque * np.array([1.0, 0.0, 0.0]))

    law = rm.control.AttitudePD(
        robot, (1, 0, 0, 0), 2.0, 6.0, 0.2, torque_output=True, name="attitude"
    )
    motors = rm.actuators.ReactionWheels(names, 0.05, 150.0, **tick)
    dump = rm.control.WheelDesaturation(0.5, 0.03, 0.8, 0.1, **tick)
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(8, 5.4), sharex=True)
    for label, parts, color in (
        ("with desaturation", [dump], "tab:blue"),
        ("without", [], "tab:red"),
    ):
        connect = {"reaction_wheels.command": "attitude.torque"}
        if parts:
            connect["reaction_wheels.external"] = "wheel_desaturation.torque"
        system = rm.System(robot, [law, motors, Push(), *parts], connect)
        run = rm.simulate(
            system,
            rm.neutral(robot),
            np.zeros(robot.nv),
            300.0,
            integrator=rm.Integrator("rk4", step=0.1),
            record=1.0,
        )
        turned = np.degrees(2 * np.linalg.norm(run.q[:, 1:4], axis=1))
        speeds = run.signals["reaction_wheels.speed"]
        top.plot(run.t, speeds, color=color, lw=1)
        middle.plot(run.t, np.minimum(turned, 10), color=color, label=label)
        if parts:
            bottom.plot(
                run.t,
                run.signals["wheel_desaturation.torque"][:, 0],
                color=color,
                label="torque of the thrusters, x",
            )
        print(
            f"wheels {label}: speed at most {np.abs(speeds).max():.1f} rad/s, "
            f"base turned by up to {turned.max():.2f} deg"
        )
    top.axhline(150, color="0.5", ls="--", lw=0.8)
    top.axhline(-150, color="0.5", ls="--", lw=0.8)
    top.set(ylabel="wheel speeds, rad/s")
    middle.set(ylabel="attitude error, deg\n(cut off at 10)")
    bottom.set(xlabel="t, s", ylabel="N m")
    middle.legend(fontsize=7)
    bottom.legend(fontsize=7)
    save(figure, "control_wheels.png")


class Encoders(rm.Component):
    """A reference with the noise of its encoders: what the joints measure is off by it."""

    spread: float = 1e-4  # rad

    def interface(self, robot):
        """Declare the clean and the noisy reference."""
        three = rm.Signal(3, "rad")
        return rm.Interface(inputs={"clean": three}, outputs={"noisy": three}, noise={"angle": 3})

    def outputs(self, at):
        """Return the reference minus the error of measurement."""
        return {"noisy": at.inputs["clean"] - self.spread * at.noise["angle"]}


def reaches():
    """10,000 closed-loop reaches with dispersed masses and noise, in one batch; 50 Hz."""
    robot = planar("reach", ONE, 3)
    q, tick = np.array([0, 0, 0, 0.7, -1.4, 0.7]), {"sample_time": 0.02}
    path = rm.control.JointReference(
        [q[3:], q[3:] + np.array([-0.9, 0.8, 0.5])], durations=8.0, **tick
    )
    law = rm.control.JointComputedTorque(9.0, 6.0, **tick)
    connect = {
        "encoders.clean": "joint_reference.position",
        "joint_computed_torque.position": "encoders.noisy",
    }
    system = rm.System(robot, [path, Encoders(**tick), law], connect)
    rng, runs = np.random.default_rng(1), 10_000
    parameters = {"bus.mass": rng.normal(100.0, 5.0, runs)}
    parameters |= {f"{i}.mass": rng.normal(10.0, 0.5, runs) for i in (1, 2, 3)}
    parameters["encoders.spread"] = rng.uniform(1e-4, 2e-3, runs)
    batch = rm.simulate_batch(
        system,
        q,
        np.zeros(6),
        10.0,
        integrator=rm.Integrator(step=0.02),
        runs=rm.Runs(parameters=parameters, seed=3),
    )
    end = batch.q[:, -1]
    tool = np.array([pose.translation(rm.frame_pose(robot, x, "tool"))[:2] for x in (q, end[0])])
    places = pose.translation(rm.frame_pose(robot, end, "tool"))[:, :2]
    exact = rm.simulate(
        system.with_parameters({"encoders.spread": 0.0}),
        q,
        np.zeros(6),
        10.0,
        integrator=rm.Integrator("rk4", step=0.02),
        record=10.0,
    )
    aim = pose.translation(rm.frame_pose(robot, exact.q[-1], "tool"))[:2]
    off = 1e3 * np.linalg.norm(places - aim, axis=1)
    print(f"{runs} reaches: tool off by {np.median(off):.2f} mm in the median, "
          f"{off.max():.2f} mm at most; "
          f"path of {np.linalg.norm(tool[1] - tool[0]):.2f} m; {batch}")  # fmt: skip
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    draw(left, robot, q, [""], 3, "0.6")
    draw(left, robot, exact.q[-1], [""], 3, "tab:blue")
    left.set(aspect="equal", xlabel="x, m", ylabel="y, m", title="before and after")
    dots = right.scatter(*(1e3 * (places - aim)).T, c=parameters["bus.mass"], s=1.5, cmap="viridis")
    figure.colorbar(dots, label="mass of the base, kg")
    right.set(xlabel="x, mm", ylabel="y, mm", title="where 10,000 tools end")
    save(figure, "control_reaches.png")


def circle():
    """The circle of example 24, and the zero-reaction manoeuvre; 100 Hz and 200 Hz."""
    robot = rm.load("servicer")
    q, v, tick = rm.neutral(robot), np.zeros(robot.nv), {"sample_time": 0.01}
    q[8:] = np.radians([0, 40, 20, -80, 0, 60, 0])
    start = rm.frame_pose(robot, q, "tool")
    place = pose.translation(start)
    turn = rm.control.CircleReference(
        place, place + np.array([0, 0.1, 0]), (1, 0, 0), 20.0, start[:4], **tick
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for base in ("floating", "fixed"):
        law = rm.control.ResolvedRate("tool", base=base, gain=5.0, damping=1e-3, **tick)
        system = rm.System(robot, [turn, law, rm.control.JointRateServo(gain=50.0, **tick)])
        run = rm.simulate(
            system, q, v, 22.0, integrator=rm.Integrator("rk4", step=0.01), record=0.1
        )
        off = 1e3 * np.linalg.norm(run.signals["resolved_rate.error"][:, 3:], axis=1)
        left.semilogy(run.t, off + 1e-6, label=f"Jacobian of a {base} base")
        print(f"circle, {base}: off by {off.max():.3f} mm")
    left.axhline(1.0, color="0.5", ls="--", lw=0.8)
    left.set(xlabel="t, s", ylabel="distance from the circle's point, mm")
    goal = pose.from_parts(start[:4], place + np.array([0.0, 0.08, 0.0]))
    line = rm.control.PoseReference([start, goal], 20.0, "straight", sample_time=0.005)
    for held, label in (("orientation", "zero reaction"), ("none", "not compensated")):
        law = rm.control.OperationalComputedTorque(
            "tool", 4.0, 4.0, rows="position", base_rows=held, sample_time=0.005
        )
        run = rm.simulate(
            rm.System(robot, [line, law]),
            q,
            v,
            20.0,
            integrator=rm.Integrator("rk4", step=0.005),
            record=0.1,
        )
        turned = 2 * np.linalg.norm(run.q[:, 1:4], axis=1)
        right.semilogy(run.t[1:], turned[1:] + 1e-18, label=label)
        print(f"{label}: base turned by up to {turned.max():.2e} rad in 20 s")
    right.set(xlabel="t, s", ylabel="attitude of the base, rad")
    left.legend(fontsize=7)
    right.legend(fontsize=7)
    save(figure, "control_circle.png")


def pointing(length, seconds, method="least_squares", **options):
    """Return SPART17's Figure 4 as a run: a line of the tool there and back, the base points at it.

    Four links; the tool keeps its orientation, the base points at the tool; 50 Hz.
    """
    robot, tick = planar("figure_4", ONE, 4), {"sample_time": 0.02}
    q = np.array([0, 0, 0, *np.radians([0.0, 40.0, -80.0, 40.0])])
    x = rm.frame_pose(robot, q, "tool")
    away = length * np.array([-0.5, np.sqrt(0.75), 0.0])
    goal = pose.from_parts(x[:4], pose.translation(x) + away)
    line = rm.control.PoseReference([x, goal, x], seconds, "straight", **tick)
    options |= {"gain": 2.0, "base_gain": 2.0, "point": "x", "method": method, **tick}
    law = rm.control.DesiredReaction("tool", rows="plane", base_rows=("wz",), **options)
    system = rm.System(robot, [line, law, rm.control.JointRateServo(gain=20.0, **tick)])
    return rm.simulate(
        system,
        q,
        np.zeros(7),
        2 * seconds + 2.0,
        integrator=rm.Integrator("rk4", step=0.02),
        record=0.1,
        physics=rm.Physics(limits="ignore"),
    )


def measures(run):
    """Return how far the tool is off, m, its tilt and the pointing error, rad, of a run."""
    error = run.signals["desired_reaction.error"]
    return (
        np.linalg.norm(error[:, 3:], axis=1),
        np.abs(error[:, 2]),
        np.abs(run.signals["desired_reaction.base_error"][:, 2]),
    )


def figure_4():
    """SPART17's Figure 4, and what happens on a line that is too long; 50 Hz."""
    run = pointing(0.2, 10.0)
    off, tilt, aim = measures(run)
    print(f"figure 4: tool off by {1e3 * off.max():.3f} mm, tilted by {np.degrees(tilt.max()):.4f}"
          f" deg; base turned by {np.degrees(run.q[:, 2].max()):.2f} deg, points at the tool to "
          f"{np.degrees(aim.max()):.4f} deg; rates up to {np.abs(run.v[:, 3:]).max():.3f} rad/s, "
          f"back at the start to {np.abs(run.q[-1] - run.q[0]).max():.1e}")  # fmt: skip
    long = pointing(0.4, 10.0, "adjugate", bound=300.0)
    far, _, far_aim = measures(long)
    print(
        f"0.4 m, adjugate: tool off by {1e3 * far.max():.1f} mm, pointing "
        f"{np.degrees(far_aim.max()):.2f} deg, rates up to {np.abs(long.v[:, 3:]).max():.2f}"
    )
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.4), height_ratios=(1, 1.15))
    draw(axes[0, 0], run.robot, run.q[0], [""], 4, "0.5")
    draw(axes[0, 0], run.robot, run.q[len(run.t) // 2 - 10], [""], 4, "tab:blue")
    for k in (0, len(run.t) // 2 - 10):
        ends = np.array([run.q[k, :2], shape(run.robot, run.q[k], "", 4)[-1]])
        axes[0, 0].plot(ends[:, 0], ends[:, 1], ":", color="tab:orange", lw=1)
    path = run.signals["pose_reference.pose"]
    places = np.array([pose.translation(x)[:2] for x in path])
    axes[0, 0].plot(places[:, 0], places[:, 1], color="tab:red", lw=1.4, label="path, 0.2 m")
    axes[0, 0].set(
        aspect="equal", xlabel="x, m", ylabel="y, m", title="start (grey), after 10 s (blue)"
    )
    axes[0, 0].set(xlim=(-0.5, 2.3), ylim=(-0.55, 0.6))
    axes[0, 0].legend(fontsize=7, loc="lower right")
    axes[0, 1].plot(run.t, np.degrees(run.q[:, 2]), label="attitude of the base")
    direction = np.array([shape(run.robot, q, "", 4)[-1] - q[:2] for q in run.q])
    angle = np.degrees(np.arctan2(direction[:, 1], direction[:, 0]))
    axes[0, 1].plot(run.t, angle, "k--", lw=0.9, label="direction of the tool")
    axes[0, 1].set(xlabel="t, s", ylabel="angle, deg")
    axes[1, 0].plot(run.t, run.v[:, 3:], lw=1.1, label=[f"joint {i + 1}" for i in range(4)])
    axes[1, 0].set(xlabel="t, s", ylabel="joint rates, rad/s")
    axes[1, 1].semilogy(run.t, 1e3 * off, label="0.2 m, least squares")
    axes[1, 1].semilogy(long.t, 1e3 * far, label="0.4 m, adjugate, bounded")
    axes[1, 1].set(xlabel="t, s", ylabel="tool position error, mm", ylim=(1e-3, 1e3))
    for place in (axes[0, 1], axes[1, 0], axes[1, 1]):
        place.legend(fontsize=7)
    save(figure, "spart17_4.png")


def optimal():
    """The reach of example 25: along a straight line of the joints, and optimized."""
    example = runpy.run_path(str(HERE.parents[1] / "examples" / "25_optimal_reach.py"))
    straight, best, target = example["main"]()
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.2), height_ratios=(1.25, 1))
    names = ["link_1", "link_2", "link_3", "tool"]
    for place, run, label in (
        (axes[0, 0], straight, "straight joint path"),
        (axes[0, 1], best, "optimized"),
    ):
        count, ghosts = len(run.t), 6
        for k in np.linspace(0, count - 1, ghosts).astype(int):
            tone = "tab:blue" if k == count - 1 else "0.35" if k == 0 else "0.75"
            x = run.q[k, :8]
            box = 0.375 * np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0], [1, 1, 0]])
            box = np.array([pose.transform_point(x, c) for c in box])
            links = np.array(
                [pose.translation(rm.frame_pose(run.robot, run.q[k], n)) for n in names]
            )
            place.plot(box[:, 0], box[:, 1], color=tone, lw=1.0)
            place.plot(links[:, 0], links[:, 1], "o-", ms=2.5, color=tone, lw=1.4)
        tool = np.array([pose.translation(rm.frame_pose(run.robot, q, "tool")) for q in run.q])
        place.plot(tool[:, 0], tool[:, 1], color="tab:orange", lw=1.0, label="tool")
        place.plot(*target[:2], "x", color="tab:red", ms=7, mew=2, label="target")
        place.set(aspect="equal", xlabel="x, m", ylabel="y, m", title=label)
        place.set(xlim=(-0.6, 2.0), ylim=(-0.7, 0.8))
        turned = np.degrees(2.0 * np.arctan2(run.q[:, 3], run.q[:, 0]))
        axes[1, 0].plot(run.t, turned, label=label)
    axes[0, 0].legend(fontsize=7, loc="lower right")
    for i in range(3):
        axes[1, 1].plot(best.t, best.tau[:, 6 + i], lw=1.2, label=f"joint {i + 1}")
    for limit in (-0.5, 0.5):
        axes[1, 1].axhline(limit, color="0.5", ls="--", lw=0.8)
    axes[1, 0].set(xlabel="t, s", ylabel="attitude of the base, deg")
    axes[1, 1].set(xlabel="t, s", ylabel="torques, optimized, N m")
    for place in axes[1]:
        place.legend(fontsize=7)
    save(figure, "optimal_reach.png")


def save(figure, name):
    """Write a picture beside this script."""
    figure.tight_layout()
    figure.savefig(HERE / name)
    plt.close(figure)


MADE = {
    f.__name__: f for f in (two_arms, unwinding, wall, wheels, reaches, circle, optimal, figure_4)
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MADE:
        MADE[name]()
