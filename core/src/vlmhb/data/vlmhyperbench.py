"""The VLMHyperBench dataset folder: ``annotation.csv`` beside ``images/``.

Columns: ``data_index`` (the document, not the row), ``image_path`` (relative to the folder; a bracket list of several),
``question`` (or ``prompt``), ``answer``; optional ``split``, ``doc_class``, ``question_type``, ``answer_bbox``, and
what vlmhb adds: ``other_answers`` and ``choices`` (bracket lists), ``json_schema`` (a file of the folder, or JSON).
Other columns can stand in prompt templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.lists import parse_list
from vlmhb.data.samples import samples_of
from vlmhb.data.schemas import schema_of
from vlmhb.data.tables import Table, TableError
from vlmhb.errors import DatasetError, RequestError

ANNOTATION = "annotation.csv"
_NEEDED = ("data_index", "image_path", "question", "answer")
_OPTIONAL = ("split", "doc_class", "question_type", "answer_bbox")
_OTHERS, _CHOICES, _SCHEMA = "other_answers", "choices", "json_schema"
_NOWHERE = -1
"""Place of a column that is not there: after the cells of a row, where an empty one is put."""
_REMEMBERED = 256
"""Cells with images that are not read again while they are repeated: the questions about a page follow each other."""
COLUMNS = (*_NEEDED, *_OPTIONAL, _OTHERS, _CHOICES, _SCHEMA)


class VlmHyperBenchFormat(DatasetFormat):
    """The folder of the VLMHyperBench project; its ``annotation.csv`` may be named instead of the folder."""

    name = "vlmhyperbench"

    def recognises(self, path: Path) -> bool:
        """Whether there is an ``annotation.csv``."""
        return _annotation(path).is_file()

    def open(self, path: Path, name: str) -> Dataset:
        """Read the header.

        Raises:
            DatasetError: it cannot be read, or a needed column is missing.
        """
        try:
            table = Table(_annotation(path))
        except TableError as error:
            raise DatasetError(str(error)) from error
        return _Folder(name, table)


class _Folder(Dataset):
    def __init__(self, name: str, table: Table) -> None:
        self.name = name
        self.root = table.path.parent
        self._table = table
        columns = dict(table.columns)
        if "question" not in columns and "prompt" in columns:
            columns["question"] = columns["prompt"]
        missing = [column for column in _NEEDED if column not in columns]
        if missing:
            if fault := table.one_cell(_NEEDED):
                raise DatasetError(str(fault))
            raise DatasetError(
                f"{table.path}: the dataset lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}; "
                f"its header has {', '.join(filter(None, table.header))}."
            )
        places = [columns.get(column, _NOWHERE) for column in COLUMNS]
        self._known = itemgetter(*places)
        self._further = {name: at for name, at in columns.items() if name and at not in places}

    def __iter__(self) -> Iterator[Sample]:
        return samples_of(self._table, self._sample)

    def _sample(self, row: int, cells: list[str]) -> Sample:
        problem = None if any(cells) else "every cell of this row is empty"
        images: tuple[str, ...] = ()
        others: tuple[str, ...] = ()
        choices: tuple[str, ...] = ()
        json_schema = ""
        index, image, question, answer, split, doc_class, question_type, bbox, other, choice, schema = self._known(
            [*cells, ""]
        )
        try:
            images = _images(image)
            others = _list(_OTHERS, other) if other else ()
            choices = _list(_CHOICES, choice) if choice else ()
            json_schema = schema_of(self.root, schema) if schema else ""
        except RequestError as error:
            problem = problem or str(error)
        return Sample(
            row=row,
            data_index=index,
            images=images,
            question=question,
            reference=answer,
            split=split,
            doc_class=doc_class,
            question_type=question_type,
            answer_bbox=bbox,
            other_references=others,
            choices=choices,
            json_schema=json_schema,
            fields={name: cells[place] for name, place in self._further.items()} if self._further else {},
            problem=problem,
        )


def _list(column: str, cell: str) -> tuple[str, ...]:
    """The texts of a list cell.

    Raises:
        RequestError: it is no list.
    """
    try:
        return parse_list(cell)
    except ValueError as error:
        raise RequestError(f"{column}: {error}") from error


@lru_cache(maxsize=_REMEMBERED)
def _images(cell: str) -> tuple[str, ...]:
    """The paths in an ``image_path`` cell: a list in brackets, or one path.

    Raises:
        RequestError: it is a list and cannot be read.
    """
    text = cell.strip()
    is_list = text.startswith(("['", '["')) or (text.startswith("[") and text.endswith("]"))
    if is_list:
        return _list("image_path", text)
    return (cell,) if text else ()


def _annotation(path: Path) -> Path:
    return path if path.name == ANNOTATION and not path.is_dir() else path / ANNOTATION
