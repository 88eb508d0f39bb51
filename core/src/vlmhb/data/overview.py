"""What a dataset holds: rows by document and question type, and a sheet with some of its pages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from vlmhb.contract.dataset import Dataset
from vlmhb.contract.request import ImageInput
from vlmhb.data.images import find_image
from vlmhb.errors import DatasetError, ImageError

PAGES_A_CLASS = 6
MOST_PAGES = 60
_THUMB, _GAP, _LABEL, _COLUMNS = 220, 10, 16, 6


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one document type and question type."""

    doc_class: str
    question_type: str
    rows: int
    documents: int
    problems: int


class Page(msgspec.Struct, frozen=True):
    """One image to show, with the first row that has it."""

    row: int
    doc_class: str
    written: str


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset in numbers.

    Attributes:
        rows, documents, images: how many there are; documents and images each counted once.
        problems: rows that cannot be asked.
        several_answers: rows with more than one accepted answer.
        groups: by document type and question type, in the order of their first row.
        pages: some images of each document type.
    """

    rows: int
    documents: int
    images: int
    problems: int
    several_answers: int
    groups: tuple[Group, ...]
    pages: tuple[Page, ...]


def overview_of(dataset: Dataset) -> Overview:
    """Count what a dataset holds; images are not opened.

    Raises:
        DatasetError: it cannot be read to its end.
    """
    rows: Counter[tuple[str, str]] = Counter()
    problems: Counter[tuple[str, str]] = Counter()
    documents: dict[tuple[str, str], set[bytes]] = {}
    images: set[bytes] = set()
    shown: Counter[str] = Counter()
    pages: list[Page] = []
    several = 0
    for sample in dataset:
        group = (sample.doc_class, sample.question_type)
        rows[group] += 1
        problems[group] += sample.problem is not None
        documents.setdefault(group, set()).add(_digest(sample.data_index))
        several += bool(sample.other_references)
        for written in sample.images:
            key = _digest(written)
            if key not in images and shown[sample.doc_class] < PAGES_A_CLASS and len(pages) < MOST_PAGES:
                shown[sample.doc_class] += 1
                pages.append(Page(sample.row, sample.doc_class, written))
            images.add(key)
    return Overview(
        rows=rows.total(),
        documents=len(set().union(*documents.values())),
        images=len(images),
        problems=problems.total(),
        several_answers=several,
        groups=tuple(
            Group(doc_class=key[0], question_type=key[1], rows=n, documents=len(documents[key]), problems=problems[key])
            for key, n in rows.items()
        ),
        pages=tuple(sorted(pages, key=lambda page: list(shown).index(page.doc_class))),
    )


def write_sheet(dataset: Dataset, pages: Sequence[Page], path: Path) -> list[str]:
    """Write a picture with small copies of pages, each with the number of its row.

    Args:
        dataset: where the pages are.
        pages: which ones, in this order.
        path: the picture; its suffix says the kind (``.png``, ``.jpg``).

    Returns:
        Why pages could not be shown, one sentence each.

    Raises:
        DatasetError: there is no page to show, or the picture cannot be written.
    """
    from PIL import Image, ImageDraw

    from vlmhb.images.decode import open_image

    notes: list[str] = []
    thumbs: list[tuple[Page, Image.Image]] = []
    for page in pages:
        try:
            picture = open_image(ImageInput(path=str(find_image(dataset, page.written)))).image
        except ImageError as error:
            notes.append(f"row {page.row} is not shown: {error}")
            continue
        picture.thumbnail((_THUMB, _THUMB))
        thumbs.append((page, picture))
    if not thumbs:
        raise DatasetError("there is no page to show; no contact sheet was written.")
    columns = min(_COLUMNS, len(thumbs))
    lines = -(-len(thumbs) // columns)
    width, height = _THUMB + _GAP, _THUMB + _LABEL + _GAP
    sheet = Image.new("RGB", (columns * width + _GAP, lines * height + _GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for at, (page, picture) in enumerate(thumbs):
        left, top = _GAP + at % columns * width, _GAP + at // columns * height
        draw.text((left, top), f"row {page.row}", fill="black")
        sheet.paste(picture, (left, top + _LABEL))
        draw.rectangle(
            (left - 1, top + _LABEL - 1, left + picture.width, top + _LABEL + picture.height), outline="grey"
        )
    try:
        sheet.save(path)
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be written: {error}") from error
    return notes


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
