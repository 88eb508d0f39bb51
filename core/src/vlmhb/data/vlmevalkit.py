"""VLMEvalKit TSV: ``index``, ``image`` (base64) or ``image_path``, ``question``, ``answer``, options ``A`` to ``Z``.

Prompts for questions with options are put together as VLMEvalKit puts them: hint, question, options, instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.embedded import embedded_file, from_base64, keep_image
from vlmhb.data.lists import parse_list
from vlmhb.data.samples import samples_of
from vlmhb.data.tables import Table, TableError
from vlmhb.errors import DatasetError, ImageError

_LONGEST_INDEX = 64
_USED = ("index", "image", "question", "answer", "doc_class", "question_type", "split")
_INSTRUCTION = "Please select the correct answer from the options above."


class VlmEvalKitFormat(DatasetFormat):
    """A ``.tsv`` file whose header has ``question``, and ``image`` or ``image_path``."""

    name = "vlmevalkit"

    def recognises(self, path: Path) -> bool:
        """Whether it is a ``.tsv`` file."""
        return path.suffix.casefold() == ".tsv" and path.is_file()

    def open(self, path: Path, name: str) -> Dataset:
        """Read the header.

        Raises:
            DatasetError: it cannot be read, or a needed column is missing.
        """
        try:
            table = Table(path)
        except TableError as error:
            raise DatasetError(str(error)) from error
        missing = [column for column in ("question", "answer") if column not in table.columns]
        missing += [] if {"image", "image_path"} & table.columns.keys() else ["image"]
        if missing:
            if fault := table.one_cell(_USED):
                raise DatasetError(str(fault))
            has = ", ".join(filter(None, table.header))
            raise DatasetError(f"{path}: the dataset lacks the column {', '.join(missing)}; its header has {has}.")
        return _Tsv(table, name)


class _Tsv(Dataset):
    def __init__(self, table: Table, name: str) -> None:
        self.name = name
        self.root = table.path.parent
        self._table = table
        names = [letter.casefold() for letter in ascii_uppercase]
        self._options = [table.columns[name] for name in names if name in table.columns]
        used = {*_USED, *names}
        self._further = {name: at for name, at in table.columns.items() if name and name not in used}

    def __iter__(self) -> Iterator[Sample]:
        return samples_of(self._table, self._sample)

    def image_file(self, written: str) -> Path | None:
        """The file of an image that stood in its cell as base64."""
        return embedded_file(written)

    def _sample(self, row: int, cells: list[str]) -> Sample:
        problem = None
        images: tuple[str, ...] = ()
        try:
            images = self._images(cells)
        except ImageError as error:
            problem = str(error)
        choices = [cells[at].strip() for at in self._options]
        while choices and not choices[-1]:
            choices.pop()
        return Sample(
            row=row,
            data_index=self._cell(cells, "index") or str(row),
            images=images,
            question=_prompt(self._cell(cells, "hint"), self._cell(cells, "question"), choices),
            reference=self._cell(cells, "answer"),
            choices=tuple(choices),
            problem=problem,
            doc_class=self._cell(cells, "doc_class"),
            question_type=self._cell(cells, "question_type") or self._cell(cells, "category"),
            split=self._cell(cells, "split"),
            fields={name: cells[at] for name, at in self._further.items()},
        )

    def _cell(self, cells: list[str], column: str) -> str:
        at = self._table.columns.get(column)
        return "" if at is None else cells[at]

    def _images(self, cells: list[str]) -> tuple[str, ...]:
        written = self._cell(cells, "image").strip()
        if not written:
            return _list(self._cell(cells, "image_path"))
        if len(written) <= _LONGEST_INDEX and not written.startswith("["):
            if written not in self._shared:
                raise ImageError(f"the image is that of index {written!r}, and no row has that index and an image")
            return self._shared[written]
        return tuple(keep_image(from_base64(item)) for item in _list(written))

    @cached_property
    def _shared(self) -> dict[str, tuple[str, ...]]:
        """The images of those rows that other rows refer to by their index, instead of repeating the image."""
        at = self._table.columns["image"]
        written = (record.cells[at] for record in self._table.records([]))
        wanted = {cell.strip() for cell in written if len(cell) <= _LONGEST_INDEX}
        found: dict[str, tuple[str, ...]] = {}
        for record in self._table.records([]):
            cells = record.cells
            index = self._cell(cells, "index").strip()
            if index in wanted and len(cells[at].strip()) > _LONGEST_INDEX:
                found[index] = self._images(cells)
        return found


def _prompt(hint: str, question: str, choices: list[str]) -> str:
    if not choices:
        return question
    lines = [f"Hint: {hint.strip()}"] if hint.strip() else []
    lines += [f"Question: {question}", "Options:"]
    lines += [f"{letter}. {text}" for letter, text in zip(ascii_uppercase, choices, strict=False)]
    return "\n".join([*lines, _INSTRUCTION])


def _list(cell: str) -> tuple[str, ...]:
    text = cell.strip()
    if not text.startswith("["):
        return (text,) if text else ()
    try:
        return parse_list(text)
    except ValueError as error:
        raise ImageError(str(error)[:200]) from error
