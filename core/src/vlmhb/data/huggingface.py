"""Datasets of Hugging Face: saved to disk by the library ``datasets``, or downloaded from the hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.embedded import embedded_file
from vlmhb.data.hub_cache import is_cached_dataset, open_cached
from vlmhb.data.parquet import SPLIT_OPTION, check_columns, used_columns
from vlmhb.data.records import COLUMN_OPTIONS, RecordReader, columns_of
from vlmhb.errors import DatasetError, MissingPackageError

_ROWS_AT_ONCE = 64


class HuggingFaceFormat(DatasetFormat):
    """A folder that ``save_to_disk`` has written (``state.json``, or ``dataset_dict.json`` and a folder a split), or a
    dataset in the hub's cache (:mod:`vlmhb.data.hub_cache`)."""

    name = "huggingface"
    options = COLUMN_OPTIONS | SPLIT_OPTION | {"revision": "branch, tag or commit of a dataset downloaded from the hub"}

    def recognises(self, path: Path) -> bool:
        """Whether one of those files is there, or it is a folder of the cache."""
        return (
            is_cached_dataset(path)
            or (path / "dataset_dict.json").is_file()
            or ((path / "state.json").is_file() and (path / "dataset_info.json").is_file())
        )

    def open(self, path: Path, name: str) -> Dataset:
        """Open it with all splits and the usual names of the columns."""
        return self.open_with(path, name, {})

    def open_with(self, path: Path, name: str, options: Mapping[str, str]) -> Dataset:
        """Read what there is, without the rows.

        Raises:
            DatasetError: it cannot be read, has no column for the answer, or there is no such split.
            MissingPackageError: the library ``datasets`` is not installed.
        """
        if is_cached_dataset(path):
            return open_cached(path, name, options)
        if "revision" in options:
            raise DatasetError(f"{path} was saved to disk and has no revisions; those of the hub's cache have.")
        splits = _load(path)
        wanted = options.get("split")
        if wanted is not None:
            if wanted not in splits:
                raise DatasetError(
                    f"{path} has no split {wanted!r}; it has {', '.join(filter(None, splits)) or 'none'}."
                )
            splits = {wanted: splits[wanted]}
        for table in splits.values():
            check_columns(path, table.column_names, columns_of(options))
        return _Saved(path, name, splits, columns_of(options))


class _Saved(Dataset):
    def __init__(self, root: Path, name: str, splits: Mapping[str, Any], columns: Mapping[str, str]) -> None:
        self.name = name
        self.root = root
        self._splits = splits
        self._columns = columns
        self._reader = RecordReader(root, columns)

    def __iter__(self) -> Iterator[Sample]:
        row = 0
        for split, table in self._splits.items():
            used = table.select_columns(self._used(table)).with_format("arrow")
            for batch in used.iter(batch_size=_ROWS_AT_ONCE):
                for record in batch.to_pylist():
                    row += 1
                    yield self._reader.sample(row, record, split=split)

    def _used(self, table: Any) -> list[str]:
        """The columns with the values of a sample, and those that a prompt template can name."""
        used = set(used_columns(table.column_names, self._columns))
        kinds = {name: getattr(kind, "dtype", "binary") for name, kind in table.features.items()}
        return [name for name, kind in kinds.items() if name in used or "binary" not in kind]

    def image_file(self, written: str) -> Path | None:
        """The file of an image that stood in its column as bytes."""
        return embedded_file(written)


def _load(path: Path) -> dict[str, Any]:
    """Every split by its name; one without a name where there are none."""
    try:
        import datasets
    except ImportError as error:
        message = f"{path} is read by the library datasets: pip install 'vlmhb[datasets]'"
        raise MissingPackageError(message) from error
    try:
        found = datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{path} cannot be read by the library datasets: {error}") from error
    return dict(found) if isinstance(found, dict) else {"": found}
