"""The reference tables of the documentation against the program: both name the same things."""

from __future__ import annotations

import csv
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import get_args

import click
import msgspec
import pytest
import vlmhb
from click.testing import CliRunner
from support.docs import DOCS, blocks, name_tables, pages
from support.envs import ROOT
from vlmhb import errors
from vlmhb.bench import tables as bench_tables
from vlmhb.cli import run_comparison
from vlmhb.cli.app import COMMANDS, ExitCode, app
from vlmhb.compare.tokens import Verdict
from vlmhb.config.columns import USER_CONFIG_COLUMNS, VLM_BASE_COLUMNS
from vlmhb.config.job import DEFAULT_METRICS
from vlmhb.contract import hookspecs
from vlmhb.data import answers as given_answers
from vlmhb.data import prompts
from vlmhb.data.builtin import vlmhb_datasets
from vlmhb.data.check import KINDS
from vlmhb.data.records import NAMES
from vlmhb.data.vlmhyperbench import COLUMNS, VlmHyperBenchFormat
from vlmhb.discovery import scan
from vlmhb.doctor.cells import Outcome
from vlmhb.errors import DatasetError
from vlmhb.metrics import answers
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.grouping import AGGREGATORS
from vlmhb.metrics.normalise import DEFAULT_NORMALISERS, NORMALISERS
from vlmhb.run.folder import RunFolder

TABLES = name_tables()
HOOKS = {name: spec for name, spec in vars(hookspecs).items() if name.startswith("vlmhb_")}
METRICS = {metric.name: metric for metric in vlmhb_metrics()}
ENGINES = ("hf", "vllm", "sglang")


def engine_info(name: str) -> ModuleType:
    """The module in which an official engine describes itself; it imports no engine."""
    path = ROOT / "plugins" / f"vlmhb-{name}" / "src" / f"vlmhb_{name}" / "info.py"
    spec = importlib.util.spec_from_file_location(f"docs_info_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def engine_record(name: str) -> vlmhb.BackendInfo:
    """What an official engine says about itself."""
    module = engine_info(name)
    record = (getattr(module, "backend_info", None) or module.describe)()
    assert isinstance(record, vlmhb.BackendInfo)
    return record


def subclasses(kind: type) -> Iterable[type]:
    """A class and everything that derives from it in its module."""
    return [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, kind)]


def run_files() -> set[str]:
    """The names in a run folder that are meant for people."""
    folder = RunFolder(Path())
    paths = [path for path in vars(folder).values() if isinstance(path, Path) and path != Path()]
    return {path.name + ("" if path.suffix else "/") for path in paths}


def fields(kind: type[msgspec.Struct]) -> set[str]:
    return set(kind.__struct_fields__)


