"""Settings of runs that belong together: steps, physics, what is recorded, what differs by run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from remora.algebra.array_ops import ArrayLike
from remora.codegen.ir.philox import RUN_BITS, SEED_BITS
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.arguments import (
    by_name,
    flag,
    names,
    natural,
    number,
    real_numbers,
    shown,
    times,
    whole,
    word,
)
from remora.simulation.integrators.table import INTEGRATORS, Method

#: Tightest useful tolerance.
SMALLEST = 1e-15
#: Maximum number of steps of a run.
MOST_STEPS = 1e12
LIMITS = ("record", "stop", "ignore")
MODELS = ("full", "reduced")


@dataclass(frozen=True)
class Integrator:
    """How the steps of a run are made: `integrator=rm.Integrator("rk4", step=0.01)`.

    Attributes:
        method: `dop853` (8th order) or `dopri5` (5th), adaptive; `radau` (5th), adaptive and
            implicit, for stiff springs, dampers and stops; `rk4`, fixed steps; `variational`, 2nd
            order, fixed steps, conserves momentum to rounding and bounds the energy error. None:
            in `rm.simulate`, `dop853`, or `radau` with a `SimulationWarning` if the robot's
            damping or friction would keep the steps of `dop853` too short; in `rm.simulate_batch`,
            `rk4`.
        step: fixed step size, s; for adaptive methods the initial one, 1 ms by default. In batches,
            fixed steps are shortened to end at every sample, tick and break.
        rtol: relative error tolerance of an adaptive step, for each coordinate and speed.
        atol: absolute error tolerance of an adaptive step.
        max_step: maximum size of adaptive steps, s.
        max_steps: maximum number of adaptive steps in a phase, beyond which the run fails: this
            ends runs that a controller destabilizes.
        breaks: times at which your functions are not smooth; no step crosses them, s.
        step_to_samples: whether steps end at every sample; otherwise samples are dense output.
            Steps of batches always end there.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> run = rm.simulate(robot, q, v, 1.0, integrator=rm.Integrator("rk4", step=0.01))
        >>> len(run.t)
        101
    """

    method: str | None = None
    step: float | None = None
    rtol: float = 1e-10
    atol: float = 1e-12
    max_step: float = math.inf
    max_steps: int = 1_000_000
    breaks: Sequence[float] = ()
    step_to_samples: bool = False

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.method is not None and (
            not isinstance(self.method, str) or self.method not in INTEGRATORS  # pyright: ignore[reportUnnecessaryIsInstance]
        ):
            raise UnknownName("integrator", self.method, INTEGRATORS)
        _set(
            self,
            step=None if self.step is None else number("step", self.step, "0.01, in s"),
            rtol=number("rtol", self.rtol, "1e-10"),
            atol=number("atol", self.atol, "1e-12"),
            max_step=number("max_step", self.max_step, "0.1, in s"),
            max_steps=whole("max_steps", self.max_steps),
            breaks=times("breaks", self.breaks),
            step_to_samples=flag("step_to_samples", self.step_to_samples),
        )
        for name, x in (("rtol", self.rtol), ("atol", self.atol)):
            if not (math.isfinite(x) and x >= 0.0):
                raise InvalidValue(f"{name} must be finite and not negative, not {x}")
        if max(self.rtol, self.atol) < SMALLEST:
            raise InvalidValue(
                f"rtol or atol must be at least {SMALLEST:g}: below is only rounding"
            )
        if self.atol == 0.0:
            raise InvalidValue("atol must be positive: coordinates and speeds pass zero")
        for name, x in (("step", self.step), ("max_step", self.max_step)):
            if x is not None and not x > 0.0:
                raise InvalidValue(f"{name} must be positive, not {x} s")
        if self.step is not None and not math.isfinite(self.step):
            raise InvalidValue(f"step must be a finite number of seconds, not {self.step}")
        if not self.max_steps > 0:
            raise InvalidValue(f"max_steps must be positive, not {self.max_steps}")

    def by(self, method: str) -> Integrator:
        """Return these settings with a method, if they name none; or raise if it needs a step."""
        made = dataclasses.replace(self, method=self.method or method)
        if made.step is None and made.row.error_order == 0:
            raise RemoraError(
                f"{made.method!r} has fixed steps: pass "
                f"integrator=rm.Integrator({made.method!r}, step=0.01), in s"
            )
        return made

    def check_steps(self, duration: float) -> None:
        """Raise if fixed steps would be too many for a duration, s."""
        if self.row.error_order == 0 and self.step and duration / self.step > MOST_STEPS:
            raise InvalidValue(
                f"{duration:g} s in steps of {self.step:g} s are more than {MOST_STEPS:g}"
            )

    @property
    def row(self) -> Method:
        """The row of the method in the table of integrators."""
        assert self.method is not None
        return INTEGRATORS[self.method]


@dataclass(frozen=True)
class Physics:
    """How the equations of motion of a run treat joints and base: `physics=rm.Physics(...)`.

    Attributes:
        limits: if a joint violates its position or speed limits, `record` an event, `stop` the
            run, or `ignore` it; None: `record` in `rm.simulate`, `ignore` in `rm.simulate_batch`,
            whose runs then share their steps. A joint that starts beyond its range gives a
            `SimulationWarning`, except with `ignore` in `rm.simulate`.
        stops: elastic stops at the joint limits: stiffness, or (stiffness, damping), see
            `stop_forces`.
        saturate: whether drives are limited to the joints' effort limits.
        slip_speed: regularization speed of dry friction, see `friction_forces`.
        formulation: forward-dynamics formulation; `articulated` (ABA), or `composite` (CRBA) for
            robots with mimic joints, by default.
        model: `full`, or `reduced` for a free-floating robot without external forces: the six base
            speeds are not states but follow from the initial momentum [FPG11, eqs. 18, 19].
    """

    limits: Literal["record", "stop", "ignore"] | None = None
    stops: float | tuple[float, float] | None = None
    saturate: bool = False
    slip_speed: float = 1e-3
    formulation: str | None = None
    model: Literal["full", "reduced"] = "full"

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.limits is not None and (
            not isinstance(self.limits, str) or self.limits not in LIMITS  # pyright: ignore[reportUnnecessaryIsInstance]
        ):
            raise UnknownName("treatment of limits", self.limits, LIMITS)
        if not isinstance(self.model, str) or self.model not in MODELS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownName("model", self.model, MODELS)
        _set(
            self,
            stops=None if self.stops is None else stop_numbers(self.stops),
            saturate=flag("saturate", self.saturate),
            slip_speed=number("slip_speed", self.slip_speed, "1e-3"),
        )
        if not (math.isfinite(self.slip_speed) and self.slip_speed >= 0.0):
            raise InvalidValue(f"slip_speed must be finite and not negative, not {self.slip_speed}")


@dataclass(frozen=True, eq=False)
class Record:
    """What is recorded, stored and shown of runs: `record=rm.Record(sample=0.1, folder="a.run")`.

    Attributes:
        sample: seconds between samples, or the times of all samples `(n,)`; None: every step, in
            batches start and end.
        folder: directory in which the run is saved as it progresses, for `rm.open_run`.
        resume: continue an incomplete run in `folder` from its last checkpoint on
            disk; recorded samples are not changed, and the rest is bitwise identical to an
            uninterrupted run. A complete run is returned. A run of another robot or with other
            settings is refused with a list of differences: your functions, controllers and motions
            are compared by value (byte code, default arguments, closures, attributes, the globals
            they name). In an empty or missing directory the run starts from the beginning.
        assume_unchanged: with `resume`, assume that objects that cannot be compared by value (open
            files, generators, locks, objects of C libraries) are unchanged, and accept a stateful
            controller: it resumes with the state in which it is passed, so the rest of the run is
            not bitwise identical. Everything else is still compared.
        note: text stored with the settings; in a report its first line is the title, what follows
            the description. A resumed run keeps the note it was started with.
        progress: True for a bar, False for none; None: a bar on a terminal if the run takes long;
            or, for a single run, a function that receives a `Status`.
        signals: of batches: names of the signals and states of components to record; None: all.
        max_events: of batches: number of events that are stored for each run and phase; when each
            of them first occurred is known in any case.
        failures: of batches, for a run that does not stay finite: `raise` a SimulationError that
            holds the batch, or `keep` it with `ok` False. For a run with physically impossible
            robot parameters (a mass that is not positive, a placement that is not a unit dual
            quaternion): `raise`, or `keep` it with `ok` False and NaN for its states.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> run = rm.simulate(robot, q, v, 1.0, record=rm.Record(sample=0.25, note="drift"))
        >>> run.t
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """

    sample: float | ArrayLike | None = None
    folder: str | Path | None = None
    resume: bool = False
    assume_unchanged: bool = False
    note: str = ""
    progress: Any = None
    signals: Sequence[str] | None = None
    max_events: int = 100
    failures: Literal["raise", "keep"] = "raise"

    def __post_init__(self) -> None:
        """Check what does not depend on the run."""
        _set(
            self,
            folder=_path("folder", self.folder),
            resume=flag("resume", self.resume),
            assume_unchanged=flag("assume_unchanged", self.assume_unchanged),
            note=word("note", self.note),
            max_events=whole("max_events", self.max_events),
        )
        if self.signals is not None:
            _set(self, signals=names("signals", self.signals, "signals", "gyro.rate"))
        if not (
            self.progress is None or isinstance(self.progress, bool) or callable(self.progress)
        ):
            raise InvalidValue(
                "progress must be True, False, None or a function of a Status, not "
                f"{shown(self.progress)}"
            )
        if self.resume and self.folder is None:
            raise RemoraError("to resume a run, name the directory it is in: folder='...'")
        if self.assume_unchanged and not self.resume:
            raise RemoraError("assume_unchanged needs resume=True")
        if self.max_events < 0:
            raise InvalidValue(f"max_events must not be negative, not {self.max_events}")
        if not isinstance(self.failures, str) or self.failures not in ("raise", "keep"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownName("failures", self.failures, ("raise", "keep"))


@dataclass(frozen=True, eq=False)
class Runs:
    """What differs from run to run in a batch: `runs=rm.Runs(parameters={"arm.mass": masses})`.

    Attributes:
        count: number of runs, where no array has a batch shape.
        parameters: parameters that differ from run to run: of the robot, `"mass"`, `"arm.mass"`,
            `"elbow.damping"`, ..., see `rm.compile`; of components, `"attitude.kp"`.
        inputs: arrays that differ from run to run, by the names of the functions' arguments; batch
            shape first. They are rounded to the `dtype` of the target.
        initial: initial states of components that differ from the declared ones, by name.
        seed: of the noise of components, from 0 to 2⁶⁴ - 1.
        index: index of each run for its noise; by default 0, 1, 2, ...

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> runs = rm.Runs(parameters={"bus.mass": np.linspace(400.0, 450.0, 8)})
        >>> batch = rm.simulate_batch(
        ...     robot, q, v, 1.0, integrator=rm.Integrator(step=0.01), runs=runs
        ... )
        >>> len(batch)
        8
    """

    count: int | None = None
    parameters: Mapping[str, ArrayLike] | None = None
    inputs: Mapping[str, ArrayLike] | None = None
    initial: Mapping[str, ArrayLike] | None = None
    seed: int = 0
    index: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Check what does not depend on the robot."""
        _set(
            self,
            count=None if self.count is None else natural("count", self.count, RUN_BITS),
            parameters=by_name("parameters", self.parameters),
            inputs=by_name("inputs", self.inputs),
            initial=by_name("initial", self.initial),
            seed=natural("seed", self.seed, SEED_BITS),
        )


