"""The same robot in adam (its JAX back end) and frax, for benchmarks/dynamics.py.

Both read URDF, so the robot is written as one: revolute joints on a floating base only. Functions
are jitted, batches made with vmap, 64-bit numbers; results stay JAX arrays, which is kinder to
them than a conversion to NumPy. XLA is asked for one thread, and what it starts anyway is its own.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import remora as rm
from remora.algebra import pose
from remora.algebra.quaternion import rotate
from remora.cli.peers import Case, States, reference, relative
from remora.errors import RemoraError

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)


def urdf_text(robot: rm.Robot) -> str:
    """Write a robot with revolute joints as URDF; the base has no joint there."""

    def numbers(values):
        return " ".join(repr(float(x)) for x in np.ravel(values))

    lines = [f'<robot name="{robot.name}">']
    for body in robot.bodies:
        I = body.inertia
        lines.append(
            f'<link name="{body.name}"><inertial><origin xyz="{numbers(body.com)}"/>'
            f'<mass value="{numbers(body.mass)}"/><inertia ixx="{I[0, 0]}" ixy="{I[0, 1]}" '
            f'ixz="{I[0, 2]}" iyy="{I[1, 1]}" iyz="{I[1, 2]}" izz="{I[2, 2]}"/></inertial></link>'
        )
    for body, joint in list(zip(robot.bodies, robot.joints, strict=True))[1:]:
        if joint.kind != "revolute":
            raise RemoraError(f"only revolute joints are written, not {joint.kind}")
        x = joint.placement
        lines.append(
            f'<joint name="{joint.name}" type="revolute"><parent link="'
            f'{robot.bodies[joint.parent].name}"/><child link="{body.name}"/><origin xyz="'
            f'{numbers(pose.translation(x))}" rpy="{numbers(pose.to_rpy(x))}"/><axis xyz="'
            f'{numbers(joint.axes[0])}"/><limit lower="-10" upper="10" effort="1e9" '
            'velocity="1e9"/></joint>'
        )
    return "\n".join([*lines, "</robot>"])


class Jax:
    """What adam and frax share: jitted functions of one state, mapped over a batch."""

    name = ""

    def __init__(self, robot: rm.Robot) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.jax.config.update("jax_platforms", "cpu")
        self.robot = robot

    def cases(self, function: str, states: States, threads) -> Iterator[Case]:
        """Yield the jitted call and the mapped batch; nothing where the library has no such."""
        made = self.function(function, states)
        if made is None:
            return
        call, run, arrays, check = made
        put = self.jax.numpy.asarray
        alone = [put(a[0]) for a in arrays]
        many = [put(a) for a in arrays]
        one, mapped = self.jax.jit(run), self.jax.jit(self.jax.vmap(run))
        error = check(np.asarray(one(*alone)))
        for states_in, f, arguments in ((1, one, alone), (len(states.q), mapped, many)):

            def ready(*a, f=f):
                return f(*a).block_until_ready()

            label = f"jit({call})" if states_in == 1 else f"jit(vmap({call}))"
            yield Case(
                function, self.name, label, states_in, 1, "float64", ready, tuple(arguments), error
            )


class Adam(Jax):
    """adam-robotics: aba, crba, Jacobian; it has no inverse dynamics with accelerations."""

    name = "adam"

    def __init__(self, robot: rm.Robot) -> None:
        super().__init__(robot)
        adam = importlib.import_module("adam")
        self.computations = importlib.import_module("adam.jax").KinDynComputations(
            urdf_text(robot), list(robot.joints.names)[1:], gravity=self.jax.numpy.zeros(6)
        )
        self.computations.set_frame_velocity_representation(
            adam.Representations.BODY_FIXED_REPRESENTATION
        )

    def function(self, function: str, states: States):
        dyn, robot = self.computations, self.robot
        q, v, x = states.q, states.v, states.x
        place = np.zeros((len(q), 4, 4))
        place[:, :3, :3] = pose.to_rotation_matrix(q[:, :8])
        place[:, :3, 3], place[:, 3, 3] = pose.translation(q[:, :8]), 1.0
        swapped = np.r_[3, 4, 5, 0, 1, 2, 6 : robot.nv]  # its twists have the velocity first
        wanted = reference(robot, function, states)
        if function == "forward_dynamics":
            # no wrench on the base, and v̇ measured as the spatial acceleration
            def run(place, q, v, tau):
                return dyn.aba(place, q, v[:6], v[6:], tau)

            arrays = (place, q[:, 8:], v[:, swapped], x[:, 6:])

            def check(value):
                no_base = np.r_[np.zeros(6), x[0, 6:]]
                expected = rm.forward_dynamics(robot, q[0], v[0], no_base)
                return relative(value[6:], expected[6:])

            return "aba", run, arrays, check
        if function == "mass_matrix":

            def check(value):
                return relative(value[np.ix_(swapped, swapped)], wanted)

            return "mass_matrix", dyn.mass_matrix, (place, q[:, 8:]), check
        if function == "jacobian":
            last = robot.bodies[-1].name

            def run(place, q):
                return dyn.jacobian(last, place, q)

            def check(value):
                return relative(value[swapped[:6]][:, swapped], wanted)

            return "jacobian", run, (place, q[:, 8:]), check
        return None


class Frax(Jax):
    """frax: forward dynamics through the mass matrix, inverse dynamics, mass matrix."""

    name = "frax"

    def __init__(self, robot: rm.Robot) -> None:
        super().__init__(robot)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice on settings, made before ours are seen
            frax = importlib.import_module("frax")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "robot.urdf"
            file.write_text(urdf_text(robot), encoding="utf-8")
            self.there = frax.Robot(
                str(file), joint_ordering=list(robot.joints.names)[1:], floating_base="quaternion"
            )

    def function(self, function: str, states: States):
        there, robot, q, v, x = self.there, self.robot, states.q, states.v, states.x
        turn, heavy = q[:, :4], dataclasses.replace(robot, gravity=np.array([0, 0, -9.81]))
        q_there = np.concatenate([pose.translation(q[:, :8]), turn, q[:, 8:]], axis=1)
        moved = [
            np.concatenate([rotate(turn, a[:, 3:6]), a[:, :3], a[:, 6:]], axis=1) for a in (v, x)
        ]
        if function == "forward_dynamics":  # its gravity cannot be switched off

            def run(q, v, tau):
                return there.forward_dynamics(q, v, tau, None)

            def check(value):
                return relative(value[6:], rm.forward_dynamics(heavy, q[0], v[0], x[0])[6:])

            return "forward_dynamics", run, (q_there, *moved), check
        if function == "inverse_dynamics":
            omega, along = v[:, :3], v[:, 3:6]
            moved[1] = np.concatenate(
                [rotate(turn, x[:, 3:6] + np.cross(omega, along)), x[:, :3], x[:, 6:]], axis=1
            )

            def run(q, v, a):
                return there.rnea(q, v, a, None, None)

            def check(value):
                return relative(value[6:], reference(robot, function, states)[6:])

            return "rnea", run, (q_there, *moved), check
        if function == "mass_matrix":

            def check(value):
                wanted = v[0] @ reference(robot, function, states) @ v[0]
                return relative(moved[0][0] @ value @ moved[0][0], wanted)

            return "crba", there.crba, (q_there,), check
        return None
