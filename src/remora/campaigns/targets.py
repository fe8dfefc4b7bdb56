"""Targets of dispersions: numbers of the robot, of components and of the initial state, by name.

| name | number |
| --- | --- |
| `arm.mass`, `elbow.damping[0]` | of the robot, see `rm.compile` |
| `attitude.kp[2]` | parameter of a component |
| `design.arm.mass` | of the design, with which control laws compute, see `System` |
| `start.joints.elbow`, `start.speeds.elbow` | initial coordinate and speed of a joint |
| `start.base.xyz[0]`, `rpy`, `omega`, `velocity` | initial state of a free base |
| `start.bases.JOINT.xyz[0]`, ... | the same of one of several free bases, or of any free joint |

An element of several numbers is written with its index, `bus.com[2]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, asarray
from remora.components.context import DESIGN
from remora.components.system import System
from remora.dynamics.kernels.parameters import value_of
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import in_coordinates, kind
from remora.model.robot import Robot

_INDEX = re.compile(r"^(?P<name>.*?)\[(?P<index>\d+(?:,\d+)*)\]$")
#: Initial state of a free base: name, first index in [xyz, rpy] or in v.
_BASE = {"xyz": 0, "rpy": 3, "omega": 0, "velocity": 3}


@dataclass(frozen=True)
class Target:
    """One dispersed number.

    Attributes:
        name: its name in the study.
        part: `parameter`, `q`, `v` or `base`.
        key: name of the array that holds it, within its part; of a base the joint.
        index: its place in that array.
        nominal: its value in the scenario.
    """

    name: str
    part: str
    key: str
    index: tuple[int, ...]
    nominal: float


@dataclass(frozen=True)
class RunInputs:
    """What differs from run to run, with one leading axis of n runs.

    Attributes:
        q: initial configurations, `(n, nq)`.
        v: initial velocities, `(n, nv)`.
        parameters: of the robot and of components, by name.
    """

    q: Array
    v: Array
    parameters: dict[str, Array]


def target(system: System, q: Array, v: Array, name: str) -> Target:
    """Return the target of a name, or raise.

    Args:
        system: the robot with its components.
        q: initial configuration of the scenario, `(nq,)`.
        v: initial velocity of the scenario, `(nv,)`.
        name: see the top of this file.
    """
    found = _INDEX.match(name)
    plain = found["name"] if found else name
    index = tuple(map(int, found["index"].split(","))) if found else ()
    part, key, values, first = _array(system, q, v, plain)
    if not found and values.shape == (1,):  # one number, such as the stiffness of a hinge
        index = (0,)
    if len(index) != values.ndim:
        if not values.ndim:
            raise InvalidValue("is one number: leave out the index")
        one = f"{plain}[{','.join('0' * values.ndim)}]"
        raise InvalidValue(f"has the shape {values.shape}: name one number of it, such as {one}")
    if any(i >= n for i, n in zip(index, values.shape, strict=True)):
        raise InvalidValue(f"has the shape {values.shape}: there is no element {list(index)}")
    place = (first + index[0],) if first is not None and index else index
    place = (first,) if first is not None and not index else place
    return Target(name, part, key, place, float(values[index]))


def _array(system: System, q: Array, v: Array, name: str) -> tuple[str, str, Array, int | None]:
    """Return part, key, nominal values, and where they begin in q or v, or raise."""
    robot = system.robot
    head, _, rest = name.partition(".")
    if head == "start":
        return _start(robot, q, v, rest)
    mine = system.parameters
    of_component = head in system.components and name not in mine
    if of_component and head not in (*robot.bodies.names, *robot.joints.names):
        raise UnknownName("parameter of a component", name, mine)
    return "parameter", name, _nominal(system, name), None


def _start(robot: Robot, q: Array, v: Array, rest: str) -> tuple[str, str, Array, int | None]:
    what, _, name = rest.partition(".")
    if what in ("joints", "speeds"):
        joint = robot.joints[robot.joint_index(name)]
        if joint.mimic is not None or kind(joint).nv == 0:
            raise InvalidValue(f"joint {name!r} has no coordinates of its own")
        if what == "joints" and not in_coordinates(joint):
            raise InvalidValue(f"joint {name!r} ({joint.kind}) has a quaternion: not supported")
        state, place = (q, joint.q) if what == "joints" else (v, joint.v)
        values = state[place]
        shaped = values[0] if values.size == 1 else values
        return ("q" if what == "joints" else "v"), name, np.asarray(shaped), place.start
    owner, key = (
        ("", name) if what == "base" else (name.rpartition(".")[0], name.rpartition(".")[2])
    )
    if what in ("base", "bases") and key in _BASE and bool(owner) == (what == "bases"):
        base = robot.joints[robot.joint_index(owner)] if owner else robot.joints[0]
        if base.kind != "free":
            raise InvalidValue(f"joint {base.name!r} is {base.kind}, not free: say it of its joint")
        if key in ("omega", "velocity"):
            place = base.v.start + _BASE[key]
            return "v", key, v[place : place + 3], place
        x = q[base.q]
        values = pose.translation(x) if key == "xyz" else pose.to_rpy(x)
        return "base", base.name, values, _BASE[key]
    known = ["start.joints.JOINT", "start.speeds.JOINT", *(f"start.base.{n}" for n in _BASE)]
    known += [f"start.bases.JOINT.{n}" for n in _BASE]
    raise UnknownName("initial state", f"start.{rest}", known)


def inputs_of(
    system: System, q: Array, v: Array, targets: Mapping[str, Target], values: Mapping[str, Array]
) -> RunInputs:
    """Return the arrays of n runs with their dispersed numbers.

    Args:
        system: the robot with its components.
        q: initial configuration of the scenario, `(nq,)`.
        v: initial velocity of the scenario, `(nv,)`.
        targets: by name.
        values: the number of each run by name, `(n,)`.
    """
    n = next(iter(values.values())).size if values else 1
    states = {"q": np.tile(q, (n, 1)), "v": np.tile(v, (n, 1))}
    arrays: dict[str, Array] = {}
    turned: dict[str, Array] = {}
    for name, own in targets.items():
        if own.part in states:
            states[own.part][:, own.index[0]] = values[name]
        elif own.part == "base":
            if own.key not in turned:
                x = q[system.robot.joints[own.key].q]
                turned[own.key] = np.tile(np.r_[pose.translation(x), pose.to_rpy(x)], (n, 1))
            turned[own.key][:, own.index[0]] = values[name]
        else:
            if own.key not in arrays:
                nominal = _nominal(system, own.key)
                arrays[own.key] = np.tile(nominal, (n, *[1] * nominal.ndim))
            arrays[own.key][(slice(None), *own.index)] = values[name]
    for joint, x in turned.items():
        states["q"][:, system.robot.joints[joint].q] = pose.from_xyz_rpy(x[:, :3], x[:, 3:])
    for name, array in arrays.items():  # symmetric, whichever element was named
        if name.endswith(".inertia") and system.owner_of(name) != "component":
            arrays[name] = _symmetric(array, [t for t in targets.values() if t.key == name])
    return RunInputs(states["q"], states["v"], arrays)


def _symmetric(array: Array, own: list[Target]) -> Array:
    for t in own:
        i, j = t.index
        array[:, j, i] = array[:, i, j]
    return array


def _nominal(system: System, name: str) -> Array:
    """Return the value of a parameter of a component, the robot or the design, or raise."""
    owner = system.owner_of(name)
    if owner == "component":
        return np.asarray(system.parameters[name], float)
    if owner == "design":
        return value_of(system.design, name.removeprefix(DESIGN))
    return value_of(system.robot, name)


def single(system: System, inputs: RunInputs) -> tuple[System, Array, Array]:
    """Return system, q and v of one run, from the inputs of one run."""
    numbers = {name: asarray(x[0]) for name, x in inputs.parameters.items()}
    return system.with_parameters(numbers), inputs.q[0], inputs.v[0]
