"""Make the film of the README: a servicer unfolds its arm and reaches for a target.

    python docs/pictures/make_film.py

Needs `remora[film]` and Chromium. WebGL runs in software: it takes some minutes.
"""

from pathlib import Path

import numpy as np

import remora as rm
from remora.algebra import pose

HERE = Path(__file__).parent
#: Joint angles of the arm folded against the bus, and half open, rad.
FOLDED = np.radians([0.0, 110.0, 0.0, -145.0, 0.0, 100.0, 0.0])
OPEN = np.radians([20.0, 50.0, 0.0, -90.0, 0.0, 60.0, 45.0])
#: Position of the target relative to the tool when the arm is open, inertial axes, m.
AHEAD = np.array([0.85, 0.30, -0.30])
UNFOLDING, REACHING, HOLDING = 14.0, 14.0, 4.0


def reached() -> rm.Recording:
    """Return the run in which the tool reaches its target, the base floating."""
    robot = rm.load("servicer")
    q, rest = rm.neutral(robot), np.zeros(robot.nv)
    q[8:] = FOLDED
    names = [joint.name for joint in robot.joints[1:]]
    motions = {
        name: rm.Motion.between(0.0, UNFOLDING, a, b)
        for name, a, b in zip(names, FOLDED, OPEN, strict=True)
    }
    unfold = rm.Phase(UNFOLDING, prescribed=motions, name="unfold")
    opened = rm.simulate(robot, q, rest, [unfold], integrator=rm.Integrator(rtol=1e-12, atol=1e-13))
    start = opened.frame_pose("tool")[-1]
    target = pose.from_parts(pose.rotation(start), pose.translation(start) + AHEAD)
    robot = robot.replace(frames=[*robot.frames, rm.Frame("target", -1, target)])
    plan = rm.plan_reach(robot, opened.q[-1], "tool", "target", REACHING)
    reach = rm.Phase(REACHING, prescribed=plan.motions, own_clock=True, name="reach")
    hold = rm.Phase(HOLDING, locked=names, name="hold", impulse=True)
    return rm.simulate(
        robot,
        q,
        rest,
        [unfold, reach, hold],
        integrator=rm.Integrator(rtol=1e-12, atol=1e-13, step_to_samples=True),
        record=0.05,
    )


run = reached()
caption = "A servicer reaches for a target; its base floats and recoils"
for name, camera, fps in (("servicer.gif", "still", 10), ("servicer.mp4", "approach", 15)):
    file = rm.render(
        run, HERE / name, seconds=8.0, fps=fps, size=(640, 360), camera=camera, caption=caption
    )
    print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB")
