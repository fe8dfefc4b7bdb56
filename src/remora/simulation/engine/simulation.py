"""`rm.Simulation`: a run that is advanced call by call, with inputs from outside."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, lasting
from remora.components.run_signals import INPUTS, InputSignals, event_key, input_places
from remora.components.system import System
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.arguments import number
from remora.model.robot import Robot
from remora.simulation.engine.interrupts import interruptible
from remora.simulation.engine.run_loop import PausedRun, RunLoop
from remora.simulation.engine.simulate import PreparedRun, prepare_run, refuse_batch_settings
from remora.simulation.inputs.loads import InputValue, Load, is_mapping
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.robot_loads import LOADS, load_of, refuse_torque_of_held
from remora.simulation.inputs.run_settings import record_of
from remora.simulation.recording.recording import Recording


class SavedState(NamedTuple):
    """State of a simulation, see `Simulation.save`.

    Attributes:
        owner: the simulation.
        t: time, s.
        run: state of the run, which may be at the end of the step that t is in.
        ended: whether the run had ended.
        loads: the loads that had been set, and their values.
        recording: what had been recorded.
    """

    owner: Any
    t: float
    run: PausedRun
    ended: bool
    loads: dict[str, tuple[InputValue, Array]]
    recording: Recording


class Simulation:
    """A run that is advanced call by call: for learning environments and controllers outside.

    The run has the same bits as one call of `rm.simulate`, for any sequence of `advance`: no step
    ends where you look. The state at `t` comes from the dense output of the step that contains it,
    as that of a sample does; the state of the run itself is the end of that step.

    Only where an input is changed does a step have to end. The run then goes back to its last
    discontinuity (a break of a load, the sample of a controller, another change of an input, the
    start of the phase), makes the steps from there again so that one ends at `t`, and continues
    with the new value. So it has the bits of `rm.simulate` with a load that is constant between
    these times (zero-order hold), and `breaks` there. What was seen in between may differ from the
    recording by the error tolerance.

    Example:
        >>> robot = rm.load("servicer")
        >>> sim = rm.Simulation(robot, rm.neutral(robot), np.full(robot.nv, 0.1), duration=0.1)
        >>> while not sim.ended:
        ...     sim.set_input("torque", -5.0 * sim.v)  # a policy
        ...     _ = sim.advance(sim.t + 0.02)
        >>> len(sim.recording().t) > 5
        True
    """

    def __init__(
        self,
        robot: Robot | System,
        q: ArrayLike,
        v: ArrayLike,
        duration: float | Phase | Sequence[Phase] | None = None,
        *,
        inputs: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        """Prepare a run; no step is made yet.

        Args:
            robot: see `rm.simulate`.
            q: initial configuration, `(nq,)`.
            v: initial velocity, `(nv,)`.
            duration: longest time that can be simulated, s; or phases.
            inputs: inputs of components that are to be set, `"component.input"`. They begin with
                the numbers to which they are connected, or their default. They are outputs of a
                component `inputs`, which is added to the system: see `system`.
            **settings: the other arguments of `rm.simulate`. A `Record` has no folder and no
                progress here: the run is in memory; `sim.recording().save(...)` writes it.
        """
        record = record_of(settings.get("record"))
        refuse_batch_settings(record)
        if record.folder is not None or record.progress not in (None, False):
            name = "progress" if record.folder is None else "folder"
            raise RemoraError(
                f"rm.Simulation has no {name!r}: the run is in memory; save it with "
                "sim.recording().save('folder')"
            )
        unknown = settings.keys() - inspect.signature(prepare_run).parameters
        if unknown:
            raise TypeError(f"Simulation() got an unexpected keyword argument {min(unknown)!r}")
        names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        if names:
            if not isinstance(robot, System):
                raise RemoraError("inputs are those of components: pass a System")
            robot = _with_inputs(robot, names)
        made = prepare_run(robot, q, v, duration, **settings)
        made.warn_of_start()
        self._begin(made)

    def _begin(self, made: PreparedRun) -> None:
        self._made = made
        self._plan = made.plan._replace(paused=True)
        self._recorder = made.recorder()
        self._loop = RunLoop(self._plan, self._recorder, made.start, made.q, made.v, False)
        self._t, self._phases = made.start, made.plan.phases
        self._loads: dict[str, InputValue] = {}
        self._shown: tuple[Array, Array, Array] | None = None
        self._error: BaseException | None = None

    # The present ----------------------------------------------------------------------------------

    @property
    def system(self) -> System:
        """The robot with its components, and those that the simulation adds."""
        own = self._plan.model.system
        return System(self._plan.model.robot) if own is None else own

    @property
    def t(self) -> float:
        """Time, s."""
        return self._t

    @property
    def q(self) -> Array:
        """Configuration, `(nq,)`."""
        return self._now()[0].copy()

    @property
    def v(self) -> Array:
        """Velocity, `(nv,)`."""
        return self._now()[1].copy()

    @property
    def status(self) -> str:
        """`running`, `complete` (at its end, or stopped by an event) or `failed`."""
        return self._recorder.status

    @property
    def message(self) -> str:
        """Reason for the end, such as the event that stopped the run."""
        return self._recorder.message

    @property
    def ended(self) -> bool:
        """Whether the run has ended: `advance` then does nothing."""
        return self._loop.ended

    def signal(self, name: str) -> Array:
        """Return a signal or state of a component, `"gyro.rate"`, as a sample at `t` holds it.

        Sampled components are updated at their ticks after a sample there.

        Raises:
            UnknownName: for an unknown name; the text lists the known ones.
        """
        columns = self._recorder.signals
        if name not in columns:
            raise UnknownName("signal", name, tuple(columns))
        start, numbers = 0, self._now()[2]
        if not numbers.size:
            raise RemoraError(f"the run has failed at its start, without a sample: {self.message}")
        for own, found in columns.items():
            size = math.prod(found.size)
            if own == name:
                return numbers[start : start + size].reshape(found.size).copy()
            start += size
        raise AssertionError

    def _now(self) -> tuple[Array, Array, Array]:
        if self._shown is None:
            self._go(self._t)
            self._shown = self._loop.at(self._t)
        return self._shown

    # Time -----------------------------------------------------------------------------------------

    def advance(self, until: float) -> Simulation:
        """Advance to a time, or to the end of the run; return the simulation.

        A run that has ended (`ended`) stays where it is: `t` is the time of its end then.

        Args:
            until: absolute time, s, not before `t`: `sim.advance(sim.t + 0.02)`.

        Raises:
            SimulationError: if the run cannot continue; it holds the `time` and the `recording`.
        """
        if type(until) is not float:
            until = number("until", until, "sim.t + 0.02, in s")
        if not until >= self._t:
            raise InvalidValue(
                f"until must be a time that is not before t = {self._t:.9g} s, not {until}: "
                "sim.advance(sim.t + 0.02), or go back with sim.restore"
            )
        if self._loop.ended:
            if self._error is not None:
                raise self._error
            return self
        self._shown = None
        self._go(until)
        self._t = self._loop.state.t if self._loop.ended else until
        return self

    def _go(self, until: float, land: bool = False) -> None:
        """Make steps until a time is reached, or so that one ends there."""
        with interruptible():
            try:
                (self._loop.land if land else self._loop.advance)(until)
            except KeyboardInterrupt:
                self._loop.rewind()
                raise
            except RemoraError as error:
                self._error = error
                self._t = self._loop.state.t
                raise

    # Inputs ---------------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of what `set_input` can set."""
        # the momentum of the reduced model is constant
        loads = LOADS if self._plan.model.momentum is None else ("torque",)
        return (*loads, *self._places)

    @property
    def _places(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        own = self._plan.model.system
        return {} if own is None else input_places(own.layouts)

    def set_input(self, name: str, value: Any) -> None:
        """Set an input from now on, constant until it is set again.

        Args:
            name: `torque`, `base_wrench` or `wrenches`: the load takes the place of that argument
                of `rm.simulate`, in all phases; or one of the `inputs` of components.
            value: numbers; torques also by joint, wrenches by body (others are zero). Of a vector
                of torques, as a law returns it, those of prescribed and locked joints are not used.

        Raises:
            UnknownName: for an unknown name; the text lists the known ones.
            RemoraError: for a torque by the name of a joint that is prescribed or locked at `t`.
        """
        if name not in self.inputs:
            raise UnknownName("input", name, self.inputs)
        if self._loop.ended:
            raise RemoraError(f"the run has ended ({self.status}): no input can be set")
        place, shape = self._places.get(name, (None, ()))
        if place is None:
            numbers = self._load(name, value)
        else:
            numbers = Load(name, None, shape, None).numbers(value)
        loop, self._shown = self._loop, None
        self._go(self._t)
        if name == "torque" and not loop.ended:
            phase = loop.phase_from(self._t)
            held = (*phase.prescribed, *phase.locked)
            named = value if is_mapping(value) else None  # a vector is what a law returns
            refuse_torque_of_held(self._plan.model.robot, held, named)
        self._go(self._t, land=True)
        if loop.ended:  # by an event at t
            self._t = loop.state.t
        elif place is not None:
            z = loop.state.z.copy()
            z[place] = numbers.ravel()
            loop.change(z)
        elif name in self._loads:
            self._loads[name].value = numbers
            loop.change()
        else:
            given = self._loads[name] = InputValue(numbers)
            self._phases = tuple(replace(p, **{name: given}) for p in self._phases)
            loop.replan(self._phases, name)

    def _load(self, name: str, value: Any) -> Array:
        parts: list[Any] = [*value.values()] if is_mapping(value) else [value]
        if any(callable(part) or part is None for part in parts):
            raise InvalidValue(f"{name} must be numbers, not {value!r}: it is held until set again")
        load = load_of(self._plan.model.robot, name, value)
        load.enter(self._t, self._t)
        return np.array(load(self._t, np.zeros(0), np.zeros(0)))

    # State ----------------------------------------------------------------------------------------

    def save(self) -> SavedState:
        """Return the state, for `restore`: to go back, or to branch with other inputs."""
        if self._error is not None:
            raise RemoraError("the run has failed: no steps follow its state, so it is not saved")
        self._go(self._t)
        run, ended = self._loop.mark(), self._loop.ended
        loads = {name: (load, load.value) for name, load in self._loads.items()}
        return SavedState(self, self._t, run, ended, loads, self._recorder.recording())

    def restore(self, saved: SavedState) -> None:
        """Go back to a state of `save`; what follows has the same bits for the same inputs."""
        if not isinstance(saved, SavedState) or saved.owner is not self:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RemoraError("restore needs what save() of the same simulation has returned")
        self._t, self._phases = saved.t, saved.run.phases
        self._shown = self._error = None
        self._loads = {name: load for name, (load, _) in saved.loads.items()}
        for load, value in saved.loads.values():
            load.value = value
        self._recorder.restore(saved.recording)
        self._loop.rewind(saved.run)
        if saved.ended:
            self._go(self._t)

    def __getstate__(self) -> tuple[PreparedRun, SavedState]:
        """Return what a copy is made of, for `pickle`: the settings of the run and its state."""
        return self._made._replace(acts=dict), self.save()._replace(owner=None)

    def __setstate__(self, state: tuple[PreparedRun, SavedState]) -> None:
        """Begin the run again, and go to the state."""
        made, saved = state
        self._begin(made)
        self.restore(saved._replace(owner=self))

    def __copy__(self) -> Simulation:
        """Return a simulation at the same state: two cannot share one."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Simulation:
        """Return a simulation at the same state; both share what does not change."""
        model = self._plan.model
        memo |= {id(x): x for x in (model.robot, model.system) if x is not None}
        copied = type(self).__new__(type(self))
        copied._begin(self._made)
        copied.restore(copy.deepcopy(self.save()._replace(owner=None), memo)._replace(owner=copied))
        return copied

    def recording(self) -> Recording:
        """Return the recording up to `t`; at the end of the run, that of `rm.simulate`."""
        self._go(self._t)
        self._loop.flush()
        run = self._recorder.recording()
        if self._loop.ended:
            return run
        rows = int(np.searchsorted(run.t, self._t, side="right"))
        columns = {name: x[:rows] for name, x in run.columns.items()}
        events = tuple(e for e in run.events if e.t <= self._t)
        return replace(run, columns=columns, events=events)


def _with_inputs(system: System, names: Sequence[str]) -> System:
    """Return a system in which a component sets these inputs of the others."""
    layouts, values = system.layouts, list[tuple[str, Any, str]]()
    known = {f"{c}.{k}": s for c, x in layouts.items() for k, s in x.interface.inputs.items()}
    for name in names:
        if name not in known:
            raise UnknownName("input of a component", name, known)
        source, signal = system.connections[name], known[name]
        first = np.zeros(signal.shape) if isinstance(source, str) else source
        values.append((name, lasting(first), signal.unit))
    own = INPUTS if INPUTS not in layouts else f"{INPUTS}_of_run"
    connect = {name: f"{own}.{event_key(name)}" for name in names}
    return system.with_components({own: InputSignals(tuple(values))}, connect)
