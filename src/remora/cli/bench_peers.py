"""Peer libraries of `remora bench`: the same robot and functions in Pinocchio and MuJoCo.

The peers are built from the robot's own data, joint by joint, and must reproduce Remora's results
before they are timed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.kernels.compiled import FUNCTIONS
from remora.errors import RemoraError
from remora.model.layouts.layout import Layout
from remora.model.layouts.libraries import mujoco, pinocchio
from remora.model.robot import Body, Joint, Robot
from remora.model.state import random_state

#: The timed functions and their names in the tables.
TIMED = {
    "forward_dynamics": "forward dynamics",
    "inverse_dynamics": "inverse dynamics",
    "mass_matrix": "mass matrix",
    "jacobian": "Jacobian",
}


@dataclass(frozen=True)
class Case:
    """One case to time.

    Attributes:
        function: key of TIMED.
        library: name of the library.
        call: name of the library's function.
        states: evaluations per call.
        threads: number of threads.
        dtype: floating-point type.
        run: the callable.
        arguments: its arguments.
        deviation: from Remora's NumPy reference, relative; NaN if it was not compared.
    """

    function: str
    library: str
    call: str
    states: int
    threads: int
    dtype: str
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    deviation: float = math.nan


@dataclass(frozen=True)
class States:
    """A batch of states of a robot; x is tau or vdot."""

    q: Array
    v: Array
    x: Array

    def arguments(self, function: str, alone: bool = False) -> tuple[Array, ...]:
        """Return a function's arguments as contiguous arrays; `alone`: the first state only."""
        count = {"forward_dynamics": 3, "inverse_dynamics": 3}.get(function, 1)
        chosen = (self.q, self.v, self.x)[:count]
        return tuple(np.ascontiguousarray(a[0] if alone else a) for a in chosen)


def random_states(robot: Robot, n: int) -> States:
    """Return n random states with random forces (or accelerations)."""
    q, v = random_state(robot, 0, (n,))
    return States(q, v, np.random.default_rng(1).normal(size=(n, robot.nv)))


def reference(robot: Robot, function: str, states: States) -> Array:
    """Return the result of the uncompiled function for the first state."""
    extra = {"target": robot.bodies[-1].name} if function == "jacobian" else {}
    return FUNCTIONS[function](robot, *states.arguments(function, alone=True), **extra)


def relative(value: Array, wanted: Array) -> float:
    """Return the largest difference relative to the largest value."""
    return float(np.max(np.abs(value - wanted)) / np.max(np.abs(wanted)))


# Pinocchio ---------------------------------------------------------------------------------------


class Pinocchio:
    """The robot in Pinocchio, and its functions; ImportError if Pinocchio is missing."""

    name = "Pinocchio"

    def __init__(self, robot: Robot, threads: int) -> None:
        """Build the model from the robot's data."""
        self.pin: Any = importlib.import_module("pinocchio")
        self.robot = robot
        self.model, self.last = _pinocchio_model(self.pin, robot)
        self.data = self.pin.Data(self.model)  # createData() would allocate its nv³ numbers twice
        self.pool = self.pin.ModelPool(self.model, threads)
        self.layout = pinocchio(robot, self.model)

    def cases(self, function: str, states: States, threads: Sequence[int]) -> Iterator[Case]:
        """Yield the Python call and, if there is one, the C++ loop over a batch."""
        pin, model, data = self.pin, self.model, self.data
        single = {
            "forward_dynamics": ("pin.aba", pin.aba, ()),
            "inverse_dynamics": ("pin.rnea", pin.rnea, ()),
            "mass_matrix": ("pin.crba", pin.crba, ()),
            "jacobian": ("pin.computeJointJacobian", pin.computeJointJacobian, (self.last,)),
        }
        many = {
            "forward_dynamics": ("pin.abaInParallel", pin.abaInParallel),
            "inverse_dynamics": ("pin.rneaInParallel", pin.rneaInParallel),
        }
        there = converted(self.layout, function, states)
        alone = tuple(np.ascontiguousarray(a[0]) for a in there)
        call, run, extra = single[function]
        arguments = (model, data, *alone, *extra)
        error = self._deviation(function, states, run(*arguments))
        yield Case(function, self.name, call, 1, 1, "float64", run, arguments, error)
        if function in many:
            call, run = many[function]
            columns = [np.asfortranarray(a.T) for a in there]  # one state per column
            out = np.zeros((model.nv, len(states.q)), order="F")
            for count in threads:
                arguments = (count, self.pool, *columns, out)
                run(*arguments)
                error = self._deviation(function, states, out[:, 0])
                yield Case(
                    function, self.name, call, len(states.q), count, "float64", run, arguments,
                    error,
                )  # fmt: skip

    def _deviation(self, function: str, states: States, value: Array) -> float:
        if function == "mass_matrix":  # only the upper triangle is computed
            value = np.triu(value) + np.triu(value, 1).T
        if function == "jacobian":  # its twists have the linear velocity first
            value = value[[3, 4, 5, 0, 1, 2]]
        return deviation(self.robot, self.layout, function, states, value)


