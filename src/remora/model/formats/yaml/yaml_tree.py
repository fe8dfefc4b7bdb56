"""Parsing of untrusted YAML to a tree of nodes with line numbers, within fixed limits.

ruamel.yaml only splits the text into events. The tree is built here, without recursion and without
constructing objects: it has only maps, lists, text, numbers, true, false and null. Anchors and
aliases (which can expand without bound) and tags (which can name types) are refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any, NoReturn, TypeAlias

from remora.errors import Fault, ModelError
from remora.model.building.validate import Checker, Place
from remora.model.formats.bounded_reading import chunks

# The types of ruamel.yaml are incomplete; declared `Any`, they do not spread to the tree.
_yaml: Any = importlib.import_module("ruamel.yaml")
_events: Any = importlib.import_module("ruamel.yaml.events")

#: Maximum file size, bytes. The parser handles about 1 MB/s, so this also bounds the time.
MAX_BYTES = 16 * 1024 * 1024
#: Maximum depth of nested maps and lists; a robot needs 6.
MAX_DEPTH = 16
#: Maximum number of maps, lists and scalars; 10 000 bodies need less.
MAX_NODES = 1_000_000

Value: TypeAlias = "str | float | bool | list[YamlNode] | dict[str, YamlNode] | None"


@dataclass(frozen=True)
class YamlNode:
    """A map, list or scalar, and its line: that of its key if it has one."""

    line: int
    value: Value


@dataclass
class _Open:
    """An unfinished map or list; `key` is the map's key that waits for a value."""

    node: YamlNode
    key: str | None = None
    key_line: int = 0


def read_tree(path: str, check: Checker) -> YamlNode:
    """Return the tree of a YAML file.

    Args:
        path: the file.
        check: collects faults that do not stop reading (a duplicate key).

    Raises:
        ModelError: if the file cannot be read at all.
    """
    text = _read(path)
    strange = _NOT_PRINTABLE.search(text)
    if strange is not None:
        line = text.count("\n", 0, strange.start()) + 1
        _refuse(path, check, line, f"unprintable character U+{ord(strange.group()):04X}")
    root: YamlNode | None = None
    waiting: list[_Open] = []
    count = documents = 0
    for event in _parsed(path, check, text):
        line = int(event.start_mark.line) + 1
        if isinstance(event, _events.DocumentStartEvent):
            documents += 1
            if documents > 1:
                _refuse(path, check, line, "a second document begins; one is allowed")
        elif isinstance(event, (_events.MappingEndEvent, _events.SequenceEndEvent)):
            waiting.pop()
        elif isinstance(event, _events.NodeEvent):
            count += 1
            if count > MAX_NODES:
                _refuse(path, check, line, f"more than {MAX_NODES} values")
            node = _node(path, check, event, line)
            if waiting:
                node = _attach(path, check, waiting[-1], node)
            else:
                root = node
            if isinstance(event, (_events.MappingStartEvent, _events.SequenceStartEvent)):
                waiting.append(_Open(node))
                if len(waiting) > MAX_DEPTH:
                    _refuse(path, check, line, f"nested deeper than {MAX_DEPTH} levels")
    if root is None:
        _refuse(path, check, 1, "the file is empty")
    return root


# The C0 and C1 controls, surrogates and non-characters that YAML 1.2 forbids.
_NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
# Longer than any float needs; Python takes long to convert a million digits.
_LONGEST_NUMBER = 100


def scalar(text: str) -> str | float | bool | None:
    """Return the value of unquoted text: a number, true, false, null, or text.

    `.inf`, `.nan`, hexadecimal and the like remain text, so they are refused where a number is
    required.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text):
        return float(text)
    return text


def _read(path: str) -> str:
    data = b"".join(chunks(path, MAX_BYTES))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(path, [Fault("text", "is not UTF-8", line)]) from None


def _parsed(path: str, check: Checker, text: str) -> Iterator[Any]:
    """Yield the parser's events; all its exceptions become a ModelError."""
    line = 1
    parser = _yaml.YAML(typ="safe", pure=True)
    try:
        for event in parser.parse(StringIO(text)):
            line = int(event.start_mark.line) + 1
            yield event
    except ModelError:
        raise
    except _yaml.error.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(str(part) for part in (error.context, error.problem) if part)
        _refuse(path, check, int(mark.line) + 1 if mark else line, f"is not YAML: {reason}")
    except Exception as error:  # ruamel raises internal errors on malformed text
        _refuse(path, check, line, f"is not YAML: {error}")


def _node(path: str, check: Checker, event: Any, line: int) -> YamlNode:
    if isinstance(event, _events.AliasEvent) or event.anchor is not None:
        _refuse(path, check, line, "anchors (&) and aliases (*) are not allowed")
    if event.tag is not None:
        _refuse(path, check, line, f"tags are not allowed: {str(event.tag)[:60]!r}")
    if isinstance(event, _events.ScalarEvent):
        text = str(event.value)
        return YamlNode(line, scalar(text) if event.style is None else text)
    return YamlNode(line, {} if isinstance(event, _events.MappingStartEvent) else [])


def _attach(path: str, check: Checker, parent: _Open, node: YamlNode) -> YamlNode:
    """Add a node to its map or list (or make it the map's next key) and return it."""
    container = parent.node.value
    if isinstance(container, list):
        container.append(node)
    elif isinstance(container, dict):
        if parent.key is None:
            if not isinstance(node.value, str):
                _refuse(path, check, node.line, f"a key must be a word, not {shown(node)}")
            parent.key, parent.key_line = node.value, node.line
            return node
        node = YamlNode(parent.key_line, node.value)
        if parent.key in container:
            first = container[parent.key].line
            reason = f"is given twice, first on line {first}"
            check.fault(Place(f"key {parent.key[:60]!r}", node.line), reason)
        else:
            container[parent.key] = node
        parent.key = None
    return node


def shown(node: YamlNode) -> str:
    """Return a node's value as shown in error messages."""
    value = node.value
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse(path: str, check: Checker, line: int, reason: str) -> NoReturn:
    raise ModelError(path, [*check.faults, Fault("text", reason, line)])
