"""PDF files: each page is a row, its text layer the reference, its picture made when the page is asked about."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.embedded import cache_folder, write_once
from vlmhb.data.images import resolve_image
from vlmhb.errors import DatasetError, ImageError, MissingPackageError

if TYPE_CHECKING:
    import pypdfium2

READ_PAGE = "Write out all the text of this page, line by line, exactly as it stands."
"""What is asked about a page when nobody says otherwise."""

DEFAULT_DPI = 150
_POINTS_AN_INCH = 72
_MOST_PIXELS = 178_956_970
_PAGE = re.compile(r"(.+\.pdf)#page=(\d+)", re.IGNORECASE)
PAGE_OPTIONS = {
    "dpi": f"dots an inch at which pages of PDF files are rendered ({DEFAULT_DPI})",
    "question": "what to ask about each page",
}


class PdfFormat(DatasetFormat):
    """A ``.pdf`` file. A folder of them is read by the format ``folder``."""

    name = "pdf"
    options = PAGE_OPTIONS

    def recognises(self, path: Path) -> bool:
        """Whether it is a ``.pdf`` file."""
        return is_pdf(path) and path.is_file()

    def open(self, path: Path, name: str) -> Dataset:
        """Open it with the usual resolution and question."""
        return self.open_with(path, name, {})

    def open_with(self, path: Path, name: str, options: Mapping[str, str]) -> Dataset:
        """Open it; the file itself is read with its rows.

        Raises:
            DatasetError: ``dpi`` is no number.
            MissingPackageError: pypdfium2 is not installed.
        """
        return _Pdf(path, name, dpi_of(options), options.get("question", READ_PAGE))


class _Pdf(Dataset):
    def __init__(self, path: Path, name: str, dpi: int, question: str) -> None:
        _pdfium()
        self.name = name
        self.root = path.parent
        self._path = path
        self._dpi = dpi
        self._question = question

    def __iter__(self) -> Iterator[Sample]:
        yield from pdf_samples(self._path, self.root, self._question, 1)

    def image_file(self, written: str) -> Path | None:
        """The picture of a page, rendered when it is not there yet."""
        return page_file(self.root, written, self._dpi)


def is_pdf(path: Path) -> bool:
    """Whether a file is called a PDF."""
    return path.suffix.casefold() == ".pdf"


def dpi_of(options: Mapping[str, str]) -> int:
    """The resolution that the options ask for.

    Raises:
        DatasetError: it is no number from 20 to 1200.
    """
    text = options.get("dpi", str(DEFAULT_DPI))
    if not text.isascii() or not text.isdecimal() or not 20 <= int(text) <= 1200:
        raise DatasetError(f"dpi must be a whole number from 20 to 1200, not {text!r}.")
    return int(text)


def pdf_samples(path: Path, root: Path, question: str, row: int, **fields: Any) -> Iterator[Sample]:
    """A sample for each page of a file; one with a problem for a file that cannot be opened.

    Args:
        path: the file, inside ``root``.
        root: the dataset's folder.
        question: what to ask.
        row: number of the first sample.
        fields: further fields of every sample.
    """
    written = path.relative_to(root).as_posix()
    common = {"data_index": written.rsplit(".", 1)[0], "question": question, "question_type": "text", **fields}
    try:
        with _opened(path) as document:
            for number in range(len(document)):
                text, problem = _text_of(document, number)
                images = (f"{written}#page={number + 1}",)
                yield Sample(row=row + number, images=images, reference=text, problem=problem, **common)
    except ImageError as error:
        yield Sample(row=row, images=(written,), reference="", problem=str(error), **common)


def page_file(root: Path, written: str, dpi: int) -> Path | None:
    """The picture of a page that is written as ``file.pdf#page=3``, or None for any other image.

    Raises:
        ImageError: the file or the page cannot be rendered.
    """
    match = _PAGE.fullmatch(written)
    if match is None:
        return None
    path, number = resolve_image(root, match[1]), int(match[2])
    target = cache_folder() / "pages" / f"{_digest(path, path.stat().st_mtime_ns)}-{number}-{dpi}.png"
    if not target.is_file():
        write_once(target, _render(path, number, dpi, written))
    return target


def _render(path: Path, number: int, dpi: int, written: str) -> bytes:
    """A page as a PNG file."""
    pdfium = _pdfium()
    with _opened(path) as document:
        try:
            page = document[number - 1]
            scale = dpi / _POINTS_AN_INCH
            width, height = (round(side * scale) for side in page.get_size())
            if width * height > _MOST_PIXELS:
                raise ImageError(
                    f"image {written}: {width} x {height} pixels at {dpi} dpi are too many; choose fewer dpi"
                )
            picture = page.render(scale=scale).to_pil()
        except (pdfium.PdfiumError, IndexError, ValueError) as error:
            raise ImageError(f"image {written}: the page cannot be rendered ({error})") from error
    content = io.BytesIO()
    picture.save(content, "PNG")
    return content.getvalue()


def _text_of(document: pypdfium2.PdfDocument, number: int) -> tuple[str, str | None]:
    """The text layer of a page, one line break a line; and what is wrong when there is none."""
    try:
        page = document[number]
        text_page = page.get_textpage()
        text = text_page.get_text_bounded()
        text_page.close()
        page.close()
    except _pdfium().PdfiumError as error:
        return "", f"page {number + 1} cannot be read ({error})"
    lines = [
        line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-").split("\n")
    ]
    text = "\n".join(lines).strip()
    return text, None if text else f"page {number + 1} has no text layer, and so no right answer"


def _opened(path: Path) -> pypdfium2.PdfDocument:
    """The opened document, which closes itself at the end of a ``with``.

    Raises:
        ImageError: it is broken, or needs a password.
    """
    pdfium = _pdfium()
    try:
        return pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        locked = "password" in str(error).casefold()
        reason = "it needs a password; save it without one" if locked else f"it is no readable PDF ({error})"
        raise ImageError(f"{path.name}: {reason}") from error
    except OSError as error:
        raise ImageError(f"{path.name} cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=1024)
def _digest(path: Path, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pdfium() -> Any:
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingPackageError("PDF files are read by pypdfium2: pip install 'vlmhb[pdf]'") from error
    return pypdfium2
