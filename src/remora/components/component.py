"""Components: small immutable values whose behaviour is pure functions on arrays."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, dataclass_transform

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_array, lasting
from remora.components.actions import Action
from remora.components.context import Context
from remora.components.parameter import declared, documented, parameter, snake_case, title
from remora.components.signals import Signal, State
from remora.errors import InvalidValue, UnknownName
from remora.identity.digest import digest
from remora.model.robot import Robot

#: What an event can do.
EVENT_ACTIONS = ("record", "stop", "next", "reset")
#: Fields of every component that are not parameters.
TIMING = ("name", "sample_time", "offset", "delay")


@dataclass(frozen=True)
class ZeroCrossing:
    """An event of a component: a zero crossing of a function, see `Component.crossings`.

    Attributes:
        direction: +1 for rising zero crossings, -1 for falling ones, 0 for both.
        action: `record` logs the event, `stop` ends the run, `next` starts the next phase, `reset`
            sets states to what `Component.reset` returns.
        at_start: whether it also occurs at the start of a run in which the function is beyond zero:
            not positive for direction -1, not negative for +1.
    """

    direction: int = 0
    action: Literal["record", "stop", "next", "reset"] = "record"
    at_start: bool = False

    def __post_init__(self) -> None:
        """Check."""
        if self.direction not in (-1, 0, 1):
            raise InvalidValue(f"direction of an event must be -1, 0 or 1, not {self.direction}")
        if self.action not in EVENT_ACTIONS:
            raise UnknownName("action of an event", self.action, EVENT_ACTIONS)
        if self.at_start and not self.direction:
            raise InvalidValue("an event with at_start=True needs the direction -1 or 1")


@dataclass(frozen=True)
class Interface:
    """What a component reads, provides and stores.

    Attributes:
        inputs: signals that the component reads, by name.
        outputs: signals that it provides, by name.
        continuous: continuous states by name: a `State`, or the initial value.
        discrete: discrete states by name, likewise; they change at ticks and in resets only.
        noise: independent standard normal numbers drawn at each tick, by name: how many.
        events: zero crossings by name.
        breaks: times of the run at which a continuous component is not smooth, s; steps end there.
    """

    inputs: Mapping[str, Signal] = field(default_factory=dict[str, Signal])
    outputs: Mapping[str, Signal] = field(default_factory=dict[str, Signal])
    continuous: Mapping[str, Any] = field(default_factory=dict[str, Any])
    discrete: Mapping[str, Any] = field(default_factory=dict[str, Any])
    noise: Mapping[str, int] = field(default_factory=dict[str, int])
    events: Mapping[str, ZeroCrossing] = field(default_factory=dict[str, ZeroCrossing])
    breaks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Convert initial values to states; check the types of all parts."""
        kinds: dict[str, type] = {"inputs": Signal, "outputs": Signal, "events": ZeroCrossing}
        for name in ("inputs", "outputs", "continuous", "discrete", "noise", "events"):
            part: Any = getattr(self, name)
            if not isinstance(part, Mapping):
                raise InvalidValue(f"{name} must be a dictionary, not {type(part).__name__}")
            _check_part(name, kinds.get(name), dict[Any, Any](part))  # pyright: ignore
        for name in ("continuous", "discrete"):
            given: Mapping[str, Any] = getattr(self, name)
            states = {k: x if isinstance(x, State) else State(x) for k, x in given.items()}
            object.__setattr__(self, name, states)


def _check_part(name: str, kind: type | None, items: Mapping[Any, Any]) -> None:
    """Raise if a part of an interface holds something else than it should."""
    for key, value in items.items():
        if kind is not None and not isinstance(value, kind):
            raise InvalidValue(f"{name}: {key!r} must be a {kind.__name__}, not {value!r}")
        if name == "noise":
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or value <= 0:
                told = f"noise: {key!r} must be how many numbers are drawn, not {value!r}"
                raise InvalidValue(told)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field, parameter))
