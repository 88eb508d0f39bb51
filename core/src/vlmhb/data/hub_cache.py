"""Datasets that have been downloaded from the Hugging Face hub, read where its libraries keep them; nothing is fetched.

The cache holds ``datasets--<organisation>--<name>`` with ``refs/<branch or tag>`` (a commit each) and
``snapshots/<commit>``, whose files are links into ``blobs``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from vlmhb.contract.dataset import Dataset, DatasetFormat, Sample
from vlmhb.data.jsonl import JsonLinesFormat
from vlmhb.data.parquet import ParquetFormat
from vlmhb.errors import DatasetError

DEFAULT_REVISION = "main"
_PREFIX = "datasets--"


def cached_dataset(hub_id: str) -> Path:
    """Where the hub's libraries keep a dataset on this machine; it need not be there."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    hub = Path(os.environ.get("HF_HOME") or home) / "hub"
    folder = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or hub
    return Path(folder).expanduser() / f"{_PREFIX}{hub_id.replace('/', '--')}"


def is_cached_dataset(path: Path) -> bool:
    """Whether a folder is that of a downloaded dataset."""
    return path.name.startswith(_PREFIX) and (path / "snapshots").is_dir()


def open_cached(path: Path, name: str, options: Mapping[str, str]) -> Dataset:
    """Open a revision of a downloaded dataset: its Parquet files, or its JSON lines.

    Args:
        path: its folder in the cache.
        name: what the user called it.
        options: ``revision`` (a branch, a tag, or the beginning of a commit), and those of the files' format.

    Raises:
        DatasetError: the revision is not there, or none of its files can be read.
    """
    snapshot = _snapshot(path, options.get("revision", DEFAULT_REVISION))
    rest = {option: value for option, value in options.items() if option != "revision"}
    formats: tuple[DatasetFormat, ...] = (ParquetFormat(), JsonLinesFormat())
    for format in formats:
        if format.recognises(snapshot):
            unknown = next((option for option in rest if option not in format.options), None)
            if unknown:
                raise DatasetError(f"{snapshot} is a dataset of the format {format.name}, which has no {unknown}.")
            return _Cached(path, format.open_with(snapshot, name, rest))
    raise DatasetError(f"{snapshot} holds no Parquet files, and neither annotation.jsonl nor metadata.jsonl.")


def _snapshot(path: Path, revision: str) -> Path:
    ref = path / "refs" / revision
    commit = ref.read_text(encoding="utf-8").strip() if ref.is_file() else revision
    found = [folder for folder in sorted((path / "snapshots").iterdir()) if folder.name.startswith(commit)]
    if len(found) != 1:
        refs = (file.relative_to(path / "refs").as_posix() for file in (path / "refs").rglob("*") if file.is_file())
        there = [*sorted(refs), *(folder.name for folder in sorted((path / "snapshots").iterdir()))]
        raise DatasetError(
            f"{path.name} has no revision {revision!r} on this machine; it has {', '.join(there) or 'none'}. "
            "Download it with the hub's own tools; vlmhb fetches nothing."
        )
    return found[0]


class _Cached(Dataset):
    """A snapshot, whose files may lead into the blobs beside it."""

    def __init__(self, path: Path, inner: Dataset) -> None:
        self.name = inner.name
        self.root = inner.root
        self._path = path.resolve()
        self._inner = inner

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._inner)

    def image_file(self, written: str) -> Path | None:
        """An embedded image's file, or a linked one that stays inside the dataset's folder of the cache."""
        found = self._inner.image_file(written)
        if found is not None:
            return found
        try:
            linked = (self.root / written).resolve()
        except (OSError, ValueError):
            return None
        inside = ".." not in Path(written).parts and linked.is_relative_to(self._path)
        return linked if inside and linked.is_file() else None
