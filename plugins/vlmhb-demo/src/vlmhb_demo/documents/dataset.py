"""Writing the pages out as a dataset in the VLMHyperBench layout."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vlmhb_demo.documents import form, identity_card, invoice, receipt, scan
from vlmhb_demo.documents.invented import LANGUAGES, Language
from vlmhb_demo.documents.page import Page
from vlmhb_demo.documents.questions import QUESTIONS

SEED = 2026
PAGES_EACH = 3
"""Pages of each class in each language; the last of them is a worn scan, the others are clean."""

CLASSES: dict[str, Callable[[Language, int, random.Random], Page]] = {
    "identity card": identity_card.draw,
    "receipt": receipt.draw,
    "invoice": invoice.draw,
    "form": form.draw,
}
COLUMNS = ("data_index", "split", "image_path", "question", "answer", "doc_class", "question_type", "answer_bbox")
JPEG_QUALITY = 84


@dataclass(frozen=True)
class Document:
    """A finished page with its place in the dataset."""

    index: int
    doc_class: str
    language: str
    split: str
    page: Page

    @property
    def image_path(self) -> str:
        """Where its image lies, relative to the dataset's folder."""
        return f"images/{self.index:02d}_{self.doc_class.replace(' ', '_')}_{self.language}.jpg"

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Its records for ``annotation.csv``, one a question; boxes are ``[x1, y1, x2, y2]`` in pixels."""
        for question in self.page.questions:
            asked = QUESTIONS[self.language][question.kind]
            place = str(list(question.box))
            start = (str(self.index), self.split, self.image_path)
            yield (*start, asked, question.answer, self.doc_class, question.kind, place)


def documents(seed: int = SEED) -> Iterator[Document]:
    """All pages, drawn one after the other."""
    index = 0
    for doc_class, draw in CLASSES.items():
        for language in LANGUAGES:
            for number in range(PAGES_EACH):
                index += 1
                rng = random.Random(f"{seed}/{doc_class}/{language.code}/{number}")
                worn = number == PAGES_EACH - 1
                page = (scan.worn if worn else scan.clean)(draw(language, number, rng), rng)
                yield Document(index, doc_class, language.code, "test_worn" if worn else "test_clean", page)


def write(folder: Path, seed: int = SEED) -> int:
    """Write ``annotation.csv`` (``;``, UTF-8 with a byte order mark) and ``images/``; return the number of rows.

    Raises:
        OSError: the folder cannot be written.
    """
    (folder / "images").mkdir(parents=True, exist_ok=True)
    count = 0
    with (folder / "annotation.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=";", lineterminator="\n")
        writer.writerow(COLUMNS)
        for document in documents(seed):
            document.page.image.save(folder / document.image_path, "JPEG", quality=JPEG_QUALITY, optimize=True)
            rows = list(document.rows())
            writer.writerows(rows)
            count += len(rows)
    return count