@dataclass(frozen=True, eq=False, kw_only=True)
class Component:
    """Something that acts on a robot, measures it, or computes signals.

    Subclasses declare fields as in a dataclass; no decorator is needed. Float fields are
    *parameters*: they can differ from run to run in a batch, be symbolic, and be addressed by name
    (`"attitude.kp"`). All other fields are fixed. A field `x: float = rm.parameter(...)` carries
    its unit, range and meaning: its value is checked when the component is made, and scenario
    files, reports and the help of the class use them.

    A component without `sample_time` is continuous: its methods are evaluated at every stage of the
    integrator. A component with a `sample_time` is sampled: at t = start + offset + k·sample_time
    its outputs, its actions and its next discrete states are computed, and are held until the next
    tick (zero-order hold). With a `delay`, outputs and actions take effect that much later.

    All methods take a `Context` and are written on arrays as all of Remora: no `if` on values (use
    `select`), no in-place writes. The subclass overrides those it needs.

    Attributes:
        name: name in a system; by default the class name in snake case, `rate_gyro` of `RateGyro`.
        sample_time: s; None for a continuous component.
        offset: time of the first tick after the start of the run, s.
        delay: time from a tick until its results take effect, s.

    Example:
        >>> class Damper(rm.Component):
        ...     damping: float = 2.0  # N m s/rad
        ...
        ...     def act(self, at):
        ...         return rm.JointForce(
        ...             "elbow_pitch", -self.damping * at.joint_velocity("elbow_pitch")
        ...         )
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> v[robot.joints["elbow_pitch"].v] = 0.1
        >>> run = rm.simulate(rm.System(robot, [Damper()]), q, v, duration=1.0)
        >>> bool(run.joint("elbow_pitch").v[-1] < 0.1)
        True
    """

    name: str = ""
    sample_time: float | None = None
    offset: float = 0.0
    delay: float = 0.0
    #: Whether it must have a `sample_time`.
    sampled: ClassVar[bool] = False
    #: Whether it computes with the design of the system, as control laws do, not with the robot.
    uses_design: ClassVar[bool] = False
    #: Whether its outputs `q` and `v` are the state with which control laws compute.
    estimates_state: ClassVar[bool] = False
    #: Whether a system has at most one of its class.
    alone: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the subclass a frozen dataclass, and describe its parameters in its help."""
        super().__init_subclass__(**options)
        told = cls.__dict__.get("__doc__")
        dataclass(frozen=True, eq=False)(cls)
        if told:
            cls.__doc__ = f"{inspect.cleandoc(told)}\n\n{documented(cls)}".rstrip()

    def __post_init__(self) -> None:
        """Check the parameters; a subclass that has further checks calls this first."""
        what = title(type(self))
        for name, own in declared(type(self)).items():
            value = own.checked(f"{name} of {what}", getattr(self, name))
            object.__setattr__(self, name, value)
        if self.sampled and self.sample_time is None:
            raise InvalidValue(f"{what} needs a sample_time, such as 0.05 (s)")

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of its block in a diagram, besides its events."""
        return ()

    def interface(self, robot: Robot) -> Interface:
        """Return the inputs, outputs, states, noise and events of the component on this robot."""
        return Interface()

    def outputs(self, at: Context) -> Mapping[str, ArrayLike]:
        """Return the values of all outputs, by name."""
        return {}

    def act(self, at: Context) -> Action | list[Action] | tuple[Action, ...] | None:
        """Return forces and wrenches on the robot."""
        return None

    def derivative(self, at: Context) -> Mapping[str, ArrayLike]:
        """Return the time derivatives of all continuous states, by name."""
        return {}

    def update(self, at: Context) -> Mapping[str, ArrayLike]:
        """Return the next values of all discrete states, by name; called at each tick."""
        return {}

    def crossings(self, at: Context) -> Mapping[str, ArrayLike]:
        """Return the event functions, numbers whose zero crossings are events, by name."""
        return {}

    def reset(self, at: Context, event: str) -> Mapping[str, ArrayLike]:
        """Return states after an event, by name.

        Args:
            at: the state at the event.
            event: name of the event.

        Returns:
            New values of some of the component's own states; under `"q"` and `"v"`, those of the
            robot.
        """
        return {}

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same class and the same values."""
        return type(other) is type(self) and digest(self) == digest(other)

    def __hash__(self) -> int:
        """Return a hash of the values."""
        return hash(digest(self))


def set_timing(
    component: Component, name: str, sample_time: float | None, offset: float, delay: float
) -> None:
    """Set the fields of every component, in an `__init__` of its own."""
    sampled = None if sample_time is None else float(sample_time)
    timing = ("sample_time", sampled), ("offset", float(offset)), ("delay", float(delay))
    for key, value in (("name", name), *timing):
        object.__setattr__(component, key, value)


def default_name(component: Component) -> str:
    """Return the name of a component in a system: its own, or its class in lower case."""
    if component.name:
        return str(component.name)
    return snake_case(type(component).__name__)


def parameters(component: Component) -> dict[str, Array]:
    """Return the parameters of a component, by the names of its fields."""
    found: dict[str, Array] = {}
    for own in dataclasses.fields(component):  # pyright: ignore[reportArgumentType]
        value: Any = getattr(component, own.name)
        if own.name in TIMING or own.metadata.get("fixed"):
            continue
        if own.type in ("float", float) or isinstance(value, float):
            try:
                found[own.name] = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                raise InvalidValue(
                    f"parameter {own.name!r} must be a number, not {value!r}"
                ) from None
        elif is_array(value) and value.dtype.kind == "f":
            found[own.name] = value
    return found


def with_parameters(component: Component, values: Mapping[str, Any]) -> Component:
    """Return a copy with other values of some parameters, which may be symbolic."""
    changed = copy.copy(component)
    for name, value in values.items():
        object.__setattr__(changed, name, lasting(value) if is_array(value) else value)
    return changed
