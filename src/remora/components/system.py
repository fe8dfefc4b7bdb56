"""Systems: a robot, the components that act on it, and the signals between them."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, is_symbolic, lasting
from remora.components import actions
from remora.components.component import (
    Component,
    Interface,
    ZeroCrossing,
    default_name,
    parameters,
    with_parameters,
)
from remora.components.context import context_of
from remora.components.feedthrough import dependence
from remora.components.layout import ComponentLayout, component_layout, delay_in_ticks
from remora.components.returned_values import checked
from remora.components.run_signals import (
    PHASE,
    EventSignals,
    PhaseSignals,
    event_places,
    phase_place,
    run_signals,
)
from remora.components.wiring import evaluation_order, sources
from remora.errors import Fault, ModelError, RemoraError, ShapeError, SingularMatrix, UnknownName
from remora.identity.digest import digest
from remora.model.arguments import by_name
from remora.model.numbers import numeric
from remora.model.robot import Robot
from remora.model.state import neutral, random_state
from remora.model.takes_robot import check_robot

if TYPE_CHECKING:
    from remora.components.diagram.diagram import Diagram

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")


class SystemEvent(NamedTuple):
    """An event of a component in a system.

    Attributes:
        component: name of the component.
        name: name of the event.
        crossing: direction and action.
    """

    component: str
    name: str
    crossing: ZeroCrossing

    def __str__(self) -> str:
        """Return `component.event`."""
        return f"{self.component}.{self.name}"


class ScheduledUpdate(NamedTuple):
    """A change of discrete states at t = start + offset + k·sample_time, k = 0, 1, ...

    Attributes:
        kind: `tick`: components are evaluated; `release`: delayed results take effect.
        names: the components, in the order in which they are evaluated.
        sample_time: s.
        offset: s.
    """

    kind: Literal["tick", "release"]
    names: tuple[str, ...]
    sample_time: float
    offset: float


class System:
    """A robot with components and connections; immutable.

    Attributes:
        robot: the robot.
        components: the components by name.
        connections: source of every input `"component.input"`: `"component.output"`, or numbers.
        layouts: places of the components' states, by name.
        order: (component, outputs) in the order in which continuous outputs are evaluated.
        sampled_order: (component, outputs) in the order in which sampled outputs are evaluated.
        schedule: updates of sampled components, in the order in which they are evaluated.
        events: events of the components.
        untraceable: errors of components that cannot be compiled, by name; they run in
            `rm.simulate` only.
        reads_robot: names of the components that read the state of the robot; those that cannot be
            traced are assumed to.
        reads_phase: names of the components that read `at.phase` or `at.phase_time`.

    Example:
        >>> robot = rm.load("servicer")
        >>> source = rm.SignalSource(
        ...     rm.Profile([0.0, 1.0], [0.0, 0.5]), "N m", shape=(1,), name="command"
        ... )
        >>> motor = rm.actuators.FirstOrderActuator(("elbow_pitch",), name="motor")
        >>> print(rm.System(robot, [source, motor], connect={"motor.command": "command.value"}))
        System of 'servicer': 2 components
          command (SignalSource, continuous)
            -> value  (1,) N m
          motor (FirstOrderActuator, continuous)
            command <- command.value  (1,) N m
            -> torque  (1,) N m
    """

    robot: Robot
    components: Mapping[str, Component]
    connections: Mapping[str, str | Array]
    layouts: Mapping[str, ComponentLayout]
    order: tuple[tuple[str, tuple[str, ...]], ...]
    sampled_order: tuple[tuple[str, tuple[str, ...]], ...]
    schedule: tuple[ScheduledUpdate, ...]
    events: tuple[SystemEvent, ...]
    untraceable: Mapping[str, RemoraError]
    reads_robot: frozenset[str]
    reads_phase: frozenset[str]
    _connect: Mapping[str, Any]

    def __init__(
        self,
        robot: Robot,
        components: Sequence[Component] | Mapping[str, Component] = (),
        connect: Mapping[str, Any] | None = None,
    ) -> None:
        """Validate the system as a whole.

        Args:
            robot: the robot.
            components: the components; their names must differ. A dictionary names them.
            connect: sources of inputs, `{"wheel.torque": "attitude.command"}`, or numbers. An input
                that is not listed takes the only output of the same name, or its default. Sources
                are also the run's `"phase.index"`, `"phase.time"`, `"events.NAME"` (1 once the
                event has occurred) and `"events.NAME_time"`, see `run_signals`.

        Raises:
            ModelError: lists all faults at once.
        """
        check_robot("System", robot)
        faults: list[Fault] = []
        named = _named(components, faults)
        self._set("robot", robot)
        if connect is not None and not isinstance(connect, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            faults.append(Fault("connect", f"must be a dictionary, not {type(connect).__name__}"))
            connect = None
        connect = {} if connect is None else connect
        named |= run_signals(named, connect)
        interfaces = {name: _interface(robot, name, c, faults) for name, c in named.items()}
        of_run = [n for n, c in named.items() if isinstance(c, (PhaseSignals, EventSignals))]
        connections = sources(interfaces, connect, faults, of_run)
        self._set("connections", MappingProxyType(connections))
        self._stop_at(faults)
        given = {k: x if isinstance(x, str) else np.array(x, float) for k, x in connect.items()}
        self._set("_connect", MappingProxyType(given))
        examples = {name: _example(robot, name, c, interfaces[name], faults)
                    for name, c in named.items()}  # fmt: skip
        self._stop_at(faults)
        reading = frozenset(name for name, example in examples.items() if example.reads_phase)
        self._set("reads_phase", reading)
        if reading and not any(isinstance(c, PhaseSignals) for c in named.values()):
            name = PHASE if PHASE not in named else f"{PHASE}_of_run"
            named[name] = PhaseSignals()
            interfaces[name] = _interface(robot, name, named[name], faults)
            examples[name] = _example(robot, name, named[name], interfaces[name], faults)
        self._set("components", MappingProxyType(named))
        direct = {name: dependence(robot, name, c, interfaces[name])
                      for name, c in named.items()}  # fmt: skip
        order, ticks = evaluation_order(
            named, interfaces, connections, lambda name: direct[name].outputs, faults
        )
        self._stop_at(faults)
        continuous = [pair for pair in order if named[pair[0]].sample_time is None]
        self._set("order", tuple(continuous))
        self._set("sampled_order", tuple(pair for pair in order if pair not in continuous))
        self._set("schedule", tuple(_schedule(named, ticks)))
        failed = {name: d.error for name, d in direct.items() if d.error is not None}
        self._set("untraceable", MappingProxyType(failed))
        self._set("reads_robot", frozenset(n for n, d in direct.items() if d.reads_robot))
        layouts: dict[str, ComponentLayout] = {}
        x = z = noise = 0
        for name, component in named.items():
            own = component_layout(component, interfaces[name], examples[name].actions, x, z, noise)
            layouts[name] = own
            x, z, noise = own.x.stop, own.effective.stop, own.noise.stop
        self._set("layouts", MappingProxyType(layouts))
        self._set("_sizes", (x, z, noise))
        self._set("events", tuple(
            SystemEvent(name, key, crossing)
            for name, i in interfaces.items() for key, crossing in i.events.items()
        ))  # fmt: skip

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _stop_at(self, faults: list[Fault]) -> None:
        if faults:
            raise ModelError(f"system of {self.robot.name!r}", faults)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse changes."""
        raise AttributeError(f"a System is immutable: make another one to change {name!r}")

    # Sizes and initial values -------------------------------------------------------------------

    @property
    def nx(self) -> int:
        """Number of continuous states of the components."""
        return self._sizes[0]  # pyright: ignore

    @property
    def nz(self) -> int:
        """Number of discrete states of the components, with held and delayed results."""
        return self._sizes[1]  # pyright: ignore

    @property
    def noise_size(self) -> int:
        """Number of random numbers of all components at one tick."""
        return self._sizes[2]  # pyright: ignore

    @functools.cached_property
    def initial_x(self) -> Array:
        """Initial continuous states, `(nx,)`."""
        return self._initial("continuous", self.nx)

    @functools.cached_property
    def initial_z(self) -> Array:
        """Initial discrete states, `(nz,)`; results that are held begin with zero."""
        return self._initial("discrete", self.nz)

    def _initial(self, what: str, size: int) -> Array:
        start = np.zeros(size)
        for layout in self.layouts.values():
            states = getattr(layout.interface, what).values()
            place = layout.x if what == "continuous" else layout.discrete
            if states:
                start[place] = np.concatenate([s.initial.reshape(-1) for s in states])
        start.flags.writeable = False
        return start

    @functools.cached_property
    def phase_place(self) -> slice | None:
        """Place of index and start of the run's phase in z; None: no component reads them."""
        return phase_place(self.layouts)

    @functools.cached_property
    def event_places(self) -> dict[str, int]:
        """Places in z of the states of events that components read, see `run_signals`."""
        return event_places(self.layouts)

    @functools.cached_property
    def called_at_ticks(self) -> frozenset[str]:
        """Names of the sampled components that cannot be traced: Python calls them at ticks."""
        return frozenset(name for name in self.untraceable if self.layouts[name].sampled)

    @property
    def called_in_between(self) -> bool:
        """Whether a continuous component cannot be traced: Python computes all derivatives."""
        return len(self.called_at_ticks) < len(self.untraceable)

    # Names ----------------------------------------------------------------------------------------

    def name_of(self, layout: ComponentLayout) -> str:
        """Return the name of the component of a layout."""
        return next(name for name, own in self.layouts.items() if own is layout)

    @property
    def signals(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shapes and units of all signals and states, by name `"component.signal"`."""
        found: dict[str, tuple[tuple[int, ...], str]] = {}
        for name, layout in self.layouts.items():
            interface = layout.interface
            for part in (interface.outputs, interface.continuous, interface.discrete):
                found |= {f"{name}.{key}": (s.shape, s.unit) for key, s in part.items()}
        return found

    @property
    def breaks(self) -> tuple[float, ...]:
        """Times at which continuous components are not smooth, ascending, s; see `Interface`."""
        own = (layout.interface.breaks for layout in self.layouts.values() if not layout.sampled)
        return tuple(sorted({float(t) for part in own for t in part}))

    @property
    def parameters(self) -> dict[str, Array]:
        """Parameters of all components, by name `"component.field"`."""
        return {
            f"{name}.{key}": value
            for name, component in self.components.items()
            for key, value in parameters(component).items()
        }

    def with_parameters(self, values: Mapping[str, Any]) -> System:
        """Return the system with other parameters of its components.

        With numbers it is the system that `System` makes of the changed components: interfaces,
        evaluation order, and what can be traced are determined anew. Symbols, and numbers with
        batch axes, decide nothing: the structure stays.

        Args:
            values: by name, `"component.field"`.
        """
        arrays = self._arrays(values)
        known = self.parameters
        numbers = {name: x for name, x in arrays.items() if _is_plain(x, known[name].shape)}
        symbols = {name: x for name, x in arrays.items() if name not in numbers}
        made = self
        if numbers:
            made = System(self.robot, _with_values(self.components, numbers), self._connect)
        return made.acting_on(made.robot, symbols)

    def _arrays(self, values: Mapping[str, Any]) -> dict[str, Array]:
        """Return parameters as arrays, or raise if one is unknown or has another shape."""
        known, found = self.parameters, dict[str, Array]()
        for name, value in by_name("parameters", values).items():
            if name not in known:
                raise UnknownName("parameter of a component", name, known)
            array, shape = numeric(f"parameter {name!r}", value), known[name].shape
            if array.shape[array.ndim - len(shape) :] != shape:
                raise ShapeError(f"parameter {name!r} must have shape {shape}, not {array.shape}")
            found[name] = lasting(array)
        return found

    def changes_interface(self, name: str, values: Mapping[str, Array]) -> bool:
        """Return whether numbers as parameters of a component change its interface.

        Initial states and numbers of signals may be computed from parameters; symbols cannot be.

        Args:
            name: name of the component.
            values: parameters by the names of its fields.
        """
        layout = self.layouts[name]
        own = parameters(layout.component)
        if not all(_is_plain(x, own[k].shape) for k, x in values.items()):
            return False
        plain = {k: x if x.ndim else float(x) for k, x in values.items()}
        found = with_parameters(layout.component, plain).interface(self.robot)
        return digest(found) != digest(layout.interface)

    def with_robot(self, robot: Robot) -> System:
        """Return the system on another robot: as `System` makes it of the same components.

        Args:
            robot: the robot. If its numbers are symbols, it must have the same bodies and joints,
                and the structure of the system stays.
        """
        check_robot("with_robot", robot)
        if robot is self.robot:
            return self
        if robot.seen_identity is not None:
            return System(robot, self.components, self._connect)
        for what in ("bodies", "joints"):
            old, new = ([part.name for part in getattr(r, what)] for r in (self.robot, robot))
            if old != new:
                raise RemoraError(
                    f"a robot with symbols as numbers must have the {what} of {self.robot.name!r}, "
                    f"{', '.join(old)}, not {', '.join(new)}"
                )
        return self.acting_on(robot)

    def acting_on(self, robot: Robot, parameters: Mapping[str, Any] | None = None) -> System:
        """Return the system with the same states and structure on a robot with the same tree.

        Args:
            robot: the robot of the system with other active constraints, as in a phase of a run, or
                with numbers that are symbols or have batch axes.
            parameters: of components by name, which are symbols or have batch axes.
        """
        if robot is self.robot and not parameters:
            return self
        values = self._arrays(parameters or {})
        return self._changed(robot, _with_values(self.components, values))

    def with_separate_updates(self, names: Collection[str]) -> System:
        """Return the system with no update that is shared by these components and others."""
        schedule: list[ScheduledUpdate] = []
        for update in self.schedule:
            for _, group in itertools.groupby(update.names, lambda name: name in names):
                schedule.append(update._replace(names=tuple(group)))
        new = self._changed(self.robot, self.components)
        new._set("schedule", tuple(schedule))
        return new

    def _changed(self, robot: Robot, components: Mapping[str, Component]) -> System:
        new = object.__new__(System)
        vars(new).update(vars(self))
        layouts = {name: _relaid(layout, components[name]) for name, layout in self.layouts.items()}
        for name, value in (("robot", robot), ("components", MappingProxyType(dict(components))),
                            ("layouts", MappingProxyType(layouts))):  # fmt: skip
            object.__setattr__(new, name, value)
        return new

    # Pictures -----------------------------------------------------------------------------------

    def diagram(self) -> Diagram:
        """Return a block diagram: a picture in a notebook; `.save("loop.svg")` writes a file."""
        from remora.components.diagram.diagram import Diagram  # late: few systems are drawn

        return Diagram(self.robot, self.layouts, self.connections, self.reads_robot)

    # Identity -----------------------------------------------------------------------------------

    def identity_parts(self) -> tuple[Any, ...]:
        """Return the parts that identify the system by value."""
        return self.robot, dict(self.components), dict(self.connections)

    def kernel_parts(self) -> tuple[Any, ...]:
        """Return all that code made of the system depends on, besides its robot, to compare.

        The structure may be that for another robot, see `acting_on`. What Python calls at ticks is
        no part of the code.
        """
        components, layouts = dict(self.components), dict(self.layouts)
        for name in self.called_at_ticks:
            components[name] = Component(name=name)
            layouts[name] = _relaid(layouts[name], components[name])
        structure = self.order, self.sampled_order, self.schedule, layouts
        return components, dict(self.connections), structure

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor and its arguments, for pickles and copies."""
        return System, (self.robot, dict(self.components), dict(self._connect))

    def __eq__(self, other: object) -> bool:
        """Return whether both have equal robots, components and connections."""
        return isinstance(other, System) and digest(self) == digest(other)

    def __hash__(self) -> int:
        """Return a hash of the values."""
        return hash(digest(self))

    def __repr__(self) -> str:
        """Return the components with their timing, inputs and outputs, one per line."""
        count = len(self.components)
        parts = "1 component" if count == 1 else f"{count} components"
        lines = [f"System of {self.robot.name!r}: {parts}"]
        for name, layout in self.layouts.items():
            component, interface = layout.component, layout.interface
            timing = "continuous"
            if component.sample_time is not None:
                timing = f"every {component.sample_time:g} s"
                timing += f", delay {component.delay:g} s" if component.delay else ""
            lines.append(f"  {name} ({type(component).__name__}, {timing})")
            for key, signal in interface.inputs.items():
                source = self.connections[f"{name}.{key}"]
                told = source if isinstance(source, str) else np.array2string(source, precision=4)
                lines.append(f"    {key} <- {told}  {signal}".rstrip())
            for key, signal in interface.outputs.items():
                lines.append(f"    -> {key}  {signal}".rstrip())
        return "\n".join(lines)


def _is_plain(value: Array, shape: tuple[int, ...]) -> bool:
    """Return whether a parameter is one of numbers, with no batch axes."""
    return not is_symbolic(value) and value.shape == shape


def _with_values(
    components: Mapping[str, Component], values: Mapping[str, Array]
) -> dict[str, Component]:
    """Return components with other parameters, by name `"component.field"`."""
    own: dict[str, dict[str, Any]] = {name: {} for name in components}
    for full, x in values.items():
        name, _, key = full.rpartition(".")
        own[name][key] = x if x.ndim or is_symbolic(x) else float(x)
    return {name: with_parameters(c, own[name]) for name, c in components.items()}


def _relaid(layout: ComponentLayout, component: Component) -> ComponentLayout:
    new = copy.copy(layout)
    object.__setattr__(new, "component", component)
    return new


def _named(
    components: Sequence[Component] | Mapping[str, Component], faults: list[Fault]
) -> dict[str, Component]:
    """Return the components by name; report what is no component, and names used twice."""
    pairs: list[tuple[str, Any]] = []
    if isinstance(components, Mapping):
        pairs = [(str(name), c) for name, c in components.items()]
    elif isinstance(components, Component) or not isinstance(components, Iterable):  # pyright: ignore
        told = f"must be a list or dictionary of components, not {type(components).__name__}"
        faults.append(Fault("components", told))
    else:
        for c in components:
            is_one = isinstance(c, Component)  # pyright: ignore[reportUnnecessaryIsInstance]
            pairs.append((default_name(c) if is_one else "?", c))
    found: dict[str, Component] = {}
    for name, component in pairs:
        where = f"component {name!r}"
        if not isinstance(component, Component):
            told = f"must be a Component, not {type(component).__name__}"
            if isinstance(component, type):
                made = component.__name__
                told = f"must be a Component, not the class {made}: write {made}(...)"
            faults.append(Fault(where, told))
        elif not _NAME.fullmatch(name):
            faults.append(Fault(where, "a name has letters, digits, '_' and '-' only"))
        elif name in found:
            faults.append(Fault(where, "two components have this name; set name= in one of them"))
        else:
            found[name] = component
    return found


def _interface(robot: Robot, name: str, component: Component, faults: list[Fault]) -> Interface:
    """Return the interface of a component; report what is wrong with its timing and names."""
    where = f"component {name!r}"
    for key in ("sample_time", "offset", "delay"):
        value: Any = getattr(component, key)
        if value is None and key == "sample_time":
            continue
        low = "positive" if key == "sample_time" else "nonnegative"
        if not _is_time(value) or (value == 0.0 and key == "sample_time"):
            faults.append(Fault(where, f"{key} must be a {low} number of seconds, not {value!r}"))
    if component.sample_time is None and (component.offset or component.delay):
        faults.append(Fault(where, "offset and delay need a sample_time"))
    try:
        found: Any = component.interface(robot)
    except RemoraError as error:
        faults.append(Fault(where, str(error)))
        return Interface()
    except Exception as error:
        faults.append(Fault(where, f"interface raised {type(error).__name__}: {error}"))
        return Interface()
    if not isinstance(found, Interface):
        faults.append(Fault(where, f"interface must return an Interface, not {found!r}"))
        return Interface()
    if component.sample_time is None and found.noise:
        faults.append(Fault(where, "noise needs a sample_time, such as 0.05 (s)"))
    if component.sample_time is not None and (found.continuous or found.events):
        faults.append(
            Fault(where, "a sampled component has no continuous states and no events: leave out "
                  "sample_time, or make two components of it")
        )  # fmt: skip
    try:
        known = parameters(component)
    except RemoraError as error:
        faults.append(Fault(where, str(error)))
        known = {}
    for key, value in known.items():
        if not np.all(np.isfinite(value)):
            faults.append(Fault(where, f"parameter {key!r} must be finite, not {value}"))
    if not all(math.isfinite(t) for t in found.breaks):
        faults.append(Fault(where, f"breaks must be finite times, not {found.breaks}"))
    for part in ("inputs", "outputs", "continuous", "discrete", "noise", "events"):
        for key in getattr(found, part):
            if not isinstance(key, str) or not _NAME.fullmatch(key):
                why = f"{key!r} in {part}: a name has letters, digits, '_' and '-' only"
                faults.append(Fault(where, why))
    states = [*found.continuous, *found.discrete]
    for key in {k for k in states if states.count(k) > 1 or k in found.outputs or k in ("q", "v")}:
        faults.append(Fault(where, f"{key!r} names two states or outputs, or the robot's state"))
    return found


def _is_time(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value) and value >= 0.0


class _Example(NamedTuple):
    """What a component does at one state.

    Attributes:
        actions: its actions.
        reads_phase: whether it reads the phase.
    """

    actions: tuple[actions.Action, ...] = ()
    reads_phase: bool = False


def _example(
    robot: Robot, name: str, component: Component, interface: Interface, faults: list[Fault]
) -> _Example:
    """Evaluate a component once; return what it does, report what is wrong.

    At the neutral state, or, where a law is singular there (an outstretched arm), at a random one.
    """
    arrays = {
        "continuous": {k: s.initial for k, s in interface.continuous.items()},
        "discrete": {k: s.initial for k, s in interface.discrete.items()},
        "inputs": {k: np.zeros(s.shape) for k, s in interface.inputs.items()},
        "noise": {k: np.zeros(n) for k, n in interface.noise.items()},
    }
    sampled = component.sample_time is not None
    shapes = {
        "outputs": {k: s.shape for k, s in interface.outputs.items()},
        "derivative": {k: s.shape for k, s in interface.continuous.items()},
        "crossings": dict.fromkeys(interface.events, ()),
        "update": {k: s.shape for k, s in interface.discrete.items()} if sampled else {},
    }

    reads: list[Array] = []

    def phase() -> Array:
        reads.append(np.zeros(2))
        return reads[-1]

    def evaluated(q: Array) -> _Example:
        at = context_of(robot, arrays, np.zeros(()), q, np.zeros(robot.nv), sampled, phase)
        for method, own in shapes.items():
            if own:
                checked(method, own, getattr(component, method)(at))
        found = tuple(actions.listed("act", component.act(at)))
        for action in found:
            actions.check("act", robot, action)
        return _Example(found, bool(reads))

    with np.errstate(all="ignore"):
        try:
            try:
                return evaluated(neutral(robot))
            except SingularMatrix:
                return evaluated(random_state(robot, 0)[0])
        except RemoraError as error:
            faults.append(Fault(f"component {name!r}", str(error)))
        except Exception as error:
            faults.append(Fault(f"component {name!r}", f"raised {type(error).__name__}: {error}"))
    return _Example()


def _schedule(components: Mapping[str, Component], names: Sequence[str]) -> list[ScheduledUpdate]:
    """Return all updates in the order in which they happen at the same time.

    Components with the same ticks that are evaluated one after another are one update. A delay that
    is a multiple of the sample time needs no update of its own: see `Instant.ticked`.
    """
    ticks: list[ScheduledUpdate] = []
    releases: dict[tuple[float, float], tuple[str, ...]] = {}
    for name in names:
        c = components[name]
        assert c.sample_time is not None
        timing = (float(c.sample_time), float(c.offset))
        if ticks and ticks[-1][2:] == timing:
            ticks[-1] = ScheduledUpdate("tick", (*ticks[-1].names, name), *timing)
        else:
            ticks.append(ScheduledUpdate("tick", (name,), *timing))
        if c.delay > 0.0 and not delay_in_ticks(c):
            due = (timing[0], timing[1] + float(c.delay))
            releases[due] = (*releases.get(due, ()), name)
    first = [ScheduledUpdate("release", own, *due) for due, own in releases.items()]
    return first + ticks