EXPECTED: dict[str, Callable[[], Iterable[str]]] = {
    "user-columns": lambda: USER_CONFIG_COLUMNS.known,
    "base-columns": lambda: VLM_BASE_COLUMNS.known,
    "older-columns": lambda: {*USER_CONFIG_COLUMNS.ignored, *VLM_BASE_COLUMNS.ignored},
    "dataset-formats": lambda: (format.name for format in vlmhb_datasets()),
    "record-names": lambda: NAMES,
    "check-kinds": lambda: KINDS,
    "bench-figures": lambda: (line.title.split(",")[0].split(" p50")[0] for line in bench_tables.LINES),
    "bench-columns": lambda: bench_tables.COLUMNS,
    "difference-columns": lambda: run_comparison.COLUMNS,
    "prompt-columns": lambda: (prompts._PROMPT, prompts._TEMPLATE, prompts._KEY, prompts._CER),
    "given-columns": lambda: given_answers._KNOWN,
    "metrics": lambda: METRICS,
    "normalisers": lambda: NORMALISERS,
    "aggregators": lambda: AGGREGATORS,
    "flags": lambda: (answers.THINKING_REMOVED, answers.THINKING_UNCLOSED),
    "exit-codes": lambda: (str(code.value) for code in ExitCode),
    "run-files": run_files,
    "commands": lambda: COMMANDS,
    "verdicts": lambda: get_args(Verdict),
    "outcomes": lambda: get_args(Outcome),
    "hooks": lambda: HOOKS,
    "entry-points": lambda: (*scan.BACKEND_GROUPS, scan.PLUGIN_GROUP),
    "errors": lambda: (item.__name__ for item in subclasses(errors.VlmhbError)),
    "error-kinds": lambda: get_args(errors.ErrorKind),
    "public": lambda: vlmhb.__all__,
    "benchmarks": lambda: (path.name for path in (ROOT / "benchmarks").glob("[!_]*.py")),
    "capabilities": lambda: fields(vlmhb.Capabilities),
    "ImageInput": lambda: fields(vlmhb.ImageInput),
    "Metric": lambda: (*vlmhb.Metric.__annotations__, "signature", "score", "corpus"),
    **{f"{name}-options": lambda name=name: (o.name for o in engine_info(name).OPTIONS) for name in ENGINES},
    **{
        kind.__name__: lambda kind=kind: fields(kind)
        for kind in (
            *(vlmhb.ModelSpec, vlmhb.SamplingParams, vlmhb.GenerationRequest, vlmhb.GenerationResult),
            *(vlmhb.BackendInfo, vlmhb.EngineOption, vlmhb.EnvironmentRecipe, vlmhb.Sample, vlmhb.NamedModel),
            *(vlmhb.ReportEntry, vlmhb.Fragment, vlmhb.ModelCheck, vlmhb.Support, vlmhb.ModelFacts),
            vlmhb.Twin,
        )
    },
    **{
        name: lambda spec=spec: inspect.signature(spec).parameters
        for name, spec in HOOKS.items()
        if inspect.signature(spec).parameters
    },
}
ELSEWHERE = {
    *("annotation-columns", "answers-columns", "table-columns", "empty-texts"),  # below
    "report-tables",  # tests/fast/test_report_exports.py
    "text-families",  # tests/engines/vllm/test_text_families.py
    *(
        "manifest-fields",
        "manifest-job-fields",
        "manifest-model-fields",
        "startup-fields",
        "model-startup-fields",
        "compare-columns",
    ),  # tests/e2e/test_example_plugin.py
}


@pytest.mark.parametrize("key", EXPECTED)
def test_a_table_names_what_there_is(key: str) -> None:
    assert set(TABLES[key].rows) == set(EXPECTED[key]())


def test_every_table_of_names_is_compared() -> None:
    assert set(TABLES) == {*EXPECTED, *ELSEWHERE}


# --- what the tables say about the names


def test_metrics_are_described_as_they_are() -> None:
    for name, row in TABLES["metrics"].rows.items():
        metric = METRICS[name]
        assert set(re.findall(r"`([^`]+)`", row["written as"])) == {metric.title, *metric.aliases}
        assert row["better"] == ("higher" if metric.higher_is_better else "lower")
        assert float(row["without an answer"]) == metric.failed_value
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    for metric in METRICS.values():
        for paper in re.findall(r"arXiv:[\d.]+", metric.source):
            assert paper in page


def test_the_values_for_empty_texts() -> None:
    cases = {
        "reference empty, answer empty": ("", ""),
        "reference empty, answer not": ("", "two words"),
        "answer empty, reference not": ("two words", ""),
    }
    words = {"characters of the answer": 9, "words of the answer": 2}
    rows = TABLES["empty-texts"].rows
    assert set(rows) == set(METRICS)
    for name, row in rows.items():
        for case, (reference, answer) in cases.items():
            (found,) = METRICS[name].score(vlmhb.Pairs([reference], [answer]))["value"]
            assert found == float(words.get(row[case], row[case])), f"{name}: {case}"


