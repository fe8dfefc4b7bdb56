"""Backdrops of the scene: space, studio and dark, with their lights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.errors import InvalidValue, UnknownName
from remora.viewer.scene.sky import NADIR, SUN, sky_glb, unit

SPACE, STUDIO, DARK = "space", "studio", "dark"
_SKY, _SUN, _EARTHSHINE = "/sky", "/sun", "/earthshine"


@dataclass(frozen=True)
class Backdrop:
    """What is around the robot.

    Attributes:
        dark: whether the controls are dark.
        stars: whether there are stars, the Earth and one sun instead of the lights of a room.
        reflected: brightness of the surroundings that surfaces reflect, relative to a room.
    """

    dark: bool
    stars: bool
    reflected: float


#: Backdrops by name.
BACKDROPS: dict[str, Backdrop] = {
    SPACE: Backdrop(dark=True, stars=True, reflected=0.3),
    STUDIO: Backdrop(dark=False, stars=False, reflected=1.0),
    DARK: Backdrop(dark=True, stars=False, reflected=1.0),
}


def backdrop(name: str) -> Backdrop:
    """Return a backdrop by name.

    Raises:
        UnknownName: for another name; the message lists the known ones.
    """
    if name not in BACKDROPS:
        raise UnknownName("scene", name, BACKDROPS)
    return BACKDROPS[name]


def chosen_scene(name: str | None, dark: bool, default: str) -> str:
    """Return the name of a scene from the options of a page; `dark` is short for scene `dark`.

    Raises:
        UnknownName: for an unknown name.
        InvalidValue: if both are given and differ.
    """
    if name is None:
        return DARK if dark else default
    backdrop(name)
    if dark and name != DARK:
        raise InvalidValue(f"scene={name!r} and dark=True: name one of them")
    return name


def set_backdrop(server: Any, name: str, radius: float, shadows: bool = True) -> None:
    """Light the scene of a viser server, with the sky around a robot of this radius, m."""
    chosen, scene = backdrop(name), server.scene
    scene.configure_default_lights(enabled=not chosen.stars, cast_shadow=shadows)
    if not chosen.stars:
        scene.configure_environment_map("city", environment_intensity=chosen.reflected)
        for node in (_SKY, _SUN, _EARTHSHINE):
            scene.remove_by_name(node)
        return
    scene.configure_environment_map("studio", environment_intensity=chosen.reflected)
    scene.add_glb(_SKY, sky_glb(), scale=float(radius), cast_shadow=False, receive_shadow=False)
    sun, down = unit(SUN), unit(NADIR)
    scene.add_light_directional(
        _SUN, color=(255, 250, 240), intensity=3.3, cast_shadow=shadows,
        position=tuple(np.round(20.0 * radius * sun, 3)),
    )  # fmt: skip
    scene.add_light_directional(
        _EARTHSHINE, color=(130, 170, 255), intensity=0.5, cast_shadow=False,
        position=tuple(np.round(20.0 * radius * down, 3)),
    )  # fmt: skip
