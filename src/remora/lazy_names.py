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
from collections.abc import Callable
from types import ModuleType
from typing import Any


def lazy_names(module: ModuleType) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Args:
        module: the package; its `__all__` is the list of names for `dir` and tab completion.
    """
    homes, package = homes_of_names(source_of(module)), module.__name__

    def find(name: str) -> Any:
        if name in homes:
            value = _imported(homes[name], name, package)
        elif not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(_unknown(package, name, module.__all__))
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


def _unknown(package: str, name: str, known: list[str]) -> str:
    close = [] if name.startswith("_") else difflib.get_close_matches(name, known, 1, cutoff=0.7)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"module {package!r} has no attribute {name!r}{hint}"
