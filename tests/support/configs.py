"""A folder with config files and a registry of known content, to plan in."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vlmhb.config.job import Overrides, Plan
from vlmhb.config.plan import read_plan_config
from vlmhb.contract.backend import BackendInfo, EngineOption
from vlmhb.contract.dataset import DatasetFormat, NamedDataset, NamedModel
from vlmhb.contract.metric import Metric
from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat
from vlmhb.errors import ConfigError, Fault
from vlmhb.metrics.builtin import vlmhb_metrics

HEADER = "data_index;split;image_path;question;answer;doc_class;question_type;answer_bbox"
OPTIONS = (
    EngineOption(name="batch_size", type="int", default=8, minimum=1),
    EngineOption(name="attn_implementation", type="str", default="sdpa", choices=("sdpa", "eager")),
    EngineOption(name="compile", type="bool", default=False),
    EngineOption(name="extra", type="json"),
    EngineOption(name="share", type="float", minimum=0, maximum=1),
)


def backend(
    name: str, problem: str | None = None, needs_model_files: bool = True, devices: tuple[str, ...] = ("cpu",)
) -> BackendInfo:
    """A backend's record as a plugin would give it."""
    return BackendInfo(
        name=name,
        engine=f"engine-of-{name}",
        engine_version="1.0",
        devices=devices,
        options=OPTIONS,
        needs_model_files=needs_model_files,
        problem=problem,
    )


@dataclass
class FixedRegistry:
    """A registry of what a test says is installed; metrics and formats are the core's own."""

    backends: dict[str, BackendInfo] = field(default_factory=lambda: {"hf": backend("hf")})
    datasets: dict[str, NamedDataset] = field(default_factory=dict)
    models: dict[str, NamedModel] = field(default_factory=dict)

    def backend_names(self) -> list[str]:
        return list(self.backends)

    def backend_problem(self, name: str) -> str | None:
        return self.backends[name].problem

    def backend_info(self, name: str) -> BackendInfo:
        return self.backends[name]

    def metrics(self) -> dict[str, Metric]:
        return {metric.name: metric for metric in vlmhb_metrics()}

    def dataset_formats(self) -> list[DatasetFormat]:
        return [VlmHyperBenchFormat()]

    def named_datasets(self) -> dict[str, NamedDataset]:
        return self.datasets

    def named_models(self) -> dict[str, NamedModel]:
        return self.models


class Bench:
    """A folder with the dataset ``cards`` (3 rows) and the model folder ``tiny``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.registry = FixedRegistry()
        rows = ["1;test;images/a.png;Name?;Иванов;card;name;", "1;test;images/a.png;Number?;007;card;number;"]
        self.dataset("cards", *rows, "2;test;images/b.png;Sum?;1,50;bill;sum total;")
        self.model("tiny")

    def write(self, name: str, text: str) -> Path:
        """Write a text file under the folder."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def dataset(self, name: str, *rows: str, header: str = HEADER) -> Path:
        """Write a dataset folder."""
        return self.write(f"{name}/annotation.csv", "\n".join([header, *rows]) + "\n").parent

    def model(self, name: str) -> Path:
        """Make a model folder."""
        return self.write(f"{name}/config.json", "{}").parent

    def plan(self, config: str, base: str | None = None, **overrides: object) -> Plan:
        """Plan a config text."""
        path = self.write("user_config.csv", config)
        if base is not None:
            self.write("vlm_base.csv", base)
        return read_plan_config(path, self.registry, Overrides(**overrides))  # type: ignore[arg-type]

    def row(self, **cells: object) -> str:
        """A config of one row; dataset ``cards`` and model ``tiny`` unless a cell says otherwise."""
        return self.rows({key: str(value) for key, value in cells.items()})

    def rows(self, *rows: dict[str, str]) -> str:
        """A config of several rows with the same columns."""
        full = [{"dataset": "cards", "model_name": "tiny", **row} for row in rows]
        quote: Callable[[str], str] = lambda text: '"' + text.replace('"', '""') + '"'  # noqa: E731
        lines = [";".join(full[0]), *(";".join(quote(row[key]) for key in full[0]) for row in full)]
        return "\n".join(lines) + "\n"

    def faults(self, config: str, base: str | None = None, **overrides: object) -> list[Fault]:
        """The faults for which a config is refused."""
        try:
            self.plan(config, base, **overrides)
        except ConfigError as error:
            for fault in error.faults:
                assert fault.file == "command line" or (fault.file and os.path.exists(fault.file)), fault  # noqa: PTH110
            return list(error.faults)
        raise AssertionError("the config was accepted")

    def fault(self, config: str, base: str | None = None, **overrides: object) -> Fault:
        """The only fault for which a config is refused."""
        faults = self.faults(config, base, **overrides)
        assert len(faults) == 1, [str(fault) for fault in faults]
        return faults[0]
