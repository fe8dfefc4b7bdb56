"""Resuming a stopped run: finds it on disk and checks that robot, settings and loads match."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from remora.errors import RemoraError
from remora.model.formats.yaml.yaml import robot_to_yaml
from remora.model.robot import Robot
from remora.simulation.inputs.loads import is_mapping
from remora.simulation.recording.checkpoint import Checkpoint, from_plain
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.file_format import plain
from remora.simulation.storage.fingerprint import Acting, differences
from remora.simulation.storage.reading import open_run
from remora.simulation.storage.stored_folder import RUN, occupied, opened

#: Maximum number of differences named in an error.
NAMED = 5


class StoppedRun(NamedTuple):
    """A run on disk.

    Attributes:
        run: the samples recorded so far.
        checkpoint: checkpoint to resume from; None: only from the start.
    """

    run: Recording
    checkpoint: Checkpoint | None


def stopped_run(
    path: str | os.PathLike[str],
    robot: Robot,
    settings: Mapping[str, Any],
    acting: Acting,
    assume_unchanged: bool = False,
) -> StoppedRun | None:
    """Return the run in a folder if it has the same robot, settings and loads.

    Args:
        path: the folder.
        robot: the robot.
        settings: settings of the simulation.
        acting: fingerprints of the loads.
        assume_unchanged: whether to assume that incomparable parts are unchanged.

    Returns:
        The run, or None if the folder is missing or empty.

    Raises:
        RemoraError: if there is something else, or a different run; the text says what differs.
    """
    folder = Path(path)
    if not folder.exists() or (folder.is_dir() and not occupied(folder)):
        return None
    run, attributes = open_run(folder), opened(RUN, folder)[1]
    differing = list(_differences("", _compared(run.settings), _compared(plain(settings))))
    if attributes.get("robot") != robot_to_yaml(robot):
        differing.insert(0, f"its robot {run.robot.name!r} differs from {robot.name!r}")
    there: Any = attributes.get("acting")
    if not differing and there is not None:  # otherwise already reported
        differing += differences(there, acting)
    if differing:
        more = f"; and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
        shown = "; ".join(differing[:NAMED])
        raise RemoraError(f"{folder}: contains another run; name a new folder: {shown}{more}")
    if not assume_unchanged:
        _refuse_unknown(folder, there, acting)
    run = replace(run, robot=robot)
    stored: Any = attributes.get("checkpoint")
    if stored is None:
        return StoppedRun(run, None)
    try:
        checkpoint = from_plain(stored)
    except (KeyError, TypeError, ValueError) as error:
        raise RemoraError(f"{folder}: its checkpoint is damaged: {error}") from error
    if checkpoint.changed and run.status != "complete" and not assume_unchanged:
        raise RemoraError(
            f"{folder}: cannot be resumed to the last bit: {', '.join(checkpoint.changed[:NAMED])} "
            "changed during the run, and the internal state of a controller is not saved; to "
            "resume with its present state, pass rm.Record(..., assume_unchanged=True)"
        )
    if checkpoint.samples > len(run) or checkpoint.events > len(run.events):
        raise RemoraError(
            f"{folder}: has fewer samples than recorded in its attributes; it is damaged"
        )
    return StoppedRun(run, checkpoint)


def _refuse_unknown(folder: Path, there: Any, acting: Acting) -> None:
    """Raise if a run has parts that cannot be compared."""
    if there is None and acting:
        raise RemoraError(
            f"{folder}: the run there has no record of its loads (it was saved by "
            "Recording.save, or by an older Remora), so it cannot be compared; if you know that "
            "it is the same, pass rm.Record(..., assume_unchanged=True)"
        )
    unknown = [text for own in acting.values() for text in own.opaque]
    if unknown:
        more = f"; and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        raise RemoraError(
            f"{folder}: whether the run there is the same is not known: "
            f"{'; '.join(unknown[:NAMED])}{more}; if you know that it is unchanged, pass "
            "rm.Record(..., assume_unchanged=True)"
        )


def _compared(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that decide the numbers: all but the note, which is only text."""
    return {name: value for name, value in settings.items() if name != "note"}


def _differences(name: str, there: Any, here: Any) -> Iterator[str]:
    """Yield the differences between settings, each with its name; functions by value."""
    if is_mapping(there) and is_mapping(here):
        if "function" in there and "function" in here:
            return
        for key in dict.fromkeys((*there, *here)):
            inner = f"{name}.{key}" if name else str(key)
            yield from _differences(inner, there.get(key), here.get(key))
    elif _is_list(there) and _is_list(here) and len(there) == len(here):
        for k, (one, other) in enumerate(zip(there, here, strict=True)):
            yield from _differences(f"{name}[{k}]", one, other)
    elif there != here:
        yield f"{name} is {_short(there)} there, {_short(here)} here"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _is_list(x: object) -> TypeGuard[list[Any]]:
    return isinstance(x, list)
