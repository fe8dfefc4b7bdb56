"""The frame graph of an SDF model: relative poses, and the links that frames are attached to.

Every link, joint, frame and nested model names a frame of its model; `a::b` is the frame b of the
nested model a. A pose is relative to any of them, so that the poses form a graph. It is resolved
here without recursion, since a file may have a chain of thousands.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array
from remora.model.building.validate import Place

#: The model's own frame, and the world's, as names of frames.
MODEL, WORLD = "__model__", "world"
#: Prefix of the key of a joint's frame: before SDF 1.7 a link may have the same name.
JOINT = "joint "


class FrameError(Exception):
    """A frame is unknown or depends on itself; the message names it."""


@dataclass(frozen=True)
class PoseFrame:
    """A named frame.

    Attributes:
        pose: relative to `relative_to`, `(8,)`.
        relative_to: the name of a frame in the same scope.
        attached_to: the frame it is fixed to; None for a link, where the chain ends.
        place: its location in the file.
    """

    pose: Array
    relative_to: str
    attached_to: str | None
    place: Place


@dataclass
class Scope:
    """The names of one model, or of the world.

    Attributes:
        prefix: prefix of the names of the model's bodies: `arm::`.
        is_world: whether it is the world's.
        frames: by name.
        models: the nested ones by name.
        canonical: the link that the model's own frame is attached to.
        outer: the scope it is nested in, and its name there; None for the world's.
    """

    prefix: str
    is_world: bool = False
    frames: dict[str, PoseFrame] = field(default_factory=dict[str, PoseFrame])
    models: dict[str, Scope] = field(default_factory=dict[str, "Scope"])
    canonical: str = ""
    outer: tuple[Scope, str] | None = None
    _poses: dict[str, Array] = field(default_factory=dict[str, Array])

    def pose(self, name: str) -> Array:
        """Return the pose of a frame in the model's (the world's), `(8,)`.

        Raises:
            FrameError: if there is no such frame, or its pose depends on itself.
        """
        chain: dict[str, Array] = {}
        at = name
        while at not in (MODEL, "") and at not in self._poses and not self._is_world(at):
            if at in chain:
                raise FrameError(f"the pose of {name!r} depends on itself")
            if at in self.frames:
                chain[at], at = self.frames[at].pose, self.frames[at].relative_to
                continue
            model, _, inner = at.partition("::")
            if model not in self.models or not inner:
                raise FrameError(f"there is no frame {at!r}; known: {self._known()}")
            chain[at], at = self.models[model].pose(inner), model
        x = self._poses.get(at, dual_quaternion.identity())
        for key in reversed(chain):
            x = dual_quaternion.mul(x, chain[key])
            self._poses[key] = x
        return x

    def world_pose(self, name: str) -> Array:
        """Return the pose of a frame in the world, `(8,)`; see `pose`."""
        if name == WORLD and name not in self.frames:
            return dual_quaternion.identity()
        x, at = self.pose(name), self.outer
        while at is not None:
            scope, own = at
            x, at = dual_quaternion.mul(scope.pose(own), x), scope.outer
        return x

    def link(self, name: str) -> str | None:
        """Return the full name of the body that a frame is fixed to; None for the world.

        Raises:
            FrameError: if there is no such frame, or it is attached to itself.
        """
        seen: set[str] = set()
        at = name
        while True:
            if self._is_world(at) or (at == WORLD and at not in self.frames):
                return None  # in older files a link may have that name
            if at in seen:
                raise FrameError(f"{name!r} is attached to itself")
            seen.add(at)
            if at in ("", MODEL):
                if not self.canonical:
                    raise FrameError(f"{name!r} is attached to a model that has no link")
                at = self.canonical
            elif at in self.models:
                return self.models[at].link(MODEL)
            elif at in self.frames:
                on = self.frames[at].attached_to
                if on is None:
                    return self.prefix + at
                at = on
            else:
                model, _, inner = at.partition("::")
                if model not in self.models or not inner:
                    raise FrameError(f"there is no frame {at!r}; known: {self._known()}")
                return self.models[model].link(inner)

    def _is_world(self, name: str) -> bool:
        return self.is_world and name in ("", MODEL, WORLD)

    def _known(self) -> str:
        names = [name for name in self.frames if not name.startswith(JOINT)]
        return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
