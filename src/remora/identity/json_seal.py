"""Checksums of JSON data, kept inside it: one wrong digit would be another robot or another run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

#: Name of the checksum.
KEY = "checksum"


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data for JSON with the checksum of all the rest.

    Raises:
        TypeError: if it is no data for JSON.
    """
    rest = _rest(data)
    return {**rest, KEY: _checksum(rest)}


def unsealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that was passed to `sealed`.

    Raises:
        ValueError: if it is not what was written.
    """
    rest = _rest(data)
    if data.get(KEY) != _checksum(rest):
        raise ValueError("its checksum differs")
    return rest


def _rest(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: x for name, x in data.items() if name != KEY}


def _checksum(data: Mapping[str, Any]) -> str:
    """Return the hash of what JSON makes of it: names of keys, and floats with all their bits."""
    as_read = json.loads(json.dumps(data))
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()
