"""Scores of the reader from the answers of a run: fields, choices and whole texts, of clean and of worn pages."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vlmhb_demo.documents.questions import CHOICES

WHOLE = "full text"
SPLITS = {"test_clean": "clean", "test_worn": "worn"}


@dataclass(frozen=True)
class Scores:
    """Means over questions; CER is the mean of the questions' own rates.

    Attributes:
        fields, choices, texts: how many of each.
        field_exact, choice_exact, text_exact: part that is right to the letter.
        field_cer, text_cer: character error rates.
    """

    fields: int
    field_exact: float
    field_cer: float
    choices: int
    choice_exact: float
    texts: int
    text_exact: float
    text_cer: float


def read(answers: Path) -> dict[tuple[str, str], Scores]:
    """Scores by page quality (``clean`` or ``worn``) and document class (``all`` for all of them)."""
    with answers.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    classes = list(dict.fromkeys(row["doc_class"] for row in rows))
    return {
        (quality, name): _scores(row for row in rows if row["split"] == split and name in (row["doc_class"], "all"))
        for split, quality in SPLITS.items()
        for name in (*classes, "all")
    }


def table(scores: dict[tuple[str, str], Scores]) -> str:
    """The scores in Markdown."""
    lines = [
        "| pages | document | fields | exact | CER | choices | exact | whole texts | exact | CER |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (quality, name), s in scores.items():
        cells = (
            *(quality, name, s.fields, f"{s.field_exact:.3f}", f"{s.field_cer:.4f}", s.choices),
            *(f"{s.choice_exact:.3f}", s.texts, f"{s.text_exact:.3f}", f"{s.text_cer:.4f}"),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _scores(rows: Iterable[dict[str, str]]) -> Scores:
    fields, choices, texts = [], [], []
    for row in rows:
        kind = row["question_type"]
        (texts if kind == WHOLE else choices if kind in CHOICES else fields).append(row)
    return Scores(
        fields=len(fields),
        field_exact=_mean(fields, "exact_match"),
        field_cer=_mean(fields, "cer"),
        choices=len(choices),
        choice_exact=_mean(choices, "exact_match"),
        texts=len(texts),
        text_exact=_mean(texts, "exact_match"),
        text_cer=_mean(texts, "cer"),
    )


def _mean(rows: list[dict[str, str]], column: str) -> float:
    return sum(float(row[column]) for row in rows) / len(rows)
