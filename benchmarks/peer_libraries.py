"""The same robot and functions in Pinocchio and MuJoCo, for comparisons; tables of the times.

The peers are built from the robot's own data, joint by joint, and must reproduce Remora's results
before they are timed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.cli.kernel_timing import TIMED, Case, Result, States, reference, relative
from remora.dynamics.kernels.compiled import FUNCTIONS
from remora.errors import RemoraError
from remora.model.building.builder import Builder
from remora.model.layouts.layout import Layout
from remora.model.layouts.libraries import mujoco, pinocchio
from remora.model.robot import Body, Joint, Robot

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


def present(robot: Robot, threads: int) -> tuple[list[Pinocchio | MuJoCo], list[str]]:
    """Return the installed peers that support the robot's joints, and why others are missing."""
    peers: list[Pinocchio | MuJoCo] = []
    missing: list[str] = []
    for kind, package in zip(PEERS, ("pin", "mujoco-core"), strict=True):
        try:
            peers.append(kind(robot, threads))
        except ImportError:
            missing.append(f"{kind.name} is not installed (pip install {package})")
        except RemoraError as error:
            missing.append(f"{kind.name}: {error}")
    return peers, missing


# The table ---------------------------------------------------------------------------------------


def print_results(title: str, results: Sequence[Result], console: Console) -> None:
    """Print a row per function and mode, with the ratio of each library's time to Remora's."""
    libraries = list(dict.fromkeys(r.case.library for r in results if r.case.library != "Remora"))
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("µs per evaluation", no_wrap=True)
    for name in ("Remora", *(word for library in libraries for word in (library, "ratio"))):
        table.add_column(name, justify="right", no_wrap=True)
    without_loop = False
    for label, ours, others in compared(results):
        cells = [f"{1e6 * ours.seconds:.3f}"]
        for library in libraries:
            peer = others.get(library)
            borrowed = peer is not None and peer.case.states != ours.case.states
            without_loop |= borrowed
            cells += ["-", ""] if peer is None else [
                f"{1e6 * peer.seconds:.2f}{'*' if borrowed else ''}",
                f"{peer.seconds / ours.seconds:.1f}x",
            ]  # fmt: skip
        table.add_row(label, *cells)
    console.print(table)
    if without_loop:
        console.print("* its call for one state: it has no loop over a batch for this")
    for library in libraries:
        calls = dict.fromkeys(r.case.call for r in results if r.case.library == library)
        console.print(f"{library}: {', '.join(calls)}", soft_wrap=True)


def compared(results: Sequence[Result]) -> Iterator[tuple[str, Result, dict[str, Result]]]:
    """Yield, function by function, Remora's results and the peers' results for the same work.

    If a peer has no loop over a batch, the batch is compared with its call for one state. A peer
    that was timed on one thread only is compared on one thread.
    """
    for ours in sorted(
        (r for r in results if r.case.library == "Remora"),
        key=lambda r: list(TIMED).index(r.case.function),
    ):
        own = ours.case
        others: dict[str, Result] = {}
        for r in results:
            case = r.case
            if case.library == "Remora" or (case.function, case.dtype) != (own.function, own.dtype):
                continue
            same = (case.states, case.threads) == (own.states, own.threads)
            alone = case.states == 1 and not any(
                o.case.states > 1 and o.case.library == case.library for o in results
                if o.case.function == own.function
            )  # fmt: skip
            if same or (own.states > 1 and alone):
                others[case.library] = r
        label = TIMED[own.function] + ", one call"
        if own.states > 1:
            label = f"  batch of {own.states}, {own.threads} thread{'s' * (own.threads > 1)}"
        label += "" if own.dtype == "float64" else f", {own.dtype}"
        yield label, ours, others


# Robots ------------------------------------------------------------------------------------------


def chain(joints: int) -> Robot:
    """Return a free base with a chain of revolute joints, alternately about y and z."""
    builder = Builder(f"chain of {joints} joints")
    builder.body("bus", 400.0, (0.05, 0.0, 0.02), (60.0, 70.0, 80.0))
    for k in range(joints):
        parent, here = ("bus" if k == 0 else f"link_{k}"), f"link_{k + 1}"
        builder.body(here, 5.0, (0.2, 0.01, -0.02), (0.02, 0.08, 0.09))
        builder.joint(
            f"joint_{k + 1}", "revolute", parent, here,
            xyz=(0.8 if k == 0 else 0.4, 0.0, 0.0), axis=(0, 1, 0) if k % 2 else (0, 0, 1),
        )  # fmt: skip
    return builder.build()
