"""Every Pillow mode to RGB."""

import io

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageMode
from vlmhb import ImageInput
from vlmhb.images import open_image, to_rgb

MODES = [
    *("1", "L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F"),
    *("LA", "La", "PA", "RGBX", "RGBa", "I;16", "I;16L", "I;16B", "I;16N"),
]
COLOURS = {"red": (255, 0, 0), "green": (0, 160, 0), "white": (255, 255, 255), "black": (0, 0, 0), "grey": (90, 90, 90)}


def close(image, wanted, tolerance=2):
    return int(np.abs(np.asarray(image).astype(int) - np.asarray(wanted)).max()) <= tolerance


def page(colour):
    return Image.new("RGB", (7, 5), colour)


def test_the_list_of_modes_is_pillows():
    assert {mode for mode in MODES if ImageMode.getmode(mode).mode == mode} == set(MODES)
    assert set(Image.MODES) <= set(MODES)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "HSV", "P", "PA"])
@pytest.mark.parametrize("colour", COLOURS.values(), ids=COLOURS)
def test_colours_survive(mode, colour):
    start = page(colour)
    image, notes = to_rgb(stored_as(mode, start))
    assert (image.mode, image.size, notes) == ("RGB", (7, 5), ())
    assert close(image, start, 3)


def stored_as(mode, picture):
    if mode in ("P", "PA"):
        return picture.convert("P", palette=Image.Palette.ADAPTIVE).convert(mode)
    if mode == "RGBa":
        picture = picture.convert("RGBA")
    return picture.convert(mode)


def test_lab_is_converted_through_its_profile():
    lab = ImageCms.applyTransform(
        page((200, 30, 60)),
        ImageCms.buildTransform(ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB"),
    )
    assert lab.mode == "LAB"
    image, _ = to_rgb(lab)
    assert close(image, page((200, 30, 60)), 6)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La"])
@pytest.mark.parametrize("value", [0, 255])
def test_greys(mode, value):
    stored = Image.new("LA", (7, 5), (value, 255)).convert("La") if mode == "La" else Image.new("L", (7, 5), value)
    image, _ = to_rgb(stored if mode == "La" else stored.convert(mode))
    assert close(image, page((value,) * 3), 0)


@pytest.mark.parametrize("mode", ["I;16", "I;16L", "I;16B", "I;16N"])
def test_sixteen_bits_are_scaled_not_cut(mode):
    values = np.array([[0, 255, 257, 32768, 65535]], np.uint16)
    stored = values.astype(">u2" if mode == "I;16B" else "<u2").tobytes()
    image, notes = to_rgb(Image.frombytes(mode, (5, 1), stored))
    assert np.asarray(image)[0, :, 0].tolist() == [0, 1, 1, 128, 255]
    assert notes == ()


@pytest.mark.parametrize(
    ("mode", "values", "wanted", "said"),
    [
        ("I", [0, 128, 255], [0, 128, 255], "0 was taken as black and 255 as white"),
        ("I", [0, 32768, 65535], [0, 128, 255], "0 was taken as black and 65535 as white"),
        ("I", [-100, 0, 100], [0, 128, 255], "-100 was taken as black and 100 as white"),
        ("I", [7, 7, 7], [7, 7, 7], "255 as white"),
        ("F", [0.0, 0.5, 1.0], [0, 128, 255], "0 was taken as black and 1 as white"),
        ("F", [0.0, 100.0, 255.0], [0, 100, 255], "255 as white"),
        ("F", [0.0, 32768.0, 65535.0], [0, 128, 255], "65535 as white"),
        ("F", [float("nan"), 0.5, 1.0], [0, 128, 255], "1 as white"),
        ("F", [-5.0, -5.0, -5.0], [0, 0, 0], "-5 was taken as black"),
    ],
)
def test_wide_greys_say_what_was_taken_as_white(mode, values, wanted, said):
    kind = np.int32 if mode == "I" else np.float32
    image, notes = to_rgb(Image.fromarray(np.array([values], kind)))
    assert np.abs(np.asarray(image)[0, :, 0].astype(int) - wanted).max() <= 1
    assert len(notes) == 1
    assert said in notes[0]


def test_notes_about_greys_reach_the_caller_with_the_files_name(tmp_path):
    path = tmp_path / "scan.tif"
    Image.fromarray(np.array([[0, 40000]], np.int32)).save(path)
    image, notes = open_image(ImageInput(path=str(path)))
    assert np.asarray(image)[0, :, 0].tolist() == [0, 156]
    assert notes[0].startswith("scan.tif: the image has 32-bit integer greys")


def half_clear(mode):
    """Black with an alpha of 0, 128 and 255."""
    rgba = np.zeros((1, 3, 4), np.uint8)
    rgba[0, :, 3] = [0, 128, 255]
    image = Image.fromarray(rgba)
    if mode == "La":
        return image.convert("LA").convert("La")
    if mode == "PA":
        palette = Image.new("PA", (3, 1))
        for x, alpha in enumerate((0, 128, 255)):
            palette.putpixel((x, 0), (0, alpha))
        palette.putpalette([0, 0, 0])
        return palette
    return image.convert(mode)


@pytest.mark.parametrize("mode", ["RGBA", "RGBa", "LA", "La", "PA"])
def test_alpha_is_composed_on_white(mode):
    image, _ = to_rgb(half_clear(mode))
    assert np.abs(np.asarray(image)[0, :, 0].astype(int) - [255, 127, 0]).max() <= 1


def through_png(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **options)
    return np.asarray(open_image(ImageInput(data=buffer.getvalue())).image)


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "P"])
def test_a_transparent_colour_becomes_white(mode):
    picture = Image.new("L", (2, 1), 0)
    picture.putpixel((1, 0), 255 if mode == "1" else 90)
    picture = (
        picture.convert(mode) if mode != "P" else picture.convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE)
    )
    clear = (0, 0, 0) if mode == "RGB" else picture.getpixel((0, 0))
    pixels = through_png(picture, transparency=clear)
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert np.abs(pixels[0, 1].astype(int) - (255 if mode == "1" else 90)).max() <= 1


