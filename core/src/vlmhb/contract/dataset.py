"""What a dataset is: rows, each one question about some images with the right answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import msgspec


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a dataset, every value as the text that stands in the file.

    Attributes:
        row: number of the record, from 1; the row's identity within its dataset.
        data_index: the document's id; several rows may share it.
        images: image paths as written, relative to the dataset's folder.
        question: what to ask; empty when the prompt collection gives it.
        reference: the right answer; empty is a valid one.
        doc_class, question_type, split: groups the row belongs to.
        answer_bbox: where the answer stands, as written.
        problem: why the row cannot be asked (its record is malformed, say), or None. It is then an error of the run.
    """

    row: int
    data_index: str
    images: tuple[str, ...]
    question: str
    reference: str
    doc_class: str = ""
    question_type: str = ""
    split: str = ""
    answer_bbox: str = ""
    problem: str | None = None


class Dataset(ABC):
    """An opened dataset.

    Attributes:
        name: what the user called it.
        root: the folder that image paths are relative to, and may not leave.
    """

    name: str
    root: Path

    @abstractmethod
    def __iter__(self) -> Iterator[Sample]:
        """The rows in file order, streamed; may be iterated again.

        Raises:
            DatasetError: the file is not readable as this format; says where.
        """


class DatasetFormat(ABC):
    """One way to keep a dataset on disk.

    Attributes:
        name: key of the format, for example ``vlmhyperbench``.
    """

    name: str

    @abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether the file or folder is in this format; looks, but reads little."""

    @abstractmethod
    def open(self, path: Path, name: str) -> Dataset:
        """Open it.

        Raises:
            DatasetError: it lacks something without which no row can be read; says what.
        """


class NamedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a plugin ships, to be used by name."""

    name: str
    path: str
    description: str = ""


class NamedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a plugin ships or can make, to be used by name.

    Attributes:
        name: as written in ``model_name``.
        path: the model's folder.
        family: the model family, for the tables.
        description: one line; the demo prints it.
    """

    name: str
    path: str
    family: str = ""
    description: str = ""
