"""Writing the pages out as a dataset in the VLMHyperBench layout."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vlmhb_demo.documents import catalogue, scan
from vlmhb_demo.documents.invented import Invented
from vlmhb_demo.documents.page import Page
from vlmhb_demo.documents.questions import QUESTIONS

SEED = 2026
CLEAN_EACH, WORN_EACH = 5, 2
"""Pages of each class in each language."""
COLUMNS = ("data_index", "split", "image_path", "question", "answer", "doc_class", "question_type", "answer_bbox")


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
            asked = QUESTIONS[self.language][question.kind][0].format(about=question.about)
            place = str(list(question.box))
            start = (str(self.index), self.split, self.image_path)
            yield (*start, asked, question.answer, self.doc_class, question.kind, place)


def documents(seed: int = SEED) -> Iterator[Document]:
    """All pages, drawn one after the other: the clean ones, then the worn ones."""
    index = 0
    for split, each in (("test_clean", CLEAN_EACH), ("test_worn", WORN_EACH)):
        for doc_class in catalogue.CLASSES:
            for language in catalogue.LANGUAGES:
                for number in range(each):
                    index += 1
                    rng = random.Random(f"{seed}/{split}/{doc_class}/{language}/{number}")
                    yield Document(index, doc_class, language, split, _page(split, doc_class, language, rng))


def _page(split: str, doc_class: str, language: str, rng: random.Random) -> Page:
    source = Invented(language, rng)
    if split == "test_worn":
        return scan.worn(catalogue.draw(doc_class, source, scan.worn_style(rng)), rng)
    return scan.clean(catalogue.draw(doc_class, source, scan.clean_style(rng)), rng)


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
            document.page.image.save(folder / document.image_path, "JPEG", quality=scan.CLEAN_QUALITY, optimize=True)
            rows = list(document.rows())
            writer.writerows(rows)
            count += len(rows)
    return count
