"""What kind of errors are made: the worst rows, the letters that are mixed up, errors by length."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from vlmhb.contract.report import Fragment, ReportEntry, ReportSection, ReportView
from vlmhb.report.exports import entry_columns, records_table
from vlmhb.report.once import once_per_report
from vlmhb.report.render import Cell, Table, count_cell, number_cell, row_link, template

if TYPE_CHECKING:
    import polars


WORST = 10
CONFUSIONS = 15
MOST_COMPARED = 5_000
"""Wrong answers looked at for mixed-up letters."""
_LENGTHS = (0, 5, 10, 20, 50, 100)
_SHOWN = 160


class AnalysisSection(ReportSection):
    """Three tables for each entry."""

    name = "analysis"
    place = 50

    def title(self, view: ReportView) -> str:
        """The heading."""
        return view.text("analysis.title")

    def render(self, view: ReportView) -> Fragment | None:
        """Nothing for entries without a scored row."""
        many = len(view.datasets) > 1
        blocks = []
        for entry in view.entries:
            rows = _answered(view, entry)
            if rows.is_empty() or not entry.metrics:
                continue
            tables = [self._worst(view, entry, rows), self._confusions(view, entry)]
            name = f"{entry.label} — {entry.dataset}" if many else entry.label
            blocks.append({"name": name, "tables": [*tables, self._lengths(view, entry, rows)]})
        if not blocks:
            return None
        return Fragment(html=template("analysis.html.j2", blocks=blocks, text=view.text))

    def _worst(self, view: ReportView, entry: ReportEntry, rows: polars.DataFrame) -> Table | None:
        name = entry.metrics[0]
        metric = view.metrics[name]
        wrong = rows.filter(rows["wrong"]).sort(name, "row", descending=[not metric.higher_is_better, False])
        worst = wrong.head(WORST)
        if worst.is_empty():
            return None
        texts = {line["row"]: line for line in view.texts(entry, worst["row"].to_list()).to_dicts()}
        header = [view.text(f"word.{key}") for key in ("row", "doc_class", "question_type", "reference", "answer")]
        lines = [
            [
                Cell(f"#{line['row']}", sort=line["row"], href=row_link(entry.dataset, line["row"])),
                Cell(line["doc_class"]),
                Cell(line["question_type"]),
                Cell(shortened(texts[line["row"]]["nearest_reference"])),
                Cell(shortened(texts[line["row"]]["compared_answer"])),
                number_cell(view, line[name]),
            ]
            for line in worst.to_dicts()
        ]
        caption = view.text("analysis.worst", metric=metric.title, shown=len(lines), wrong=len(wrong))
        return Table(caption, [*header, metric.title], lines, frozenset((0, 5)))

    def _confusions(self, view: ReportView, entry: ReportEntry) -> Table | None:
        counts, compared, wrong = _mixed_up(view, entry)
        if not counts:
            return None
        header = [view.text("analysis.expected"), view.text("analysis.got"), view.text("word.times")]
        lines = [
            [Cell(_sign(view, right)), Cell(_sign(view, given)), count_cell(times)]
            for (right, given), times in counts.most_common(CONFUSIONS)
        ]
        caption = view.text("analysis.confusions", compared=compared, wrong=wrong)
        return Table(caption, header, lines, frozenset((2,)))

    def _lengths(self, view: ReportView, entry: ReportEntry, rows: polars.DataFrame) -> Table:
        header = [view.text("analysis.length"), view.text("word.count"), view.text("analysis.wrong_share")]
        lines = []
        for length in _by_length(rows, entry.metrics[0]):
            low, high = length.shortest, length.longest
            label = f"> {low - 1}" if high is None else str(high) if high == low else f"{low}–{high}"
            figures = (number_cell(view, length.wrong), number_cell(view, length.mean))
            lines.append([Cell(label, sort=low), count_cell(length.rows), *figures])
        title = view.metrics[entry.metrics[0]].title
        return Table(view.text("analysis.lengths"), [*header, title], lines, frozenset((0, 1, 2, 3)))

    def tables(self, view: ReportView) -> dict[str, polars.DataFrame]:
        """All mixed-up letters, and the figures by length of the reference; one line an entry and pair, or length."""
        confused: list[dict[str, object]] = []
        lengths: list[dict[str, object]] = []
        for entry in view.entries:
            rows = _answered(view, entry)
            if rows.is_empty() or not entry.metrics:
                continue
            front = entry_columns(entry)
            counts, _, _ = _mixed_up(view, entry)
            confused += [
                {**front, "expected": right, "got": given, "times": times}
                for (right, given), times in counts.most_common()
            ]
            name = entry.metrics[0]
            lengths += [{**front, "metric": name, **one._asdict()} for one in _by_length(rows, name)]
        found = {"confusions": confused, "errors_by_length": lengths}
        return {name: records_table(lines) for name, lines in found.items() if lines}


class Length(NamedTuple):
    """Rows whose reference has so many characters (no end: None), their share of wrong ones, and a metric's mean."""

    shortest: int
    longest: int | None
    rows: int
    wrong: float
    mean: float


