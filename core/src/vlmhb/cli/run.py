"""``vlmhb run``: from a config file to scored answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlmhb.cli.app import ExitCode
from vlmhb.cli.options import SAMPLING_NAMES, model_options, sampling_options, split_pairs
from vlmhb.cli.progress import counted

if TYPE_CHECKING:
    from vlmhb.run.export import Summary
    from vlmhb.run.runner import Outcome


@click.command("run", short_help="Answer, score and export what a config asks for.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder. [default: runs/<config's name>]")
@click.option("--backend", "-b", help="Run every row of the config on this backend.")
@click.option("--models", type=click.Path(path_type=Path), help="vlm_base.csv to use. [default: beside the config]")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of Datasets/, PromptCollections/, Models/.")
@click.option("--limit", type=click.IntRange(min=1), help="Ask at most so many rows of each row of the config.")
@click.option("--fresh", is_flag=True, help="Ask everything again instead of reusing stored answers.")
@sampling_options
@model_options
def command(config: Path, out: Path | None, limit: int | None, fresh: bool, **chosen: Any) -> None:
    """Answer, score and export everything that CONFIG (user_config.csv) asks for.

    A run goes on where it stopped: the same command asks only what has no answer yet.

    \b
    Example:
      vlmhb run user_config.csv
      vlmhb run user_config.csv --backend vllm --limit 20 --out runs/try
    """
    folder = out or _own_folder(config)
    outcome = run_config(config, folder, limit=limit, fresh=fresh, **chosen)
    raise SystemExit(finish(outcome))


def _own_folder(config: Path) -> Path:
    """``runs/<config's name>``, unless the run in it belongs to another config of that name.

    Raises:
        RunError: it does.
    """
    from vlmhb.errors import RunError
    from vlmhb.run.folder import RunFolder
    from vlmhb.run.manifest import config_of

    folder = Path("runs") / config.stem
    owner = config_of(RunFolder(folder))
    if owner is not None and owner != config.absolute():
        raise RunError(f"{folder} holds the run of {owner}; choose another folder for {config} with --out.")
    return folder


def run_config(config: Path, folder: Path, *, limit: int | None, fresh: bool, **chosen: Any) -> Outcome:
    """Check a config, then run it with progress on standard error."""
    import time

    from vlmhb.cli.progress import make_listener
    from vlmhb.config.job import Overrides
    from vlmhb.config.plan import read_plan_config
    from vlmhb.engines import Engines
    from vlmhb.run.runner import run

    began = time.monotonic()
    registry = Engines()
    sampling = {name: chosen[name] for name in SAMPLING_NAMES if chosen.get(name) is not None}
    model, options = split_pairs(chosen.get("options") or ())
    overrides = Overrides(
        backend=chosen.get("backend"),
        data=chosen.get("data"),
        models=chosen.get("models"),
        sampling=sampling,
        model=model,
        options=options,
    )
    plan = read_plan_config(config, registry, overrides)
    listener = make_listener()
    for note in plan.notes:
        listener.note(note)
    try:
        return run(plan, registry, config, folder, listener, fresh=fresh, limit=limit, began=began)
    except KeyboardInterrupt:
        listener.note(f"stopped at once; the answers stored until now are kept. Go on with: {_same_command()}")
        raise
    finally:
        listener.close()


def _same_command() -> str:
    """What was typed, as it goes on with a run."""
    import shlex
    import sys

    return shlex.join(["vlmhb", *(argument for argument in sys.argv[1:] if argument != "--fresh")])


def finish(outcome: Outcome) -> ExitCode:
    """Print what a run came to, and choose the exit code."""
    click.echo(f"Answered now: {outcome.generated}; reused from before: {outcome.reused}.")
    if outcome.interrupted:
        missing = counted(outcome.summary.missing, "row")
        click.echo(f"Stopped with {missing} not asked; go on with: {_same_command()}", err=True)
    return show_summary(outcome.summary, outcome.folder)


def show_summary(summary: Summary, folder: Path) -> ExitCode:
    """Print the table, the paths and what is lacking, and choose the exit code."""
    from vlmhb.cli.tables import print_summary

    print_summary(summary)
    click.echo(f"Answers: {folder / 'answers.csv'}")
    page = folder / "report" / "index.html"
    if page.is_file():
        click.echo(f"Report: {page}")
    click.echo(f"Run folder: {folder}")
    if not summary.errors and not summary.missing:
        return ExitCode.OK
    if summary.errors:
        click.echo(f"{counted(summary.errors, 'row')} failed; the column 'error' of answers.csv says why.", err=True)
    if summary.missing:
        click.echo(f"{counted(summary.missing, 'row')} not answered: nobody asked them yet.", err=True)
    return ExitCode.SOME_ROWS_FAILED
