"""``vlmhb score``: metrics without a model, for a finished run or for answers made elsewhere."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("score", short_help="Score stored answers, without a model.")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--dataset", "-d", help="Dataset folder, or one that a plugin ships; with --answers.")
@click.option("--answers", "-a", type=click.Path(path_type=Path), help="CSV (row;answer or id;model_answer) or JSONL.")
@click.option("--metrics", help="For example CER,WER. [default: the run's own, or cer,wer,exact_match]")
@click.option("--normalize", help="Text normalisers, for example nfc,whitespace,yo. [default: nfc,whitespace]")
@click.option("--by", multiple=True, help="Columns whose values make a further table, for example split,currency.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results. [default: runs/score-<answers>]")
def command(
    run: Path | None,
    dataset: str | None,
    answers: Path | None,
    metrics: str | None,
    normalize: str | None,
    by: tuple[str, ...],
    out: Path | None,
) -> None:
    """Score the answers stored in the folder RUN again, or --answers made elsewhere against a --dataset.

    \b
    Example:
      vlmhb score runs/user_config --metrics CER --normalize nfc,whitespace,yo
      vlmhb score --dataset Datasets/VQA/cards --answers answers.csv
    """
    from vlmhb.cli.progress import make_listener
    from vlmhb.cli.run import show_summary
    from vlmhb.discovery.registry import Registry
    from vlmhb.report.write import report_of_run
    from vlmhb.run.score import score_answers, score_run

    registry = Registry()
    if run is not None and dataset is None and answers is None:
        folder = run
        summary = score_run(run, registry, metrics, normalize, by)
    elif run is None and dataset is not None and answers is not None:
        folder = out or Path("runs") / f"score-{answers.stem}"
        summary = score_answers(dataset, answers, folder, registry, metrics, normalize, make_listener().note, by)
    else:
        raise click.UsageError("give either a run's folder, or both --dataset and --answers")
    for note in report_of_run(folder, registry):
        click.echo(note, err=True)
    raise SystemExit(show_summary(summary, folder))
