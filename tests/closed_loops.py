"""Robots with random constraints that hold at a given configuration, for the tests."""

import numpy as np

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.model.constraint import Constraint
from remora.model.joint_types import JOINT_TYPES, plane
from remora.model.named import Named
from trees import with_rotors

KINDS = [kind for kind in JOINT_TYPES if kind != "free"]


def axes_of(kind, rng):
    """Return random unit axes in the form in which a joint of that type has them."""
    count = JOINT_TYPES[kind].axes
    axes = rng.normal(size=(count, 3))
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    return plane(axes[0]) if kind == "planar" else axes


def constraint(kind, robot, q, parent, child, rng, name=None):
    """Return a constraint of that kind between two bodies that holds at q."""
    x = np.concatenate([rm.poses(robot, q), dq.identity()[None]])  # [-1]: the inertial frame
    ends = [pose.from_parts(*_random(rng)) for _ in range(2)]
    axes, pitch, length = np.zeros((0, 3)), rng.normal(), 1.0
    if kind == "rod":
        a, b = (dq.mul(x[i], end) for i, end in zip((parent, child), ends, strict=True))
        length = np.linalg.norm(pose.translation(a) - pose.translation(b))
    elif kind != "gear":
        axes = axes_of(kind, rng)
        made = Constraint("", kind, 0, 0, *ends, axes, np.array(pitch), *[np.array(0.0)] * 3)
        there = JOINT_TYPES[kind].pose(made, JOINT_TYPES[kind].random(rng))
        inertial = dq.mul(dq.mul(x[parent], ends[0]), there)
        ends[1] = dq.mul(dq.conjugate(x[child]), inertial)
    ratio, offset = rng.normal(), 0.0
    if kind == "gear":
        slices = [robot.joints[j].q for j in (parent, child)]
        offset = (q[slices[1]] - ratio * q[slices[0]])[0]
    numbers = [np.array(value) for value in (pitch, length, ratio, offset)]
    return Constraint(name or kind, kind, parent, child, *ends, axes, *numbers)


def closed(robot, *constraints):
    """Return the robot with these constraints."""
    return robot.replace(constraints=Named(constraints, "constraint"))


def random_loops(seed, bodies=8, kinds=(), count=2, base="free"):
    """Return a random robot with rotors and random loops, and a consistent random state."""
    rng = np.random.default_rng(seed)
    robot = with_rotors(_with_single_freedoms(seed, bodies, base), np.random.default_rng(seed))
    q, v = rm.random_state(robot, seed)
    chosen = list(kinds) or list(rng.choice([*KINDS, "rod", "gear"], size=count))
    made = []
    for k, kind in enumerate(chosen):
        if kind == "gear":
            ends = rng.choice(_single_freedoms(robot), size=2, replace=False)
        else:
            ends = rng.choice(np.arange(-1, len(robot.bodies)), size=2, replace=False)
        made.append(constraint(str(kind), robot, q, *map(int, ends), rng, f"{kind}{k}"))
    robot = closed(robot, *made)
    return robot, q, v


def _single_freedoms(robot):
    return [i for i, joint in enumerate(robot.joints) if joint.v.stop - joint.v.start == 1]


def _with_single_freedoms(seed, bodies, base):
    """Return a random robot that has two joints for a gear, if it has room for them."""
    for k in range(100):
        robot = rm.random_robot(seed + 1000 * k, bodies=bodies, base=base)
        if len(_single_freedoms(robot)) > 1 or bodies < 3:
            break
    return robot


def _random(rng):
    r = rng.normal(size=4)
    return r / np.linalg.norm(r), rng.uniform(-1.0, 1.0, 3)
