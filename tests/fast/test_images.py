"""Opening image files: the cases, orientation, frames, limits, damage."""

import io
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile
from vlmhb import ImageInput
from vlmhb.errors import ImageError
from vlmhb.images import ImageLimits, image_size, open_image

CASES = Path(__file__).parents[1] / "cases"
BY_ID = {case["id"]: case for case in json.loads((CASES / "cases.json").read_text(encoding="utf-8"))["cases"]}


def case_image(case, name):
    return ImageInput(path=str(CASES / case / "dataset" / "images" / name))


def encoded(image, format, **options):
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def noise(width=64, height=48, mode="RGB"):
    bands = len(Image.new(mode, (1, 1)).getbands())
    shape = (height, width) if bands == 1 else (height, width, bands)
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8), mode=None)


@pytest.mark.parametrize("case", ["C08", "C09", "C10"])
def test_cases_of_pixels(case):
    for expected in BY_ID[case]["expect"]["images"]:
        image, notes = open_image(ImageInput(path=str(CASES / case / "dataset" / expected["file"])))
        assert (image.mode, image.size, notes) == ("RGB", tuple(expected["size"]), ())
        for x, y, wanted, tolerance in expected["pixels"]:
            assert np.abs(np.subtract(image.getpixel((x, y)), wanted)).max() <= tolerance


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_no_metadata_is_left_for_an_engine_to_act_on(format, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    noise().save(buffer, format, exif=exif, dpi=(72, 72))
    image = open_image(ImageInput(data=buffer.getvalue())).image
    assert (dict(image.getexif()), image.info) == ({}, {})


@pytest.mark.parametrize("name", ["cut.jpg", "cut.png"])
def test_a_cut_off_file_is_an_error_that_names_it(name):
    with pytest.raises(ImageError, match=rf"{name} cannot be read: the file is cut off"):
        open_image(case_image("C06", name))


def test_a_bomb_is_refused_before_decoding_and_in_little_memory():
    code = (
        "import sys; from vlmhb import ImageInput; from vlmhb.errors import ImageError\n"
        "from vlmhb.images import open_image\n"
        "try: open_image(ImageInput(path=sys.argv[1]))\n"
        "except ImageError as error: print(error)\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(peak.split()[1])"  # ru_maxrss would count the process that started this one, too
    )
    path = case_image("C07", "huge.png").path
    done = subprocess.run([sys.executable, "-W", "error", "-c", code, path], capture_output=True, text=True, check=True)
    message, kilobytes = done.stdout.splitlines()
    assert "huge.png is 13400 x 13400 = 179,560,000 pixels" in message
    assert int(kilobytes) < 200_000


def test_the_limit_is_the_callers():
    data = encoded(noise(100, 10), "PNG")
    assert open_image(ImageInput(data=data), ImageLimits(1000)).image.size == (100, 10)
    with pytest.raises(ImageError, match=r"page\.png is 100 x 10 = 1,000 pixels, more than the limit of 999"):
        open_image(ImageInput(data=data, name="page.png"), ImageLimits(999))


def test_a_big_image_below_the_limit_is_read_without_pillows_warning(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    data = encoded(noise(64, 48), "PNG")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_image(ImageInput(data=data)).image.size == (64, 48)
    assert Image.MAX_IMAGE_PIXELS == 100


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.write_bytes(b""), r"is empty \(0 bytes"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_text("row;answer\n1;2\n"), "is not an image that can be decoded here"),
        (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40), "page.png"),
        (lambda path: path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"), "a program"),
        (os.mkfifo, "is not a regular file"),
    ],
)
def test_files_that_are_no_images_say_why(tmp_path, make, reason):
    path = tmp_path / "page.png"
    make(path)
    for read in (open_image, image_size):
        with pytest.raises(ImageError, match=reason) as caught:
            read(ImageInput(path=str(path)))
        assert "page.png" in str(caught.value)
        assert caught.value.kind == "image"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "page.png"
    path.write_bytes(encoded(noise(), "PNG"))
    path.chmod(0)
    with pytest.raises(ImageError, match=r"page\.png cannot be opened: permission denied"):
        open_image(ImageInput(path=str(path)))


@pytest.mark.parametrize("length", [255, 5000])
def test_a_path_that_no_file_can_have(length):
    with pytest.raises(ImageError):
        open_image(ImageInput(path="/" + "a" * length + "\0" * (length % 2)))


WRITABLE = {
    "PNG": {},
    "JPEG": {"quality": 95},
    "TIFF": {},
    "WEBP": {"lossless": True},
    "BMP": {},
    "GIF": {},
    "PPM": {},
    "TGA": {},
    "JPEG2000": {},
    "PCX": {},
    "SGI": {},
    "ICO": {},
    "DDS": {},
    "QOI": {},
    "AVIF": {},
}


