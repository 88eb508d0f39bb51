"""``vlmhb report``: the report of one run or of several, from the run folders alone."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click


@click.command("report", short_help="Write the report of one run or several.")
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for it. [default: RUN/report; beside several runs]"
)
@click.option("--lang", type=click.Choice(["en", "ru"]), default="en", show_default=True, help="Language of its texts.")
@click.option("--pages", type=click.IntRange(min=0), help="Most page images to include. [default: 1000]")
@click.option("--samples", type=click.IntRange(min=1), help="Most samples in the viewer. [default: 20000]")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
def command(
    runs: tuple[Path, ...], out: Path | None, lang: str, pages: int | None, samples: int | None, show: bool
) -> None:
    """Write index.html, which opens offline and can be sent as a folder, and report.md, for a pull request.

    Several RUNS go into one report and are compared, row by row where they asked the same.

    \b
    Example:
      vlmhb report runs/user_config --open
      vlmhb report runs/first runs/second --out report --lang ru
    """
    from vlmhb.discovery.registry import Registry
    from vlmhb.report.write import MOST_PAGES, MOST_SAMPLES, write_report
    from vlmhb.run.folder import RunFolder

    folder = out or (RunFolder(runs[0]).report if len(runs) == 1 else runs[0].parent / "report")
    with ExitStack() as held:
        for run in dict.fromkeys(run.resolve() for run in runs if RunFolder(run).database.is_file()):
            held.enter_context(RunFolder(run))
        written = write_report(
            list(dict.fromkeys(runs)),
            Registry(),
            folder,
            language=lang,
            most_samples=MOST_SAMPLES if samples is None else samples,
            most_pages=MOST_PAGES if pages is None else pages,
        )
    for note in written.notes:
        click.echo(note, err=True)
    click.echo(f"Report: {written.index}")
    if show:
        click.launch(written.index.resolve().as_uri())
