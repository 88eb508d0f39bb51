"""The VLMHyperBench dataset folder: ``annotation.csv`` beside ``images/``.

Columns: ``data_index`` (the document, not the row), ``image_path`` (relative to the folder; a bracket list of several),
``question`` (or ``prompt``), ``answer``; optional ``split``, ``doc_class``, ``question_type``, ``answer_bbox``.
Other columns mean nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.lists import parse_list
from vlmhb.data.tables import Table, TableError
from vlmhb.errors import DatasetError, Fault

ANNOTATION = "annotation.csv"
_NEEDED = ("data_index", "image_path", "question", "answer")
_OPTIONAL = ("split", "doc_class", "question_type", "answer_bbox")


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
            raise DatasetError(
                f"{table.path}: the dataset lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}; "
                f"its header has {', '.join(filter(None, table.header))}."
            )
        self._at = {column: columns[column] for column in (*_NEEDED, *_OPTIONAL) if column in columns}

    def __iter__(self) -> Iterator[Sample]:
        at = self._at
        index, image, question, answer = (at[column] for column in _NEEDED)
        extras = [(column, at[column]) for column in _OPTIONAL if column in at]
        malformed: list[Fault] = []
        try:
            for row, _, cells in self._table.records(malformed):
                yield from _drain(malformed)
                yield Sample(
                    row=row,
                    data_index=cells[index],
                    images=_images(cells[image]),
                    question=cells[question],
                    reference=cells[answer],
                    problem=None if any(cells) else "every cell of this row is empty",
                    **{column: cells[place] for column, place in extras},
                )
            yield from _drain(malformed)
        except TableError as error:
            raise DatasetError(str(error)) from error


def _drain(malformed: list[Fault]) -> Iterator[Sample]:
    """Rows that cannot be asked, for the records that were malformed."""
    for fault in malformed:
        assert fault.row is not None
        yield Sample(row=fault.row, data_index="", images=(), question="", reference="", problem=str(fault))
    malformed.clear()


def _images(cell: str) -> tuple[str, ...]:
    """The paths in an ``image_path`` cell. A list that cannot be read stays as it is: one path that is not there."""
    if not cell.strip():
        return ()
    if cell.lstrip().startswith("[") and cell.rstrip().endswith("]"):
        try:
            return parse_list(cell)
        except ValueError:
            return (cell,)
    return (cell,)


def _annotation(path: Path) -> Path:
    return path if path.name == ANNOTATION and not path.is_dir() else path / ANNOTATION
