"""Going through a dataset for everything that is wrong with its rows, or looks as if it were."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import msgspec

from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.contract.request import ImageInput
from vlmhb.data.images import find_image
from vlmhb.data.oddities import decomposed, look_alikes, unseen
from vlmhb.errors import ImageError

KINDS = {
    "unreadable-row": True,
    "missing-image": True,
    "unreadable-image": True,
    "no-question": True,
    "empty-reference": False,
    "repeated-row": False,
    "conflicting-rows": False,
    "repeated-id": False,
    "look-alike-letters": False,
    "decomposed-letters": False,
    "unseen-characters": False,
}
"""What is found, and whether the row cannot be asked because of it."""

_TEXTS = ("question", "reference", "doc_class", "question_type")
_PAGE = re.compile(r"#page=\d+$")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was found.

    Attributes:
        row: the row's number, from 1.
        kind: a key of :data:`KINDS`.
        field: the field of the sample, or empty for the whole row.
        message: a sentence.
    """

    row: int
    kind: str
    field: str
    message: str

    @property
    def is_fault(self) -> bool:
        """Whether the row cannot be asked."""
        return KINDS[self.kind]

    def __str__(self) -> str:
        place = f"row {self.row}" + (f", {self.field}" if self.field else "")
        return f"{place}: {self.message} [{self.kind}]"


class Checker:
    """Checks a dataset row by row; memory holds a few numbers a row.

    Args:
        dataset: what to check.
        images: whether to decode every image file; else they must only be there.
    """

    def __init__(self, dataset: Dataset, *, images: bool = True) -> None:
        self._dataset = dataset
        self._decode = images
        self._opened: dict[bytes, str | None] = {}
        self._asked: dict[bytes, tuple[int, bytes]] = {}
        self._ids: dict[bytes, tuple[int, bytes]] = {}
        self.rows = 0

    def __iter__(self) -> Iterator[Finding]:
        """Everything that is found, in the order of the rows.

        Raises:
            DatasetError: the dataset cannot be read to its end.
        """
        for sample in self._dataset:
            self.rows += 1
            if sample.problem:
                yield _finding(sample, "unreadable-row", "", sample.problem)
            if sample.problem and not sample.images:
                continue
            yield from self._images(sample)
            if not sample.problem:
                yield from _texts(sample)
                yield from self._repetitions(sample)

    def _images(self, sample: Sample) -> Iterator[Finding]:
        for written in sample.images:
            try:
                path = find_image(self._dataset, written)
            except ImageError as error:
                if not sample.problem:
                    yield _finding(sample, "missing-image", "images", str(error))
                continue
            key = _digest(str(path))
            if self._decode and key not in self._opened:
                self._opened[key] = _why_unreadable(ImageInput(path=str(path)))
            if reason := self._opened.get(key):
                yield _finding(sample, "unreadable-image", "images", reason)

    def _repetitions(self, sample: Sample) -> Iterator[Finding]:
        images = _digest(*sample.images)
        asked = _digest(sample.question, *sample.images)
        answer = _digest(sample.reference, *sample.other_references)
        first, other = self._asked.setdefault(asked, (sample.row, answer))
        if first != sample.row:
            kind = "repeated-row" if other == answer else "conflicting-rows"
            more = "" if other == answer else ", with another answer"
            yield _finding(sample, kind, "", f"it asks the same about the same images as row {first}{more}.")
            return
        # Pages of one PDF file share their id.
        images = _digest(*(_PAGE.sub("", written) for written in sample.images))
        first, other = self._ids.setdefault(_digest(sample.data_index, sample.question), (sample.row, images))
        if sample.data_index and first != sample.row and other != images:
            message = f"{sample.data_index!r} stands with the same question in row {first}, about other images."
            yield _finding(sample, "repeated-id", "data_index", message)


def _texts(sample: Sample) -> Iterator[Finding]:
    if not sample.question.strip():
        yield _finding(sample, "no-question", "question", "it is empty; only a prompt collection can ask it.")
    if not sample.reference.strip() and not any(text.strip() for text in sample.other_references):
        yield _finding(sample, "empty-reference", "reference", "it is empty; only an empty answer will be right.")
    texts = [(field, getattr(sample, field)) for field in _TEXTS]
    texts += [("other_references", text) for text in sample.other_references]
    for field, text in texts:
        for word, letters in look_alikes(text):
            message = f"{word!r} mixes the Latin and the Cyrillic alphabet: look at {', '.join(letters)}."
            yield _finding(sample, "look-alike-letters", field, message)
        if marks := decomposed(text):
            message = f"{', '.join(marks)} is not written as one character (Unicode NFC)."
            yield _finding(sample, "decomposed-letters", field, message)
        if names := unseen(text):
            yield _finding(sample, "unseen-characters", field, f"it holds {', '.join(names)}.")


def _why_unreadable(image: ImageInput) -> str | None:
    from vlmhb.images.decode import open_image

    try:
        open_image(image)
    except ImageError as error:
        return str(error)
    return None


def _finding(sample: Sample, kind: str, field: str, message: str) -> Finding:
    return Finding(row=sample.row, kind=kind, field=field, message=message)


def _digest(*texts: str) -> bytes:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
