"""Opening one image file: limits, damage, orientation, frames."""

from __future__ import annotations

import io
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from PIL import Image, ImageFile

from vlmhb.contract.request import ImageInput
from vlmhb.errors import ImageError
from vlmhb.images.modes import to_rgb

_ORIENTATION_TAG = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""How to turn a picture upright, by its EXIF orientation (Exif 2.32, tag 274)."""

_NOT_THIS_FORMAT = (SyntaxError, IndexError, TypeError, struct.error)
"""What Pillow's format plugins raise for "not my format" (the list of ``PIL.Image.open``)."""

_DAMAGED = (
    *_NOT_THIS_FORMAT,
    OSError,
    ValueError,
    EOFError,
    KeyError,
    AttributeError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    zlib.error,
    Image.DecompressionBombError,
)
"""What Pillow's decoders raise on damaged files."""

_REFUSED_FORMATS = ("EPS",)
"""PostScript is a program that Pillow would hand to an interpreter."""


class ImageLimits(NamedTuple):
    """What is refused before anything is decoded.

    Attributes:
        max_pixels: most width * height; the default is where Pillow itself refuses, 2 * 1024^3 / 4 / 3 pixels.
    """

    max_pixels: int = 178_956_970


DEFAULT_LIMITS = ImageLimits()


class DecodedImage(NamedTuple):
    """An upright RGB image, independent of its file, and notes about what a reader would not expect."""

    image: Image.Image
    notes: tuple[str, ...] = ()


def open_image(image: ImageInput, limits: ImageLimits = DEFAULT_LIMITS) -> DecodedImage:
    """Decode an image: upright by its EXIF orientation, alpha composed on white, in mode RGB.

    Of a file with several frames or pages the first is taken, and a note says so. Safe to call from several threads;
    no setting of Pillow is changed or relied on.

    Raises:
        ImageError: the file is missing, empty, cut off, damaged, no image, or has more pixels than the limit. The
            message names the file and the reason. A file that is cut off is never decoded in part.
    """
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        # A setting of the whole process, made by other code: cut-off files would silently come out partly grey.
        raise ImageError(
            f"{image.label} was not read: PIL.ImageFile.LOAD_TRUNCATED_IMAGES is set in this process, "
            "which makes cut-off files look whole. Set it to False."
        )
    with _opened(image, limits) as picture:
        try:
            notes = _frames_note(picture)
            picture.load()
            upright = _turned_upright(picture)
            rgb, mode_notes = to_rgb(upright)
        except _DAMAGED as error:
            raise ImageError(f"{image.label} cannot be read: {_reason(error)}") from error
        except MemoryError as error:
            raise ImageError(
                f"{image.label} ({picture.width} x {picture.height} pixels) needs too much memory"
            ) from error
    return DecodedImage(_bare(rgb), tuple(f"{image.label}: {note}" for note in (*notes, *mode_notes)))


def image_size(image: ImageInput, limits: ImageLimits = DEFAULT_LIMITS) -> tuple[int, int]:
    """Width and height as stored in the file's header, without decoding it (orientation is not applied).

    Raises:
        ImageError: the header cannot be read, or the image has more pixels than the limit.
    """
    with _opened(image, limits) as picture:
        return picture.size


@contextmanager
def _opened(image: ImageInput, limits: ImageLimits) -> Iterator[ImageFile.ImageFile]:
    with _stream(image) as stream:
        picture = _identify(stream, image)
        try:
            width, height = picture.size
            if width * height > limits.max_pixels:
                raise ImageError(
                    f"{image.label} is {width} x {height} = {width * height:,} pixels, "
                    f"more than the limit of {limits.max_pixels:,}; make it smaller."
                )
            yield picture
        finally:
            picture.close()


def _stream(image: ImageInput) -> IO[bytes]:
    if image.data is not None:
        if not image.data:
            raise ImageError(f"{image.label} is empty (0 bytes)")
        return io.BytesIO(image.data)
    path = Path(image.path or "")
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ImageError(f"{image.label} is a folder, not an image file ({path})")
        if not stat.S_ISREG(status.st_mode):
            raise ImageError(f"{image.label} is not a regular file ({path})")
        if status.st_size == 0:
            raise ImageError(f"{image.label} is empty (0 bytes, {path})")
        return path.open("rb")
    except FileNotFoundError as error:
        raise ImageError(f"{image.label} does not exist ({path})") from error
    except (OSError, ValueError) as error:
        raise ImageError(f"{image.label} cannot be opened: {_reason(error)} ({path})") from error


def _identify(stream: IO[bytes], image: ImageInput) -> ImageFile.ImageFile:
    """Find the format and read the header.

    ``PIL.Image.open`` does the same and then checks the size against a global limit, of which it warns on the way;
    the limit here belongs to the call, so the registered formats are asked directly.
    """
    Image.init()
    prefix = stream.read(16)
    reason: str | bool = ""
    for name in Image.ID:
        factory, accepts = Image.OPEN[name]
        stream.seek(0)
        try:
            answer = True if accepts is None else accepts(prefix)
            if not answer or isinstance(answer, str):  # a text says why a file of this format cannot be decoded here
                reason = answer or reason
                continue
            if name in _REFUSED_FORMATS:
                raise ImageError(f"{image.label} is a {name} file, a program and not a picture; convert it to PNG.")
            # No file name: Pillow would open it once more to map it into memory.
            picture = factory(stream, "")
        except _NOT_THIS_FORMAT:
            continue
        except _DAMAGED as error:
            raise ImageError(f"{image.label} cannot be read: {_reason(error)}") from error
        assert isinstance(picture, ImageFile.ImageFile)
        return picture
    known = f"{image.label} is not an image that can be decoded here, or its header is damaged."
    raise ImageError(f"{known} ({reason})" if reason else known)


def _frames_note(picture: ImageFile.ImageFile) -> tuple[str, ...]:
    if not getattr(picture, "is_animated", False):
        return ()
    return ("the file has several frames or pages; only the first is used.",)


def _bare(picture: Image.Image) -> Image.Image:
    """The pixels without the file's metadata: an engine that finds the orientation tag turns the picture again."""
    bare = picture.copy() if isinstance(picture, ImageFile.ImageFile) else picture
    bare.info = {}
    return bare


def _turned_upright(picture: Image.Image) -> Image.Image:
    # After load(): Pillow's TIFF and AVIF readers turn the picture themselves and then drop the tag.
    turn = _TURNS.get(picture.getexif().get(_ORIENTATION_TAG, 1))
    if turn is None:
        return picture
    turned = picture.transpose(turn)
    turned.info.update({k: v for k, v in picture.info.items() if k == "transparency"})
    return turned


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = str(error)
    if "truncated" in text.lower():
        return f"the file is cut off ({text})"
    return text or type(error).__name__
