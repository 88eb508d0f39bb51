"""From a config file to the jobs of a run, or to everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from vlmhb.config import columns
from vlmhb.config.cells import CellError, parse_bool
from vlmhb.config.choices import Choices, aggregator_choices, metric_choices, normalizer_choices
from vlmhb.config.engines import Engines
from vlmhb.config.filters import Groups, check_tables, filters_of
from vlmhb.config.job import DEFAULT_METRICS, DEFAULT_NORMALIZE, Job, Overrides, Plan, Registry
from vlmhb.config.lookup import Places
from vlmhb.config.models import Models, check_model_overrides
from vlmhb.config.sampling import checked_overrides, sampling_of
from vlmhb.config.sheet import Row, Setting, read_sheet
from vlmhb.config.vlm_base import VlmBase, read_vlm_base, written_backend
from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.dataset import Dataset
from vlmhb.data.prompts import PromptCollection
from vlmhb.errors import ConfigError, DatasetError, Fault

T = TypeVar("T")


def read_plan_config(path: Path, registry: Registry, overrides: Overrides | None = None) -> Plan:
    """Read a ``user_config.csv`` and everything that it names, without loading a model.

    Args:
        path: the config file. What it names is looked up from its folder and from ``overrides.data``.
        registry: knows the installed plugins.
        overrides: values of the command line; they go before those of the files.

    Raises:
        ConfigError: all faults at once, in the order of the rows; each with file, row, line, column, value and what
            to do. Nothing is returned then.
    """
    faults: list[Fault] = []
    notes: list[str] = []
    rows = read_sheet(path, columns.USER_CONFIG_COLUMNS, faults, notes)
    planner = _Planner(path.parent, registry, overrides or Overrides(), faults, notes)
    jobs = [job for row in rows for job in planner.jobs(row)]
    if faults:
        raise ConfigError(_in_order(faults, str(path)))
    return Plan(jobs, list(dict.fromkeys(notes)))


class _Planner:
    """Turns rows into jobs; what is wrong is added to ``faults``, and the row then gives no job."""

    def __init__(
        self, folder: Path, registry: Registry, overrides: Overrides, faults: list[Fault], notes: list[str]
    ) -> None:
        self._faults = faults
        self._notes = notes
        self._metrics = metric_choices(registry)
        self._aggregators = aggregator_choices()
        self._normalizers = normalizer_choices()
        self._backend_override = overrides.backend
        self._sampling_overrides = checked_overrides(overrides.sampling, faults)
        check_model_overrides(overrides, faults)
        if overrides.data and not overrides.data.is_dir():
            faults.append(Fault(message=f"there is no data folder {overrides.data}.", file="command line"))
        self._engines = Engines(registry)
        self._places = Places(folder, overrides.data or folder, registry)
        base_path = overrides.models or folder / columns.VLM_BASE
        base = VlmBase(folder)
        if overrides.models or base_path.exists():
            base = read_vlm_base(base_path, self._engines.known, faults, notes)
        self._models = Models(base, str(base_path), self._places, overrides)
        self._groups = Groups()

    def jobs(self, row: Row) -> list[Job]:
        """The jobs of a row: one, or one for each of its prompts; none when something is wrong with it."""
        faults = self._faults
        before = len(faults)
        faults.extend(
            row.fault(column, "this cell must not be empty.")
            for column in columns.USER_CONFIG_COLUMNS.needed
            if column in row.cells and not row.text(column)
        )
        task = row.text("task")
        dataset = self._try(row, "dataset", lambda text: self._places.dataset(text, task))
        only_evaluate = row.parse("only_evaluate_metrics", parse_bool, faults) or False
        backend, info = self._backend(row, only_evaluate)
        model_faults: list[Fault] = []
        found = None
        if backend and row.text("model_name"):
            found = self._models.find(row, backend, info, model_faults, self._notes)
        if not only_evaluate:
            faults.extend(model_faults)
        model_path = found.path if found else row.text("model_name")
        spec = self._models.spec(row, backend or "", info, model_path, faults)
        sampling = sampling_of(row, self._sampling_overrides, found.path if found else None, faults, self._notes)
        variants = self._prompts(row, dataset, task)
        metrics = self._chosen(row, "metrics", self._metrics) or self._default_metrics()
        aggregators = self._chosen(row, "metrics_aggregators", self._aggregators) or self._aggregators.shown
        normalize = self._chosen(row, "normalize", self._normalizers) or DEFAULT_NORMALIZE
        if dataset:
            check_tables(row, dataset, aggregators, faults)
        classes, types = filters_of(row, dataset, self._groups, faults) if dataset else ((), ())
        if len(faults) > before or dataset is None or backend is None:
            return []
        job = Job(
            config_row=row.number,
            dataset_name=row.text("dataset"),
            dataset=dataset,
            task=task,
            backend=backend,
            model_name=row.text("model_name"),
            model_family=found.family if found else "",
            spec=spec,
            sampling=sampling,
            system_prompt=None,
            prompts=None,
            prompts_name="",
            metrics=metrics,
            aggregators=aggregators,
            normalize=normalize,
            only_evaluate=only_evaluate,
            filter_doc_class=classes,
            filter_question_type=types,
        )
        return [replace(job, **variant) for variant in variants]

    def _prompts(self, row: Row, dataset: Dataset | None, task: str) -> list[dict[str, Any]]:
        """The fields of a job that say what it asks with: each prompt collection with each system prompt."""
        collections = self._try(row, "prompt_collection", lambda text: self._places.prompts(text, task))
        systems = self._try(row, "system_prompt", lambda text: self._places.system_prompts(text, task))
        try:
            for collection in (collections or {}).values():
                self._faults.extend(collection.unknown_values(dataset) if dataset else ())
        except DatasetError as error:
            self._faults.append(row.fault("dataset", str(error)))
        asked: Mapping[str, PromptCollection | None] = collections or {"": None}
        said: Mapping[str, str | None] = systems or {"": None}
        return [
            {
                "prompts": collection,
                "system_prompt": system,
                "prompts_name": " + ".join(filter(None, (name, system_name))),
            }
            for name, collection in asked.items()
            for system_name, system in said.items()
        ]

    def _backend(self, row: Row, only_evaluate: bool) -> tuple[str | None, BackendInfo | None]:
        """The backend of a row and what it says about itself; a row that generates nothing needs no usable one."""
        column, written = written_backend(row, self._engines.known, self._faults)
        setting = Setting(written, row, column)
        if self._backend_override:
            setting = Setting(self._engines.canonical(self._backend_override), None, column)
        name = setting.value
        try:
            name = name or self._unnamed_backend(row)
            return name, self._engines.info(name)
        except CellError as error:
            known = name in self._engines.known
            if not (known and only_evaluate):
                self._faults.append(setting.fault(str(error), error.hint))
            return (name if known else None), None

    def _unnamed_backend(self, row: Row) -> str:
        name = row.text("model_name")
        backends = self._models.base.backends_of(name)
        if len(backends) > 1:
            message = f"no backend is named, and {columns.VLM_BASE} has {name} for several."
            raise CellError(message, f"Write one of {', '.join(backends)}.")
        return backends[0] if backends else self._engines.only_one()

    def _try(self, row: Row, column: str, find: Callable[[str], T]) -> T | None:
        """What a cell names; None when the cell is empty or names nothing."""
        try:
            return row.parse(column, find, self._faults)
        except ConfigError as error:
            self._faults.extend(error.faults)
            return None

    def _chosen(self, row: Row, column: str, choices: Choices) -> tuple[str, ...]:
        """The names in a list cell; those that are not known are faults."""
        chosen, errors = row.parse(column, choices.read, self._faults) or ((), ())
        self._faults.extend(row.fault(column, str(error), error.hint) for error in errors)
        return chosen

    def _default_metrics(self) -> tuple[str, ...]:
        return tuple(name for name in DEFAULT_METRICS if name in self._metrics.names.values())


def _in_order(faults: Iterable[Fault], config: str) -> list[Fault]:
    """Each fault once; those of the config first, then those of one file together, by row."""
    unique = list(dict.fromkeys(faults))
    files = {file: place for place, file in enumerate(dict.fromkeys([config, *(fault.file for fault in unique)]))}
    return sorted(unique, key=lambda fault: (files[fault.file], fault.row or 0))