def test_the_defaults_in_the_config_reference() -> None:
    rows = TABLES["user-columns"].rows
    assert rows["metrics"]["default"] == f"`{','.join(DEFAULT_METRICS)}`"
    assert rows["normalize"]["default"] == f"`{','.join(DEFAULT_NORMALISERS)}`"
    for name, default in msgspec.to_builtins(vlmhb.SamplingParams()).items():
        if name != "stop":
            assert float(rows[name]["default"].split()[0]) == default
    assert [name for name, row in rows.items() if row["default"] == "needed"] == list(USER_CONFIG_COLUMNS.needed)
    needed = [name for name, row in TABLES["base-columns"].rows.items() if row["default"] == "needed"]
    assert needed == list(VLM_BASE_COLUMNS.needed)


@pytest.mark.parametrize("kind", [vlmhb.ModelSpec, vlmhb.SamplingParams])
def test_the_defaults_of_a_type(kind: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(kind):
        written = TABLES[kind.__name__].rows[field.name]["default"].strip("`")
        if field.default is not msgspec.NODEFAULT:
            assert written == str(field.default)
        else:
            assert written == ("" if field.default_factory is msgspec.NODEFAULT else str(field.default_factory()))


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_options_are_described_as_they_are(engine: str) -> None:
    rows = TABLES[f"{engine}-options"].rows
    for option in engine_info(engine).OPTIONS:
        row = rows[option.name]
        default = "" if option.default is None else str(option.default)
        default = default.lower() if option.type == "bool" else default
        said = (row["type"], row["default"], row["changes answers"])
        assert said == (option.type, default, "yes" if option.changes_answers else "no"), option.name
        assert row["meaning"]


@pytest.mark.parametrize("engine", ENGINES)
def test_capabilities_are_described_as_they_are(engine: str) -> None:
    found = msgspec.to_builtins(engine_record(engine).capabilities)
    said = {name: row[f"`{engine}`"] for name, row in TABLES["capabilities"].rows.items()}
    words = {True: "yes", False: "no", None: "no limit"}
    assert said == {name: words.get(value, str(value)) for name, value in found.items()}


def test_hooks_are_described_as_they_are() -> None:
    for name, row in TABLES["hooks"].rows.items():
        options = HOOKS[name].vlmhb_spec
        assert row["first result"] == ("yes" if options["firstresult"] else "no"), name
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    assert all(f"\n### {name}\n" in page for name in HOOKS)


def test_the_contract_version() -> None:
    assert f"vlmhb_contract = {vlmhb.CONTRACT_VERSION}" in (DOCS / "plugins.md").read_text(encoding="utf-8")


# --- files that the program reads and writes


def test_the_columns_of_a_dataset(tmp_path: Path) -> None:
    rows = TABLES["annotation-columns"].rows
    assert set(rows) == {*COLUMNS, "prompt"}
    needed = [name for name, row in rows.items() if row["needed"] == "yes"]
    others = {"prompt", "other_answers", "choices", "json_schema"}  # tests/fast/test_data_vlmhyperbench.py
    optional = [name for name in rows if name not in {*needed, *others}]
    write_row(tmp_path, [*needed, *optional])
    (sample,) = VlmHyperBenchFormat().open(tmp_path, "d")
    assert {sample.data_index, *sample.images, sample.question, sample.reference} == set(needed)
    assert [getattr(sample, name) for name in optional] == optional
    for name in needed:
        write_row(tmp_path, [column for column in needed if column != name])
        with pytest.raises(DatasetError, match=name):
            VlmHyperBenchFormat().open(tmp_path, "d")
    write_row(tmp_path, ["prompt" if name == "question" else name for name in needed])
    assert [sample.question for sample in VlmHyperBenchFormat().open(tmp_path, "d")] == ["prompt"]


def test_the_kinds_of_a_check() -> None:
    for kind, row in TABLES["check-kinds"].rows.items():
        assert row["the row cannot be asked"] == ("yes" if KINDS[kind] else "no")


def test_the_names_of_a_record_and_the_options_of_a_format() -> None:
    for name, row in TABLES["record-names"].rows.items():
        assert tuple(re.findall(r"`([^`]+)`", row["names"])) == NAMES[name]
    for format in vlmhb_datasets():
        said = TABLES["dataset-formats"].rows[format.name]["options"]
        names = set(re.findall(r"`([^`]+)`", said)) | (set(NAMES) - {"split"} if "columns" in said else set())
        assert names == set(format.options)


def test_the_columns_of_the_results(tmp_path: Path) -> None:
    write_row(tmp_path / "data", ["data_index", "image_path", "question", "answer"])
    (tmp_path / "given.csv").write_text("row;answer\n1;x\n")
    arguments = [
        "score",
        "-d",
        str(tmp_path / "data"),
        "-a",
        str(tmp_path / "given.csv"),
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, [*arguments, "--metrics", ",".join(METRICS)])
    assert done.exit_code == 0, done.output
    found = header(tmp_path / "out" / "answers.csv")
    assert found == [*TABLES["answers-columns"].rows, *METRICS]
    endings = ("mean", "low", "high", "corpus", "errors_as_wrong")
    readings = {f"{name}_{ending}" for name in METRICS for ending in endings}
    tables = {name: header(tmp_path / "out" / "metrics" / f"{name}.csv") for name in AGGREGATORS}
    others = {column for columns in tables.values() for column in columns if column not in readings}
    assert others == set(TABLES["table-columns"].rows)
    for name, keys in AGGREGATORS.items():
        assert set(re.findall(r"`(\w+)`", TABLES["aggregators"].rows[name]["one line for each"])) == set(keys)
    corpus = {column.removesuffix("_corpus") for column in tables["general"] if column.endswith("_corpus")}
    assert corpus == {"cer", "wer", "bleu", "chrf", "json_f1", "json_precision", "json_recall"}
    said = "`cer`, `wer`, `bleu`, `chrf` and the three of JSON fields only"
    assert said in (DOCS / "metrics.md").read_text(encoding="utf-8")


# --- commands, and names that nobody defines


def leaf_commands(command: click.Command, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """Every command by the words that call it, groups included."""
    found = {path: command}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            found |= leaf_commands(child, (*path, name))
    return found


ALL_COMMANDS = leaf_commands(app)


def test_the_help_of_every_command_is_shown_and_tested() -> None:
    shown = [block.text for block in blocks(DOCS / "cli.md") if block.marker == "tested"]
    for path, command in ALL_COMMANDS.items():
        call = " ".join(("vlmhb", *path, "--help"))
        (text,) = [text for text in shown if text.startswith(f"$ {call}\n")]
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert name in text or isinstance(parameter, click.Argument), f"{call}: {name}"


def everything() -> str:
    """All pages and the example's README as one text, without what other programs are told."""
    files = [*pages(), ROOT / "examples" / "vlmhb-baseline" / "README.md"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r"(?m)^.*\b(pip|pytest|uv) .*$", "", text)


def test_no_page_names_a_hook_that_does_not_exist() -> None:
    packages = {path.name for path in ROOT.glob("*/*/src/*")}
    found = set(re.findall(r"\bvlmhb_[a-z_0-9]+", everything()))
    assert found - set(HOOKS) - packages == {"vlmhb_contract"}


def test_no_page_names_a_command_or_an_option_that_does_not_exist() -> None:
    text = everything()
    calls = set(re.findall(r"(?:`|\$ )vlmhb ([a-z]+)", text))
    assert calls <= set(COMMANDS), calls - set(COMMANDS)
    options = {name for command in ALL_COMMANDS.values() for parameter in command.params for name in parameter.opts}
    found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert found <= {*options, "--help"}, found - options


def test_quoted_source_is_the_source() -> None:
    quoted = [block for page in pages() for block in blocks(page) if block.marker == "source"]
    assert quoted
    for block in quoted:
        assert block.text in (ROOT / block.name).read_text(encoding="utf-8"), f"{block.page.name}:{block.line}"


def write_row(folder: Path, columns: list[str]) -> None:
    """An annotation of one row whose every cell holds its column's name."""
    folder.mkdir(exist_ok=True)
    line = ";".join(columns)
    (folder / "annotation.csv").write_text(f"{line}\n{line}\n", encoding="utf-8")


def header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=";"))
