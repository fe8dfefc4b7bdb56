"""Schema of study files: one pydantic class for each map, with units and descriptions.

A study names a scenario, the numbers that differ from run to run, and what is computed of each run.
Nothing in a file is executed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from remora.model.settings_fields import (
    AngleOrRate,
    AnglesOrRates,
    FrameName,
    JointName,
    NotNegative,
    Positive,
    Settings,
    Text,
    Vector,
    refusal,
)
from remora.simulation.scenario.scenario_loads import one_of

#: Version of the format.
FORMAT = 1
#: Maximum number of runs of a study; the index of a run has 32 bits.
MOST_RUNS = 2**32 - 1


class NormalFile(Settings):
    """A normal distribution."""

    mean: AngleOrRate | None = Field(
        default=None, description="default: the nominal value; see `as`"
    )
    std: Annotated[AngleOrRate, Field(gt=0.0)] = Field(description="standard deviation")


class TruncatedNormalFile(Settings):
    """A normal distribution, restricted to an interval."""

    mean: AngleOrRate | None = Field(default=None, description="of the whole distribution")
    std: Annotated[AngleOrRate, Field(gt=0.0)] = Field(description="of the whole distribution")
    low: AngleOrRate = Field(description="smallest value")
    high: AngleOrRate = Field(description="largest value")

    @model_validator(mode="after")
    def _check(self) -> TruncatedNormalFile:
        if self.low >= self.high:
            raise refusal(f"low must be below high, not {self.low:g} and {self.high:g}")
        return self


class UniformFile(Settings):
    """A uniform distribution."""

    low: AngleOrRate = Field(description="smallest value")
    high: AngleOrRate = Field(description="largest value")

    @model_validator(mode="after")
    def _check(self) -> UniformFile:
        if self.low >= self.high:
            raise refusal(f"low must be below high, not {self.low:g} and {self.high:g}")
        return self


class LogNormalFile(Settings):
    """A log-normal distribution: the logarithm is normal."""

    median: Positive | None = Field(default=None, description="default: the nominal value")
    sigma: Positive = Field(description="standard deviation of the natural logarithm")


class TableFile(Settings):
    """A column of a table; run i takes row i."""

    file: Text = Field(description="CSV or Parquet, relative to the study")
    column: Text


class DispersionFile(Settings):
    """How a number differs from run to run: one distribution."""

    normal: NormalFile | None = None
    truncated_normal: TruncatedNormalFile | None = None
    uniform: UniformFile | None = None
    log_normal: LogNormalFile | None = None
    table: TableFile | None = None
    as_: Literal["value", "offset", "factor"] = Field(
        default="value",
        alias="as",
        description="the number itself, what is added to the nominal value, or its factor",
    )

    @model_validator(mode="after")
    def _check(self) -> DispersionFile:
        one_of(self, *DISTRIBUTIONS)
        return self

    @property
    def distribution(self) -> str:
        """Name of the distribution."""
        return one_of(self, *DISTRIBUTIONS)


DISTRIBUTIONS = ("normal", "truncated_normal", "uniform", "log_normal", "table")


class CorrelationFile(Settings):
    """Correlated numbers: a Gaussian copula of their distributions."""

    names: list[Text] = Field(min_length=2, description="dispersed numbers")
    matrix: list[list[float]] = Field(description="correlation matrix, ones on the diagonal")


_SUBJECTS = ("signal", "joint", "speed", "frame", "event", "capture")
_MOTIONS = ("position", "velocity", "angular_velocity")


class QuantityFile(Settings):
    """One number of a run at one time: a signal, a joint, a frame."""

    signal: Text | None = Field(default=None, description="`component.signal`")
    joint: JointName | None = Field(default=None, description="its coordinate")
    speed: JointName | None = Field(default=None, description="speed of this joint")
    frame: FrameName | None = Field(default=None, description="position of a body or frame")
    event: Text | None = Field(default=None, description="time of its first occurrence, s")
    capture: Text | None = Field(
        default=None, description="constraint that is activated in a phase: a rigid capture"
    )
    of: Literal[
        "position",
        "velocity",
        "angular_velocity",
        "time",
        "impulse",
        "angular_impulse",
        "energy_loss",
    ] = Field(
        default="position",
        description="of a frame: position, velocity or angular_velocity; of a capture: time, "
        "impulse, angular_impulse or energy_loss",
    )
    point: Vector | None = Field(
        default=None, description="distance of the frame from this point, inertial frame, m"
    )
    element: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="one element of several; default: their norm"
    )
    minus: AnglesOrRates | None = Field(
        default=None, description="subtracted first: the desired value; angles also as '30 deg'"
    )

    @model_validator(mode="after")
    def _check(self) -> QuantityFile:
        subject = one_of(self, *_SUBJECTS)
        if subject == "capture":
            if self.of in _MOTIONS:
                raise refusal("of a capture: time, impulse, angular_impulse or energy_loss")
            if self.point is not None or self.element is not None or self.minus is not None:
                raise refusal("a capture has no point, no element and no minus")
            return self
        if self.of not in _MOTIONS:
            raise refusal(f"of: {self.of} goes with capture")
        if subject != "frame" and (self.point is not None or self.of != "position"):
            raise refusal("point and of go with frame")
        if self.point is not None and self.of != "position":
            raise refusal("point goes with the position of a frame")
        if subject == "event" and (self.element is not None or self.minus is not None):
            raise refusal("an event has a time only: no element, no minus")
        return self

    @property
    def subject(self) -> str:
        """Which kind of quantity it is."""
        return one_of(self, *_SUBJECTS)


class OutputFile(QuantityFile):
    """One number of a run, stored and shown in the report."""

    at: NotNegative | None = Field(default=None, description="time, s; or take")
    take: Literal["final", "max", "min", "mean", "integral"] | None = Field(
        default=None, description="of all samples; default: final"
    )
    unit: Text | None = Field(default=None, description="shown in the report; `deg` converts rad")
    given: Text | None = Field(
        default=None, description="event that must occur; the output of other runs is NaN"
    )

    @model_validator(mode="after")
    def _check_time(self) -> OutputFile:
        if self.at is not None and self.take is not None:
            raise refusal("at and take exclude each other")
        if self.subject in ("event", "capture") and (self.at is not None or self.take is not None):
            raise refusal(f"{self.subject}: it happens once; leave out at and take")
        return self


class BandFile(QuantityFile):
    """A number over time, stored at every sample and shown as percentile bands."""

    unit: Text | None = Field(default=None, description="shown in the report; `deg` converts rad")
    freedoms: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="of NIS or NEES: how many measurements or states; the mean over runs is "
        "compared with chi-square bounds",
    )

    @model_validator(mode="after")
    def _check_band(self) -> BandFile:
        if self.subject in ("event", "capture"):
            raise refusal(f"{self.subject}: it happens once and is not a quantity over time")
        return self


class CriterionFile(Settings):
    """A success criterion: a comparison of an output, or whether an event occurs."""

    output: Text | None = None
    below: AngleOrRate | None = Field(default=None, description="the output must be below this")
    above: AngleOrRate | None = Field(default=None, description="the output must be above this")
    event: Text | None = None
    occurs: bool = Field(default=True, description="whether the event must occur, or must not")

    @model_validator(mode="after")
    def _check(self) -> CriterionFile:
        subject = one_of(self, "output", "event")
        bounds = [x for x in (self.below, self.above) if x is not None]
        if (subject == "output") != bool(bounds):
            raise refusal("an output is compared by below, above or both; an event by occurs")
        if len(bounds) == 2 and bounds[1] >= bounds[0]:
            raise refusal("above must be less than below")
        return self


class StudyFile(Settings):
    """A study: a scenario, dispersions, and the outputs of each run."""

    campaign: Literal[1] = Field(description="version of the format")
    name: Text | None = Field(default=None, description="default: that of the file")
    description: Annotated[str, Field(max_length=10_000)] = ""
    scenario: Text = Field(description="a file, relative to the study; or a bundled scenario")
    runs: Annotated[int, Field(ge=1, le=MOST_RUNS)]
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    sampling: Literal["random", "latin_hypercube", "sobol"] = "random"
    disperse: dict[Text, DispersionFile] = Field(
        default={}, description="numbers of the robot, of components and of the start, by name"
    )
    correlate: list[CorrelationFile] = Field(default=[])
    outputs: dict[Text, OutputFile] = Field(min_length=1)
    bands: dict[Text, BandFile] = Field(default={})
    success: dict[Text, CriterionFile] = Field(
        default={}, description="a run succeeds if all hold, and if it did not fail"
    )
    step: Positive | None = Field(default=None, description="s; of rk4, overrides the scenario")
    sample: Positive | None = Field(
        default=None, description="s between samples, overrides the scenario"
    )
    dtype: Literal["float64", "float32"] = "float64"


def schema() -> dict[str, Any]:
    """Return the JSON schema of study files."""
    made = StudyFile.model_json_schema(mode="validation")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Remora study"}
    return {**head, **{key: value for key, value in made.items() if key != "title"}}
