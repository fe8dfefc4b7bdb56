"""Error messages for scenario files in plain English, each with its line."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from remora.errors import Fault
from remora.model.formats.yaml.yaml_tree import YamlNode, shown
from remora.model.settings_fields import WORDS, no_such
from remora.simulation.scenario.component_table import COMPONENTS, LAWS
from remora.simulation.scenario.file_schema import schema
from remora.simulation.scenario.scenario_loads import Path

Schema: TypeAlias = Mapping[str, Any]

#: Keys that select the class of a map, what they name, and the known values.
TAGS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "law": ("controller", LAWS),
    "type": ("component", COMPONENTS),
}


def plain(node: YamlNode) -> Any:
    """Return the content of a node as dictionaries, lists, strings and numbers; integers as int."""
    value = node.value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def located(root: YamlNode, path: Path) -> tuple[YamlNode, list[str | int], list[str | int]]:
    """Return the node at a path, the path to it, and the part of the path that does not exist.

    pydantic's tags of the chosen alternative (such as `map`) within a path are skipped.
    """
    node, known_path, missing = root, list[str | int](), list[str | int]()
    for part in path:
        inner = _below(node, part)
        if inner is None:
            missing.append(part)
            continue
        node, missing = inner, []
        known_path.append(part)
    return node, known_path, missing


def _below(node: YamlNode, part: str | int) -> YamlNode | None:
    value = node.value
    if isinstance(value, dict) and isinstance(part, str):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def named(path: Path, file: str = "scenario") -> str:
    """Return a path as text: `phases[1].torque.elbow`; of the whole file, its kind."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part[:60]}"
    return text.removeprefix(".") or file


def fault_at(root: YamlNode, path: Path, reason: str, file: str = "scenario") -> Fault:
    """Return a fault located at a path."""
    node, known_path, _ = located(root, path)
    return Fault(named(known_path, file), reason, node.line)


def faults_of(
    error: ValidationError, root: YamlNode, whole: Schema | None = None, file: str = "scenario"
) -> Iterator[Fault]:
    """Yield pydantic's errors with our messages.

    Args:
        error: of the validation.
        root: the file.
        whole: JSON schema of the file; default: that of scenario files.
        file: what the file is called.
    """
    for detail in error.errors(include_url=False, include_input=False):
        yield _fault(detail, root, _schema() if whole is None else whole, file)


def _fault(detail: ErrorDetails, root: YamlNode, whole: Schema, file: str) -> Fault:
    kind, path = detail["type"], detail["loc"]
    context: Mapping[str, Any] = detail.get("ctx", {})
    node, known_path, missing = located(root, path)
    if kind == "missing":
        return Fault(named(known_path, file), f"{missing[-1]} is missing", node.line)
    if kind == "extra_forbidden":
        tags = [str(part) for part in path if part not in known_path]
        known = _keys(known_path[:-1], tags, whole)
        close = difflib.get_close_matches(str(path[-1]), known, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        reason = f"unknown key {str(path[-1])[:60]!r}; {hint}known: {', '.join(known)}"
        return Fault(named(known_path[:-1], file), reason, node.line)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        key = str(context.get("discriminator", "")).strip("'")
        what, table = TAGS[key]
        if kind == "union_tag_not_found":
            return Fault(
                named(known_path, file), f"{key} is missing: one of {', '.join(table)}", node.line
            )
        reason = no_such(what, str(context.get("tag", "")), table)
        return Fault(named(known_path, file), reason, located(node, [key])[0].line)
    if kind in ("too_short", "too_long"):
        return Fault(named(known_path, file), _count(context, known_path, whole), node.line)
    if kind in WORDS:
        reason = WORDS[kind].format(**context)
        return Fault(named(known_path, file), f"{reason}, not {shown(node)}", node.line)
    return Fault(named(known_path, file), str(context.get("reason", detail["msg"])), node.line)


def _count(context: Mapping[str, Any], path: Path, whole: Schema) -> str:
    least, most = context.get("min_length"), context.get("max_length")
    exact = [place for place in _places(path, whole) if "minItems" in place and "maxItems" in place]
    if exact:
        number = str(exact[0]["minItems"])
    else:
        number = f"at least {least}" if most is None else f"at most {most}"
    entries = "entry" if number.endswith(" 1") else "entries"
    return f"must have {number} {entries}, not {context.get('actual_length')}"


# The schema ---------------------------------------------------------------------------------------


def _keys(path: Path, tags: Sequence[str], whole: Schema) -> list[str]:
    """Return the keys allowed in the map at a path; tags select among alternatives."""
    places = _places(path, whole)
    chosen = [place for place in places if _tag(place) in tags]
    places = chosen or places
    return list(dict.fromkeys(key for place in places for key in place.get("properties", {})))


def _tag(place: Schema) -> Any:
    """Return the value of the key that selects this alternative."""
    rows = (place.get("properties", {}).get(key, {}) for key in TAGS)
    return next((row["const"] for row in rows if "const" in row), None)


def _places(path: Path, whole: Schema) -> list[Schema]:
    """Return the schemas of a path, in all alternatives."""
    places = list(_resolved(whole, whole))
    for part in path:
        inner: list[Any] = []
        for place in places:
            if isinstance(part, int):
                inner.append(place.get("items"))
            else:
                rest = place.get("additionalProperties")
                inner.append(place.get("properties", {}).get(part, rest))
        places = [
            known_path
            for place in inner
            if _is_map(place)
            for known_path in _resolved(place, whole)
        ]
    return places


def _resolved(place: Schema, whole: Schema) -> Iterator[Schema]:
    """Yield a schema, or all its alternatives, with references resolved."""
    if "$ref" in place:
        yield from _resolved(whole["$defs"][place["$ref"].rpartition("/")[2]], whole)
        return
    yield place
    for alternative in (*place.get("anyOf", ()), *place.get("oneOf", ())):
        yield from _resolved(alternative, whole)


def _is_map(x: object) -> TypeGuard[Schema]:
    return isinstance(x, Mapping)


_schema = functools.cache(schema)
