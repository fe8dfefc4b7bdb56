"""Draw the pictures of docs/sa24.md: the robots, waveforms as Figures 6 and 8, and Figure 9.

The code of the page itself is run first; it has the robots, the simulator and the tables.
"""

import re
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).parent
PAGE = (HERE.parent / "sa24.md").read_text(encoding="utf-8")
STYLE = {
    "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#dadce0", "grid.linewidth": 0.5, "lines.linewidth": 1.2,
    "legend.frameon": False,
}  # fmt: skip
COLOURS = ("#d55e00", "#009e73", "#0072b2", "#cc79a7", "#8a6d3b")


def run_page():
    """Run the Python blocks up to the control section; keep the data of both tables."""
    space, kept = {}, []
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S):
        exec(block, space)
        if "\ntable(tau" in block:
            kept.append((space["t"], space["tau"], space["measured"], space.get("known")))
    return space, kept


def waveforms(space, kept):
    """Measured and composed forces: joints 23, 17, 15 of the BM; three of the MBM."""
    figure = Figure(figsize=(8.2, 4.6))
    first = {name: space["branched"].part(name).v.start for name in "568"}
    chosen = [
        [
            (first["8"] + 1, "BM joint 23", "N m"),
            (first["6"] + 1, "BM joint 17", "N m"),
            (first["5"] + 2, "BM joint 15", "N m"),
        ],
        [
            (3, "MBM arm, joint 1", "N"),
            (4, "MBM arm, joint 2", "N"),
            (2, "MBM base, about z", "N m"),
        ],
    ]
    for row, (t, tau, measured, known) in enumerate(kept):
        measured = measured if known is None else measured[:, known]
        for k, (joint, title, unit) in enumerate(chosen[row]):
            axes = figure.add_subplot(2, 3, 3 * row + k + 1)
            axes.plot(t[1000:3000], measured[1000:3000, joint], color="#5f6368", label="MuJoCo")
            axes.plot(
                t[1000:3000:60], tau[1000:3000:60, joint], "o", color="#d55e00", ms=2.6,
                label="composed",
            )  # fmt: skip
            axes.set_title(f"{title}, {unit}", fontsize=8.5, loc="left", fontweight="bold")
            axes.margins(x=0.01)
            axes.ticklabel_format(useOffset=False)
            if row:
                axes.set_xlabel("t, s")
    low, high = figure.axes[0].get_ylim()
    figure.axes[0].set_ylim(low, high + 0.35 * (high - low))
    figure.axes[0].legend(fontsize=7.5, loc="upper center", ncols=2)
    figure.tight_layout()
    figure.savefig(HERE / "sa24_waveforms.png", dpi=130)


def robots(space):
    """Figures 1 and 5: the links of both robots, with a colour for each subsystem."""
    place = space["POSE"].translation
    colours = matplotlib.colormaps["tab10"].colors
    figure = Figure(figsize=(8.2, 5.6))
    for column, name in enumerate(("branched", "mobile")):
        assembly = space[name]
        q = assembly.neutral()
        view = figure.add_subplot(2, 2, column + 1, projection="3d")
        top = figure.add_subplot(2, 2, column + 3, aspect="equal")
        for k, part in enumerate(assembly.parts):
            points = [np.zeros(3)]
            if part.connection is not None:
                on = f"{part.connection.parent}/{part.connection.at}"
                points = [place(assembly.frame_pose(q, on))]
            for body in part.subsystem.bodies:
                names = [body.name, f"{body.name}_dh"]
                points += [
                    place(assembly.frame_pose(q, f"{part.name}/{key}"))
                    for key in names if key == body.name or key in part.subsystem.frames
                ]  # fmt: skip
            if len(points) == 2:  # a base: up to where it carries the others
                points += [place(assembly.frame_pose(q, f"{part.name}/{at}")) for at in part.points]
            points, colour = np.array(points), colours[k % 10]
            for axes, rows in ((view, points), (top, points[:, :2])):
                axes.plot(*rows.T, "-", color=colour, lw=2.6, solid_capstyle="round")
                axes.plot(*rows.T, "o", color=colour, ms=3.5, mec="white", mew=0.4)
                axes.text(*rows[-1], f" {part.name}", fontsize=7.5, color=colour)
        view.view_init(18, -62)
        view.set_aspect("equal")
        view.tick_params(labelsize=6, pad=-2)
        top.set(xlabel="x, m", ylabel="y, m")
        top.margins(0.12)
        what = "BM" if name == "branched" else "MBM"
        view.set_title(
            f"{what}: {len(assembly.parts)} subsystems, {assembly.nv} degrees of freedom",
            fontsize=8.5, fontweight="bold",
        )  # fmt: skip
    figure.tight_layout()
    figure.savefig(HERE / "sa24_robots.png", dpi=130)


