"""The VLMHyperBench dataset folder: ``annotation.csv`` beside ``images/``.

Columns: ``data_index`` (the document, not the row), ``image_path`` (relative to the folder; a bracket list of several),
``question`` (or ``prompt``), ``answer``; optional ``split``, ``doc_class``, ``question_type``, ``answer_bbox``, and
what vlmhb adds: ``other_answers`` and ``choices`` (bracket lists), ``json_schema`` (a file of the folder, or JSON).
Other columns can stand in prompt templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.lists import parse_list
from vlmhb.data.samples import samples_of
from vlmhb.data.schemas import schema_of
from vlmhb.data.tables import Table, TableError
from vlmhb.errors import DatasetError, RequestError

ANNOTATION = "annotation.csv"
_NEEDED = ("data_index", "image_path", "question", "answer")
_OPTIONAL = ("split", "doc_class", "question_type", "answer_bbox")
_LISTS = {"other_answers": "other_references", "choices": "choices"}
_SCHEMA = "json_schema"
COLUMNS = (*_NEEDED, *_OPTIONAL, *_LISTS, _SCHEMA)


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
        self._at = {column: columns[column] for column in COLUMNS if column in columns}
        self._further = {name: at for name, at in columns.items() if name and at not in self._at.values()}

    def __iter__(self) -> Iterator[Sample]:
        return samples_of(self._table, self._sample)

    def _sample(self, row: int, cells: list[str]) -> Sample:
        at = self._at
        index, image, question, answer = (cells[at[column]] for column in _NEEDED)
        problem = None if any(cells) else "every cell of this row is empty"
        images: tuple[str, ...] = ()
        fields: dict[str, Any] = {column: cells[at[column]] for column in _OPTIONAL if column in at}
        try:
            images = _images(image)
            for column, field in _LISTS.items():
                if column in at:
                    fields[field] = _list(column, cells[at[column]])
            if _SCHEMA in at:
                fields[_SCHEMA] = schema_of(self.root, cells[at[_SCHEMA]])
        except RequestError as error:
            problem = problem or str(error)
        return Sample(
            row=row,
            data_index=index,
            images=images,
            question=question,
            reference=answer,
            problem=problem,
            fields={name: cells[at] for name, at in self._further.items()},
            **fields,
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
