"""SA24, section V-D: five end-effectors of a mobile branched manipulator driven to their poses.

The law is the paper's (12): wrenches at the end-effectors, propagated to the joints, plus gravity.
MuJoCo simulates the robot if it is installed; see docs/sa24.md for the comparison with a law that
linearizes the motion.
"""

import sys

import numpy as np

import remora as rm

try:
    import mujoco
except ImportError:
    sys.exit("this example needs MuJoCo: python3 -m pip install mujoco")

POSE = rm.algebra.pose
assembly = rm.load_assembly("sa24_mobile")
robot = assembly.to_robot("MBM")
print(f"{robot.name}: {robot.nv} degrees of freedom, {len(assembly.parts)} subsystems")

# Targets: poses at other joint angles of the arms; 7 holds its start
goal = np.random.default_rng(4).uniform(-0.4, 0.4, size=robot.nv)
for name in "1267":
    goal[assembly.part(name).v] = 0.0
ends = [f"{k}/link3_dh" for k in (4, 5, 7, 9, 10)]
targets = {end: rm.frame_pose(robot, goal, end) for end in ends}
control = rm.control.EndEffectorWrenchControl(robot, targets, kp=40.0, kv=20.0, law="printed")


def simulator():
    """The robot in MuJoCo, with damped joints and no actuators."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep, spec.option.gravity = 1e-3, robot.gravity
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    slide, hinge = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE
    kinds = {"revolute": [hinge], "prismatic": [slide], "planar": [slide, slide, hinge]}
    made = []
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        on, I = (made[joint.parent] if joint.parent >= 0 else spec.worldbody), body.inertia
        made.append(on.add_body(
            pos=POSE.translation(joint.placement), quat=joint.placement[:4], ipos=body.com,
            mass=float(body.mass), explicitinertial=True,
            fullinertia=[I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]],
        ))  # fmt: skip
        axes = np.eye(3) if joint.kind == "planar" else joint.axes
        for k, (kind, axis) in enumerate(zip(kinds[joint.kind], axes, strict=True)):
            made[-1].add_joint(
                name=f"{joint.name}.{k}", type=kind, axis=axis, damping=[0.5, 0.0, 0.0]
            )
    return spec.compile()


def forces(robot, q, v):
    """The control law as a function of a robot, to be compiled."""
    return control.forces(robot, q, v)


law = rm.compile(forces, robot)
model = simulator()
data = mujoco.MjData(model)
names = [f"{j.name}.{k}" for j in robot.joints for k in range(j.v.stop - j.v.start)]
order = [model.joint(name).dofadr[0] for name in names]
for second in range(13):
    if second % 3 == 0:
        errors = control.errors(robot, data.qpos[order])
        print(
            f"t = {second:2d} s  errors", np.round(errors, 4), f" all {np.linalg.norm(errors):.4f}"
        )
    for _ in range(1000):
        data.qfrc_applied[order] = law(data.qpos[order], data.qvel[order])
        mujoco.mj_step(model, data)
print("settled below 1 % of the start:", bool(np.linalg.norm(errors) < 0.01 * 0.57))