def test_a_palette_with_its_own_alpha():
    picture = Image.new("P", (3, 1))
    picture.putdata([0, 1, 2])
    picture.putpalette([0] * 9)
    assert (
        np.abs(through_png(picture, transparency=bytes([0, 128, 255]))[0, :, 0].astype(int) - [255, 127, 0]).max() <= 1
    )


def test_a_transparent_deep_grey():
    picture = Image.fromarray(np.array([[1000, 40000]], np.uint16))
    assert through_png(picture, transparency=1000)[0, :, 0].tolist() == [255, 156]


def test_a_cmyk_jpeg_of_the_adobe_kind_is_not_a_negative():
    buffer = io.BytesIO()
    page((250, 250, 250)).convert("CMYK").save(buffer, "JPEG", quality=95)
    assert b"Adobe" in buffer.getvalue()[:200]
    assert close(open_image(ImageInput(data=buffer.getvalue())).image, page((250, 250, 250)), 4)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_comes_out_as_rgb_of_the_same_size(mode):
    image, _ = to_rgb(Image.new(mode, (9, 4)))
    assert (image.mode, image.size) == ("RGB", (9, 4))


def test_the_input_is_not_changed():
    picture = half_clear("RGBA")
    before = picture.tobytes()
    image, _ = to_rgb(picture)
    image.putpixel((0, 0), (1, 2, 3))
    assert picture.tobytes() == before
    red = page((255, 0, 0))
    copy, _ = to_rgb(red)
    copy.putpixel((0, 0), (1, 2, 3))
    assert red.getpixel((0, 0)) == (255, 0, 0)