@dataclass(frozen=True)
class Target:
    """What a batch runs on: `target=rm.Target("cuda", dtype="float32")`.

    Attributes:
        processor: `cpu`, or `cuda` for arrays in GPU memory; `python` makes the runs one after the
            other as `rm.simulate` does, also with functions, components and conditions that cannot
            be compiled. Steps of `radau` and `variational` are always made so.
        dtype: `float64` or `float32`, for states and equations; times, and what your functions
            compute from them, are `float64` in both.
        threads: CPU threads; 0: one per core.
    """

    processor: str = "cpu"
    dtype: str = "float64"
    threads: int = 0

    def __post_init__(self) -> None:
        """Check the threads; the names are checked where their tables are."""
        _set(self, threads=whole("threads", self.threads))
        if self.threads < 0:
            raise InvalidValue(f"threads must not be negative, not {self.threads}")


def _set(settings: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(settings, name, value)


#: Groups of settings, by their kind, and the argument that takes each.
GROUPS: Mapping[type[Any], str] = {
    Integrator: "integrator", Physics: "physics", Record: "record", Runs: "runs", Target: "target",
}  # fmt: skip


# Short forms --------------------------------------------------------------------------------------

Settings = TypeVar("Settings")


def _settings(kind: type[Settings], name: str, given: Any, first: str | None) -> Settings:
    """Return settings, of which None is the default and a plain value the first field."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    if first is None or type(given) in GROUPS:
        allowed = f"rm.{kind.__name__}(...)" + (f", or its {first}" if first else "")
        raise InvalidValue(f"{name} must be {allowed}, not {shown(given)}")
    return kind(**{first: given})


def integrator_of(given: Integrator | str | None) -> Integrator:
    """Return the settings of the steps; a name is that of a method."""
    return _settings(Integrator, "integrator", given, "method")


def physics_of(given: Physics | None) -> Physics:
    """Return the settings of the equations of motion."""
    return _settings(Physics, "physics", given, None)


def record_of(given: Record | float | ArrayLike | None) -> Record:
    """Return what is recorded; numbers are seconds between samples, or the times of samples."""
    return _settings(Record, "record", given, "sample")


def runs_of(given: Runs | int | None) -> Runs:
    """Return what differs by run; a number is that of the runs."""
    return _settings(Runs, "runs", given, "count")


def target_of(given: Target | str) -> Target:
    """Return what a batch runs on; a name is that of a processor."""
    return _settings(Target, "target", given, "processor")


def stop_numbers(given: Any) -> tuple[float, float]:
    """Return stiffness and damping of stops, from one number or a pair."""
    if given is None:
        return 0.0, 0.0
    example = "1e4, or (1e4, 0.2) for stiffness and damping"
    array = real_numbers(given)
    if array is None or array.shape not in ((), (2,)):
        raise InvalidValue(f"stops must be {example}, not {shown(given)}")
    stiffness, damping = (float(x) for x in (array if array.ndim else (array, 0.0)))
    for what, x in (("stiffness", stiffness), ("damping", damping)):
        if not (math.isfinite(x) and x >= 0.0):
            raise InvalidValue(f"{what} must be finite and not negative, not {x}")
    return stiffness, damping


def _path(name: str, given: Any) -> str | Path | None:
    """Return a path, or None."""
    if given is None or isinstance(given, (str, Path)):
        return given
    raise InvalidValue(f"{name} must be the path of a directory, not {shown(given)}")
