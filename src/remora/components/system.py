"""Systems: a robot, the components that act on it, and the signals between them."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, is_symbolic, lasting
from remora.components import component_checks
from remora.components.component import (
    Component,
    ZeroCrossing,
    parameters,
    with_parameters,
)
from remora.components.context import DESIGN
from remora.components.feedthrough import Dependence, dependence
from remora.components.layout import ComponentLayout, component_layout, delay_in_ticks
from remora.components.run_signals import (
    PHASE,
    EventSignals,
    MotionSignals,
    PhaseSignals,
    event_places,
    motion_place,
    motion_readers,
    phase_place,
    run_signals,
)
from remora.components.truth import laws, truth_read_by
from remora.components.wiring import evaluation_order, own_sources, sources, state_inputs
from remora.dynamics.kernels.parameter_checks import ParameterFault, parameter_faults
from remora.dynamics.kernels.parameters import of_constraint, parameter, with_values
from remora.errors import (
    Fault,
    InvalidValue,
    ModelError,
    RemoraError,
    ShapeError,
    UnknownName,
)
from remora.identity.digest import digest
from remora.model.arguments import by_name
from remora.model.numbers import numeric
from remora.model.robot import Robot
from remora.model.takes_robot import check_robot

if TYPE_CHECKING:
    from remora.components.diagram.diagram import Diagram


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

    Forces act on `robot`, and actuators, sensors and the environment see it. Components that use
    the design (`Component.uses_design`: all control laws) compute kinematics and dynamics with
    `design`, a robot with the same tree and the numbers that were known when the law was made.
    Without `design` it is the robot of which the system was made: `with_parameters`, a batch or a
    study that changes masses changes what moves, not what the laws know.

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
        reads_phase: names of the components that read `at.phase` or `at.phase_time`.
        reads_motion: names of the components that read the true acceleration or wrenches.

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
    reads_phase: frozenset[str]
    reads_motion: frozenset[str]
    _connect: Mapping[str, Any]
    _design: Robot | None
    _dependences: Mapping[str, Dependence]

    def __init__(
        self,
        robot: Robot,
        components: Sequence[Component] | Mapping[str, Component] = (),
        connect: Mapping[str, Any] | None = None,
        design: Robot | None = None,
    ) -> None:
        """Validate the system as a whole.

        Args:
            robot: the robot.
            components: the components; their names must differ. A dictionary names them.
            connect: sources of inputs, `{"wheel.torque": "attitude.command"}`, or numbers. An input
                that is not listed takes the only output of the same name, or its default. Sources
                are also the run's `"phase.index"`, `"phase.time"`, `"events.NAME"` (1 once the
                event has occurred) and `"events.NAME_time"`, see `run_signals`.
            design: the robot with which control laws compute, with the same bodies and joints; its
                constraints are those of `robot`. None: `robot`.

        Raises:
            ModelError: lists all faults at once.
        """
        check_robot("System", robot)
        faults: list[Fault] = []
        named = component_checks.named(components, faults)
        self._set("robot", robot)
        if design is not None:
            check_robot("System(design=...)", design)
            _check_tree("the design", robot, design)
        self._set("_design", _design_of(robot, design))
        if connect is not None and not isinstance(connect, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            faults.append(Fault("connect", f"must be a dictionary, not {type(connect).__name__}"))
            connect = None
        connect = {} if connect is None else connect
        interfaces = {name: component_checks.interface(self.robot_of(c), name, c, faults)
                      for name, c in named.items()}  # fmt: skip
        connect = own_sources(interfaces) | dict(connect)
        of_run = run_signals(named, connect)
        named |= of_run
        interfaces |= {name: component_checks.interface(self.robot_of(c), name, c, faults)
                       for name, c in of_run.items()}  # fmt: skip
        interfaces, wired = state_inputs(self.design, named, interfaces, connect, faults)
        kinds = (PhaseSignals, EventSignals, MotionSignals)
        explicit = [n for n, c in named.items() if isinstance(c, kinds)]
        connections = sources(interfaces, wired, faults, explicit)
        self._set("reads_motion", motion_readers(named, connections, faults))
        self._set("connections", MappingProxyType(connections))
        self._stop_at(faults)
        given = {k: x if isinstance(x, str) else np.array(x, float) for k, x in connect.items()}
        self._set("_connect", MappingProxyType(given))

        def example(name: str, c: Component) -> component_checks.Example:
            computes, own = self.robot_of(c), interfaces[name]
            return component_checks.example(computes, name, c, own, self.design, faults)

        examples = {name: example(name, c) for name, c in named.items()}
        self._stop_at(faults)
        reading = frozenset(name for name, example in examples.items() if example.reads_phase)
        self._set("reads_phase", reading)
        if reading and not any(isinstance(c, PhaseSignals) for c in named.values()):
            name = PHASE if PHASE not in named else f"{PHASE}_of_run"
            named[name] = PhaseSignals()
            interfaces[name] = component_checks.interface(robot, name, named[name], faults)
            examples[name] = example(name, named[name])
        self._set("components", MappingProxyType(named))
        direct = {name: dependence(self.robot_of(c), name, c, interfaces[name], self.design)
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
        self._set("_dependences", direct)
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

    # Design -------------------------------------------------------------------------------------

    @property
    def design(self) -> Robot:
        """The robot with which control laws compute; `robot` itself if there is no other."""
        return self.robot if self._design is None else self._design

    @property
    def reads_robot(self) -> frozenset[str]:
        """Names of the components that read the state; those that cannot be traced are taken to."""
        return frozenset(name for name, own in self._dependences.items() if own.reads_robot)

    @functools.cached_property
    def laws(self) -> frozenset[str]:
        """Names of the control laws, see `truth_read_by`."""
        return laws(self.components, self.connections)

    @functools.cached_property
    def designed(self) -> tuple[str, ...]:
        """Names of the components that compute with the design at a state, true or estimated."""
        return tuple(
            name for name, c in self.components.items()
            if c.uses_design and not c.estimates_state and self._dependences[name].reads_state
        )  # fmt: skip

    def truth_read_by(self) -> dict[str, tuple[str, ...]]:
        """Return which parts of the true state control laws depend on, by component.

        On a spacecraft they would have to be measured: connect sensors to a
        `rm.estimation.StateEstimate`. Ready-made sensors, actuators and what acts from outside
        (`rm.world`) are not listed. Components of your own are listed if they act on the robot, or
        command what acts, directly or through others; a law with `uses_design = True` is listed,
        but not the sensors of your own that go to it.

        Example:
            >>> robot = rm.load("servicer")
            >>> law = rm.control.JointPD(robot, {"elbow_pitch": 0.5}, 30.0, 20.0, 0.02)
            >>> rm.System(robot, [law]).truth_read_by()
            {'joint_pd': ('elbow_pitch position', 'elbow_pitch speed')}
        """

        def traced(robot: Robot) -> dict[str, tuple[Component, Dependence]]:
            now, found = self.acting_on(robot), dict[str, tuple[Component, Dependence]]()
            for name, c in now.components.items():
                if name in self.laws or c.estimates_state:
                    interface = now.layouts[name].interface
                    own = dependence(now.robot_of(c), name, c, interface, now.design, True)
                    found[name] = c, own
            return found

        return truth_read_by(self.robot, self.connections, traced)

    def robot_of(self, component: Component) -> Robot:
        """Return the robot with which a component computes."""
        return self.design if component.uses_design else self.robot

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
    def motion_place(self) -> tuple[slice, tuple[str, ...]] | None:
        """Place in z of the true motion, and its parts; None: no component reads it."""
        return motion_place(self.layouts)

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

    def owner_of(self, name: str) -> Literal["component", "robot", "design"]:
        """Return whose parameter a name is: a component's, the robot's or the design's.

        `"pi.kp"` is a parameter of the component `pi`, `"arm.mass"` a number of the robot, as
        in `rm.simulate_batch`, and `"design.arm.mass"` the same number of the design.
        """
        owners: list[Literal["component", "robot", "design"]] = []
        if name in self.parameters:
            owners.append("component")
        error: UnknownName | None = None
        try:
            parameter(self.robot, name)
            owners.append("robot")
        except UnknownName as unknown:
            error = unknown
        if name.startswith(DESIGN):
            own = name.removeprefix(DESIGN)
            try:
                parameter(self.design, own)
            except UnknownName as unknown:
                if not owners:
                    raise UnknownName("parameter of the design", own, unknown.known) from None
            else:
                owners.append("design")
                if of_constraint(self.design, own):
                    raise InvalidValue(
                        f"parameter {name!r}: the constraints of the design are those of the "
                        f"robot: give {own!r}"
                    )
        if not owners:
            assert error is not None
            raise UnknownName("parameter", name, (*error.known, *self.parameters))
        if len(owners) > 1:
            told = {
                "component": "of a component",
                "robot": "of the robot",
                "design": "of the design",
            }
            both = " and ".join(told[owner] for owner in reversed(owners))
            other = "component" if "component" in owners else "body or joint"
            raise RemoraError(f"parameter {name!r} is a parameter {both}: rename the {other}")
        return owners[0]

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of a parameter of a component, the robot or the design."""
        owner = self.owner_of(name)
        if owner == "component":
            return self.parameters[name].shape
        return parameter(self.robot, name.removeprefix(DESIGN if owner == "design" else ""))[
            0
        ].shape

    def with_parameters(self, values: Mapping[str, Any]) -> System:
        """Return the system with other parameters of its components, its robot or its design.

        Numbers of the robot change what moves; the design stays as it was.

        With numbers it is the system that `System` makes of the changed parts: interfaces,
        evaluation order, and what can be traced are determined anew. Symbols, and numbers with
        batch axes, decide nothing: the structure stays.

        Args:
            values: by name: `"component.field"`; `"body.mass"` and the like, as in
                `rm.simulate_batch`; `"design.body.mass"`.
        """
        arrays = self._arrays(values)
        numbers = {name: x for name, x in arrays.items() if _is_plain(x, self.shape_of(name))}
        symbols = {name: x for name, x in arrays.items() if name not in numbers}
        made = self
        if numbers:
            faults = [
                str(fault) for name, x in numbers.items() for fault in self.faults_of(name, x)
            ]
            if faults:
                raise InvalidValue("; ".join(faults))
            changed = self.acting_with(numbers)
            made = System(changed.robot, changed.components, self._connect, changed._design)
        return made.acting_with(symbols)

    def faults_of(self, name: str, values: Array) -> list[ParameterFault]:
        """Return what is physically impossible in values of a parameter, `(..., *shape)`."""
        owner = self.owner_of(name)
        if owner == "component":
            return []
        before = DESIGN if owner == "design" else ""
        found = parameter_faults(self.robot, name.removeprefix(before), values)
        return [fault._replace(what=f"{before}{fault.what}") for fault in found]

    def acting_with(self, values: Mapping[str, Array]) -> System:
        """Return the system with the same states and structure and other parameters.

        Args:
            values: by name, see `with_parameters`; symbols, or numbers with batch axes.
        """
        if not values:
            return self
        parts: dict[str, dict[str, Array]] = {"component": {}, "robot": {}, "design": {}}
        for name, x in values.items():
            owner = self.owner_of(name)
            parts[owner][name.removeprefix(DESIGN if owner == "design" else "")] = x
        design, changed = self._design, (*parts["robot"], *parts["design"])
        if not all(of_constraint(self.robot, name) for name in changed):
            design = with_values(self.design, parts["design"])
        robot = with_values(self.robot, parts["robot"])
        return self._changed(robot, design, _with_values(self.components, parts["component"]))

    def with_components(
        self, added: Mapping[str, Component], connect: Mapping[str, Any] | None = None
    ) -> System:
        """Return the system with further components.

        Args:
            added: by name.
            connect: sources of inputs that are added or connected to something else.
        """
        connections = {**self._connect, **self.connections, **(connect or {})}
        return System(self.robot, {**self.components, **added}, connections, self._design)

    def _arrays(self, values: Mapping[str, Any]) -> dict[str, Array]:
        """Return parameters as arrays, or raise if one is unknown or has another shape."""
        found: dict[str, Array] = {}
        for name, value in by_name("parameters", values).items():
            array, shape = numeric(f"parameter {name!r}", value), self.shape_of(name)
            if array.shape[array.ndim - len(shape) :] != shape:
                raise ShapeError(f"parameter {name!r} must have shape {shape}, not {array.shape}")
            found[name] = lasting(array)
        return found

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
            return System(robot, self.components, self._connect, self._design)
        _check_tree("a robot with symbols as numbers", self.robot, robot)
        return self.acting_on(robot)

    def acting_on(self, robot: Robot) -> System:
        """Return the system with the same states and structure on a robot with the same tree.

        Args:
            robot: the robot of the system with other active constraints, as in a phase of a run, or
                with numbers that are symbols or have batch axes. Its constraints are those of the
                design, too.
        """
        return self if robot is self.robot else self._changed(robot, self._design, self.components)

    def with_separate_updates(self, names: Collection[str]) -> System:
        """Return the system with no update that is shared by these components and others."""
        schedule: list[ScheduledUpdate] = []
        for update in self.schedule:
            for _, group in itertools.groupby(update.names, lambda name: name in names):
                schedule.append(update._replace(names=tuple(group)))
        new = self._changed(self.robot, self._design, self.components)
        new._set("schedule", tuple(schedule))
        return new

    def _changed(
        self, robot: Robot, design: Robot | None, components: Mapping[str, Component]
    ) -> System:
        new = object.__new__(System)
        vars(new).update(vars(self))
        layouts = {name: _relaid(layout, components[name]) for name, layout in self.layouts.items()}
        for name, value in (("robot", robot), ("_design", _design_of(robot, design)),
                            ("components", MappingProxyType(dict(components))),
                            ("layouts", MappingProxyType(layouts))):  # fmt: skip
            new._set(name, value)
        return new

    # Pictures -----------------------------------------------------------------------------------

    def diagram(self) -> Diagram:
        """Return a block diagram: a picture in a notebook; `.save("loop.svg")` writes a file."""
        from remora.components.diagram.diagram import Diagram  # late: few systems are drawn

        return Diagram(self.robot, self.layouts, self.connections, self.reads_robot)

    # Identity -----------------------------------------------------------------------------------

    def identity_parts(self) -> tuple[Any, ...]:
        """Return the parts that identify the system by value."""
        return self.robot, self._design, dict(self.components), dict(self.connections)

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
        return self._design, components, dict(self.connections), structure

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor and its arguments, for pickles and copies."""
        return System, (self.robot, dict(self.components), dict(self._connect), self._design)

    def __eq__(self, other: object) -> bool:
        """Return whether both have equal robots, designs, components and connections."""
        return isinstance(other, System) and digest(self) == digest(other)

    def __hash__(self) -> int:
        """Return a hash of the values."""
        return hash(digest(self))

    def __repr__(self) -> str:
        """Return the components with their timing, inputs and outputs, one per line."""
        count = len(self.components)
        parts = "1 component" if count == 1 else f"{count} components"
        lines = [f"System of {self.robot.name!r}: {parts}"]
        if self._design is not None:
            lines.append("  control laws compute with a design that is not the robot")
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


def _check_tree(what: str, robot: Robot, other: Robot) -> None:
    """Raise if a robot has other bodies, joints or frames."""
    for part in ("bodies", "joints", "frames"):
        old, new = ([item.name for item in getattr(r, part)] for r in (robot, other))
        if old != new:
            raise RemoraError(
                f"{what} must have the {part} of {robot.name!r}, {', '.join(old)}, not "
                f"{', '.join(new)}"
            )
    for old, new in zip(robot.joints, other.joints, strict=True):
        if (old.kind, old.parent, old.q, old.v) != (new.kind, new.parent, new.q, new.v):
            raise RemoraError(f"{what} must have the joint {old.name!r} of {robot.name!r}")
    for old, new in zip(robot.frames, other.frames, strict=True):
        if old.body != new.body:
            raise RemoraError(f"{what} must have the frame {old.name!r} of {robot.name!r}")


def _design_of(robot: Robot, design: Robot | None) -> Robot | None:
    """Return the design with the constraints of the robot; None if it is the robot."""
    if design is None or design is robot:
        return None
    if design.constraints is robot.constraints:
        return design
    return dataclasses.replace(design, constraints=robot.constraints)


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
