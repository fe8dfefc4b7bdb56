"""Hashes of tagged parts with fixed-length encoding, so that concatenation is unambiguous."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol


def joined(tag: str, parts: Iterable[bytes]) -> bytes:
    """Return the digest of a tag and of parts, each a digest of 32 bytes."""
    made = hashlib.sha256(f"{tag}\0".encode())
    for part in parts:
        made.update(part)
    return made.digest()


def leaf(tag: str, content: bytes) -> bytes:
    """Return the digest of bytes of any length under a tag."""
    return hashlib.sha256(f"{tag}\0".encode() + content).digest()


def text(tag: str, *words: str) -> bytes:
    """Return the digest of words under a tag."""
    return joined(tag, (leaf("word", word.encode("utf-8", "surrogatepass")) for word in words))


def kind_of(value: object) -> type:
    """Return the true type of a value, even if it overrides `__class__`."""
    return type(value)


class Walker(Protocol):
    """The interface of a traversal, see `remora.identity.digest.Walk`."""

    #: Whether the digest is a key of code that is made of the value.
    for_code: bool
    #: Names of Remora's modules that hold what was met.
    modules: set[str]

    def of(self, value: Any, step: str = "") -> bytes:
        """Return the digest of a part."""
        ...

    def refuse(self, value: Any, why: str = "") -> Exception:
        """Return the error for a part without an identity."""
        ...

    def named(self, items: Iterable[tuple[str, Any]], step: str = "") -> list[bytes]:
        """Return the digests of names and values, alternating."""
        ...