def converted(layout: Layout, function: str, states: States) -> tuple[Array, ...]:
    """Return the batch in another library's layout: q, v and tau or vdot."""
    q, v, x = states.q, states.v, states.x
    moved = (layout.q_to(q), layout.v_to(q, v))
    if function == "forward_dynamics":
        return (*moved, layout.tau_to(q, x))
    if function == "inverse_dynamics":
        return (*moved, layout.vdot_to(q, v, x))
    return moved[:1]


def deviation(robot: Robot, layout: Layout, function: str, states: States, value: Array) -> float:
    """Return the deviation of a peer's result for the first state from Remora's reference.

    Matrices are compared by their products with the velocity: v·H v, J v.
    """
    q, v = states.q[0], states.v[0]
    wanted = reference(robot, function, states)
    there = layout.v_to(q, v)
    if function == "forward_dynamics":
        return relative(layout.vdot_from(q, v, value), wanted)
    if function == "inverse_dynamics":
        return relative(layout.tau_from(q, value), wanted)
    if function == "mass_matrix":
        return relative(there @ value @ there, v @ wanted @ v)
    return relative(value @ there, wanted @ v)


def _pinocchio_model(pin: Any, robot: Robot) -> tuple[Any, int]:
    """Return the model and the index of the last body's joint.

    Revolute joints about a coordinate axis use the specialized joint for that axis, as Pinocchio's
    own URDF reader does, because it is faster.
    """
    model = pin.Model()
    model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    ids: list[int] = []
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        if joint.kind not in _PINOCCHIO or joint.mimic is not None or np.any(joint.rotor_inertia):
            raise RemoraError(f"this benchmark has no {joint.kind} joint ({joint.name}) for it")
        parent = 0 if joint.parent < 0 else ids[joint.parent]
        there = _PINOCCHIO[joint.kind](pin, joint)
        i = model.addJoint(parent, there, _se3(pin, joint.placement), joint.name)
        model.appendBodyToJoint(i, _inertia(pin, body), pin.SE3.Identity())
        ids.append(i)
    return model, ids[-1]


def _turning(pin: Any, joint: Joint) -> Any:
    axis = joint.axes[0].tolist()
    aligned = {(1, 0, 0): "JointModelRX", (0, 1, 0): "JointModelRY", (0, 0, 1): "JointModelRZ"}
    name = aligned.get(tuple(axis))
    return getattr(pin, name)() if name else pin.JointModelRevoluteUnaligned(np.array(axis))


_PINOCCHIO: dict[str, Callable[[Any, Joint], Any]] = {
    "revolute": _turning,
    "prismatic": lambda pin, j: pin.JointModelPrismaticUnaligned(np.array(j.axes[0])),
    "helical": lambda pin, j: pin.JointModelHelicalUnaligned(np.array(j.axes[0]), float(j.pitch)),
    "cartesian": lambda pin, j: pin.JointModelTranslation(),
    "spherical": lambda pin, j: pin.JointModelSpherical(),
    "free": lambda pin, j: pin.JointModelFreeFlyer(),
}


def _inertia(pin: Any, body: Body) -> Any:
    return pin.Inertia(float(body.mass), np.array(body.com), np.array(body.inertia))


def _se3(pin: Any, x: Array) -> Any:
    return pin.SE3(pose.to_rotation_matrix(x), pose.translation(x))


# MuJoCo ------------------------------------------------------------------------------------------


