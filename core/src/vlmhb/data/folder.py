"""A folder of page images with a text or JSON file beside each, and of PDF files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.pdf import PAGE_OPTIONS, READ_PAGE, dpi_of, is_pdf, page_file, pdf_samples
from vlmhb.data.records import NAMES, Number, RecordReader

READ_FIELDS = "Return the fields of this document as JSON."
"""What is asked about a page whose file beside it holds the fields themselves, when nobody says otherwise."""

_LOOKED_AT = 10_000
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif")


class FolderFormat(DatasetFormat):
    """A folder with images and PDF files, also in its sub-folders, whose names are the doc classes."""

    name = "folder"
    options = PAGE_OPTIONS

    def recognises(self, path: Path) -> bool:
        """Whether one of its first 10,000 entries is a PDF file, or an image with an answer beside it.

        A mistyped path, such as ``..`` or ``/``, is not to be walked through to its end.
        """
        try:
            return path.is_dir() and any(map(_has_answer, islice(_entries(path), _LOOKED_AT)))
        except OSError:  # a folder on the way that may not be read
            return False

    def open(self, path: Path, name: str) -> Dataset:
        """Open it with the usual resolution and question."""
        return self.open_with(path, name, {})

    def open_with(self, path: Path, name: str, options: Mapping[str, str]) -> Dataset:
        """Open it.

        Raises:
            DatasetError: ``dpi`` is no number.
        """
        return _Folder(path, name, dpi_of(options), options.get("question"))


class _Folder(Dataset):
    def __init__(self, root: Path, name: str, dpi: int, question: str | None) -> None:
        self.name = name
        self.root = root
        self._dpi = dpi
        self._question = question
        self._reader = RecordReader(root)

    def __iter__(self) -> Iterator[Sample]:
        row = 1
        for path in _pages(self.root):
            parts = path.relative_to(self.root).parts
            doc_class = parts[0] if len(parts) > 1 else ""
            if is_pdf(path):
                samples = pdf_samples(path, self.root, self._question or READ_PAGE, row, doc_class=doc_class)
            else:
                samples = self._of_image(path, row, doc_class)
            for sample in samples:
                row = sample.row + 1
                yield sample

    def image_file(self, written: str) -> Path | None:
        """The picture of a page of a PDF file."""
        return page_file(self.root, written, self._dpi)

    def _of_image(self, path: Path, row: int, doc_class: str) -> Iterator[Sample]:
        written = path.relative_to(self.root).as_posix()
        page: dict[str, Any] = {
            "data_index": written.rsplit(".", 1)[0],
            "images": (written,),
            "doc_class": doc_class,
        }
        text, fields = path.with_suffix(".txt"), path.with_suffix(".json")
        if text.is_file() == fields.is_file():
            both = text.is_file()
            problem = (
                f"{text.name} and {fields.name} both exist; keep one"
                if both
                else (f"there is no {text.name} or {fields.name} with the right answer")
            )
            yield self._reader.sample(row, {}, **page, reference="", problem=problem)
        elif text.is_file():
            yield self._of_text(text, row, page)
        else:
            yield from self._of_json(fields, row, page)

    def _of_text(self, beside: Path, row: int, page: dict[str, Any]) -> Sample:
        try:
            reference, problem = beside.read_text(encoding="utf-8-sig").strip(), None
        except (OSError, UnicodeDecodeError) as error:
            reference, problem = "", f"{beside.name} cannot be read: {error}"
        question = self._question or READ_PAGE
        more = {"question": question, "question_type": "text", "reference": reference, "problem": problem}
        return self._reader.sample(row, {}, **page, **more)

    def _of_json(self, beside: Path, row: int, page: dict[str, Any]) -> Iterator[Sample]:
        """Rows of a JSON file: questions with answers, one or a list of them; or else the fields of the page."""
        try:
            content = json.loads(beside.read_text(encoding="utf-8-sig"), parse_int=Number, parse_float=Number)
        except (OSError, ValueError, RecursionError) as error:
            yield self._reader.sample(row, {}, **page, reference="", problem=f"{beside.name} cannot be read: {error}")
            return
        records = content if isinstance(content, list) else [content]
        if records and all(isinstance(record, dict) and set(record) & set(NAMES["answer"]) for record in records):
            question = {"question": self._question} if self._question else {}
            for at, record in enumerate(records):
                record = {name: value for name, value in record.items() if name not in NAMES["images"]}
                yield self._reader.sample(row + at, record, **page, **question)
            return
        reference = json.dumps(json.loads(beside.read_text(encoding="utf-8-sig")), ensure_ascii=False)
        question_text = self._question or READ_FIELDS
        yield self._reader.sample(row, {}, **page, question=question_text, question_type="fields", reference=reference)


def _has_answer(path: Path) -> bool:
    """Whether a file is a page with its answer: a PDF file brings it along."""
    if not _is_page(path):
        return False
    return is_pdf(path) or path.with_suffix(".txt").is_file() or path.with_suffix(".json").is_file()


def _is_page(path: Path) -> bool:
    return path.suffix.casefold() in (*IMAGES, ".pdf")


def _pages(folder: Path) -> Iterator[Path]:
    """The images and PDF files of a folder and its sub-folders, by name; hidden ones are left out."""
    return filter(_is_page, _entries(folder))


def _entries(folder: Path) -> Iterator[Path]:
    """The files of a folder and its sub-folders, by name; hidden ones are left out."""
    entries = sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=lambda e: e.name)
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry)
        else:
            yield entry
