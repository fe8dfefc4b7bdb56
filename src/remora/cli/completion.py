"""Completion of bundled names in the shell, without loading the library."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def complete_robot(incomplete: str) -> list[str]:
    """Return the bundled robots that begin as typed; the shell completes files."""
    return _begun("robots", incomplete)


def complete_scenario(incomplete: str) -> list[str]:
    """Return the bundled scenarios that begin as typed; the shell completes files."""
    return _begun("scenarios", incomplete)


def _begun(folder: str, incomplete: str) -> list[str]:
    names = sorted(file.stem for file in (_PACKAGE / folder).iterdir() if file.is_file())
    return [name for name in names if name.startswith(incomplete)]