@pytest.mark.parametrize("format", WRITABLE)
def test_every_format_reads_as_pillow_reads_it(format):
    data = encoded(noise(), format, **WRITABLE[format])
    with Image.open(io.BytesIO(data)) as picture:
        wanted = picture.convert("RGB")
    assert np.array_equal(open_image(ImageInput(data=data)).image, wanted)


@pytest.mark.filterwarnings("ignore:Truncated File Read", "ignore:Corrupt EXIF")
@pytest.mark.parametrize("format", [*WRITABLE, "JPEG-progressive", "TIFF-lzw", "TIFF-jpeg"])
@pytest.mark.parametrize("part", [0.02, 0.3, 0.55, 0.9, 0.97])
def test_no_format_gives_a_partly_grey_picture(format, part):
    name, _, variant = format.partition("-")
    options = dict(WRITABLE[name])
    options.update({"progressive": True} if variant == "progressive" else {"compression": variant} if variant else {})
    if variant == "lzw":
        options["compression"] = "tiff_lzw"
    data = encoded(noise(128, 96), name, **options)
    whole = open_image(ImageInput(data=data)).image
    try:
        image = open_image(ImageInput(data=data[: int(len(data) * part)])).image
    except ImageError:
        return
    assert np.array_equal(image, whole)  # what is missing was no pixel


@pytest.mark.parametrize("where", [60, 200, 1000, 4000])
def test_damage_in_the_middle_is_an_error_or_harmless(where):
    data = bytearray(encoded(noise(128, 96), "PNG"))
    data[where : where + 8] = b"\xff" * 8
    with pytest.raises(ImageError, match="image cannot be read"):
        open_image(ImageInput(data=bytes(data)))


def test_a_process_that_lets_cut_off_files_pass_is_told_so(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(ImageError, match="LOAD_TRUNCATED_IMAGES is set"):
        open_image(case_image("C06", "cut.jpg"))
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


UPRIGHT = np.array([[[250, 0, 0], [0, 250, 0]], [[0, 0, 250], [250, 250, 250]], [[9, 9, 9], [99, 99, 99]]], np.uint8)
STORED = {
    1: UPRIGHT,
    2: UPRIGHT[:, ::-1],
    3: UPRIGHT[::-1, ::-1],
    4: UPRIGHT[::-1],
    5: UPRIGHT.transpose(1, 0, 2),
    6: np.rot90(UPRIGHT),
    7: UPRIGHT[::-1, ::-1].transpose(1, 0, 2),
    8: np.rot90(UPRIGHT, -1),
}


@pytest.mark.parametrize("format", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", STORED)
def test_every_orientation_is_turned_once(format, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation]))
    data = encoded(stored, format, exif=exif, **WRITABLE[format])
    assert np.array_equal(open_image(ImageInput(data=data)).image, UPRIGHT)


def test_an_orientation_that_does_not_exist_is_ignored():
    exif = Image.Exif()
    exif[0x0112] = 77
    assert np.array_equal(
        open_image(ImageInput(data=encoded(Image.fromarray(UPRIGHT), "PNG", exif=exif))).image, UPRIGHT
    )


@pytest.mark.parametrize("format", ["GIF", "TIFF", "WEBP", "PNG"])
def test_the_first_of_several_frames_is_taken_and_said(format):
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue", "lime")]
    options = {"save_all": True, "append_images": frames[1:], **WRITABLE[format]}
    image, notes = open_image(ImageInput(data=encoded(frames[0], format, **options), name="pages"))
    assert image.getpixel((5, 5)) == (255, 0, 0)
    assert notes == ("pages: the file has several frames or pages; only the first is used.",)


def test_header_size_equals_decoded_size_for_upright_files():
    data = encoded(noise(31, 17), "JPEG")
    assert image_size(ImageInput(data=data)) == open_image(ImageInput(data=data)).image.size == (31, 17)


def test_the_result_does_not_depend_on_its_file(tmp_path):
    path = tmp_path / "page.bmp"
    noise().save(path)
    image = open_image(ImageInput(path=str(path))).image
    path.write_bytes(b"gone")
    assert np.array_equal(image, noise())


def test_many_threads_read_the_same_and_broken_files_at_once():
    good, cut = case_image("C06", "a.png"), case_image("C06", "cut.png")
    wanted = np.asarray(open_image(good).image)
    seen: list[bool] = []

    def read():
        for _ in range(10):
            seen.append(np.array_equal(open_image(good).image, wanted))
            with pytest.raises(ImageError):
                open_image(cut)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 80
