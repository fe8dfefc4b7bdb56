"""Fingerprints of what is drawn: three sums of all its numbers, each number with its own weight.

Looks have no other truth than that somebody found them good, so they are compared with those that
were stored. After a change that is meant, look at the pages, then

    PYTHONPATH=tests python tests/viewer/test_looks.py

writes looks.json anew.
"""

import dataclasses
import json
import re
import zlib
from pathlib import Path

import numpy as np

STORED = Path(__file__).parent / "viewer" / "looks.json"
NUMBER = re.compile(r"(?<![\w#.])-?\d+\.?\d*(?:e[-+]?\d+)?(?![\w.])")


def numbers(thing):
    """Yield all numbers of a value: those of texts, too, and one for the words around them."""
    if isinstance(thing, (str, bytes)):
        text = thing if isinstance(thing, str) else ""
        yield from map(float, NUMBER.findall(text))
        words = NUMBER.sub("#", text).encode() if text else thing
        yield zlib.crc32(words if isinstance(words, bytes) else words.encode()) / 2**32
    elif thing is None or isinstance(thing, (bool, int, float, np.number, np.bool_)):
        yield 0.123 if thing is None else float(thing)
    elif isinstance(thing, np.ndarray):
        yield from map(float, thing.shape)
        yield from thing.astype(float).ravel()
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield from numbers(getattr(thing, field.name))
    elif isinstance(thing, dict):
        for name, value in thing.items():
            yield from numbers(name)
            yield from numbers(value)
    elif isinstance(thing, (list, tuple, set, frozenset)):
        yield float(len(thing))
        for part in thing:
            yield from numbers(part)
    else:
        raise TypeError(f"{thing!r} has no numbers")


def artists(figure):
    """Return the size of a figure, and place, data and texts of all that is drawn in it."""
    made = [tuple(figure.get_size_inches())]
    for ax in figure.axes:
        made.append((ax.get_xlim(), ax.get_ylim(), ax.get_title("left"), ax.get_title()))
        made.append((ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()))
        made += [(x.get_text(), x.get_position(), x.get_fontsize(), x.get_ha()) for x in ax.texts]
        made += [(np.asarray(x.arrow_patch.get_path().vertices), x.xy)
                 for x in ax.texts if getattr(x, "arrow_patch", None)]  # fmt: skip
        made += [(np.array(x.get_xydata(), float), x.get_linewidth(), x.get_label())
                 for x in ax.lines]  # fmt: skip
        for x in ax.collections:
            made += [path.vertices for path in x.get_paths()] + [x.get_facecolor()]
        for x in ax.patches:
            made.append(x.get_patch_transform().transform(x.get_path().vertices))
            made.append(x.get_facecolor())
        made += [(np.ma.filled(x.get_array(), np.nan), x.get_clim(), x.get_extent())
                 for x in ax.images]  # fmt: skip
        labels = ax.get_legend().get_texts() if ax.get_legend() else []
        made.append([x.get_text() for x in labels])
    return made


def fingerprint(thing):
    """Return the number of numbers, their sizes, and three weighted sums."""
    x = np.nan_to_num(np.fromiter(numbers(thing), float), nan=0.5, posinf=3.0, neginf=-3.0)
    weights = np.random.default_rng(len(x)).uniform(0.5, 1.5, (3, len(x)))
    return {"count": len(x), "size": float(np.abs(x).sum()), "sums": (weights @ x).tolist()}


def differs(name, thing, tolerance=1e-9):
    """Return how something that is drawn differs from what is stored; nothing if it does not."""
    now, then = fingerprint(thing), json.loads(STORED.read_text(encoding="utf-8"))[name]
    if now["count"] != then["count"]:
        return f"{name}: {now['count']} numbers instead of {then['count']}"
    change = np.abs(np.subtract(now["sums"], then["sums"])).max()
    return f"{name}: changed by {change:.3g}" if change > tolerance * then["size"] else ""
