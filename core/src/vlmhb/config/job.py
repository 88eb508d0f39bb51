"""What planning takes and gives: overrides from the command line, the registry it asks, and the jobs of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.dataset import Dataset, DatasetFormat, NamedDataset, NamedModel
from vlmhb.contract.metric import Metric
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import SamplingParams
from vlmhb.data.prompts import PromptCollection
from vlmhb.metrics.normalise import DEFAULT_NORMALISERS

DEFAULT_METRICS = ("cer", "wer", "exact_match")
DEFAULT_NORMALIZE = DEFAULT_NORMALISERS


class Registry(Protocol):
    """What planning asks about installed plugins; :class:`vlmhb.discovery.registry.Registry` answers it."""

    def backend_names(self) -> list[str]:
        """All registered backends, broken ones included."""
        ...

    def backend_problem(self, name: str) -> str | None:
        """Why a registered backend cannot be used."""
        ...

    def backend_info(self, name: str) -> BackendInfo:
        """What a backend that has no problem says about itself."""
        ...

    def metrics(self) -> dict[str, Metric]:
        """Metrics by name."""
        ...

    def dataset_formats(self) -> list[DatasetFormat]:
        """Dataset formats, to be asked in this order."""
        ...

    def named_datasets(self) -> dict[str, NamedDataset]:
        """Datasets that plugins ship."""
        ...

    def named_models(self) -> dict[str, NamedModel]:
        """Models that plugins ship."""
        ...


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Values given on the command line; each goes before the same value in a file.

    Attributes:
        backend: engine of every row.
        data: folder that holds ``Datasets/``, ``PromptCollections/``, ``SystemPrompts/`` and ``Models/``; the config
            file's own folder when None.
        models: the ``vlm_base.csv`` to use; the one beside the config file when None.
        sampling: fields of ``SamplingParams``.
        model: fields of ``ModelSpec`` other than the path and the options.
        options: engine options.
    """

    backend: str | None = None
    data: Path | None = None
    models: Path | None = None
    sampling: dict[str, Any] = {}
    model: dict[str, Any] = {}
    options: dict[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One row of the config, checked and complete; of a row with several prompts one job for each.

    Attributes:
        config_row: number of the row in the config file, from 1.
        dataset_name: the dataset as the config calls it.
        dataset: the opened dataset; rows with the same dataset share one object.
        task: the task as written; it only names folders.
        backend: the backend's registered name.
        model_name: the model as the config calls it.
        model_family: from ``vlm_base.csv`` or the plugin that ships the model; may be empty.
        spec: what to load. Rows with equal backend and spec use one loaded model.
        sampling: how answers are generated.
        system_prompt: its text, or None for the chat template's own.
        prompts: the prompt collection, or None.
        prompts_name: what both kinds of prompts are called in the tables; empty without any.
        metrics: names of the registry's metrics, in the order written.
        aggregators: names of the tables to make.
        normalize: names of the text normalisers, in the order in which they are applied.
        only_evaluate: score stored answers, generate nothing; the model and its engine need not be there.
        filter_doc_class, filter_question_type: values of the rows to take; empty takes all.
    """

    config_row: int
    dataset_name: str
    dataset: Dataset
    task: str
    backend: str
    model_name: str
    model_family: str
    spec: ModelSpec
    sampling: SamplingParams
    system_prompt: str | None
    prompts: PromptCollection | None
    prompts_name: str
    metrics: tuple[str, ...]
    aggregators: tuple[str, ...]
    normalize: tuple[str, ...]
    only_evaluate: bool
    filter_doc_class: tuple[str, ...]
    filter_question_type: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The jobs of a config file in file order, and what was noticed while reading it, one sentence each."""

    jobs: list[Job]
    notes: list[str] = field(default_factory=list)