def figure_9(space, seconds=15.0):
    """Errors of the five end-effectors under both laws, with damping and without; their table."""
    rm, mobile = space["rm"], space["mobile"]
    robot = mobile.to_robot()
    goal = np.random.default_rng(4).uniform(-0.4, 0.4, size=30)
    for name in "1267":
        goal[mobile.part(name).v] = 0.0
    ends = [f"{k}/link3_dh" for k in (4, 5, 7, 9, 10)]
    targets = {end: rm.frame_pose(robot, goal, end) for end in ends}
    figure = Figure(figsize=(8.2, 5.6))
    first = None
    laws = (("printed", 40.0, 20.0), ("linearizing", 16.0, 4.0))
    for row, damping in enumerate((0.5, 0.0)):
        for k, (law, kp, kv) in enumerate(laws):
            control = rm.control.EndEffectorWrenchControl(robot, targets, kp, kv, law)
            t, q = closed_loop(space, robot, control, seconds, damping)
            errors = control.errors(robot, q)
            print(law, damping, " | ".join(f"{x:.1e}" for x in errors[-1]), flush=True)
            axes = figure.add_subplot(2, 2, 2 * row + k + 1, sharey=first)
            first = first or axes
            for j, name in enumerate((4, 5, 7, 9, 10)):
                style = ("-", "--", ":", "-.", "-")[j]
                axes.semilogy(
                    t, errors[:, j] + 1e-12, style, color=COLOURS[j], label=f"subsystem {name}"
                )
            axes.semilogy(
                t, np.linalg.norm(errors, axis=1), color="black", lw=0.9, label="all (14)"
            )
            axes.set_ylim(1e-6, 10.0)
            what = "0.5 N m s/rad of damping" if damping else "no damping"
            title = f"{law}, {what}: $k_p$ = {kp:g}, $k_v$ = {kv:g}"
            axes.set_title(title, fontsize=8.5, loc="left", fontweight="bold")
            if row:
                axes.set_xlabel("t, s")
            if not k:
                axes.set_ylabel("norm of the pose error")
    figure.axes[1].legend(fontsize=7, ncols=2, loc="upper right")
    figure.tight_layout()
    figure.savefig(HERE / "sa24_figure_9.png", dpi=130)


def closed_loop(space, robot, control, seconds, damping):
    """MuJoCo with the joints driven by the law, 1 ms; returns times and configurations."""
    rm, mujoco = space["rm"], space["mujoco"]

    def forces(robot, q, v):
        return control.forces(robot, q, v)

    law = rm.compile(forces, robot)
    model = space["mujoco_model"](robot)
    model.actuator_gainprm[:] = model.actuator_biasprm[:] = 0.0
    model.dof_damping[:] = damping
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    names = [f"{j.name}.{k}" for j in robot.joints for k in range(j.v.stop - j.v.start)]
    order = [model.joint(name).dofadr[0] for name in names]
    rows = []
    for step in range(round(seconds * 1000)):
        if step % 20 == 0:
            rows.append(data.qpos[order].copy())
        data.qfrc_applied[order] = law(data.qpos[order], data.qvel[order])
        mujoco.mj_step(model, data)
    return 0.02 * np.arange(len(rows)), np.array(rows)


with matplotlib.rc_context(STYLE):
    space, kept = run_page()
    waveforms(space, kept)
    robots(space)
    figure_9(space)
