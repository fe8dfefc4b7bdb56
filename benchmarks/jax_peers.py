"""The same robot in adam (JAX back end) and frax, for benchmarks/dynamics.py and gpu_peers.py.

Both read URDF, so the robot is exported to URDF: revolute joints on a free base only. Functions are
jitted and batched with vmap. Results stay JAX arrays, which favours the peers over a conversion to
NumPy. On the CPU, XLA is configured for one thread, but may start more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import remora as rm
from remora.algebra import dual_quaternion, pose
from remora.cli.kernel_timing import Case, States, reference, relative
from remora.errors import RemoraError

# JAX reads these at startup: one thread, and no preallocation of GPU memory that others need.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

#: A peer's version of a function: the name of its call, the function of one state, its arguments
#: for all states, and check(value, i), the relative deviation from our value for state i.
Made = tuple[str, Callable[..., Any], tuple[np.ndarray, ...], Callable[[np.ndarray, int], float]]


def urdf_text(robot: rm.Robot) -> str:
    """Return a robot with revolute joints as URDF, without a joint for the base."""

    def numbers(values):
        return " ".join(repr(float(x)) for x in np.ravel(values))

    if robot.joints[0].kind != "free":
        raise RemoraError("only robots with a free base are written")
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


def alone(states: States, i: int) -> States:
    """Return state i as a batch of one."""
    return States(states.q[i : i + 1], states.v[i : i + 1], states.x[i : i + 1])


def base_poses(robot: rm.Robot, q: np.ndarray) -> np.ndarray:
    """Return the base's poses in the world, including the placement of its joint."""
    return dual_quaternion.mul(robot.joints[0].placement, q[:, :8])


class Jax:
    """Base class of the JAX peers: jitted functions of one state, mapped over a batch.

    A float32 and a float64 peer can coexist in one process: x64 mode is enabled only while tracing,
    and a batch is compiled ahead of time.

    Args:
        robot: a robot with revolute joints on a free base.
        dtype: "float64" or "float32".
        platform: "cpu" or "cuda".

    Raises:
        ImportError: if JAX or the library is not installed.
        RemoraError: if JAX has no such device, or the library does not support the robot.
    """

    name = ""

    def __init__(self, robot: rm.Robot, dtype: str = "float64", platform: str = "cpu") -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        if platform == "cpu":
            self.jax.config.update("jax_platforms", "cpu")
        try:
            self.device = self.jax.devices(platform)[0]
        except RuntimeError as error:
            raise RemoraError(f"JAX has no {platform} device here ({error})") from None
        self.robot, self.dtype = robot, np.dtype(dtype)

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        """Trace for this peer's device and precision, with full-precision products (no TF32)."""
        jax = self.jax
        x64 = getattr(jax, "enable_x64", None)
        if x64 is None:  # before JAX 0.8
            x64 = importlib.import_module("jax.experimental").enable_x64
        with (
            x64(self.dtype == np.float64),
            jax.default_device(self.device),
            jax.default_matmul_precision("highest"),
        ):
            yield

    def put(self, array: np.ndarray) -> Any:
        """Return the array on the device, in this peer's precision."""
        return self.jax.device_put(np.asarray(array, self.dtype), self.device)

    def function(self, function: str, states: States) -> Made | None:
        """Return the library's version of a function in TIMED."""
        raise NotImplementedError

    def batch(
        self, function: str, q: np.ndarray, v: np.ndarray, x: np.ndarray, checked: int = 4
    ) -> tuple[str, Callable[[], Any], float] | None:
        """Compile a function for a batch and compare its first results with Remora's.

        Args:
            function: key of TIMED.
            q: configurations in Remora's layout, (n, nq).
            v: velocities, (n, nv).
            x: forces or accelerations, (n, nv).
            checked: number of states compared.

        Returns:
            The call's name; a callable that evaluates all states, which are on the device, and
            waits for the result; the largest relative deviation. None if there is no such function.

        Raises:
            RemoraError: if the device cannot run it, or it computes in another precision.
        """
        states = States(q, v, x)
        with self.settings():
            made = self.function(function, states)
            if made is None:
                return None
            call, run, arrays, check = made
            try:
                many = [self.put(a) for a in arrays]
                mapped = self.jax.jit(self.jax.vmap(run)).lower(*many).compile()
                value = np.asarray(mapped(*many)[:checked])
            except RuntimeError as error:  # from XLA: usually out of memory
                raise RemoraError(f"{self.name} {call} of {len(q)} states: {error}") from None
        if value.dtype != self.dtype:
            raise RemoraError(f"{self.name} computes in {value.dtype}, not in {self.dtype}")
        wide = value.astype(np.float64)
        error = max(check(wide[i], i) for i in range(len(wide)))

        def ready() -> Any:
            return mapped(*many).block_until_ready()

        return f"jit(vmap({call}))", ready, error

    def cases(self, function: str, states: States, threads) -> Iterator[Case]:
        """Yield the jitted call and the mapped batch; nothing if the library lacks the function."""
        with self.settings():
            made = self.function(function, states)
        if made is None:
            return
        call, run, arrays, check = made
        single = [self.put(a[0]) for a in arrays]
        many = [self.put(a) for a in arrays]
        with self.settings():
            one = self.jax.jit(run).lower(*single).compile()
            mapped = self.jax.jit(self.jax.vmap(run)).lower(*many).compile()
        error = check(np.asarray(one(*single), np.float64), 0)
        for states_in, f, arguments in ((1, one, single), (len(states.q), mapped, many)):

            def ready(*a, f=f):
                return f(*a).block_until_ready()

            label = f"jit({call})" if states_in == 1 else f"jit(vmap({call}))"
            yield Case(
                function, self.name, label, states_in, 1, str(self.dtype), ready,
                tuple(arguments), error,
            )  # fmt: skip


