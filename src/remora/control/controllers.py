"""The table of control laws by name: a new law is one file, one row here, one settings class."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from remora.control.attitude_pd import AttitudePD, AttitudePDSettings
from remora.control.joint_pd import JointPD, JointPDSettings

#: All control laws, by their name in scenario files.
CONTROLLERS: dict[str, type[JointPD] | type[AttitudePD]] = {
    "joint_pd": JointPD,
    "attitude_pd": AttitudePD,
}

#: The settings of any control law in a scenario file; the key `law` selects the type.
LawSettings: TypeAlias = Annotated[JointPDSettings | AttitudePDSettings, Field(discriminator="law")]
