"""What a dataset is: rows, each one question about some images with the right answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
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
        other_references: further answers that are as right; the best of them all counts.
        choices: the texts of the question's options A, B, ..., where it has such; for metrics.
        json_schema: the JSON Schema that the answer should follow, as text; empty where there is none.
        doc_class, question_type, split: groups the row belongs to.
        answer_bbox: where the answer stands, as written.
        fields: the row's further values by lower-case name, as text; for prompt templates and tables.
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
    other_references: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    json_schema: str = ""
    fields: Mapping[str, str] = {}
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

    def image_file(self, written: str) -> Path | None:
        """The file of an image that lies in the dataset's own file, or None for a path inside :attr:`root`.

        Called in the process of the command line when the row is about to be asked. A format whose images are no files
        writes them into a folder of its own and returns the path; what it returns is not held against ``root``.

        Args:
            written: one of a sample's ``images``.

        Raises:
            ImageError: the image cannot be had; the message names it.
        """
        return None


class DatasetFormat(ABC):
    """One way to keep a dataset on disk.

    Attributes:
        name: key of the format, for example ``vlmhyperbench``.
        options: what may follow the path as ``?name=value&name=value``, with one line about each.
    """

    name: str
    options: Mapping[str, str] = {}

    @abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether the file or folder is in this format; looks, but reads little."""

    @abstractmethod
    def open(self, path: Path, name: str) -> Dataset:
        """Open it.

        Raises:
            DatasetError: it lacks something without which no row can be read; says what.
        """

    def open_with(self, path: Path, name: str, options: Mapping[str, str]) -> Dataset:
        """Open it with options, all of them among :attr:`options`; formats that have some override this.

        Raises:
            DatasetError: as for :meth:`open`, and for a value that is none of the option's.
        """
        return self.open(path, name)


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
