"""Components of a user's own Python code in scenario files, run only if that is allowed.

    components:
      - {type: python, class: "my_laws.py:Damper", sample_time: 0.02, arguments: {gain: 3}}

Everything else in a scenario file is data. Code is loaded only by `remora run --allow-code` and
`rm.load_scenario(..., allow_code=True)`; otherwise a file that names some is refused, and its code
is not read.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from remora.components.component import Component
from remora.errors import Fault, InvalidValue, ModelError, RemoraError, UnknownName
from remora.model.robot import Robot
from remora.model.settings_fields import WORDS, Text, no_such
from remora.simulation.scenario.component_settings import (
    ComponentSettings,
    arguments,
    code_settings,
    taken,
)


class PythonComponentSettings(ComponentSettings):
    """The settings of a component that is Python code of the user."""

    type_name = "python"
    type: Literal["python"]
    class_: Text = Field(
        alias="class",
        description="FILE.py:Class, the file in the scenario's folder; or package.module:Class",
    )
    arguments: dict[Text, Any] = Field(
        default={}, description="of the class: numbers, texts, lists; angles also as '30 deg'"
    )

    def made(self, robot: Robot, name: str) -> Component:
        """Refuse: code is made by `made_of_code`, where it is allowed."""
        raise InvalidValue(
            f"is Python code ({self.class_[:100]}), which is not run unless you allow it. If you "
            "trust it: remora run FILE --allow-code, or rm.load_scenario(FILE, allow_code=True)"
        )

    def made_of_code(self, robot: Robot, name: str, folder: Path) -> Component:
        """Return the component; this runs the code.

        Args:
            robot: the robot; given to a class with a parameter `robot`.
            name: name in the system.
            folder: the folder that must contain the file of the code.

        Raises:
            RemoraError: if the class cannot be loaded, or refuses its arguments.
            ModelError: if arguments are unknown or of the wrong kind, with the name of each.
        """
        made = component_class(self.class_, folder)
        try:
            settings = code_settings(made).model_validate(self.arguments, context=robot)
        except ValidationError as error:
            raise ModelError(self.class_, list(_faults(error, taken(made)))) from error
        values = arguments(settings, made, robot, taken(made))
        timing = {"sample_time": self.sample_time, "offset": self.offset, "delay": self.delay}
        known = inspect.signature(made).parameters
        values |= {key: value for key, value in timing.items() if value or key in known}
        try:
            return made(**values, name=name)
        except RemoraError:
            raise
        except Exception as error:
            raise InvalidValue(
                f"{self.class_} with these arguments: {_with_place(error)}"
            ) from error


def component_class(reference: str, folder: Path) -> type[Component]:
    """Return a component class of the user's code; this runs the module.

    Args:
        reference: `FILE.py:Class` or `package.module:Class`.
        folder: the folder that must contain the file, links resolved.

    Raises:
        RemoraError: if there is no such file, module or class, or the module raises.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise InvalidValue(
            f"class must be FILE.py:Class or package.module:Class, not {reference!r}"
        )
    try:
        module = (
            _of_file(place, folder) if place.endswith(".py") else importlib.import_module(place)
        )
    except RemoraError:
        raise
    except Exception as error:
        raise RemoraError(f"{place} cannot be loaded: {_with_place(error)}") from error
    made_class = getattr(module, name, None)
    if (
        not isinstance(made_class, type)
        or not issubclass(made_class, Component)
        or made_class is Component
    ):
        known = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, Component) and value is not Component
        ]
        raise UnknownName(f"component class in {place}", name, known)
    return made_class


def _of_file(name: str, folder: Path) -> types.ModuleType:
    """Return the module of a file, run anew."""
    root = folder.resolve()
    file = (root / name).resolve()
    if not file.is_relative_to(root):
        raise InvalidValue(f"{name} leads out of the scenario's folder")
    if not file.is_file():
        raise InvalidValue(f"{name} is not in the scenario's folder")
    mark = hashlib.sha256(str(file).encode()).hexdigest()[:12]
    module_name = f"remora_scenario_code_{file.stem}_{mark}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise InvalidValue(f"{name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look up the annotations of a class there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _faults(error: ValidationError, known: Iterable[str]) -> Iterator[Fault]:
    """Yield the faults of arguments."""
    for detail in error.errors(include_url=False):
        kind, path = detail["type"], ".".join(map(str, detail["loc"]))
        context: dict[str, Any] = detail.get("ctx", {})
        if kind == "missing":
            yield Fault("", f"{path} is missing")
        elif kind == "extra_forbidden":
            yield Fault("", no_such("argument", path, known))
        elif kind in WORDS:
            reason = f"{WORDS[kind].format(**context)}, not {str(detail['input'])[:60]!r}"
            yield Fault(path, reason)
        else:
            yield Fault(path, str(context.get("reason", detail["msg"])))


def _with_place(error: Exception) -> str:
    """Return an error with the line of the code where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    place = "" if last is None else f", line {last.lineno} of {Path(last.filename).name}"
    if isinstance(error, SyntaxError) and error.lineno is not None:
        place = f", line {error.lineno}"
    return f"{type(error).__name__}: {error}{place}"
