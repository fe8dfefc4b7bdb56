"""Public names of a package that are imported on first use (PEP 562), so that it imports quickly.

The package writes its names once, as imports under `if TYPE_CHECKING:`. Type checkers, editors and
import-linter read those statements as usual; at run time each is carried out when its name is first
used.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def lazy_names(module: ModuleType) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Args:
        module: the package; its `__all__` is the list of names for `dir` and tab completion.
    """
    package, homes = module.__name__, dict[str, str]()

    def find(name: str) -> Any:
        if not homes:
            homes.update(homes_of_names(source_of(module)))
        if name in homes:
            value = _imported(homes[name], name, package)
        elif _is_submodule(module, name):
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(_unknown(module, name))
        setattr(module, name, value)  # found without this function from now on
        return value

    def names() -> list[str]:
        return sorted({*module.__all__, *(name for name in list(vars(module)) if name[:2] == "__")})

    return find, names


def source_of(module: ModuleType) -> str:
    """Return the source text of a module, from its file or from an archive."""
    loader: Any = module.__spec__.loader if module.__spec__ else None
    text: str | None = loader.get_source(module.__name__) if loader else None
    if text is None:
        raise ImportError(f"{module.__name__} needs its source file, which is not installed")
    return text


def homes_of_names(source: str) -> dict[str, str]:
    """Return the modules of the names that a source text imports under `if TYPE_CHECKING:`.

    Args:
        source: the text of a module.

    Returns:
        The full name of a module for each imported name.
    """
    blocks = [
        block for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
    ]  # fmt: skip
    return {
        alias.name: line.module
        for block in blocks
        for line in block.body
        if isinstance(line, ast.ImportFrom) and line.module
        for alias in line.names
    }


def _imported(home: str, name: str, package: str) -> Any:
    """Return what `from home import name` gives: an attribute, or else a submodule."""
    if home != package:
        found = importlib.import_module(home)
        if hasattr(found, name):
            return getattr(found, name)
    return importlib.import_module(f"{home}.{name}")


def _is_submodule(module: ModuleType, name: str) -> bool:
    is_package = "__path__" in vars(module)
    full = f"{module.__name__}.{name}"
    return is_package and not name.startswith("_") and importlib.util.find_spec(full) is not None


def _unknown(module: ModuleType, name: str) -> str:
    """Return the message for an unknown name; one in a module of the package is suggested first."""
    package, hint = module.__name__, ""
    known: list[str] = module.__all__
    close = difflib.get_close_matches(name, known, 1, cutoff=0.7)
    places = [] if name.startswith("_") else _places(module, name)
    if places:
        hint = f"; it is {places[0]}"
    elif close and not name.startswith("_"):
        hint = f"; did you mean {close[0]!r}?"
    return f"module {package!r} has no attribute {name!r}{hint}"


def _places(module: ModuleType, name: str) -> list[str]:
    """Return the full names of a public name in the public modules below a package."""
    found: list[str] = []
    for own in module.__all__:
        path = f"{module.__name__}.{own}"
        below = sys.modules.get(path) if own.islower() else None
        if below is None and own.islower() and _is_submodule(module, own):
            below = importlib.import_module(path)
        if below is not None and "__all__" in vars(below):
            found += [f"{path}.{name}"] * (name in below.__all__) + _places(below, name)
    return found
