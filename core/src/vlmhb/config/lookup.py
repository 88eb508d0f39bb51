"""Where the things that a config names are found: datasets, models, prompt collections, system prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from vlmhb.config.cells import CellError, parse_names
from vlmhb.config.job import Registry
from vlmhb.config.names import nearest
from vlmhb.contract.dataset import Dataset, DatasetFormat, NamedDataset, NamedModel
from vlmhb.data.hub_cache import cached_dataset
from vlmhb.data.options import check_options, split_options
from vlmhb.data.prompts import PromptCollection, read_prompts, read_system_prompt
from vlmhb.errors import DatasetError, MissingPackageError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MOST_LISTED = 1000
SYSTEM_PROMPT = "system prompt"
"""What a system prompt is called in tables that is no file."""


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
        if _HUB_ID.fullmatch(written):
            yield cached_dataset(written)

    def _dataset_names(self, task: str) -> list[str]:
        folders = [self.config, self.data / "Datasets", self.data / "Datasets" / task, self.data]
        names = list(self._named_datasets)
        for folder in dict.fromkeys(folders):
            names += [path.name for path in _folders_in(folder) if (path / "annotation.csv").is_file()]
        return list(dict.fromkeys(names))

    # --- prompts

    def prompts(self, written: str, task: str) -> dict[str, PromptCollection]:
        """Read a prompt collection, or several of a list, each by its name.

        Raises:
            CellError: there is no such file.
            ConfigError: a file has faults.
        """
        whole = _first_file(self._prompt_places("PromptCollections", written, task))
        files = [written] if whole else parse_names(written)
        if not files:
            raise CellError(f"{written!r} names no prompt collection.")
        return dict(zip(_stems(files), [self._collection(file, task) for file in files], strict=True))

    def _collection(self, written: str, task: str) -> PromptCollection:
        places = self._prompt_places("PromptCollections", written, task)
        path = _first_file(places)
        if path is None:
            raise CellError(f"there is no prompt collection {written!r}.", f"Looked for {_listed(places)}.")
        if path not in self._prompts:
            self._prompts[path] = read_prompts(path)
        return self._prompts[path]

    def system_prompts(self, written: str, task: str) -> dict[str, str]:
        """System prompts by their names: the text of a file, if there is one, else the cell itself.

        A cell in brackets whose every item is a file, or looks like the name of one (``.txt``), has several.

        Raises:
            CellError: what looks like a file's name is none.
            ConfigError: a file has faults.
        """
        if written.startswith("[") and written.endswith("]"):
            try:
                files = parse_names(written)
            except CellError:
                files = ()
            if files and all(self._is_system_prompt(file, task) for file in files):
                return dict(zip(_stems(files), [self._system_prompt(file, task) for file in files], strict=True))
        is_file = self._is_system_prompt(written, task)
        return {_stems([written])[0] if is_file else SYSTEM_PROMPT: self._system_prompt(written, task)}

    def _is_system_prompt(self, written: str, task: str) -> bool:
        if "\n" in written:
            return False
        places = self._prompt_places("SystemPrompts", written, task)
        return written.casefold().endswith(".txt") or _first_file(places) is not None

    def _system_prompt(self, written: str, task: str) -> str:
        if not self._is_system_prompt(written, task):
            return written
        places = self._prompt_places("SystemPrompts", written, task)
        path = _first_file(places)
        if path is None:
            raise CellError(f"there is no system prompt file {written!r}.", f"Looked for {_listed(places)}.")
        return read_system_prompt(path)

    def _prompt_places(self, folder: str, written: str, task: str) -> list[Path]:
        name = _slashes(written)
        return [self.data / folder / task / name, self.data / folder / name, self.config / name]

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


def _stems(files: Sequence[str]) -> list[str]:
    """What files are called in tables: without folder and extension, or as written where that is not unique."""
    stems = [Path(_slashes(file)).stem for file in files]
    return stems if len(set(stems)) == len(stems) else list(files)


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
