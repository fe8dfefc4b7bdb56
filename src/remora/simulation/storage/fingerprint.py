"""Fingerprints by value of a user's functions, controllers and motions, to detect changes.

The digest of a load (see `remora.identity`) decides whether it equals that of a run on disk. Its
parts (closure variables, default arguments, attributes, globals, byte code, each with its path)
show what differs. A part that cannot be compared by value (an open file, a generator, a lock, an
object of a C library) is listed, so that an error can name it.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import is_array
from remora.dynamics.formulations import FORMULATIONS
from remora.errors import RemoraError
from remora.identity.code import is_library
from remora.identity.digest import NoIdentity, Walk
from remora.identity.hashing import kind_of, text
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Robot
from remora.simulation.inputs.phases import Phase

#: Maximum number of parts of one load stored to name a difference; the digest covers all.
MOST_PARTS = 500
#: Maximum length of the text of a part.
LONGEST = 60
#: Fields of a phase that are, or may contain, a user's own code.
ACTING = ("torque", "base_wrench", "wrenches", "prescribed", "events")

_SHOWN = (type(None), bool, int, float, complex, str, bytes)


class Fingerprint(NamedTuple):
    """Identity of one load by value.

    Attributes:
        digest: digest of everything that can be compared, 64 hexadecimal digits.
        parts: path -> short text of the part.
        opaque: parts that cannot be compared, each with its path and the reason.
    """

    digest: str
    parts: dict[str, str]
    opaque: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return {"digest": self.digest, "parts": self.parts, "opaque": list(self.opaque)}


Acting = dict[str, Fingerprint]
"""All loads of a run, by argument: `torque`, or `phases[1].torque` if there are phases."""


def acting(phases: Sequence[Phase], everywhere: Sequence[Any], single: bool) -> Acting:
    """Return the fingerprints of all loads of a run.

    Args:
        phases: phases of the run.
        everywhere: events of all phases.
        single: whether the run was specified without phases, so that its phase has no name.
    """
    found = {"events": fingerprint("events", tuple(everywhere))} if everywhere else {}
    for k, phase in enumerate(phases):
        for name in ACTING:
            given: Any = getattr(phase, name)
            path = name if single else f"phases[{k}].{name}"
            if given is not None and not (name in ("prescribed", "events") and not given):
                found[path] = fingerprint(path, given)
    return found


def acting_rows(robot: Robot, formulation: str) -> Acting:
    """Return the fingerprints of the user's own rows of tables that the equations of a run read.

    Args:
        robot: the robot; its joints are of rows of JOINT_TYPES.
        formulation: a row of FORMULATIONS.
    """
    found: dict[str, Any] = {}
    if not FORMULATIONS.is_own(formulation):
        found[f"FORMULATIONS[{formulation!r}]"] = FORMULATIONS[formulation]
    for kind in sorted({joint.kind for joint in robot.joints} & JOINT_TYPES.replaced().keys()):
        found[f"JOINT_TYPES[{kind!r}]"] = JOINT_TYPES[kind]
    return {name: fingerprint(name, row) for name, row in found.items()}


def fingerprint(name: str, value: Any) -> Fingerprint:
    """Return the fingerprint of a user's object.

    Raises:
        RemoraError: if it is nested too deeply.
    """
    walk = _Naming(name)
    try:
        digest = walk.of(value).hex()
    except RecursionError:
        raise RemoraError(f"{name} is nested too deeply to be compared") from None
    return Fingerprint(digest, walk.parts, tuple(dict.fromkeys(walk.opaque)))


def differences(there: Mapping[str, Any], here: Acting) -> Iterator[str]:
    """Yield the differences from the run on disk, each with its path.

    Args:
        there: fingerprints on disk by name, as from `Fingerprint.plain`.
        here: fingerprints of the present arguments.
    """
    for name in dict.fromkeys((*there, *here)):
        if name not in there or name not in here:
            yield f"{name} is {'not given' if name not in there else 'given'} there"
            continue
        own, other = here[name], there[name]
        if own.digest == other.get("digest"):
            continue
        parts: Mapping[str, str] = other.get("parts", {})
        named = list(_part_differences(parts, own.parts))
        yield from named or [f"{name} differs"]


def changed(before: Acting, now: Acting) -> list[str]:
    """Return the parts that have changed since the start of the run: stateful objects."""
    found: list[str] = []
    for name, first in before.items():
        if first.digest == now[name].digest:
            continue
        paths = {
            path
            for path in first.parts.keys() | now[name].parts.keys()
            if first.parts.get(path) != now[name].parts.get(path)
        }
        found += sorted(paths) or [name]
    return found


def _part_differences(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    for path in dict.fromkeys((*there, *here)):
        one, other = there.get(path), here.get(path)
        if one == other:
            continue
        if one is None or other is None:
            yield f"{path} is {other or one} {'here' if one is None else 'there'} alone"
        elif one.startswith("#") or other.startswith("#"):  # digests mean nothing to a reader
            yield f"{path} differs"
        else:
            yield f"{path} is {one} there, {other} here"


class _Naming(Walk):
    """A walk that collects the parts it visits and skips those without an identity.

    Attributes:
        parts: path -> short text of the part.
        opaque: the skipped parts.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.parts: dict[str, str] = {}
        self.opaque: list[str] = []
        self._within = 0  # depth inside byte code, whose parts mean nothing to a reader

    def of(self, value: Any, step: str = "") -> bytes:
        kind = kind_of(value)
        count, path = len(self.parts), "".join(self.path) + step
        self._within += kind is types.CodeType
        try:
            made = super().of(value, step)
        finally:
            self._within -= kind is types.CodeType
        whole = kind in _SHOWN or kind is np.ndarray or len(self.parts) == count
        if whole and step and not self._within and len(self.parts) < MOST_PARTS:
            self.parts.setdefault(path, _short(value, made))
        return made

    def _composed(self, value: Any, kind: type) -> bytes:
        own = getattr(kind, "identity_parts", None)
        try:
            if own is not None and is_library(kind.__module__):  # it contains machine code, too
                parts = (self.of(kind, ".__class__"), self.of(own(value)))
                return text("identity", *(part.hex() for part in parts))
            return super()._composed(value, kind)
        except NoIdentity as error:
            self.opaque.append(str(error))
            return text("opaque", kind.__module__, kind.__qualname__)


def _short(value: Any, made: bytes) -> str:
    """Return the short text of a part: a number itself, a digest for code and long arrays."""
    shown = ""
    if is_array(value):
        if value.dtype.kind in "biufc" and value.size <= 8:
            shown = str(value.tolist())
    elif kind_of(value) in _SHOWN:
        shown = repr(value)
    return shown if 0 < len(shown) <= LONGEST else f"#{made.hex()[:16]}"
