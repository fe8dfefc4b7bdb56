"""The scene: space, studio or dark; the sky is generated and small."""

import json
import struct
import zlib

import numpy as np
import pytest

import remora as rm
from remora.viewer.scene.backdrops import BACKDROPS, chosen_scene
from remora.viewer.scene.gltf import crinkled, png
from remora.viewer.scene.sky import AWAY, EARTH, NADIR, STARS_AT, sky_glb, unit


def test_the_sky_is_small_and_well_formed():
    data = sky_glb()
    assert len(zlib.compress(data)) < 120e3
    size = struct.unpack("<I", data[12:16])[0]
    tree = json.loads(data[20 : 20 + size])
    assert all("KHR_materials_unlit" in m["extensions"] for m in tree["materials"])
    far = max(abs(x) for a in tree["accessors"] if "max" in a for x in (*a["max"], *a["min"]))
    assert far <= 1.1 * STARS_AT + 1
    assert sky_glb() is data


def test_the_earth_does_not_touch_the_robot_nor_fill_the_sky():
    assert AWAY - EARTH > 20
    assert np.degrees(np.arcsin(EARTH / AWAY)) < 50
    assert np.linalg.norm(unit(NADIR)) == pytest.approx(1.0)


def test_png_is_what_pillow_reads():
    image = pytest.importorskip("PIL.Image")
    import io

    pixels = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    assert np.array_equal(np.asarray(image.open(io.BytesIO(png(pixels)))), pixels)
    normals = np.asarray(image.open(io.BytesIO(crinkled()))).astype(float) / 127.5 - 1
    assert np.allclose(np.linalg.norm(normals, axis=-1), 1, atol=0.02)


def test_scenes_by_name():
    assert chosen_scene(None, False, "space") == "space"
    assert chosen_scene(None, True, "space") == "dark"
    assert chosen_scene("dark", True, "space") == "dark"
    with pytest.raises(rm.errors.InvalidValue, match="name one"):
        chosen_scene("space", True, "studio")
    with pytest.raises(rm.errors.UnknownName, match="space, studio, dark"):
        rm.view("servicer", port=0, open=False, scene="moon")


def test_a_page_changes_its_scene_and_opacity(run):
    with rm.view(run, port=0, open=False) as page:
        assert page._backdrop == "space"
        for name in BACKDROPS:
            page._scene_choice.value = name
            assert page._backdrop == name
        before = page.scene.nodes[0].glb_data
        page.show("see through", "grid", "ghost", "labels")
        assert page.scene.nodes[0].glb_data != before
        page.show("see through", visible=False)
        assert page.scene.nodes[0].glb_data == before
        assert page._grid.visible
        page.show("ghost", visible=False)
        assert not page._ghost.visible
