"""JSON lines: one object a line, ``{"id", "images": [...], "question", "answer" or "answers"}``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.embedded import embedded_file
from vlmhb.data.records import COLUMN_OPTIONS, Number, RecordReader
from vlmhb.errors import DatasetError

_SUFFIXES = (".jsonl", ".ndjson")
_IN_FOLDERS = ("annotation.jsonl", "metadata.jsonl")


class JsonLinesFormat(DatasetFormat):
    """A ``.jsonl`` file, or a folder with ``annotation.jsonl`` or ``metadata.jsonl``; image paths relative to it."""

    name = "jsonl"
    options = COLUMN_OPTIONS

    def recognises(self, path: Path) -> bool:
        """Whether the file is called so, or is there in the folder."""
        return _file(path) is not None

    def open(self, path: Path, name: str) -> Dataset:
        """Open it with the usual names of the values."""
        return self.open_with(path, name, {})

    def open_with(self, path: Path, name: str, options: Mapping[str, str]) -> Dataset:
        """Open it.

        Raises:
            DatasetError: the file cannot be read.
        """
        file = _file(path)
        assert file is not None
        try:
            with file.open("rb"):
                pass
        except OSError as error:
            raise DatasetError(f"{file} cannot be read: {error.strerror or error}") from error
        return _JsonLines(file, name, options)


class _JsonLines(Dataset):
    def __init__(self, file: Path, name: str, columns: Mapping[str, str]) -> None:
        self.name = name
        self.root = file.parent
        self._file = file
        self._reader = RecordReader(self.root, columns)

    def __iter__(self) -> Iterator[Sample]:
        row = 0
        with self._file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if not line.strip():
                    continue
                row += 1
                record, problem = _read(line)
                yield self._reader.sample(row, record, problem=problem and f"line {number}: {problem}")

    def image_file(self, written: str) -> Path | None:
        """The file of an image that stood in the line as a ``data:`` address."""
        return embedded_file(written)


def _read(line: bytes) -> tuple[dict[str, Any], str | None]:
    """The object of a line, numbers as the text that stands there; and why there is none."""
    try:
        value = json.loads(line.decode("utf-8"), parse_int=Number, parse_float=Number, parse_constant=str)
    except UnicodeDecodeError:
        return {}, "the text is not UTF-8"
    except (ValueError, RecursionError) as error:
        return {}, f"this is no JSON object: {error}"
    return (value, None) if isinstance(value, dict) else ({}, "this is no JSON object")


def _file(path: Path) -> Path | None:
    places = [path / name for name in _IN_FOLDERS] if path.is_dir() else [path]
    return next((place for place in places if place.suffix.casefold() in _SUFFIXES and place.is_file()), None)
