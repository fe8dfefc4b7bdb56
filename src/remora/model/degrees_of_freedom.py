"""Names and units of the degrees of freedom of joint types."""

from __future__ import annotations

from typing import NamedTuple


class Freedom(NamedTuple):
    """One degree of freedom of a joint.

    Attributes:
        name: of the coordinate and the speed; empty if the joint has only one degree of freedom.
        angular: whether it is a rotation; else it is a translation.
        force_name: of the generalized force that does work on the speed.
    """

    name: str
    angular: bool
    force_name: str

    @property
    def coordinate_unit(self) -> str:
        """Unit of the coordinate."""
        return "rad" if self.angular else "m"

    @property
    def speed_unit(self) -> str:
        """Unit of the speed."""
        return f"{self.coordinate_unit}/s"

    @property
    def acceleration_unit(self) -> str:
        """Unit of the rate of the speed."""
        return f"{self.coordinate_unit}/s²"

    @property
    def force_unit(self) -> str:
        """Unit of the generalized force."""
        return "N m" if self.angular else "N"


def rotation(name: str = "", force_name: str | None = None) -> Freedom:
    """Return a rotational degree of freedom."""
    return Freedom(name, True, name if force_name is None else force_name)


def translation(name: str = "", force_name: str | None = None) -> Freedom:
    """Return a translational degree of freedom."""
    return Freedom(name, False, name if force_name is None else force_name)


#: The degrees of freedom of a rotation in space: components of angular velocity.
ANGULAR_VELOCITY = (rotation("wx", "tx"), rotation("wy", "ty"), rotation("wz", "tz"))
#: The translational degrees of freedom of a free body: components of velocity.
LINEAR_VELOCITY = (translation("vx", "fx"), translation("vy", "fy"), translation("vz", "fz"))
#: Names and units of the coordinates of a unit quaternion and of a unit dual quaternion.
QUATERNION = (("rw", "1"), ("rx", "1"), ("ry", "1"), ("rz", "1"))
DUAL_QUATERNION = (*QUATERNION, ("dw", "m"), ("dx", "m"), ("dy", "m"), ("dz", "m"))