class MuJoCo:
    """The robot in MuJoCo, without shapes, contacts, limits or sensors, and its functions."""

    name = "MuJoCo"

    def __init__(self, robot: Robot, threads: int) -> None:
        """Build the model from the robot's data."""
        self.mujoco: Any = importlib.import_module("mujoco")
        self.rollout: Any = importlib.import_module("mujoco.rollout")
        self.robot = robot
        self.model = self.mujoco.MjModel.from_xml_string(_mjcf(robot))
        self.data = [self.mujoco.MjData(self.model) for _ in range(threads)]
        self.layout = mujoco(robot, self.model)

    def cases(self, function: str, states: States, threads: Sequence[int]) -> Iterator[Case]:
        """Yield the Python call (set state, copy result), and a batch step for forward dynamics."""
        call, run = getattr(self, f"_{function}")()
        there = converted(self.layout, function, states)
        alone = tuple(np.ascontiguousarray(a[0]) for a in there)
        value = run(*alone)
        if function == "jacobian":  # in world axes
            q = states.q[:1]
            R = pose.to_rotation_matrix(FUNCTIONS["poses"](self.robot, q)[0, -1])
            value = np.concatenate([R.T @ value[:3], R.T @ value[3:]])
        error = deviation(self.robot, self.layout, function, states, value)
        yield Case(function, self.name, call, 1, 1, "float64", run, alone, error)
        if function == "forward_dynamics":
            for count in threads:
                step, arguments = self._steps(there, count)
                yield Case(
                    function, self.name, "rollout, one mj_step", len(states.q), count, "float64",
                    step, arguments,
                )  # fmt: skip

    def _forward_dynamics(self) -> tuple[str, Callable[..., Array]]:
        model, data, forward = self.model, self.data[0], self.mujoco.mj_forward
        qpos, qvel, applied, qacc = data.qpos, data.qvel, data.qfrc_applied, data.qacc

        def run(q: Array, v: Array, tau: Array) -> Array:
            qpos[:] = q
            qvel[:] = v
            applied[:] = tau
            forward(model, data)
            return qacc.copy()

        return "mj_forward", run

    def _inverse_dynamics(self) -> tuple[str, Callable[..., Array]]:
        model, data, inverse = self.model, self.data[0], self.mujoco.mj_inverse
        qpos, qvel, qacc, result = data.qpos, data.qvel, data.qacc, data.qfrc_inverse

        def run(q: Array, v: Array, vdot: Array) -> Array:
            qpos[:] = q
            qvel[:] = v
            qacc[:] = vdot
            inverse(model, data)
            return result.copy()

        return "mj_inverse", run

    def _mass_matrix(self) -> tuple[str, Callable[..., Array]]:
        model, data, lib = self.model, self.data[0], self.mujoco
        qpos, nv = data.qpos, int(self.model.nv)

        def run(q: Array) -> Array:
            qpos[:] = q
            lib.mj_kinematics(model, data)
            lib.mj_comPos(model, data)
            lib.mj_crb(model, data)
            M = np.empty((nv, nv))
            lib.mj_fullM(model, data, M)
            return M

        return "mj_crb, mj_fullM", run

    def _jacobian(self) -> tuple[str, Callable[..., Array]]:
        model, data, lib = self.model, self.data[0], self.mujoco
        qpos, nv = data.qpos, int(self.model.nv)
        body = int(model.body(self.robot.bodies[-1].name).id)

        def run(q: Array) -> Array:
            qpos[:] = q
            lib.mj_kinematics(model, data)
            lib.mj_comPos(model, data)
            J = np.empty((6, nv))
            lib.mj_jacBody(model, data, J[3:], J[:3], body)
            return J

        return "mj_jacBody", run

    def _steps(self, there: tuple[Array, ...], count: int) -> tuple[Callable[..., Any], Any]:
        q, v, tau = there
        n, size = len(q), 1 + q.shape[1] + v.shape[1]
        start = np.concatenate([np.zeros((n, 1)), q, v], axis=1)
        forces = np.ascontiguousarray(tau[:, None, :])
        out, sensors = np.empty((n, 1, size)), np.empty((n, 1, 0))
        spec = int(self.mujoco.mjtState.mjSTATE_QFRC_APPLIED)
        pool = self.rollout.Rollout(nthread=count if count > 1 else 0)
        data = self.data[: max(1, count)]

        def run(start: Array, forces: Array) -> Any:
            return pool.rollout(
                self.model, data, start, forces, control_spec=spec, nstep=1, state=out,
                sensordata=sensors,
            )  # fmt: skip

        return run, (start, forces)


def _mjcf(robot: Robot) -> str:
    """Return the robot as MJCF text, one joint per degree of freedom."""

    def numbers(values: Any) -> str:
        return " ".join(repr(float(x)) for x in np.ravel(values))

    def element(i: int) -> str:
        body, joint = robot.bodies[i], robot.joints[i]
        if joint.kind not in _MUJOCO or joint.mimic is not None or np.any(joint.rotor_inertia):
            raise RemoraError(f"this benchmark has no {joint.kind} joint ({joint.name}) for it")
        kind, x, I = _MUJOCO[joint.kind], joint.placement, body.inertia
        axis = f' axis="{numbers(joint.axes[0])}"' if len(joint.axes) else ""
        full = numbers([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
        inside = f'<joint type="{kind}"{axis}/><inertial pos="{numbers(body.com)}" '
        inside += f'mass="{numbers(body.mass)}" fullinertia="{full}"/>'
        inside += "".join(element(k) for k, j in enumerate(robot.joints) if j.parent == i)
        at = f'pos="{numbers(pose.translation(x))}" quat="{numbers(quaternion.normalize(x[:4]))}"'
        return f'<body name="{body.name}" {at}>{inside}</body>'

    flags = ("constraint", "contact", "limit", "sensor", "actuation", "eulerdamp")
    off = " ".join(f'{flag}="disable"' for flag in flags)
    roots = "".join(element(k) for k, j in enumerate(robot.joints) if j.parent < 0)
    return (
        f'<mujoco><compiler angle="radian" autolimits="false"/>'
        f'<option gravity="{numbers(robot.gravity)}"><flag {off}/></option>'
        f"<worldbody>{roots}</worldbody></mujoco>"
    )


_MUJOCO = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}

PEERS = (Pinocchio, MuJoCo)
