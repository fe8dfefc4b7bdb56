"""`rm.Assembly`: subsystems connected to a tree, with dynamics by composition [SA24]."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate
from remora.dynamics.assembly import composition
from remora.dynamics.assembly.compiled_assembly import CompiledAssembly
from remora.dynamics.assembly.composition import Arguments, PartLoads, WrenchParts
from remora.dynamics.assembly.connection import Connection
from remora.dynamics.assembly.interconnection_graph import (
    InterconnectionGraph,
    interconnection_graph,
)
from remora.dynamics.assembly.joined_robot import joined_robot
from remora.dynamics.assembly.part_poses import boxes_above, mounted_pose
from remora.dynamics.assembly.placed_parts import AnySubsystem, Part, flattened, placed
from remora.dynamics.assembly.power_balance import power_factors
from remora.dynamics.assembly.robot_module import point_of
from remora.dynamics.assembly.sensor_reading import SensorReading, checked_point
from remora.dynamics.formulations import finite_result
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.kinematics import frame_pose, frame_twist
from remora.errors import RemoraError, ShapeError, UnknownName
from remora.model.numbers import finite, frozen
from remora.model.robot import Robot
from remora.model.state import configuration, neutral, random_state


class Assembly:
    """Subsystems connected to a tree at named points [SA24].

    A subsystem is a robot, an assembly, a black box or an object with the methods of
    `rm.papers.sa24.Subsystem`. Each is modelled on its own; the assembly propagates twists and
    their rates from the root outward and wrenches back, through the connection points only.

    The state of an assembly stacks those of its subsystems in the order of `names`, which is
    breadth-first from the root: q `(..., nq)`, v `(..., nv)`. Black boxes have no state. Gravity is
    that of the root.

    Attributes:
        subsystems: by name, in breadth-first order; those of a nested assembly `wing` are named
            `wing/arm`.
        connections: in the same order; every subsystem but the root has one.
        gravity: acceleration in the inertial frame, `(3,)`, m/s².
        parts: the subsystems in their places.
        nq: number of coordinates.
        nv: number of speeds.
        nb: number of bodies of all robots.
    """

    nq: int
    nv: int
    nb: int

    def __init__(
        self,
        subsystems: Mapping[str, AnySubsystem | Assembly],
        connections: Iterable[Connection | Sequence[Any]] = (),
        gravity: ArrayLike | None = None,
    ) -> None:
        """Check the tree and place the parts.

        Args:
            subsystems: by name.
            connections: a `Connection`, or its arguments `(child, parent, at)`, for every subsystem
                but one, the root.
            gravity: in the inertial frame, `(3,)`; by default that of the root robot.

        Raises:
            RemoraError: naming the subsystem: connections in a cycle, two predecessors, several
                roots, an unknown subsystem or connection point, contradicting gravity.
        """
        if not subsystems:
            raise RemoraError("an assembly needs at least one subsystem")
        links = [c if isinstance(c, Connection) else Connection(*c) for c in connections]
        self._place(subsystems, links, gravity, {})
        object.__setattr__(self, "_sealed", True)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse changes: `add`, `remove` and `swap` return another assembly."""
        if getattr(self, "_sealed", False):
            raise AttributeError(f"an Assembly is immutable; {name!r} cannot be set")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor arguments, for copies and pickles."""
        return Assembly, self.identity_parts()

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value."""
        return dict(self.subsystems), self.connections, self.gravity

    def __eq__(self, other: object) -> bool:
        """Tell whether two assemblies have equal subsystems, connections and gravity."""
        if not isinstance(other, Assembly):
            return NotImplemented
        return (
            self.subsystems == other.subsystems
            and self.connections == other.connections
            and np.array_equal(self.gravity, other.gravity)
        )

    def __hash__(self) -> int:
        """Return a hash that equal assemblies share."""
        return hash((tuple(self.subsystems), self.connections))

    def _place(
        self,
        subsystems: Mapping[str, Any],
        links: Sequence[Connection],
        gravity: ArrayLike | None,
        before: Mapping[str, Part],
    ) -> None:
        self.parts = placed(*flattened(subsystems, links), before)
        self.subsystems: Mapping[str, Any] = MappingProxyType(
            {part.name: part.subsystem for part in self.parts}
        )
        self.connections = tuple(p.connection for p in self.parts if p.connection is not None)
        self.nq, self.nv, self.nb = (
            getattr(self.parts[-1], which).stop for which in ("q", "v", "bodies")
        )
        nested = {name: s for name, s in subsystems.items() if isinstance(s, Assembly)}
        if gravity is None:
            first = self.parts[0].name.partition("/")[0]
            gravity = nested[first].gravity if first in nested else None
        self.gravity = _gravity(self.parts, gravity)
        for name, inner in nested.items():
            if np.any(inner.gravity != 0.0) and not np.array_equal(inner.gravity, self.gravity):
                raise RemoraError(
                    f"assembly {name!r} has gravity {inner.gravity.tolist()}, the one it is part "
                    f"of {self.gravity.tolist()}: use the same for both, or none for {name!r}"
                )

    # Structure -------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the subsystems in breadth-first order."""
        return [part.name for part in self.parts]

    @property
    def root(self) -> str:
        """Name of the root subsystem."""
        return self.parts[0].name

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {part.name: i for i, part in enumerate(self.parts)}

    def part(self, name: str) -> Part:
        """Return the part with that name; its slices are `.q`, `.v` and `.bodies`."""
        if not isinstance(name, str) or name not in self._index:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownName("subsystem", name, self._index)
        return self.parts[self._index[name]]

    def neutral(self) -> Array:
        """Return the configuration `(nq,)` with all joints of all robots at zero."""
        return concatenate([np.zeros(0), *(neutral(p.subsystem) for p in self._robots(True))])

    def random_state(
        self, seed: int | np.random.Generator, batch: int | tuple[int, ...] = ()
    ) -> tuple[Array, Array]:
        """Return a random configuration `(*batch, nq)` and velocity `(*batch, nv)`."""
        rng = np.random.default_rng(seed)
        states = [random_state(part.subsystem, rng, batch) for part in self._robots(True)]
        none = np.zeros((*((batch,) if isinstance(batch, int) else batch), 0))
        q, v = (concatenate([none, *(state[k] for state in states)]) for k in range(2))
        return q, v

    def to_robot(self, name: str = "assembly") -> Robot:
        """Return the assembly as one robot with the same states, if every part is a robot.

        Bodies, joints and frames are named `subsystem/name`.
        """
        return joined_robot(self.parts, self.gravity, name)

    def _robots(self, all_known: bool = False) -> list[Part]:
        """Return the parts that are robots; with `all_known`, refuse other parts with states."""
        for part in self.parts if all_known else ():
            if part.module is None and part.black_box is None:
                raise RemoraError(
                    f"subsystem {part.name!r} ({type(part.subsystem).__name__}) is not a "
                    "robot: its "
                    "coordinates are not known here"
                )
        return [part for part in self.parts if part.module is not None]

    # Changes ---------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        subsystem: AnySubsystem | Assembly,
        parent: str,
        at: str,
        mount: str | None = None,
        placement: ArrayLike | None = None,
    ) -> Assembly:
        """Return an assembly with one more subsystem; see `rm.papers.sa24.Connection`.

        Here and in `remove` and `swap` unchanged subsystems keep their recursions and kernels: only
        what changes is modelled, or compiled, anew.
        """
        if self._members(name):
            raise RemoraError(f"there is a subsystem {name!r} already; see Assembly.swap")
        if parent not in self.subsystems and self._members(parent):  # a nested assembly
            part, slash, at = at.rpartition("/")
            parent = f"{parent}{slash}{part}"
        links = [*self.connections, Connection(name, parent, at, mount, placement)]
        return self._changed({**self.subsystems, name: subsystem}, links)

    def remove(self, name: str) -> Assembly:
        """Return an assembly without a subsystem and everything that is mounted on it.

        The name may be that of a nested assembly.
        """
        gone = set(self._named(name))
        if self.root in gone:
            raise RemoraError(f"subsystem {name!r} is the root; it cannot be removed")
        for part in self.parts:  # predecessors come first
            if part.connection is not None and part.connection.parent in gone:
                gone.add(part.name)
        kept = {key: item for key, item in self.subsystems.items() if key not in gone}
        return self._changed(kept, [c for c in self.connections if c.child not in gone])

    def swap(self, name: str, subsystem: AnySubsystem | Assembly) -> Assembly:
        """Return an assembly with another subsystem in the place of one.

        The name may be that of a nested assembly, whose place at its predecessor is taken. What is
        mounted on a subsystem of it is then mounted on the subsystem of that name in the other
        assembly, or at that point of the other subsystem.
        """
        gone, whole = set(self._named(name)), isinstance(subsystem, Assembly)
        links: list[Connection] = []
        for link in self.connections:
            if link.parent in gone:
                if link.child in gone:
                    continue
                if not whole and link.parent != name:
                    link = replace(link, parent=name)
            elif link.child in gone:
                link = replace(link, child=name)
            links.append(link)
        kept: dict[str, Any] = {}
        for key, item in self.subsystems.items():
            if key not in gone:
                kept[key] = item
            else:
                kept[name] = subsystem
        return self._changed(kept, links)

    def _members(self, name: str) -> list[str]:
        """Return the name of a subsystem, or those of a nested assembly's subsystems."""
        return [key for key in self.subsystems if key == name or key.startswith(f"{name}/")]

    def _named(self, name: str) -> list[str]:
        """Return the same, or raise."""
        if not isinstance(name, str) or not self._members(name):  # pyright: ignore[reportUnnecessaryIsInstance]
            nested = {key.rpartition("/")[0]: None for key in self.subsystems if "/" in key}
            raise UnknownName("subsystem", name, {**self.subsystems, **nested})
        return self._members(name)

    def _changed(self, subsystems: Mapping[str, Any], links: Sequence[Connection]) -> Assembly:
        other = object.__new__(Assembly)
        before = {part.name: part for part in self.parts}
        other._place(subsystems, links, self.gravity, before)
        object.__setattr__(other, "_sealed", True)
        return other

    # Dynamics --------------------------------------------------------------------------------

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        wrenches: ArrayLike | Mapping[str, ArrayLike] | None = None,
        t: ArrayLike | None = None,
    ) -> Array:
        """Return the generalized forces tau `(..., nv)` [SA24, Algorithms 1 to 7].

        Args:
            q: configuration, `(..., nq)`.
            v: velocity, `(..., nv)`.
            vdot: rate of v, `(..., nv)`.
            wrenches: external, [f, τ] on each body of the robots in its own frame, `(..., nb, 6)`,
                or by subsystem.
            t: time of the data of black boxes, s, `()` or of the batch shape.
        """
        loads = self.joint_loads(q, v, vdot, wrenches, t)
        return finite_result(concatenate([load.tau for load in loads]))

    def joint_loads(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        wrenches: ArrayLike | Mapping[str, ArrayLike] | None = None,
        t: ArrayLike | None = None,
    ) -> list[PartLoads]:
        """Return the loads of every subsystem: on its joints, its base and its points.

        The arguments are those of `inverse_dynamics`.
        """
        return composition.inverse_dynamics(
            self.parts, self._arguments(q, v, vdot, "vdot", wrenches, t)
        )

    def graph(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        wrenches: ArrayLike | Mapping[str, ArrayLike] | None = None,
        t: ArrayLike | None = None,
    ) -> InterconnectionGraph:
        """Return the weighted graph of the assembly at a state [SA24, section II-A].

        The arguments are those of `inverse_dynamics`.
        """
        arguments = self._arguments(q, v, vdot, "vdot", wrenches, t)
        loads = composition.inverse_dynamics(self.parts, arguments)
        return interconnection_graph(self.parts, loads, arguments)

    def wrench_parts(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        wrenches: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> WrenchParts:
        """Return the inertial, Coriolis, gravity and external parts of the wrenches at all joints.

        The inertial part is that of vdot, the Coriolis part that of v, in the frames of the bodies.
        SA24 splits by the motions of the centres of mass: `rm.papers.sa24.wrench_parts`. The
        arguments are those of `inverse_dynamics`.
        """
        return composition.wrench_parts(
            self.parts, self._arguments(q, v, vdot, "vdot", wrenches, None)
        )

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        wrenches: ArrayLike | Mapping[str, ArrayLike] | None = None,
        t: ArrayLike | None = None,
    ) -> Array:
        """Return the accelerations vdot `(..., nv)` by composition of articulated-body inertias.

        Args:
            q: configuration, `(..., nq)`.
            v: velocity, `(..., nv)`.
            tau: generalized forces, `(..., nv)`.
            wrenches: external, [f, τ] on each body of the robots in its own frame, `(..., nb, 6)`,
                or by subsystem.
            t: time of the data of black boxes, s, `()` or of the batch shape.
        """
        arguments = self._arguments(q, v, tau, "tau", wrenches, t)
        return finite_result(concatenate(composition.forward_dynamics(self.parts, arguments)))

    def readings(self, q: ArrayLike, v: ArrayLike, t: ArrayLike) -> dict[str, SensorReading]:
        """Return the readings of all black boxes, by name; each gets the motion of its base.

        Args:
            q: configuration, `(..., nq)`.
            v: velocity, `(..., nv)`.
            t: time, s, `()` or of the batch shape.
        """
        return composition.readings(
            self.parts, self._arguments(q, v, np.zeros(self.nv), "tau", None, t)
        )

    def frame_pose(
        self,
        q: ArrayLike,
        frame: str,
        v: ArrayLike | None = None,
        t: ArrayLike | None = None,
    ) -> Array:
        """Return the pose of a body or frame in the inertial frame, `(..., 8)`.

        Args:
            q: configuration, `(..., nq)`.
            frame: "arm/tip", of the subsystem `arm`: a body or frame of a robot, or a connection
                point of a black box.
            v: velocity, `(..., nv)`, which live black boxes on the way get the twist from; by
                default zero.
            t: time of the data of black boxes on the way, s, `()` or of the batch shape.

        Raises:
            RemoraError: if a black box on the way does not measure the pose of its point.
        """
        name, _, point = frame.rpartition("/")
        part = self.part(name)
        v = np.zeros(self.nv) if v is None else v
        arguments = self._arguments(q, v, np.zeros(self.nv), "tau", None, t)
        boxes = part.black_box is not None or boxes_above(self.parts, part)
        read = composition.readings(self.parts, arguments) if boxes else {}
        if part.black_box is not None:
            x = checked_point(name, read[name], point)[1]
        else:
            x = mounted_pose(self.parts, part, arguments.q, read)
        if x is None or (part.module is None and part.black_box is None):
            raise RemoraError(
                f"the pose of {frame!r} is not known: a black box on the way to it does not "
                "measure the pose of its point (PointReading(pose=...)), or it is, or is mounted "
                "on, a subsystem of your own"
            )
        if part.module is not None:
            own = point_of(name, part.module.robot, point)
            x = dual_quaternion.mul(x, frame_pose(part.module.robot, arguments.q[..., part.q], own))
        return with_batch(x, arguments.batch, trailing=1)

    def frame_twist(
        self, q: ArrayLike, v: ArrayLike, frame: str, t: ArrayLike | None = None
    ) -> Array:
        """Return the twist of a body or frame of a robot, in its own axes, `(..., 6)`.

        The arguments are those of `frame_pose`; all black boxes are asked, if there are any.
        """
        name, _, point = frame.rpartition("/")
        part = self.part(name)
        if part.module is None:
            raise RemoraError(f"subsystem {name!r} is not a robot: its frames are not known")
        arguments = self._arguments(q, v, np.zeros(self.nv), "tau", None, t)
        base = composition.base_twists(self.parts, arguments)[self._index[name]]
        robot, own_q = part.module.robot, arguments.q[..., part.q]
        own = point_of(name, robot, point)
        carried = screw.adjoint_inverse(frame_pose(robot, own_q, own), base)
        own_twist = frame_twist(robot, own_q, arguments.v[..., part.v], own)
        return with_batch(carried + own_twist, arguments.batch, trailing=1)

    def check_energy(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        tau: ArrayLike,
        t: ArrayLike,
        accuracy: float = 0.02,
    ) -> dict[str, float]:
        """Check the wrenches of black boxes against the power of measured generalized forces.

        The power v_i τ_i that each joint supplies equals what moves the known parts plus what goes
        into the black boxes. The factors s_k of their powers that fit it best (least squares over
        joints and samples) are 1, and the misfit 0, for exact data; a wrench with the wrong sign
        has a negative factor, one in turned axes a misfit.

        Args:
            q: measured configurations, `(n, nq)`.
            v: measured velocities, `(n, nv)`.
            vdot: rates of v, `(n, nv)`.
            tau: measured generalized forces, `(n, nv)`.
            t: times, `(n,)`, s.
            accuracy: relative error of the measured power that is possible, 0 to 1; a black box
                whose power is smaller cannot be judged.

        Returns:
            The factor of each black box with a predecessor.

        Raises:
            InvalidValue: naming the black box: if its wrench has the wrong sign or does not fit, or
                if it exchanges too little power to judge by.
        """
        return power_factors(self, q, v, vdot, tau, t, accuracy)

    def compile(self) -> CompiledAssembly:
        """Return the dynamics as machine code, one kernel per distinct module and pass.

        Kernels are compiled when first used, or taken from the cache; those of equal modules are
        shared, also with other assemblies.
        """
        return CompiledAssembly(self.parts, self.gravity)

    def _arguments(
        self, q: ArrayLike, v: ArrayLike, w: ArrayLike, what: str, wrenches: Any, t: Any
    ) -> Arguments:
        q, v, w = finite("q", q, self.nq), finite("v", v, self.nv), finite(what, w, self.nv)
        for part in self._robots():
            configuration(part.subsystem, q[..., part.q])
        time = None if t is None else finite("t", t)
        external = self._external(wrenches)
        batch = batch_shape(
            q, v, w, *([] if time is None else [time[..., None]]),
            *([] if external is None else [external[..., 0]]),
        )  # fmt: skip
        return Arguments(q, v, w, external, time, self.gravity, batch, self.parts)

    def _external(self, wrenches: Any) -> Array | None:
        if wrenches is None:
            return None
        if not isinstance(wrenches, Mapping):
            return finite("wrenches", wrenches, self.nb, 6)
        named = cast(Mapping[str, ArrayLike], wrenches)
        for name in named:
            if self.part(name).module is None:
                raise RemoraError(f"wrenches: subsystem {name!r} is not a robot and has no bodies")
        rows: list[Array] = []
        for part in self._robots():
            wrench = named.get(part.name, np.zeros((part.count, 6)))
            rows.append(finite(f"wrenches of subsystem {part.name!r}", wrench, part.count, 6))
        try:
            return concatenate(rows, trailing=2)
        except ValueError:
            shapes = ", ".join(str(row.shape) for row in rows)
            raise ShapeError(f"the batch shapes of wrenches do not fit: {shapes}") from None

    def __repr__(self) -> str:
        """Return the tree, one line per subsystem."""
        depth = [0] * len(self.parts)
        count = "1 subsystem" if len(self.parts) == 1 else f"{len(self.parts)} subsystems"
        lines = [f"Assembly: {count}, {self.nb} bodies, nq={self.nq}, nv={self.nv}"]
        children: dict[int, list[int]] = {}
        for i, part in enumerate(self.parts):
            children.setdefault(part.parent, []).append(i)
        todo = [0]
        while todo:
            i = todo.pop()
            part = self.parts[i]
            depth[i] = 0 if part.parent < 0 else depth[part.parent] + 1
            where = "" if part.connection is None else f"  at {part.connection.at}"
            lines.append(f"{'  ' * (depth[i] + 1)}{part.name} ({_what(part)}){where}")
            todo.extend(reversed(children.get(i, [])))
        return "\n".join(lines)


def _what(part: Part) -> str:
    if part.module is not None:
        return f"{part.count} {'body' if part.count == 1 else 'bodies'}, nv={part.subsystem.nv}"
    if part.black_box is not None:
        return "black box"
    return f"{type(part.subsystem).__name__}, nv={part.subsystem.nv}"


def _gravity(parts: Sequence[Part], gravity: ArrayLike | None) -> Array:
    """Return the gravity of an assembly; refuse robots that contradict it."""
    root = parts[0].subsystem
    of_root = root.gravity if isinstance(root, Robot) else np.zeros(3)
    g = frozen(finite("gravity", of_root if gravity is None else gravity, 3))
    for part in parts:
        if part.module is None:
            continue
        theirs = asarray(part.subsystem.gravity)
        alike = theirs.shape == g.shape and np.array_equal(theirs, g)
        if not alike and np.any(theirs != 0.0):
            raise RemoraError(
                f"subsystem {part.name!r} has gravity {theirs.tolist()}, the assembly "
                f"{g.tolist()}: set gravity=... of the assembly, and the same or none of its robots"
            )
    return g
