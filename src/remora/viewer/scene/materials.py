"""Surface materials: colour, metalness and roughness."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass


@dataclass(frozen=True)
class Finish:
    """The material of a surface.

    Attributes:
        color: red, green, blue, alpha in [0, 1].
        metal: metalness; 0: paint, 1: bare metal.
        rough: roughness; 0: mirror, 1: chalk.
        relief: name of a normal map in `textures.RELIEFS`, or None for a smooth surface.
    """

    color: tuple[float, float, float, float]
    metal: float = 0.0
    rough: float = 0.6
    relief: str | None = None


#: Materials of generated shapes.
FINISHES: dict[str, Finish] = {
    "foil": Finish((0.95, 0.66, 0.24, 1.0), 0.85, 0.30, "crinkled"),
    "silver": Finish((0.82, 0.83, 0.86, 1.0), 0.85, 0.32, "crinkled"),
    "white": Finish((0.90, 0.90, 0.92, 1.0), 0.0, 0.45),
    "shell": Finish((0.80, 0.81, 0.84, 1.0), 0.1, 0.42),
    "aluminium": Finish((0.62, 0.64, 0.68, 1.0), 0.6, 0.38),
    "graphite": Finish((0.13, 0.14, 0.16, 1.0), 0.2, 0.5),
    "steel": Finish((0.34, 0.36, 0.40, 1.0), 0.5, 0.4),
    "frame": Finish((0.72, 0.73, 0.76, 1.0), 0.3, 0.45),
    "cells": Finish((0.035, 0.07, 0.27, 1.0), 0.55, 0.24),
    "accent": Finish((0.93, 0.42, 0.08, 1.0), 0.0, 0.5),
}
#: Material of shapes without a colour in their file.
PLAIN = FINISHES["shell"]


def finish_of(color: tuple[float, float, float, float] | None) -> Finish:
    """Return the finish for a colour in a robot's file: gold is foil, all others are paint."""
    if color is None:
        return PLAIN
    hue, saturation, value = colorsys.rgb_to_hsv(*color[:3])
    if 0.08 < hue < 0.16 and saturation > 0.55 and value > 0.5:
        return Finish(color, 0.85, 0.30, "crinkled")
    return Finish(color, 0.05, 0.5)


def is_cell_blue(color: tuple[float, float, float, float] | None) -> bool:
    """Return whether a colour is the dark blue of solar cells."""
    if color is None:
        return False
    hue, saturation, value = colorsys.rgb_to_hsv(*color[:3])
    return 0.55 < hue < 0.72 and saturation > 0.5 and value < 0.7
