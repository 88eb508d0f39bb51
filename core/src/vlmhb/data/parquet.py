"""Parquet files, as data hubs keep datasets: typed columns, images as bytes or paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.embedded import embedded_file
from vlmhb.data.records import COLUMN_OPTIONS, NAMES, RecordReader, columns_of
from vlmhb.errors import DatasetError

if TYPE_CHECKING:
    import polars

_ROWS_AT_ONCE = 64
_BYTES = "Binary"
_SPLIT = re.compile(r"(.+?)-\d{5}-of-\d{5}")
SPLIT_OPTION = {"split": "the only split to read"}


class ParquetFormat(DatasetFormat):
    """A ``.parquet`` file, or a folder with such files in it or in its folder ``data``."""

    name = "parquet"
    options = COLUMN_OPTIONS | SPLIT_OPTION

    def recognises(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_files(path))

    def open(self, path: Path, name: str) -> Dataset:
        """Open it with all splits and the usual names of the columns."""
        return self.open_with(path, name, {})

    def open_with(self, path: Path, name: str, options: Mapping[str, str]) -> Dataset:
        """Read the columns' names.

        Raises:
            DatasetError: a file cannot be read, has no column for the answer, or there is no such split.
        """
        files = _files(path)
        wanted = options.get("split")
        if wanted is not None:
            splits = {split_of(file): file for file in files}
            files = [file for file in files if split_of(file) == wanted]
            if not files:
                raise DatasetError(
                    f"{path} has no split {wanted!r}; it has {', '.join(filter(None, splits)) or 'none'}."
                )
        for file in files:
            check_columns(file, _schema(file), columns_of(options))
        return _Parquet(path if path.is_dir() else path.parent, name, files, columns_of(options))


class _Parquet(Dataset):
    def __init__(self, root: Path, name: str, files: list[Path], columns: Mapping[str, str]) -> None:
        self.name = name
        self.root = root
        self._files = files
        self._columns = columns
        self._reader = RecordReader(root, columns)

    def __iter__(self) -> Iterator[Sample]:
        row = 0
        for file in self._files:
            split = split_of(file)
            for record in _records(file, self._used(file)):
                row += 1
                yield self._reader.sample(row, record, split=split)

    def _used(self, file: Path) -> list[str]:
        """The columns with the values of a sample, and those that a prompt template can name."""
        schema = _schema(file)
        used = used_columns(schema, self._columns)
        return [name for name, kind in schema.items() if name in used or not (kind.is_nested() or str(kind) == _BYTES)]

    def image_file(self, written: str) -> Path | None:
        """The file of an image that stood in its column as bytes."""
        return embedded_file(written)


def split_of(file: Path) -> str:
    """The split that a file's name states (``train-00000-of-00005.parquet``); empty when it states none."""
    match = _SPLIT.fullmatch(file.stem)
    return match[1] if match else ""


def used_columns(columns: Iterable[str], chosen: Mapping[str, str]) -> list[str]:
    """Those columns that may be read, so that the others never leave the disk."""
    names = {name for known in NAMES.values() for name in known} | set(chosen.values())
    return [column for column in columns if column in names]


def check_columns(place: Path, columns: Iterable[str], chosen: Mapping[str, str]) -> None:
    """Refuse columns among which there is none for the answer, or not the one that an option names.

    Raises:
        DatasetError: says which columns there are.
    """
    there = list(columns)
    absent = [f"{name}={column}" for name, column in chosen.items() if column not in there]
    if absent:
        raise DatasetError(f"{place}: there is no column for {', '.join(absent)}; it has {', '.join(there)}.")
    if "answer" not in chosen and not set(NAMES["answer"]) & set(there):
        raise DatasetError(
            f"{place}: there is no column answer or answers; it has {', '.join(there)}. "
            "Name it behind the path: ?answer=COLUMN"
        )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet"))
    return [path] if path.suffix.casefold() == ".parquet" and path.is_file() else []


def _schema(file: Path) -> dict[str, polars.DataType]:
    import polars as pl

    try:
        return dict(pl.read_parquet_schema(file))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DatasetError(f"{file} cannot be read as Parquet: {error}") from error


def _records(file: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    import polars as pl

    try:
        rows = pl.scan_parquet(file).select(columns)
        count = pl.scan_parquet(file).select(pl.len()).collect().item()
        for start in range(0, count, _ROWS_AT_ONCE):
            yield from rows.slice(start, _ROWS_AT_ONCE).collect().iter_rows(named=True)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DatasetError(f"{file} cannot be read as Parquet: {error}") from error
