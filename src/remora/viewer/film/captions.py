"""Caption and clock in the frames of a film."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MARGIN = 0.028


def captioned(frame: NDArray[np.uint8], caption: str, clock: str, dark: bool) -> NDArray[np.uint8]:
    """Return a frame `(h, w, 3)` with a caption below on the left and a clock on the right."""
    if not caption and not clock:
        return frame
    images: Any = importlib.import_module("PIL.Image")
    drawing: Any = importlib.import_module("PIL.ImageDraw")
    fonts: Any = importlib.import_module("PIL.ImageFont")
    picture = images.fromarray(frame)
    high, wide = frame.shape[:2]
    font = fonts.load_default(size=max(11, round(0.034 * high)))
    draw = drawing.Draw(picture)
    ink, edge = ((240, 243, 248), (0, 0, 0)) if dark else ((30, 34, 40), (255, 255, 255))
    margin = round(_MARGIN * wide)
    style = {"font": font, "fill": ink, "stroke_width": 1, "stroke_fill": edge}
    draw.text((margin, high - margin), caption, anchor="ls", **style)
    draw.text((wide - margin, high - margin), clock, anchor="rs", **style)
    return np.asarray(picture, dtype=np.uint8)
