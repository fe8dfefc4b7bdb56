"""Schema of scenario files: one pydantic class for each map, with units and descriptions.

SI units. An angle may be `30 deg`, a rate `5 deg/s`. Times within a phase count from its start.
`schema` returns the JSON schema, for editors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from remora.model.settings_fields import (
    Angle,
    Angles,
    AngleVector,
    BodyName,
    FrameName,
    JointName,
    NotNegative,
    Positive,
    Rate,
    Rates,
    RateVector,
    Settings,
    Text,
    Vector,
    refusal,
)
from remora.simulation.inputs.run_settings import Integrator, Physics
from remora.simulation.scenario.component_table import AnyComponentSettings, AnyLawSettings
from remora.simulation.scenario.constraint_schema import (
    CaptureFile,
    ConstraintFile,
    ConstraintNames,
    Separation,
)
from remora.simulation.scenario.python_component import PythonComponentSettings
from remora.simulation.scenario.scenario_loads import Load, SineMoveFile, form_of, one_of

#: Version of the format.
FORMAT = 1


class ThroughFile(Settings):
    """A smooth curve (cubic spline) through places, from and to rest."""

    times: list[Positive] = Field(min_length=1, description="ascending, s since the phase began")
    values: list[Angles] = Field(min_length=1, description="as many as times: rad, m, or '30 deg'")


class MoveFile(Settings):
    """How a joint moves from where it is when the phase begins: one of to, through, sine."""

    to: Angles | None = Field(
        default=None, description="rad, m, or '30 deg': from rest to rest there"
    )
    start: NotNegative | None = Field(
        default=None, description="of `to`: s since the phase began; 0"
    )
    stop: Positive | None = Field(default=None, description="of `to`: s; default: the phase's end")
    through: ThroughFile | None = None
    sine: SineMoveFile | None = Field(
        default=None, description="q₀ + amplitude (sin(ωt + phase) - sin(phase))"
    )

    @model_validator(mode="after")
    def _check(self) -> MoveFile:
        way = one_of(self, "to", "through", "sine")
        if way != "to" and (self.start is not None or self.stop is not None):
            raise refusal(f"start and stop are for `to`, not for `{way}`")
        return self


class PoseFile(Settings):
    """A pose in the inertial frame."""

    xyz: Vector = Field(description="m")
    rpy: AngleVector = Field(description="roll, pitch, yaw: rad, or '30 deg'")


def _goal_form(value: Any) -> str:
    return {"map": "map", "list": "list"}.get(form_of(value), "one")


class ReachFile(Settings):
    """A frame reaches a goal by all joints that are not locked, planned as the phase begins."""

    frame: FrameName = Field(description="body or frame that reaches, from rest to rest")
    goal: Annotated[
        Annotated[FrameName, Tag("one")]
        | Annotated[Vector, Tag("list")]
        | Annotated[PoseFile, Tag("map")],
        Discriminator(_goal_form),
    ] = Field(description="position, m; a pose; or a frame that is fixed in the inertial frame")
    base: Literal["fixed", "floating"] = Field(
        default="floating", description="whether the base recoils, or is held"
    )
    path: Literal["line", "joints"] = Field(
        default="line", description="straight line of the frame, or of the joints"
    )


# Components --------------------------------------------------------------------------------------

#: The settings of a component in the list of a scenario file: Remora's, or the user's own code.
ListedSettings: TypeAlias = Annotated[
    AnyComponentSettings | PythonComponentSettings, Field(discriminator="type")
]


def _source_form(value: Any) -> str:
    if isinstance(value, str):
        return "name"
    return "list" if form_of(value) == "list" else "one"


#: Source of an input: the name of an output, a number, or numbers.
Source: TypeAlias = Annotated[
    Annotated[Text, Tag("name")]
    | Annotated[float, Tag("one")]
    | Annotated[list[float], Tag("list")],
    Discriminator(_source_form),
]


def _matrix_form(value: Any) -> str:
    if form_of(value) != "list":
        return "one"
    return "rows" if any(isinstance(x, list) for x in value) else "list"


#: A number, a vector, or a matrix by its rows.
Numbers: TypeAlias = Annotated[
    Annotated[float, Tag("one")]
    | Annotated[list[float], Tag("list")]
    | Annotated[list[list[float]], Tag("rows")],
    Discriminator(_matrix_form),
]

# Conditions --------------------------------------------------------------------------------------

_OF_JOINT = ("above", "below", "speed_above", "speed_below")
_OF_FRAME = ("nearer", "farther", "turning_above", "turning_below")


class UntilFile(Settings):
    """A condition: an event occurs when it becomes true, not if it is true from the start."""

    joint: JointName | None = Field(
        default=None, description="whose coordinate or speed is monitored"
    )
    above: Angle | None = Field(
        default=None, description="its coordinate rises through this value: rad, m, '30 deg'"
    )
    below: Angle | None = Field(default=None, description="its coordinate falls through this value")
    speed_above: Rate | None = Field(
        default=None, description="its speed rises through this value: rad/s, m/s"
    )
    speed_below: Rate | None = Field(default=None, description="its speed falls through this value")
    frame: FrameName | None = Field(default=None, description="body or frame that is monitored")
    point: Vector | None = Field(default=None, description="of nearer, farther: inertial frame, m")
    nearer: Positive | None = Field(
        default=None, description="the frame's origin comes nearer to the point, m"
    )
    farther: Positive | None = Field(default=None, description="it goes farther from the point, m")
    turning_above: Rate | None = Field(
        default=None,
        ge=0.0,
        description="the frame's angular speed rises through this value, rad/s",
    )
    turning_below: Rate | None = Field(
        default=None,
        ge=0.0,
        description="the frame's angular speed falls through this value, rad/s",
    )
    time: Positive | None = Field(default=None, description="s since the phase began")
    capture: CaptureFile | None = Field(
        default=None, description="a fixture in reach of its grapple; its events: captured, missed"
    )
    action: Literal["next", "stop", "record"] = Field(
        default="next", description="start the next phase, end the run, or only record the event"
    )
    name: Text | None = Field(default=None, description="its name in the recording")

    @model_validator(mode="after")
    def _check(self) -> UntilFile:
        subject = one_of(self, "joint", "frame", "time", "capture")
        wanted = {"joint": _OF_JOINT, "frame": _OF_FRAME}.get(subject, ())
        for name in (*_OF_JOINT, *_OF_FRAME):
            if getattr(self, name) is not None and name not in wanted:
                raise refusal(f"{name} does not go with {subject}")
        if wanted:
            key = one_of(self, *wanted)
            if (key in ("nearer", "farther")) != (self.point is not None):
                raise refusal("nearer and farther need a point, and nothing else takes one")
        elif self.point is not None:
            raise refusal("point goes with nearer or farther")
        return self

    @property
    def key(self) -> str:
        """Which condition it is."""
        return one_of(self, *_OF_JOINT, *_OF_FRAME, "time", "capture")


# Phases ------------------------------------------------------------------------------------------


class PhaseFile(Settings):
    """A part of the run with loads, held joints, controllers and conditions."""

    name: Text | None = None
    duration: Positive = Field(description="s, at most")
    torque: dict[JointName, Load] = Field(
        default={}, description="of the drives, by joint: N m or N"
    )
    base_wrench: Load | None = Field(
        default=None, description="[fx fy fz τx τy τz] on the base, its axes"
    )
    wrenches: dict[BodyName, Load] = Field(default={}, description="the same by body, its axes")
    prescribed: dict[JointName, MoveFile] = Field(default={}, description="by joint how it moves")
    reach: ReachFile | None = Field(
        default=None, description="a frame reaches a goal by the joints that are not locked"
    )
    locked: list[JointName] = Field(default=[], description="joints that are held where they are")
    controllers: list[AnyLawSettings] = Field(
        default=[], description="control laws; their commands are added to torque"
    )
    until: list[UntilFile] = Field(
        default=[], description="conditions; by default the first one that occurs ends the phase"
    )
    impulse: bool = Field(
        default=False, description="whether held joints are brought to their speed by an impulse"
    )
    activate: ConstraintNames = Field(
        default=[], description="constraints that are switched on when the phase begins"
    )
    release: ConstraintNames = Field(
        default=[], description="constraints that are switched off when the phase begins"
    )
    latch: bool = Field(
        default=False,
        description="whether activated constraints hold the relative pose at that moment",
    )
    separation: dict[Text, Separation] = Field(
        default={}, description="by released constraint: speed, or velocity of the child, m/s"
    )
    after_event: bool = Field(
        default=False, description="entered only if an event `next` ended the phase before"
    )

    @property
    def activated(self) -> list[str]:
        """Names of the constraints that are switched on."""
        return [self.activate] if isinstance(self.activate, str) else self.activate

    @property
    def released(self) -> list[str]:
        """Names of the constraints that are switched off."""
        return [self.release] if isinstance(self.release, str) else self.release


# The file ----------------------------------------------------------------------------------------


class RobotFile(Settings):
    """A robot with options, as of `rm.load`."""

    file: Text = Field(description="relative to the scenario; or the name of a bundled robot")
    base: Text | None = Field(default=None, description="free, fixed, planar, spherical, ...")
    merge_fixed: bool = Field(
        default=True, description="whether bodies on fixed joints are merged into their parents"
    )
    gravity: Vector | None = Field(default=None, description="m/s², inertial axes")
    mesh_root: Text | None = Field(default=None, description="folder of the meshes")
    inertia: Literal["strict", "warn", "repair"] | None = Field(
        default=None, description="treatment of physically impossible inertias"
    )


class BaseFile(Settings):
    """Where a free base is at the start, and how it moves."""

    xyz: Vector = Field(default=[0.0, 0.0, 0.0], description="m, inertial frame")
    rpy: AngleVector = Field(
        default=[0.0, 0.0, 0.0], description="roll, pitch, yaw: rad, or '30 deg'"
    )
    omega: RateVector = Field(default=[0.0, 0.0, 0.0], description="rad/s or '5 deg/s', base axes")
    velocity: Vector = Field(default=[0.0, 0.0, 0.0], description="m/s, base axes")


class StartFile(Settings):
    """The state at the start; values left out are zero, or random."""

    random: bool = Field(
        default=False, description="whether values left out are random, by the seed"
    )
    base: BaseFile | None = None
    bases: dict[JointName, BaseFile] = Field(
        default={}, description="of robots with several free bases: by joint"
    )
    joints: dict[JointName, Angles] = Field(default={}, description="by joint: rad, m, or '30 deg'")
    speeds: dict[JointName, Rates] = Field(
        default={}, description="by joint: rad/s, m/s, or '5 deg/s'"
    )
    close_loops: Annotated[
        Annotated[bool, Tag("one")] | Annotated[list[JointName], Tag("list")],
        Discriminator(lambda x: "list" if form_of(x) == "list" else "one"),
    ] = Field(
        default=False,
        description="whether to start from the closest state that satisfies the constraints; "
        "or the joints that keep the values above",
    )


class IntegratorFile(Settings):
    """How steps are made, as of `rm.simulate`."""

    name: Literal["dop853", "dopri5", "rk4", "radau", "variational"] | None = Field(
        default=None, description="default: dop853, for stiff robots radau"
    )
    rtol: NotNegative = Field(default=Integrator.rtol, description="error of a step, relative")
    atol: Positive = Field(default=Integrator.atol, description="error of a step, absolute")
    step: Positive | None = Field(
        default=None, description="s; of all steps (rk4, variational), or first"
    )
    max_step: Positive | None = Field(default=None, description="s")
    max_steps: Annotated[int, Field(ge=1)] = Field(
        default=Integrator.max_steps, description="maximum number of adaptive steps in a phase"
    )
    breaks: list[float] = Field(
        default=[], description="times that no step crosses, s since the start of the run"
    )


class StopsFile(Settings):
    """Elastic stops at the joints' limits."""

    stiffness: NotNegative = Field(description="N m/rad or N/m")
    damping: NotNegative = Field(
        default=0.0, description="s/m or s/rad, see `rm.dynamics.stop_forces`"
    )


