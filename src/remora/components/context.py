"""Context of the methods of a component: state of the robot, its own states and its inputs."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping

from remora.algebra import dual_quaternion, pose, quaternion, screw
from remora.algebra.array_ops import Array, lasting
from remora.components.returned_values import NO_NOISE
from remora.dynamics.formulations import bias_force, mass_matrix
from remora.dynamics.kernels.parameters import with_values
from remora.dynamics.kinematics import jacobian, poses, twists
from remora.errors import RemoraError, UnknownName
from remora.model.robot import Robot

#: Before the name of a number of the design, `design.flange.mass`.
DESIGN = "design."


class Kinematics:
    """Poses, twists, inertia and Jacobians at one state, each computed on first use.

    Attributes:
        robot: the robot; its numbers may be symbolic.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """

    def __init__(self, robot: Robot, q: Array, v: Array) -> None:
        """Store the state."""
        self.robot, self.q, self.v = robot, q, v
        self._jacobians: dict[str, Array] = {}

    @functools.cached_property
    def poses(self) -> Array:
        """Poses of the bodies in the inertial frame, `(..., nb, 8)`."""
        return poses(self.robot, self.q)

    @functools.cached_property
    def twists(self) -> Array:
        """Twists of the bodies in their own frames, `(..., nb, 6)`."""
        return twists(self.robot, self.q, self.v)

    @functools.cached_property
    def mass_matrix(self) -> Array:
        """H, `(..., nv, nv)`."""
        return mass_matrix(self.robot, self.q)

    @functools.cached_property
    def bias_force(self) -> Array:
        """C v and gravity, `(..., nv)`."""
        return bias_force(self.robot, self.q, self.v)

    def jacobian(self, frame: str) -> Array:
        """Return the Jacobian of a body or frame in its own axes, `(..., 6, nv)`."""
        if frame not in self._jacobians:
            self._jacobians[frame] = jacobian(self.robot, self.q, frame)
        return self._jacobians[frame]


def as_told(design: Kinematics, inputs: Mapping[str, Array]) -> Kinematics:
    """Return the design at the state, and with the numbers, that inputs of a component provide.

    Args:
        design: the design at the true state.
        inputs: of the component; `q`, `v` and those that begin with `design.` are used.
    """
    numbers = {k.removeprefix(DESIGN): x for k, x in inputs.items() if k.startswith(DESIGN)}
    if not numbers and not {"q", "v"} & inputs.keys():
        return design
    robot = with_values(design.robot, numbers)
    return Kinematics(robot, inputs.get("q", design.q), inputs.get("v", design.v))


class Values(Mapping[str, Array]):
    """Arrays by name; an unknown name raises an error that lists the known ones."""

    def __init__(self, what: str, values: Mapping[str, Array], missing: str = "") -> None:
        """Store the values; `missing` explains why there are none."""
        self._what, self._values, self._missing = what, values, missing

    def __getitem__(self, name: str) -> Array:
        """Return the value of that name."""
        if name not in self._values:
            if self._missing:
                raise RemoraError(f"{self._what} {name!r}: {self._missing}")
            raise UnknownName(self._what, name, self._values)
        return lasting(self._values[name])

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)

    def __repr__(self) -> str:
        """Return the names with the shapes of their values."""
        return f"<{', '.join(f'{name} {x.shape}' for name, x in self._values.items()) or 'empty'}>"


class Context:
    """The state of the robot and of a component at one time.

    Attributes:
        robot: the robot with which the component computes; its numbers may be symbolic. For control
            laws it is the design, see `Component.uses_design`.
        t: time, s, `(...)`.
        clock: time that conditions of the phase receive, s, `(...)`: since its start where the
            phase has its own clock, otherwise t.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        state: continuous states of the component, by name.
        memory: discrete states of the component, by name.
        inputs: its input signals, by name.
        noise: standard normal numbers of this tick, by name, `(..., n)`; in `outputs`, `act` and
            `update` of sampled components.
    """

    def __init__(
        self,
        kinematics: Kinematics,
        design: Kinematics,
        t: Array,
        state: Values,
        memory: Values,
        inputs: Values,
        noise: Values,
        clock: Array | None = None,
        phase: Callable[[], Array] | None = None,
    ) -> None:
        """Store the arguments; without a clock of the phase it is the time.

        `kinematics` is that of the robot with which the component computes, `design` that of the
        design. `phase` returns index and start of the phase, `(..., 2)`.
        """
        self.robot, self.q, self.v = kinematics.robot, kinematics.q, kinematics.v
        self.t = lasting(t)
        self.clock = self.t if clock is None else lasting(clock)
        self.state, self.memory, self.inputs, self.noise = state, memory, inputs, noise
        self._kinematics, self._design, self._phase = kinematics, design, phase

    @property
    def design(self) -> Context:
        """The same state with the numbers of the design, see `System`."""
        if self._design is self._kinematics:
            return self
        own = copy.copy(self)
        own.robot, own._kinematics = self._design.robot, self._design
        return own

    @property
    def phase(self) -> Array:
        """Index of the phase of the run, from 0, `(...)`."""
        return lasting(self._in_phase()[..., 0])

    @property
    def phase_time(self) -> Array:
        """Time since the start of the phase, s, `(...)`."""
        return self.t - self._in_phase()[..., 1]

    def _in_phase(self) -> Array:
        if self._phase is None:
            raise RemoraError(
                "phase and phase_time are known where a component always reads them: here it read "
                "them for the first time during a run; connect an input to 'phase.index'"
            )
        return self._phase()

    def pose(self, frame: str) -> Array:
        """Return the pose of a body or frame in the inertial frame, `(..., 8)`."""
        own = self.robot.frame(frame)
        if own.body < 0:
            return own.placement
        return dual_quaternion.mul(self._kinematics.poses[..., own.body, :], own.placement)

    def position(self, frame: str) -> Array:
        """Return the position of a body's or frame's origin, inertial axes, `(..., 3)`, m."""
        return pose.translation(self.pose(frame))

    def rotation(self, frame: str) -> Array:
        """Return the orientation of a body or frame in the inertial frame, `(..., 4)`."""
        return pose.rotation(self.pose(frame))

    def twist(self, frame: str) -> Array:
        """Return the twist [ω, v] of a body or frame in its own axes, `(..., 6)`."""
        own = self.robot.frame(frame)
        if own.body < 0:
            raise RemoraError(f"frame {frame!r} is fixed in the inertial frame: it has no twist")
        return screw.adjoint_inverse(own.placement, self._kinematics.twists[..., own.body, :])

    def velocity(self, frame: str) -> Array:
        """Return the velocity of a body's or frame's origin, inertial axes, `(..., 3)`, m/s."""
        return quaternion.rotate(self.rotation(frame), self.twist(frame)[..., 3:])

    def angular_velocity(self, frame: str) -> Array:
        """Return the angular velocity of a body or frame in its own axes, `(..., 3)`, rad/s."""
        return self.twist(frame)[..., :3]

    def jacobian(self, frame: str) -> Array:
        """Return J with twist = J v of a body or frame in its own axes, `(..., 6, nv)`."""
        return self._kinematics.jacobian(frame)

    @property
    def mass_matrix(self) -> Array:
        """Mass matrix H of the robot, `(..., nv, nv)`."""
        return self._kinematics.mass_matrix

    @property
    def bias_force(self) -> Array:
        """Forces C v and gravity, with which v̇ = 0, `(..., nv)`."""
        return self._kinematics.bias_force

    def joint_position(self, joint: str) -> Array:
        """Return the coordinates of a joint, `(..., k)`, rad or m."""
        return self.q[..., self.robot.joints[self.robot.joint_index(joint)].q]

    def joint_velocity(self, joint: str) -> Array:
        """Return the speeds of a joint, `(..., k)`, rad/s or m/s."""
        return self.v[..., self.robot.joints[self.robot.joint_index(joint)].v]


def context_of(
    robot: Robot, arrays: Mapping[str, Mapping[str, Array]], t: Array, q: Array, v: Array,
    sampled: bool, phase: Callable[[], Array] | None = None, design: Robot | None = None,
    estimated: bool = False,
) -> Context:  # fmt: skip
    """Return the context of a component that is not part of a system.

    Args:
        robot: the robot with which the component computes.
        arrays: by `continuous`, `discrete`, `inputs` and `noise`, then by name.
        t: time, s.
        q: configuration.
        v: velocity.
        sampled: whether the component is sampled.
        phase: returns index and start of the phase, `(2,)`; None: there is none.
        design: the design, if it is another.
        estimated: whether inputs provide the state and the numbers with which it computes.
    """
    own = Kinematics(robot, q, v)
    if estimated:
        own = as_told(own, arrays["inputs"])
    known = own if estimated or design in (None, robot) else Kinematics(design, q, v)
    return Context(
        own, known, t,
        Values("continuous state", arrays["continuous"]),
        Values("discrete state", arrays["discrete"]), Values("input", arrays["inputs"]),
        Values("noise", arrays["noise"], "" if sampled else NO_NOISE), phase=phase,
    )  # fmt: skip
