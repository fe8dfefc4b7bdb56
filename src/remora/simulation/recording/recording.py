"""`Recording`, the result of a simulation: samples, derived quantities, views by name.

run.t, run.q, run.v                  # as simulated
run.vdot, run.energy, run.momentum   # computed on first access, for all samples at once
run.joint("elbow").torque                  # one joint
run.frame("tool").position                 # one body or frame
print(run.conservation())
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, overload

import numpy as np

from remora.algebra import dual_quaternion, hermite, screw
from remora.algebra.array_ops import Array, ArrayLike
from remora.components.context import Values
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.constraint import GEAR
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import difference, integrate, log_rate, log_velocity
from remora.simulation.recording import export
from remora.simulation.recording.conservation import NEEDED, Conservation, conservation
from remora.simulation.recording.constraint_switch import ConstraintSwitch, robot_in_phase
from remora.simulation.recording.quantities import (
    OF_CONSTRAINTS,
    QUANTITIES,
    STORED,
    EvaluatedRobot,
    SignalColumn,
    SignalColumns,
    by_phase,
    column,
    robots_by_phase,
)
from remora.simulation.recording.recorded_event import RecordedEvent, limits_passed
from remora.simulation.recording.views import ConstraintView, FrameView, JointView


class _Values:
    """A column or quantity of a recording, as an attribute of the same name."""

    def __init__(self, meaning: str) -> None:
        self.__doc__ = meaning

    def __set_name__(self, owner: type[Recording], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, run: None, owner: type[Recording]) -> _Values: ...
    @overload
    def __get__(self, run: Recording, owner: type[Recording]) -> Array: ...
    def __get__(self, run: Recording | None, owner: type[Recording]) -> _Values | Array:
        """Return the values of a recording."""
        return self if run is None else run.quantity(self._name)

    def __set__(self, run: Recording, value: object) -> NoReturn:
        """Raise: recordings are read-only."""
        raise AttributeError(f"{self._name} of a recording cannot be set")


def _not_stored(name: str) -> Array | None:
    return None


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """The samples of a run; arrays have n rows, one per sample, and are read-only.

    Created by `rm.simulate` and `rm.open_run`. Derived quantities are computed from the samples on
    first access and cached; for a run on disk they are read if they are stored.

    Attributes:
        robot: the robot.
        settings: settings of the simulation.
        columns: the recorded columns by name, see `quantities.RECORDED`.
        events: events in order.
        status: `running` (or killed while running), `complete`, `interrupted` or `failed`.
        message: reason for the end.
        started: date and time, ISO 8601.
        version: version of Remora.
        stored: (name) -> a derived quantity from disk, or None.
        phase_starts: start time of each phase that was reached, s.
        signal_columns: signals and states of the components, by name.
        switches: switches of constraints in order, with their impulses.
    """

    robot: Robot
    settings: Mapping[str, Any]
    columns: Mapping[str, Array]
    events: tuple[RecordedEvent, ...] = ()
    status: str = "running"
    message: str = ""
    started: str = ""
    version: str = ""
    stored: Callable[[str], Array | None] = _not_stored
    phase_starts: tuple[float, ...] = ()
    signal_columns: SignalColumns = field(default_factory=dict[str, SignalColumn])
    switches: tuple[ConstraintSwitch, ...] = ()
    _kept: dict[str, Array] = field(default_factory=dict[str, Array], init=False)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.t)

    def __bool__(self) -> bool:
        """Return True, also for a run without samples."""
        return True

    # Recorded --------------------------------------------------------------------------------

    t = _Values("Time of each sample, `(n,)`, s; never decreasing.")
    q = _Values("Configuration, `(n, nq)`.")
    v = _Values("Velocity, `(n, nv)`.")
    tau = _Values("Actuation at every joint, `(n, nv)`; what prescribed and locked ones need, too.")
    passive = _Values("Damping, friction and stops, `(n, nv)`; all forces are tau + passive.")
    work = _Values("Work of [actuation, external wrenches, passive forces] so far, `(n, 3)`, J.")
    phase = _Values("Number of the phase that each sample is in, `(n,)`, integers.")

    @property
    def wrenches(self) -> Array | None:
        """External wrenches [f, τ] on each body, its frame, `(n, nb, 6)`; None if none."""
        return self.columns.get("wrenches")

    @property
    def signals(self) -> Mapping[str, Array]:
        """Signals and states of the components, `run.signals["gyro.rate"]` is `(n, 3)`."""
        return Values(
            "signal of the run", {name: self.columns[name] for name in self.signal_columns}
        )

    @property
    def duration(self) -> float:
        """Simulated time from the first sample to the last, s."""
        return float(self.t[-1] - self.t[0]) if len(self) else 0.0

    # Derived ---------------------------------------------------------------------------------

    def quantity(self, name: str) -> Array:
        """Return a recorded column or derived quantity by name, `(n, ...)`.

        Raises:
            UnknownName: for an unknown name; the text lists the known ones.
        """
        if name in self.columns:
            return self.columns[name]
        if name not in QUANTITIES and name not in OF_CONSTRAINTS:
            if name == "wrenches":
                raise RemoraError("the run has no external wrenches")
            column(name, self.signal_columns)
        if name not in self._kept:
            stored = self.stored(name)
            values = self._evaluated(name) if stored is None else stored
            values.flags.writeable = False
            self._kept[name] = values
        return self._kept[name]

    def _evaluated(self, name: str) -> Array:
        """Return a derived quantity, in each phase with the constraints that act in it."""
        quantity = QUANTITIES[name] if name in QUANTITIES else OF_CONSTRAINTS[name]
        return by_phase(quantity, self._robots, self.columns)

    @cached_property
    def _robots(self) -> dict[int, EvaluatedRobot]:
        """The robot of the first phase, and of every phase in which constraints are switched."""
        return robots_by_phase(self.robot, self.switches)

    def robot_in_phase(self, phase: int) -> Robot:
        """Return the robot with the constraints that act in a phase, by its index."""
        return robot_in_phase(self.robot, self.switches, phase)

    vdot = _Values("Rate of the components of v, `(n, nv)`.")
    reactions = _Values(
        "The constraint's [f, τ] on body i through joint i, its frame, `(n, nb, 6)`."
    )
    momentum = _Values("[linear, angular about the inertial origin], inertial axes, `(n, 6)`.")
    centroidal_momentum = _Values("[linear, angular about the centre of mass], as `momentum`.")
    kinetic_energy = _Values("Kinetic energy, `(n,)`, J.")
    potential_energy = _Values("Potential energy of gravity, `(n,)`, J.")
    energy = _Values("Kinetic and potential energy, `(n,)`, J.")
    com = _Values("Centre of mass in the inertial frame, `(n, 3)`, m.")
    poses = _Values("Pose of every body in the inertial frame, `(n, nb, 8)`.")
    constraint_wrenches = _Values(
        "Wrench [f, τ] of every constraint on its child, its frame there, `(n, nc, 6)`."
    )
    constraint_violations = _Values(
        "Largest violation of every constraint that acts, `(n, nc)`, m or rad."
    )
    twists = _Values("Twist [ω, v] of every body in its own frame, `(n, nb, 6)`.")
    positions = _Values("Origin of every body and frame, inertial axes, `(n, nb + nf, 3)`, m.")
    quaternions = _Values("Orientation of every body and frame, `(n, nb + nf, 4)`.")
    euler_angles = _Values("Roll, pitch, yaw of every body and frame, `(n, nb + nf, 3)`, rad.")

    def frame_pose(self, frame: str) -> Array:
        """Return the pose of a body or frame in the inertial frame, `(n, 8)`."""
        place = self.robot.frame(frame)
        if place.body < 0:
            return np.tile(place.placement, (len(self), 1))
        return dual_quaternion.mul(self.poses[:, place.body], place.placement)

    def frame_twist(self, frame: str) -> Array:
        """Return the twist [ω, v] of a body or frame in its own axes, `(n, 6)`."""
        place = self.robot.frame(frame)
        if place.body < 0:
            return np.zeros((len(self), 6))
        return screw.adjoint_inverse(place.placement, self.twists[:, place.body])

    def conservation(self) -> Conservation:
        """Return how well the run conserves momentum, energy and unit quaternions; print it."""
        return self._conservation

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """Return q `(..., nq)` and v `(..., nv)` at any time within the run.

        Between two samples, q is the Hermite cubic in the tangent space of the earlier sample that
        matches the speeds at both, and v is the velocity of that motion. If a time occurs twice
        (at an event), the later sample is used.

        Args:
            t: times, s, of any shape `(...)`.

        Raises:
            InvalidValue: for times before the first or after the last sample.
        """
        when, ts = finite("t", t), self.t
        if len(self) == 0 or np.any(when < ts[0]) or np.any(when > ts[-1]):
            span = f"from {ts[0]:.9g} s to {ts[-1]:.9g} s" if len(self) else "over no time"
            raise InvalidValue(f"the run is {span}; there are no data outside")
        i = np.asarray(np.searchsorted(ts, when, side="right") - 1)
        j = np.minimum(i + 1, len(self) - 1)
        h = np.where(j > i, ts[j] - ts[i], 1.0)[..., None]
        s = (when - ts[i])[..., None] / h
        q0, v0, v1 = self.q[i], self.v[i], self.v[j]
        dq = difference(self.robot, q0, self.q[j])
        rate = log_rate(self.robot, dq, v1)
        ends = dq, h * v0, h * rate
        moved, slope = hermite.value(s, *ends), hermite.rate(s, *ends)
        v = log_velocity(self.robot, moved, slope / h)
        return integrate(self.robot, q0, moved), np.where(s == 0.0, v0, v)

    # By name ---------------------------------------------------------------------------------

    def joint(self, name: str) -> JointView:
        """Return the recorded quantities of one joint: `run.joint("elbow").torque`."""
        return JointView(self, self.robot.joint_index(name))

    def frame(self, name: str) -> FrameView:
        """Return the recorded quantities of one body or frame: `run.frame("tool").position`."""
        robot = self.robot
        if name not in robot.bodies and name not in robot.frames:
            raise UnknownName("body or frame", name, [*robot.bodies.names, *robot.frames.names])
        return FrameView(self, name)

    def constraint(self, name: str) -> ConstraintView:
        """Return the recorded quantities of one constraint: `run.constraint("grasp").wrench`."""
        return ConstraintView(self, self.robot.constraints.position(name))

    def active(self, constraint: str) -> Array:
        """Return whether a constraint acts at each sample, `(n,)`, booleans."""
        self.robot.constraints.position(constraint)
        last = int(np.max(self.phase, initial=0))
        acts = [self.robot_in_phase(k).constraints[constraint].active for k in range(last + 1)]
        return np.array(acts, dtype=bool)[self.phase]

    # Export ----------------------------------------------------------------------------------

    def to_numpy(self, *names: str) -> dict[str, Array]:
        """Return columns and quantities by name, `(n, ...)` each.

        Args:
            *names: which; default: all recorded columns and the derived quantities stored on disk.
        """
        return {name: self.quantity(name) for name in names or (*self.columns, *STORED)}

    def to_pandas(self, *names: str) -> Any:
        """Return a pandas DataFrame indexed by time, with columns such as `q.elbow`.

        Units are in `frame.attrs["units"]`, by column.

        Args:
            *names: which quantities, or parts of them: `positions.tool`; default: as `to_numpy`.

        Raises:
            RemoraError: if pandas is not installed.
        """
        table = self._export_table(names or (*self.columns, *STORED))
        pandas = export.pandas()
        columns: dict[str, Array] = {}
        units: dict[str, str] = {"t": "s"}
        for own in table[1:]:
            for (label, unit), values in zip(own.components, own.flat.T, strict=True):
                columns[label], units[label] = values, unit
        frame = pandas.DataFrame(columns, index=pandas.Index(self.t, name="t"))
        frame.attrs["units"] = units
        return frame

    def to_csv(self, path: str | os.PathLike[str], *names: str) -> Path:
        """Write a CSV file: a header with names and units, `q.elbow [rad]`, a row per sample.

        This and `to_npz`, `to_mat` and `to_parquet` write the same quantities with the same names
        and units. An existing file is replaced.

        Args:
            path: the file, `.csv`.
            *names: which quantities, or parts of them: `positions.tool`; default: those of
                `to_numpy`, and positions, quaternions and Euler angles of all bodies and frames.

        Raises:
            UnknownName: for an unknown quantity; the message lists the known ones.
            RemoraError: if the file cannot be written.
        """
        return self._exported(".csv", path, names)

    def to_npz(self, path: str | os.PathLike[str], *names: str) -> Path:
        """Write a NumPy file: arrays `q`, `q.names`, `q.units`, ...; see `to_csv`."""
        return self._exported(".npz", path, names)

    def to_mat(self, path: str | os.PathLike[str], *names: str) -> Path:
        """Write a MATLAB file: arrays `q`, ... and structs `names.q`, `units.q`; see `to_csv`."""
        return self._exported(".mat", path, names)

    def to_parquet(self, path: str | os.PathLike[str], *names: str) -> Path:
        """Write a Parquet file, with the unit in each column's metadata; see `to_csv`."""
        return self._exported(".parquet", path, names)

    def _exported(self, suffix: str, path: str | os.PathLike[str], names: tuple[str, ...]) -> Path:
        default = (*self.columns, *STORED, "positions", "quaternions", "euler_angles")
        about = {"robot": self.robot.name, "status": self.status, "remora_version": self.version}
        return export.write(path, suffix, lambda: self._export_table(names or default), about)

    def _export_table(self, names: Sequence[str]) -> list[export.ExportedQuantity]:
        return export.export_table(self.robot, self.quantity, names, self.signal_columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run into a new folder, to be opened by `rm.open_run`.

        Raises:
            RemoraError: if `path` already exists, it cannot be written, or its suffix is that of a
                file: `run.npz`.
        """
        export.refuse_file_name(path)
        # Storage builds on recordings, so its function is imported at the call.
        importlib.import_module("remora.simulation.storage.recorder").save(self, path)

    def plot(self, *what: Any, **options: Any) -> Any:
        """Return a matplotlib Figure of the run: `run.plot()`, `run.plot("tau")`; see `rm.plot`."""
        # Figures build on recordings, so the public function is imported at the call.
        return importlib.import_module("remora").plot(self, *what, **options)

    def __repr__(self) -> str:
        """Return robot, samples, time, status, conservation errors, limits and signals."""
        why = f": {self.message}" if self.message else ""
        head = f"Recording of {self.robot.name!r}: {len(self)} samples, {self.duration:.6g} s"
        lines = [f"{head}, {self.status}{why}"]
        if len(self):
            kept = self.conservation()
            text = f"  relative drift: energy {kept.energy.relative:.1e}"
            if not kept.linear_momentum.broken_by:
                text += f", linear momentum {kept.linear_momentum.relative:.1e}"
                text += f", angular {kept.angular_momentum.relative:.1e}"
            lines.append(text)
        if passed := limits_passed(self.robot, self.events):
            lines.append(f"  limits passed: {passed}")
        if self.signal_columns:
            units = {name: own.unit for name, own in self.signal_columns.items()}
            shown = [f"{name} [{unit}]" if unit else name for name, unit in units.items()]
            lines.append(f"  signals: {', '.join(shown)}")
        return "\n".join(lines)

    @cached_property
    def _conservation(self) -> Conservation:
        needed = {name: self.quantity(name) for name in NEEDED}
        if self.wrenches is not None:
            needed["wrenches"] = self.wrenches
        if self.robot.constraints:
            needed["constraint_violations"] = self.constraint_violations
        inertial = [
            c.name for c in self.robot.constraints
            if c.kind != GEAR and min(c.parent, c.child) < 0 and np.any(self.active(c.name))
        ]  # fmt: skip
        return conservation(self.robot, needed, inertial)