class Adam(Jax):
    """adam-robotics: ABA, CRBA, Jacobian; it has no inverse dynamics with accelerations."""

    name = "adam"

    def __init__(self, robot: rm.Robot, dtype: str = "float64", platform: str = "cpu") -> None:
        super().__init__(robot, dtype, platform)
        adam = importlib.import_module("adam")
        computations = importlib.import_module("adam.jax").KinDynComputations
        with self.settings():
            self.computations = computations(
                urdf_text(robot),
                list(robot.joints.names)[1:],
                gravity=self.put(np.r_[robot.gravity, 0.0, 0.0, 0.0]),
                dtype=self.dtype.type,
            )
        # It sets the device of every array it creates, which JAX after 0.6 refuses while tracing.
        self.computations.rbdalgos.math.factory._device = None
        self.computations.set_frame_velocity_representation(
            adam.Representations.BODY_FIXED_REPRESENTATION
        )

    def function(self, function: str, states: States) -> Made | None:
        dyn, robot = self.computations, self.robot
        q, v, x = states.q, states.v, states.x
        base = base_poses(robot, q)
        place = np.zeros((len(q), 4, 4))
        place[:, :3, :3] = pose.to_rotation_matrix(base)
        place[:, :3, 3], place[:, 3, 3] = pose.translation(base), 1.0
        swapped = np.r_[3, 4, 5, 0, 1, 2, 6 : robot.nv]  # its twists have the linear velocity first
        if function == "forward_dynamics":  # no wrench on the base

            def run(place, q, v, tau):
                return dyn.aba(place, q, v[:6], v[6:], tau)

            arrays = (place, q[:, 8:], v[:, swapped], x[:, 6:])

            def check(value, i):
                no_base = np.r_[np.zeros(6), x[i, 6:]]
                wanted = rm.forward_dynamics(robot, q[i], v[i], no_base)
                return relative(value[swapped], wanted)

            return "aba", run, arrays, check
        if function == "mass_matrix":

            def check(value, i):
                wanted = reference(robot, function, alone(states, i))
                return relative(value[np.ix_(swapped, swapped)], wanted)

            return "mass_matrix", dyn.mass_matrix, (place, q[:, 8:]), check
        if function == "jacobian":
            last = robot.bodies[-1].name

            def run(place, q):
                return dyn.jacobian(last, place, q)

            def check(value, i):
                wanted = reference(robot, function, alone(states, i))
                return relative(value[swapped[:6]][:, swapped], wanted)

            return "jacobian", run, (place, q[:, 8:]), check
        return None


class Frax(Jax):
    """frax: forward dynamics through the mass matrix, inverse dynamics, mass matrix."""

    name = "frax"

    def __init__(self, robot: rm.Robot, dtype: str = "float64", platform: str = "cpu") -> None:
        super().__init__(robot, dtype, platform)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice on settings, issued before ours take effect
            frax = importlib.import_module("frax")
        with tempfile.TemporaryDirectory() as folder, self.settings():
            file = Path(folder) / "robot.urdf"
            file.write_text(urdf_text(robot), encoding="utf-8")
            self.there = frax.Robot(
                str(file), joint_ordering=list(robot.joints.names)[1:], floating_base="quaternion"
            )

    def function(self, function: str, states: States) -> Made | None:
        there, robot, q, v, x = self.there, self.robot, states.q, states.v, states.x
        base = base_poses(robot, q)
        q_there = np.concatenate([pose.translation(base), base[:, :4], q[:, 8:]], axis=1)
        # Its base velocity is [linear in world axes, angular in body axes]: v' = T v with an
        # orthogonal T, and v̇' has the additional term R(ω × v).
        R = pose.to_rotation_matrix(base)

        def to(a):
            turned = np.einsum("nij,nj->ni", R, a[:, 3:6])
            return np.concatenate([turned, a[:, :3], a[:, 6:]], axis=1)

        def back(a, i):
            return np.r_[a[3:6], R[i].T @ a[:3], a[6:]]

        turning = np.zeros_like(v)
        turning[:, 3:6] = np.cross(v[:, :3], v[:, 3:6])
        if function == "forward_dynamics":  # its gravity cannot be switched off
            heavy = dataclasses.replace(robot, gravity=np.array([0.0, 0.0, -9.81]))

            def run(q, v, tau):
                return there.forward_dynamics(q, v, tau, None)

            def check(value, i):
                wanted = rm.forward_dynamics(heavy, q[i], v[i], x[i])
                return relative(back(value, i) - turning[i], wanted)

            return "forward_dynamics", run, (q_there, to(v), to(x)), check
        if function == "inverse_dynamics":
            upwards = None if not np.any(robot.gravity) else np.r_[-robot.gravity, 0.0, 0.0, 0.0]

            def run(q, v, a):
                g = None if upwards is None else upwards.astype(q.dtype)
                return there.rnea(q, v, a, g, None)

            def check(value, i):
                return relative(back(value, i), reference(robot, function, alone(states, i)))

            return "rnea", run, (q_there, to(v), to(x + turning)), check
        if function == "mass_matrix":

            def check(value, i):
                half = np.stack([back(row, i) for row in value])
                ours = np.stack([back(column, i) for column in half.T])
                return relative(ours, reference(robot, function, alone(states, i)))

            return "crba", there.crba, (q_there,), check
        return None
