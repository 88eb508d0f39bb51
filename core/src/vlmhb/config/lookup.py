"""Where the things that a config names are found: datasets, models, prompt collections, system prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from vlmhb.config.cells import CellError
from vlmhb.config.job import Registry
from vlmhb.config.names import nearest
from vlmhb.contract.dataset import Dataset, DatasetFormat, NamedDataset, NamedModel
from vlmhb.data.options import check_options, split_options
from vlmhb.data.prompts import PromptCollection, read_prompts, read_system_prompt
from vlmhb.errors import DatasetError, MissingPackageError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MOST_LISTED = 1000


class FoundModel(NamedTuple):
    """Where a model is: a folder, a hub id, or for engines without model files just its name."""

    path: str
    family: str = ""


class Places:
    """The folders that names of a config are looked up in.

    Args:
        config: the config file's folder.
        data: the data folder, with ``Datasets/``, ``PromptCollections/``, ``SystemPrompts/`` and ``Models/``.
        registry: knows the datasets and models that plugins ship.
    """

    def __init__(self, config: Path, data: Path, registry: Registry) -> None:
        self.config = config.absolute()
        self.data = data.absolute()
        self._registry = registry
        self._datasets: dict[tuple[str, str], Dataset] = {}
        self._prompts: dict[Path, PromptCollection] = {}

    @cached_property
    def _named_datasets(self) -> dict[str, NamedDataset]:
        return self._registry.named_datasets()

    @cached_property
    def _named_models(self) -> dict[str, NamedModel]:
        return self._registry.named_models()

    @cached_property
    def _formats(self) -> list[DatasetFormat]:
        return self._registry.dataset_formats()

    # --- datasets

    def dataset(self, written: str, task: str) -> Dataset:
        """Open a dataset: one that a plugin ships, or a folder or file.

        Raises:
            CellError: there is none, no installed format recognises it, or it cannot be opened.
        """
        key = (written, task)
        if key not in self._datasets:
            self._datasets[key] = self._open_dataset(written, task)
        return self._datasets[key]

    def _open_dataset(self, written: str, task: str) -> Dataset:
        there = self._dataset_paths(written, task)
        options: dict[str, str] = {}
        path_text = written
        if not there:
            try:
                path_text, options = split_options(written)
            except DatasetError as error:
                raise CellError(str(error)) from error
            there = self._dataset_paths(path_text, task)
        for path in there:
            for format in self._formats:
                if format.recognises(path):
                    try:
                        check_options(format.name, format.options, options)
                        return format.open_with(path, written, options) if options else format.open(path, written)
                    except (DatasetError, MissingPackageError) as error:
                        raise CellError(str(error)) from error
        if there:
            formats = ", ".join(format.name for format in self._formats)
            message = f"{there[0]} is no dataset of an installed format ({formats})."
            raise CellError(message, "A dataset folder holds annotation.csv, or pages with their answers beside them.")
        places = list(self._dataset_places(_slashes(path_text), task))
        near = nearest(path_text, self._dataset_names(task))
        looked = f"Looked for {_listed(places)}."
        raise CellError(f"there is no dataset {written!r}.", f"Did you mean {near}? {looked}" if near else looked)

    def _dataset_paths(self, written: str, task: str) -> list[Path]:
        """What there is under a name: a plugin's dataset, or files and folders."""
        named = self._named_datasets.get(written)
        places = [Path(named.path)] if named else self._dataset_places(_slashes(written), task)
        return [path for path in places if _exists(path)]

    def _dataset_places(self, written: str, task: str) -> Iterator[Path]:
        datasets = self.data / "Datasets"
        yield self.config / written
        if task:
            yield datasets / task / written
        yield datasets / written
        if self.data != self.config:
            yield self.data / written

    def _dataset_names(self, task: str) -> list[str]:
        folders = [self.config, self.data / "Datasets", self.data / "Datasets" / task, self.data]
        names = list(self._named_datasets)
        for folder in dict.fromkeys(folders):
            names += [path.name for path in _folders_in(folder) if (path / "annotation.csv").is_file()]
        return list(dict.fromkeys(names))

    # --- prompts

    def prompts(self, written: str, task: str) -> PromptCollection:
        """Read a prompt collection.

        Raises:
            CellError: there is no such file.
            ConfigError: the file has faults.
        """
        collections = self.data / "PromptCollections"
        name = _slashes(written)
        places = [collections / task / name, collections / name, self.config / name]
        path = _first_file(places)
        if path is None:
            raise CellError(f"there is no prompt collection {written!r}.", f"Looked for {_listed(places)}.")
        if path not in self._prompts:
            self._prompts[path] = read_prompts(path)
        return self._prompts[path]

    def system_prompt(self, written: str, task: str) -> str:
        """The text of a system prompt: that of a file, if there is one, else the cell itself.

        Raises:
            CellError: the cell looks like a file's name (``.txt``), and there is no such file.
            ConfigError: the file has faults.
        """
        folder = self.data / "SystemPrompts"
        name = _slashes(written)
        places = [folder / task / name, folder / name, self.config / name]
        path = _first_file(places) if "\n" not in written else None
        if path is not None:
            return read_system_prompt(path)
        if written.casefold().endswith(".txt") and "\n" not in written:
            raise CellError(f"there is no system prompt file {written!r}.", f"Looked for {_listed(places)}.")
        return written

    # --- models

    def model(self, name: str) -> FoundModel | None:
        """Find a model that ``vlm_base.csv`` gives no path for, or None.

        A model that a plugin ships goes first, then a folder: relative to the config file, or under ``Models`` of the
        data folder; then the name as a hub id.
        """
        named = self._named_models.get(name)
        if named:
            return FoundModel(named.path, named.family)
        written = _slashes(name)
        places = [self.config / written, *(self.data / folder / written for folder in ("Models", "models"))]
        path = next((place for place in places if _exists(place)), None)
        if path is not None:
            return FoundModel(str(path.resolve()))
        return FoundModel(name) if is_hub_id(name, self.config) else None

    def model_names(self) -> list[str]:
        """Names of the models that can be found without ``vlm_base.csv``, for suggestions."""
        folders = [self.data / "Models", self.data / "models"]
        return [*self._named_models, *(path.name for folder in folders for path in _folders_in(folder))]


def model_at(written: str, folder: Path) -> FoundModel:
    """Find the model of a ``model_path`` cell.

    Args:
        written: a folder, absolute or relative, or a hub id.
        folder: what a relative path is relative to.

    Raises:
        CellError: it is neither.
    """
    path = folder / _slashes(written)
    if _exists(path):
        return FoundModel(str(path.resolve()))
    if is_hub_id(written, folder):
        return FoundModel(written)
    raise CellError(f"there is no model folder {path}.", "Write a folder or a hub id (organisation/name).")


def is_hub_id(text: str, folder: Path) -> bool:
    """Whether a text is a hub id: organisation/name, and the first part is no folder at hand."""
    return _HUB_ID.fullmatch(text) is not None and not _exists(folder / text.split("/")[0])


def _slashes(written: str) -> str:
    return written.replace("\\", "/")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a NUL, is no name of a file
        return False


def _first_file(places: Iterable[Path]) -> Path | None:
    return next((path for path in places if _exists(path) and path.is_file()), None)


def _folders_in(folder: Path) -> list[Path]:
    if not _exists(folder) or not folder.is_dir():
        return []
    return sorted(path for path, _ in zip(folder.iterdir(), range(_MOST_LISTED), strict=False) if path.is_dir())


def _listed(places: Iterable[Path]) -> str:
    return ", ".join(dict.fromkeys(str(place) for place in places))
