"""Fingerprints of what is drawn: three sums of all its numbers, each number with its own weight.

Looks have no other truth than that somebody found them good, so they are compared with those that
were stored. After a change that is meant, or with another viser, look at the pages, then

    REMORA_LOOKS=write pytest -n 0 tests/viewer/test_looks.py

writes looks.json anew.
"""

import dataclasses
import json
import os
import re
import struct
import zlib
from pathlib import Path

import numpy as np

STORED = Path(__file__).parent / "viewer" / "looks.json"
NUMBER = re.compile(r"(?<![\w#.])-?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])")

IDENTITY = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def numbers(thing):
    """Return all numbers of a value: those of texts, too, and one for the words around them."""
    if isinstance(thing, str):
        words = zlib.crc32(NUMBER.sub("#", thing).encode()) / 2**32
        return [*map(float, NUMBER.findall(thing)), words]
    if thing is None or isinstance(thing, (bool, int, float, np.number, np.bool_)):
        return [0.123 if thing is None else float(thing)]
    if isinstance(thing, np.ndarray):
        return [*map(float, thing.shape), *thing.astype(float).ravel().tolist()]
    if dataclasses.is_dataclass(thing):
        thing = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
    if isinstance(thing, dict):
        thing = [*thing.items()]
    made = [float(len(thing))]
    for part in thing:
        made += numbers(part)
    return made


def artists(figure):
    """Return the size of a figure, and place, data and texts of all that is drawn in it."""
    made = [tuple(figure.get_size_inches())]
    for ax in figure.axes:
        made.append((ax.get_xlim(), ax.get_ylim(), ax.get_title("left"), ax.get_title()))
        made.append((ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()))
        made += [(x.get_text(), x.get_position(), x.get_fontsize(), x.get_ha(), x.get_color())
                 for x in ax.texts]  # fmt: skip
        made += [(np.asarray(x.arrow_patch.get_path().vertices), x.xy)
                 for x in ax.texts if getattr(x, "arrow_patch", None)]  # fmt: skip
        made += [(np.array(x.get_xydata(), float), x.get_linewidth(), x.get_label(), x.get_color(),
                  x.get_linestyle(), x.get_marker()) for x in ax.lines]  # fmt: skip
        for x in ax.collections:
            made += [path.vertices for path in x.get_paths()] + [x.get_facecolor()]
        for x in ax.patches:
            made.append(x.get_patch_transform().transform(x.get_path().vertices))
            made.append(x.get_facecolor())
        made += [(np.ma.filled(x.get_array(), np.nan), x.get_clim(), x.get_extent())
                 for x in ax.images]  # fmt: skip
        labels = ax.get_legend().get_texts() if ax.get_legend() else []
        made.append([x.get_text() for x in labels])
        made += [(axis.get_ticklocs(), axis.get_major_formatter().format_ticks(axis.get_ticklocs()))
                 for axis in (ax.xaxis, ax.yaxis)
                 if type(axis.get_major_locator()).__name__ == "FixedLocator"]  # fmt: skip
    return made


def messages(server):
    """Return what a browser gets that opens a page now: all nodes and controls."""
    sent = server._websock_server._broadcast_buffer.message_from_id
    return [(type(message).__name__, _plain(vars(message))) for message in list(sent.values())]


def _plain(thing):
    """Return the fields of a message without what differs from session to session."""
    if isinstance(thing, dict):
        left_out = (
            "uuid",
            "container_uuid",
            "order",
            "run_id",
            "_cached_redundancy_key",
            "hdri_data",
        )
        return {name: _plain(value) for name, value in thing.items() if name not in left_out}
    if isinstance(thing, (list, tuple)):
        return [_plain(value) for value in thing]
    if isinstance(thing, bytes):
        return glb(thing) if thing[:4] == b"glTF" else len(thing)
    if isinstance(thing, str):
        return IDENTITY.sub("", thing)
    return _plain(vars(thing)) if hasattr(thing, "__dict__") else thing


def glb(data):
    """Return meshes, materials and numbers of a GLB, without its pictures."""
    size = struct.unpack_from("<I", data, 12)[0]
    told, body = json.loads(data[20 : 20 + size]), data[28 + size :]
    names = ("meshes", "nodes", "scenes", "materials", "textures", "samplers", "extensionsUsed")
    made = [told.get(name, []) for name in names]
    made += [view.get("target") for view in told.get("bufferViews", [])]
    made += [picture["mimeType"] for picture in told.get("images", [])]
    for row in told.get("accessors", []):
        kind = {5126: "f4", 5125: "u4", 5123: "u2", 5121: "u1"}[row["componentType"]]
        width = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}[row["type"]]
        start = told["bufferViews"][row["bufferView"]].get("byteOffset", 0)
        values = np.frombuffer(body, f"<{kind}", row["count"] * width, start)
        made.append(
            (row["type"], row["count"], values.sum(dtype=float), values.min(), values.max(),
             row.get("min"), row.get("max"), row.get("normalized"))
        )  # fmt: skip
    return made


def fingerprint(thing):
    """Return the number of numbers, their sizes, and three weighted sums.

    Of each number its arsinh is taken: a large one, such as a colour, does not hide a small one.
    """
    x = np.arcsinh(np.nan_to_num(np.array(numbers(thing)), nan=0.5, posinf=3.0, neginf=-3.0))
    weights = np.random.default_rng(len(x)).uniform(0.5, 1.5, (3, len(x)))
    return {"count": len(x), "size": float(np.abs(x).sum()), "sums": (weights @ x).tolist()}


def differs(name, thing, tolerance=1e-9):
    """Return how something that is drawn differs from what is stored; nothing if it does not."""
    now, stored = fingerprint(thing), json.loads(STORED.read_text(encoding="utf-8"))
    if os.environ.get("REMORA_LOOKS") == "write":
        STORED.write_text(json.dumps({**stored, name: now}, indent=1) + "\n", encoding="utf-8")
        return ""
    then = stored[name]
    if now["count"] != then["count"]:
        return f"{name}: {now['count']} numbers instead of {then['count']}"
    change = np.abs(np.subtract(now["sums"], then["sums"])).max()
    return f"{name}: changed by {change:.3g}" if change > tolerance * then["size"] else ""
