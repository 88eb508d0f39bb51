"""``vlmhb bench``: how fast engines answer one workload here, and in how much memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmhb.cli.app import ExitCode
from vlmhb.cli.options import engine_names, engine_spec, model_options, print_json

if TYPE_CHECKING:
    from vlmhb.bench.against import Change
    from vlmhb.bench.arrivals import Arrivals
    from vlmhb.bench.engine import Candidate
    from vlmhb.bench.figures import Figures
    from vlmhb.bench.result import Bench
    from vlmhb.bench.workload import Workload
    from vlmhb.cli.progress import PlainProgress
    from vlmhb.engines import Engines
    from vlmhb.run.folder import RunFolder

PAGES, SIZE, QUESTIONS = 8, "827x1169", 4
"""What is drawn when nobody says otherwise: A4 at 100 dpi."""


@click.command("bench", short_help="How fast are engines here, in how much memory?")
@click.argument("model")
@click.option(
    "--backends", "-b", required=True, help="For example hf,vllm,sglang; the first is what others are against."
)
@click.option("--dataset", "-d", help="Ask a dataset's questions: its file, folder or name. [default: drawn pages]")
@click.option("--limit", type=click.IntRange(min=1), help="Ask at most so many rows of the dataset.")
@click.option("--pages", type=click.IntRange(min=1), help=f"How many pages to draw. [default: {PAGES}]")
@click.option("--size", metavar="WxH", help=f"Their size in pixels. [default: {SIZE}]")
@click.option("--questions", type=click.IntRange(min=1), help=f"Questions about each page. [default: {QUESTIONS}]")
@click.option(
    "--max-tokens", type=click.IntRange(min=1), default=64, show_default=True, help="Most tokens of an answer."
)
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="How often to measure.")
@click.option("--concurrency", metavar="N,...", help="Measure with so many requests in flight, too.")
@click.option("--rate", metavar="R,...", help="Measure with so many requests a second, too.")
@click.option("--in-turn", is_flag=True, help="One engine after another, instead of all loaded and taking turns.")
@click.option("--against", type=click.Path(path_type=Path), help="Compare with an earlier bench.json or its folder.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the figures as a table, too.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results. [default: runs/bench]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@model_options
def command(
    model: str,
    backends: str,
    dataset: str | None,
    limit: int | None,
    pages: int | None,
    size: str | None,
    questions: int | None,
    max_tokens: int,
    repeats: int,
    concurrency: str | None,
    rate: str | None,
    in_turn: bool,
    against: Path | None,
    csv_file: Path | None,
    out: Path | None,
    as_json: bool,
    options: tuple[str, ...],
) -> None:
    """Measure how fast engines answer the same questions with MODEL, and in how much memory.

    Each engine runs in a process of its own, warms up, and answers everything --repeats times; answers are compared
    with the first engine's. -o goes to every engine. Exit code 1 when an engine could not be measured or a request has
    no answer.

    \b
    Example:
      vlmhb bench ./model -b hf,vllm,sglang
      vlmhb bench ./model -b hf,vllm -d Datasets/VQA/cards --limit 64 --concurrency 1,4,16
      vlmhb bench ./model -b vllm --against runs/bench-before --out runs/bench-after
    """
    from vlmhb.bench.against import changes, differences
    from vlmhb.bench.figures import figures_of
    from vlmhb.bench.result import read_bench
    from vlmhb.bench.save import save
    from vlmhb.cli.progress import make_listener
    from vlmhb.engines import Engines
    from vlmhb.run.folder import RunFolder

    before = read_bench(against) if against else None
    loads = _loads(concurrency, rate)
    registry = Engines()
    listener = make_listener()
    with RunFolder(out or Path("runs/bench")) as home:
        drawn = {"--pages": pages, "--size": size, "--questions": questions}
        workload = _workload(registry, dataset, limit, drawn, max_tokens, home, listener)
        candidates = _candidates(registry, backends, model, options, workload, home, listener)
        bench = _measure(model, options, candidates, workload, loads, repeats, home, listener, in_turn=in_turn)
        found = figures_of(bench)
        page = save(bench, found, home)
    if csv_file is not None:
        from vlmhb.bench.tables import write_csv

        write_csv(csv_file, bench, found)
    compared = changes(bench, before) if before else []
    other = differences(bench, before) if before else []
    if as_json:
        print_json({"figures": found, "bench": _without_passes(bench), "changes": compared, "differences": other})
    else:
        _print(bench, found, page)
        _print_changes(against, compared, other)
    raise SystemExit(ExitCode.OK if bench.complete() else ExitCode.SOME_ROWS_FAILED)


def _loads(concurrency: str | None, rate: str | None) -> list[Arrivals]:
    from vlmhb.bench.arrivals import sweep

    limits = [int(value) for value in _numbers("--concurrency", concurrency, whole=True)]
    return sweep(limits, _numbers("--rate", rate, whole=False))


def _numbers(option: str, text: str | None, *, whole: bool) -> list[float]:
    """Numbers above 0, separated by commas."""
    kind = "whole numbers" if whole else "numbers"
    try:
        found = [float(int(part) if whole else part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        found = [0.0]
    if not all(0 < value < float("inf") for value in found):
        raise click.UsageError(f"{option} takes {kind} above 0, separated by commas, not {text!r}")
    return found


def _workload(
    registry: Engines,
    dataset: str | None,
    limit: int | None,
    drawn: dict[str, int | str | None],
    max_tokens: int,
    home: RunFolder,
    listener: PlainProgress,
) -> Workload:
    from vlmhb.bench.workload import of_dataset, of_drawn_pages
    from vlmhb.run.score import open_dataset

    if dataset is None:
        if limit is not None:
            raise click.UsageError("--limit goes with --dataset; of drawn pages give --pages and --questions")
        pages, size, questions = drawn["--pages"], drawn["--size"], drawn["--questions"]
        chosen = int(pages or PAGES), _size(str(size or SIZE)), int(questions or QUESTIONS)
        return of_drawn_pages(*chosen, max_tokens, home.path / "pages")
    given = [name for name, value in drawn.items() if value is not None]
    if given:
        raise click.UsageError(f"{given[0]} is for drawn pages; a dataset has its own")
    return of_dataset(open_dataset(dataset, registry), limit, max_tokens, listener.note)


def _size(text: str) -> tuple[int, int]:
    from vlmhb.bench.pages import SMALLEST

    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit()) or min(int(width), int(height)) < SMALLEST:
        raise click.UsageError(f"--size is width x height, each at least {SMALLEST} pixels, as {SIZE}, not {text!r}")
    return int(width), int(height)


def _candidates(
    registry: Engines,
    backends: str,
    model: str,
    options: Sequence[str],
    workload: Workload,
    home: RunFolder,
    listener: PlainProgress,
) -> list[Candidate]:
    """The engines; a name may have an implementation after a colon."""
    from vlmhb.bench.engine import Candidate
    from vlmhb.errors import ConfigError

    names = engine_names(backends)
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"--backends {backends}: name at least one backend, and each only once")
    images = max((len(question.images) for question in workload.questions), default=0)
    found = []
    for name in names:
        info, spec = engine_spec(registry, name, model, options, max_images=max(1, images))
        launch = lambda backend=info.name: registry.launch(backend, listener.note)  # noqa: E731
        found.append(Candidate(name, info, spec, launch, home.log(name), listener.note))
    return found


def _measure(
    model: str,
    options: tuple[str, ...],
    candidates: Sequence[Candidate],
    workload: Workload,
    loads: Sequence[Arrivals],
    repeats: int,
    home: RunFolder,
    listener: PlainProgress,
    *,
    in_turn: bool,
) -> Bench:
    import tempfile
    from datetime import UTC, datetime

    import vlmhb
    from vlmhb.bench.result import Bench
    from vlmhb.bench.session import measure
    from vlmhb.run.keys import model_fingerprint
    from vlmhb.run.manifest import machine

    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    with tempfile.TemporaryDirectory(prefix="vlmhb-bench-") as folder:
        done = measure(candidates, workload, loads, repeats, Path(folder), listener, in_turn=in_turn)
    return Bench(
        vlmhb=vlmhb.__version__,
        made_at=made_at,
        machine=machine(),
        model=model,
        fingerprint=model_fingerprint(candidates[0].spec.model_path),
        options=options,
        workload=workload.name,
        digest=workload.digest,
        requests=len(workload.questions),
        max_tokens=workload.max_tokens,
        repeats=repeats,
        order="in turn" if done.in_turn else "alternating",
        order_reason=done.in_turn,
        engines=tuple(subject.record() for subject in done.subjects),
    )


def _without_passes(bench: Bench) -> Bench:
    from msgspec.structs import replace

    return replace(bench, engines=tuple(replace(engine, passes=()) for engine in bench.engines))


def _print(bench: Bench, found: Sequence[Figures], page: Path) -> None:
    from vlmhb.bench.save import notes
    from vlmhb.bench.tables import aligned, engines_table, sweep_table

    click.echo(f"{bench.model}: {bench.workload}, at most {bench.max_tokens} tokens, {bench.repeats} repeats\n")
    click.echo(aligned(engines_table(bench, found)))
    if swept := sweep_table(found):
        click.echo(f"\n{aligned(swept)}")
    click.echo()
    for note in notes(bench, found):
        click.echo(f"- {note}")
    click.echo(f"Results: {page.with_name('bench.json')}\nPage: {page}")


def _print_changes(against: Path | None, compared: Sequence[Change], other: Sequence[str]) -> None:
    from vlmhb.bench.tables import aligned, estimate

    if against is None:
        return
    click.echo(f"\nTimes what it was in {against}:")
    lines = [[change.engine, change.arrivals, change.figure, estimate(change.ratio)] for change in compared]
    click.echo(aligned(lines) if lines else "nothing was measured in both")
    for note in other:
        click.echo(f"- Note: {note}")
