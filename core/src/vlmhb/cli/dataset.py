"""``vlmhb dataset``: looking at datasets, checking them, writing them as folders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vlmhb.cli.app import ExitCode
from vlmhb.cli.options import print_json
from vlmhb.cli.progress import counted

if TYPE_CHECKING:
    from vlmhb.contract.dataset import Dataset
    from vlmhb.data.overview import Overview

_WEIGHTS = (("Faults, of which a row may have several", True), ("Remarks", False))
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group("dataset", short_help="Check, convert and look at datasets.")
def command() -> None:
    """Check, convert and look at datasets of any format that vlmhb reads.

    DATASET is a file, a folder or the name of a dataset that a plugin ships; options follow it: scans?dpi=200.

    \b
    Example:
      vlmhb dataset check Datasets/VQA/cards
      vlmhb dataset convert scans.pdf Datasets/OCR/scans
      vlmhb dataset show demo-documents --sheet pages.png
    """


@command.command("check", short_help="List what is wrong with a dataset's rows.")
@click.argument("dataset")
@click.option("--quick", is_flag=True, help="Do not decode the images, only look whether they are there.")
@JSON
def check_command(dataset: str, quick: bool, as_json: bool) -> None:
    """List everything that is wrong with a dataset's rows, or looks as if it were.

    Exit code 1 when there are rows that cannot be asked, 0 when there are only remarks.

    \b
    Example:
      vlmhb dataset check answers.jsonl --quick
    """
    from vlmhb.data.check import Checker, Finding

    checker = Checker(_opened(dataset), images=not quick)
    kinds: Counter[str] = Counter()
    kept: list[Finding] = []
    bad_rows: set[int] = set()
    for finding in checker:
        kinds[finding.kind] += 1
        if finding.is_fault:
            bad_rows.add(finding.row)
        if as_json:
            kept.append(finding)
        else:
            click.echo(finding)
    if as_json:
        print_json({"rows": checker.rows, "unaskable": len(bad_rows), "kinds": kinds, "findings": kept})
    else:
        said = _in_words(kinds) or "Nothing was found."
        click.echo(f"{counted(checker.rows, 'row')}, {len(bad_rows)} of them cannot be asked. {said}")
    raise SystemExit(ExitCode.SOME_ROWS_FAILED if bad_rows else ExitCode.OK)


def _in_words(kinds: Counter[str]) -> str:
    """What was found how often: first what rows cannot be asked for, of which one row may have several."""
    from vlmhb.data.check import KINDS

    found = [(name, [(k, n) for k, n in kinds.most_common() if KINDS[k] is bad]) for name, bad in _WEIGHTS]
    return " ".join(f"{name}: {', '.join(f'{n} {k}' for k, n in some)}." for name, some in found if some)


@command.command("convert", short_help="Write a dataset as a VLMHyperBench folder.")
@click.argument("dataset")
@click.argument("folder", type=click.Path(path_type=Path))
def convert_command(dataset: str, folder: Path) -> None:
    """Write a dataset as FOLDER with annotation.csv and images/, the layout of VLMHyperBench.

    Rows that cannot be asked are left out and named; the exit code is then 1.

    \b
    Example:
      vlmhb dataset convert MMBench_DEV_EN.tsv Datasets/VQA/mmbench
    """
    from vlmhb.data.convert import convert_dataset

    done = convert_dataset(_opened(dataset), folder, lambda text: click.echo(text, err=True))
    click.echo(f"{counted(done.rows, 'row')}: {folder}" + (f"; {done.left_out} left out" if done.left_out else ""))
    raise SystemExit(ExitCode.SOME_ROWS_FAILED if done.left_out else ExitCode.OK)


@command.command("show", short_help="Count rows, documents and images.")
@click.argument("dataset")
@click.option("--sheet", type=click.Path(path_type=Path), help="Write a picture with some pages of each doc class.")
@JSON
def show_command(dataset: str, sheet: Path | None, as_json: bool) -> None:
    """Count rows, documents and images, by doc class and question type.

    \b
    Example:
      vlmhb dataset show demo-documents --sheet pages.png
    """
    from vlmhb.data.overview import overview_of, write_sheet

    opened = _opened(dataset)
    found = overview_of(opened)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if sheet is not None:
        for note in write_sheet(opened, found.pages, sheet):
            click.echo(note, err=True)
        click.echo(f"Contact sheet: {sheet}", err=as_json)


def _opened(written: str) -> Dataset:
    from vlmhb.discovery.registry import Registry
    from vlmhb.run.score import open_dataset

    return open_dataset(written, Registry())


def _print(found: Overview) -> None:
    rows, documents, images = (
        counted(number, noun)
        for number, noun in ((found.rows, "row"), (found.documents, "document"), (found.images, "image"))
    )
    click.echo(f"{rows} about {documents} and {images}.")
    if found.several_answers:
        have = "has" if found.several_answers == 1 else "have"
        click.echo(f"{counted(found.several_answers, 'row')} {have} several accepted answers.")
    if found.problems:
        click.echo(f"{counted(found.problems, 'row')} cannot be asked; 'vlmhb dataset check' says why.")
    lines = [("doc class", "question type", "rows", "documents")]
    lines += [
        (g.doc_class or "(none)", g.question_type or "(none)", str(g.rows), str(g.documents)) for g in found.groups
    ]
    widths = [max(len(line[at]) for line in lines) for at in range(4)]
    for line in lines:
        texts = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        click.echo("  ".join([*texts, *numbers]).rstrip())
