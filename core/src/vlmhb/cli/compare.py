"""``vlmhb compare``: the same requests on several engines, token by token, or two runs, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlmhb.cli.app import ExitCode
from vlmhb.cli.options import (
    SAMPLING_NAMES,
    engine_names,
    engine_spec,
    model_options,
    print_json,
    sampling_options,
)
from vlmhb.cli.progress import counted

if TYPE_CHECKING:
    from vlmhb.compare.engines import EngineAnswers, EngineComparison
    from vlmhb.contract.backend import BackendInfo
    from vlmhb.contract.model import ModelSpec
    from vlmhb.contract.request import GenerationRequest
    from vlmhb.engines import Engines
    from vlmhb.run.folder import RunFolder

VERDICTS = ("same", "near tie", "different", "different prompt", "failed", "both failed")


@click.command("compare", short_help="Do engines give the same tokens? Do runs differ?")
@click.argument("what", nargs=-1, required=True, metavar="MODEL | RUN_A RUN_B")
@click.option("--backends", "-b", help="For example hf,vllm,vllm:transformers,sglang; the first counts.")
@click.option("--dataset", "-d", help="What to ask MODEL: a dataset's file, folder or name.")
@click.option(
    "--by", "group_by", type=click.Choice(["doc_class", "question_type"]), help="Compare runs group by group."
)
@click.option("--limit", type=click.IntRange(min=1), help="Ask at most so many rows.")
@click.option("--near-tie", type=float, help="Largest log-probability gap of a near tie. [default: 0.01]")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the table and logs. [default: runs/compare]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@sampling_options
@model_options
def command(
    what: tuple[str, ...],
    backends: str | None,
    dataset: str | None,
    group_by: str | None,
    limit: int | None,
    near_tie: float | None,
    out: Path | None,
    as_json: bool,
    options: tuple[str, ...],
    **sampling: Any,
) -> None:
    """Ask MODEL a dataset's questions on several engines and compare prompt ids and output ids with the first engine's.

    A backend may name an implementation: vllm:transformers, vllm:native. Weights are float32 unless -o dtype says
    otherwise, since only there equal tokens can be expected. Exit code 0 when everything is equal or a near tie.

    With two run folders instead: how far apart the answers in RUN_A and RUN_B are, over the rows that both answered,
    and whether that is more than chance. RUN:2 is row 2 of the run's config, RUN:2:terse that row
    with the prompts of this name.

    \b
    Example:
      vlmhb compare ./model -b hf,vllm,sglang -d demo-documents --limit 20 --max-tokens 32
      vlmhb compare runs/before runs/after --by doc_class
      vlmhb compare runs/user_config:1 runs/user_config:2
    """
    from vlmhb.compare.engines import compare_engines
    from vlmhb.compare.tokens import NEAR_TIE
    from vlmhb.contract.calls import sampling_from
    from vlmhb.engines import Engines
    from vlmhb.errors import ConfigError
    from vlmhb.run.folder import RunFolder

    if len(what) == 2 and not (backends or dataset):
        from vlmhb.cli.run_comparison import compare_runs_command

        compare_runs_command(*what, group_by, out, as_json)
        return
    if len(what) != 1 or not backends or not dataset or group_by:
        raise click.UsageError("give either two run folders, or a MODEL with --backends and --dataset")
    model = what[0]
    names = engine_names(backends)
    if len(names) < 2:
        raise ConfigError("name at least two backends, for example: -b hf,vllm")
    registry = Engines()
    asked = {name: engine_spec(registry, name, model, options, dtype="float32") for name in names}
    params = sampling_from({name: sampling[name] for name in SAMPLING_NAMES})
    requests = _requests(registry, dataset, limit, params)
    with RunFolder(out or Path("runs/compare")) as home:
        answers = [_ask(registry, name, model, *asked[name], requests, home) for name in names]
        found = compare_engines(answers, NEAR_TIE if near_tie is None else near_tie)
        table = _write_table(home, found)
    if as_json:
        print_json(found)
    else:
        _print(found, len(requests), table)
    raise SystemExit(ExitCode.OK if all(engine.agrees for engine in found) else ExitCode.SOME_ROWS_FAILED)


def _ask(
    registry: Engines,
    name: str,
    model: str,
    info: BackendInfo,
    spec: ModelSpec,
    requests: Sequence[GenerationRequest],
    home: RunFolder,
) -> EngineAnswers:
    """Everything that one engine answers; ``name`` may name an implementation after a colon."""
    from vlmhb.cli.progress import make_listener
    from vlmhb.compare.engines import ask_engine
    from vlmhb.run.engine import Workers

    images = max((len(request.images) for request in requests), default=0)
    listener = make_listener()
    listener.loading(name, model, len(requests))
    listener.begin(len(requests))
    try:
        return ask_engine(
            name,
            lambda: Workers(registry, listener.note).open(info.name, spec, home.log(name), images)[0],
            requests,
            listener.answered,
        )
    finally:
        listener.close()


def _requests(registry: Engines, dataset: str, limit: int | None, sampling: Any) -> list[GenerationRequest]:
    """The dataset's questions as requests, without their JSON schemas, which not every engine can hold an answer to."""
    import itertools

    from vlmhb.contract.request import GenerationRequest, ImageInput
    from vlmhb.data.images import page_files
    from vlmhb.errors import RequestError
    from vlmhb.run.score import open_dataset

    opened = open_dataset(dataset, registry)
    requests = []
    for sample in itertools.islice(opened, limit):
        try:
            images = [ImageInput(path=str(path)) for path in page_files(opened, sample)]
        except RequestError as error:
            click.echo(f"Note: row {sample.row} is left out: {error}", err=True)
            continue
        requests.append(GenerationRequest.ask(str(sample.row), sample.question, images, sampling=sampling))
    return requests


def _write_table(home: RunFolder, found: Sequence[EngineComparison]) -> Path:
    from vlmhb.data.tables import write_table

    path = home.path / "compare.csv"
    header = ("engine", "reference", "row", "verdict", "prompt_equal", "first_difference", "gap", "detail")
    rows = (
        (engine.name, engine.reference, c.id, c.verdict, c.prompt_equal, c.first_difference, c.gap, c.detail)
        for engine in found
        for c in engine.comparisons
    )
    write_table(path, header, rows)
    return path


def _print(found: Sequence[EngineComparison], requests: int, table: Path) -> None:
    width = max(len(engine.name) for engine in found)
    click.echo(f"{counted(requests, 'request')}, compared with {found[0].reference}:")
    for engine in found:
        if engine.problem:
            click.echo(f"  {engine.name:{width}}  not compared: {engine.problem}")
            continue
        counts = ", ".join(f"{engine.count(verdict)} {verdict}" for verdict in VERDICTS if engine.count(verdict))
        click.echo(f"  {engine.name:{width}}  {counts}")
        for c in engine.comparisons:
            if c.verdict not in ("same", "both failed"):
                where = "" if c.first_difference is None else f", first at token {c.first_difference}"
                gap = "" if c.gap is None else f", gap {c.gap:.4f}"
                click.echo(f"    row {c.id}: {c.verdict}{where}{gap}{': ' + c.detail if c.detail else ''}")
    click.echo(f"Table: {table}")