class OutputFile(Settings):
    """What is recorded."""

    sample: Positive | None = Field(
        default=None, description="s between samples; default: every step"
    )
    step_to_samples: bool = Field(default=False, description="whether steps end at every sample")


def _robot_form(value: Any) -> str:
    return "map" if form_of(value) == "map" else "one"


#: A file, relative to the scenario; a bundled robot's name; or a map with options.
AnyRobot: TypeAlias = Annotated[
    Annotated[Text, Tag("one")] | Annotated[RobotFile, Tag("map")], Discriminator(_robot_form)
]


class ScenarioFile(Settings):
    """A scenario: a robot, its state at the start, and what happens, phase after phase."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["robot"]}, {"required": ["combine"]}]}
    )

    scenario: Literal[1] = Field(description="version of the format")
    name: Text | None = Field(default=None, description="default: that of the file")
    description: Annotated[str, Field(max_length=10_000)] = ""
    robot: AnyRobot | None = Field(
        default=None,
        description="a file, relative to the scenario; a bundled robot's name; or a map",
    )
    combine: dict[Text, AnyRobot] | None = Field(
        default=None,
        min_length=1,
        description="several robots by prefix in one world, instead of robot",
    )
    constraints: list[ConstraintFile] = Field(
        default=[], description="added to the robot; phases switch them on and off"
    )
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="of what is random")
    run: Annotated[int, Field(ge=0)] = Field(
        default=0, description="index of the run, for the noise of components"
    )
    components: list[ListedSettings] = Field(
        default=[], description="controllers, sensors, actuators, springs, ... in all phases"
    )
    connections: dict[Text, Source] = Field(
        default={}, description="inputs `component.input`: `component.output`, or numbers"
    )
    design: dict[Text, Numbers] = Field(
        default={},
        description="numbers with which control laws compute, where they are not the robot's: "
        "`BODY.mass`, `JOINT.placement`, ...",
    )
    start: StartFile = StartFile()
    phases: list[PhaseFile] = Field(min_length=1)
    integrator: IntegratorFile = IntegratorFile()
    output: OutputFile = OutputFile()
    limits: Literal["record", "stop", "ignore"] = Field(
        default="record", description="what happens when a joint passes a limit"
    )
    stops: StopsFile | None = None
    saturate: bool = Field(
        default=False, description="whether drives are limited to the joints' effort limits"
    )
    slip_speed: NotNegative = Field(
        default=Physics.slip_speed, description="of dry friction, rad/s or m/s"
    )
    formulation: Text | None = Field(default=None, description="of forward dynamics")
    model: Literal["full", "reduced"] = Field(
        default=Physics.model,
        description="reduced: base speeds of a free-floating robot follow from its momentum",
    )


def schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files."""
    made = ScenarioFile.model_json_schema(mode="validation")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Remora scenario"}
    return {**head, **{key: value for key, value in made.items() if key != "title"}}
