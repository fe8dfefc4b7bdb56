"""The table of control laws: a new one is a file, a row here, and its settings in the union."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from remora.control.attitude_pd import AttitudePD, AttitudePDSettings
from remora.control.joint_pd import JointPD, JointPDSettings

#: Every law, by the name that scenario files use.
CONTROLLERS: dict[str, type[JointPD] | type[AttitudePD]] = {
    "joint_pd": JointPD,
    "attitude_pd": AttitudePD,
}

#: What a scenario file says of a law; `law` tells which.
LawSettings: TypeAlias = Annotated[JointPDSettings | AttitudePDSettings, Field(discriminator="law")]