def _by_length(rows: polars.DataFrame, metric: str) -> list[Length]:
    import polars as pl

    found = []
    for low, high in zip((-1, *_LENGTHS), (*_LENGTHS, None), strict=True):
        inside = pl.col("reference_length") > low
        some = rows.filter(inside if high is None else inside & (pl.col("reference_length") <= high))
        if len(some):
            share, mean = (float(some[name].cast(pl.Float64).to_numpy().mean()) for name in ("wrong", metric))
            found.append(Length(low + 1, high, len(some), share, mean))
    return found


def _answered(view: ReportView, entry: ReportEntry) -> polars.DataFrame:
    rows = view.rows(entry)
    return rows.filter(rows["status"] == "ok")


@once_per_report
def _mixed_up(view: ReportView, entry: ReportEntry) -> tuple[Counter[tuple[str, str]], int, int]:
    """:func:`confusions` of an entry's wrong answers, and how many of these were looked at."""
    wrong = _answered(view, entry).filter("wrong")["row"].head(MOST_COMPARED)
    pairs = view.texts(entry, wrong.to_list()).select("nearest_reference", "compared_answer").rows()
    return *confusions(pairs), len(pairs)


def confusions(pairs: list[tuple[str, str]]) -> tuple[Counter[tuple[str, str]], int]:
    """Which letters are mixed up.

    Answers that share less than half of their letters with the reference are left out: nothing was mixed up there,
    something else was answered.

    Args:
        pairs: references and answers.

    Returns:
        How often each pair of letters was met: what should stand there and what does, empty for a letter too much or
        too few; and how many pairs of texts were compared.
    """
    from rapidfuzz.distance import Levenshtein

    counts: Counter[tuple[str, str]] = Counter()
    compared = 0
    for reference, answer in pairs:
        steps = Levenshtein.editops(reference, answer)
        if 2 * len(steps) > max(len(reference), len(answer)):
            continue
        compared += 1
        for step in steps:
            right = reference[step.src_pos] if step.tag != "insert" else ""
            given = answer[step.dest_pos] if step.tag != "delete" else ""
            counts[right, given] += 1
    return counts, compared


def shortened(text: str | None) -> str:
    """The beginning of a text, on one line."""
    line = " ".join((text or "").split(" "))
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _sign(view: ReportView, sign: str) -> str:
    """A letter so that it can be told from its look-alikes."""
    if not sign:
        return view.text("analysis.no_sign")
    shown = sign if sign.isprintable() and not sign.isspace() else ""
    code = f"U+{ord(sign):04X}"
    if shown and sign.isascii():
        return f"{shown}  {code}" if sign.isalpha() else shown
    return f"{shown}  {code} {unicodedata.name(sign, '')}".strip()
