"""Run folders of known content, written as a run writes them but without asking any model."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmhb.contract.dataset import Sample
from vlmhb.contract.metric import Metric
from vlmhb.contract.report import ReportSection
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import RequestError
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.report.builtin import vlmhb_report_sections
from vlmhb.run.export import export
from vlmhb.run.folder import RunFolder
from vlmhb.run.store import PlannedRow, RunStore


@dataclass
class CoreRegistry:
    """The core's own metrics and sections, and those that a test adds."""

    more: tuple[ReportSection, ...] = ()

    def metrics(self) -> dict[str, Metric]:
        return {metric.name: metric for metric in vlmhb_metrics()}

    def report_sections(self) -> list[ReportSection]:
        return sorted([*vlmhb_report_sections(), *self.more], key=lambda section: section.place)


@dataclass
class Asked:
    """One row of a dataset."""

    page: str
    question: str
    reference: str
    doc_class: str = "card"
    question_type: str = "name"
    image: str = "images/a.png"
    file: Path | None = None
    box: str = ""
    error: str | None = None
    others: tuple[str, ...] = ()


def store_run(
    folder: Path,
    rows: Sequence[Asked],
    models: Mapping[str, Sequence[str | None]],
    *,
    backend: str = "hf",
    metrics: Sequence[str] = ("cer", "wer", "exact_match"),
    dataset: Path = Path("cards"),
    speeds: Mapping[str, float] | None = None,
    **description: Any,
) -> Path:
    """Write a run: every model's answer to every row; None fails, and a model without a speed has no times."""
    jobs = {
        number: {
            "config_row": number,
            "dataset": dataset.name,
            "dataset_path": str(dataset),
            "task": "VQA",
            "backend": backend,
            "model_name": model,
            "metrics": list(metrics),
            "aggregators": ["general", "by_id", "by_doc_question", "by_doc_type"],
            "normalize": ["nfc", "whitespace"],
            **description,
        }
        for number, model in enumerate(models, 1)
    }
    with RunFolder(folder) as home, RunStore(home.database) as store:
        store.replace_plan(jobs, (_planned(number, row, asked) for number in jobs for row, asked in enumerate(rows, 1)))
        for number, (model, answers) in enumerate(models.items(), 1):
            pace = (speeds or {}).get(model)
            store.save_all(
                (_key(number, row), _result(row, answer, pace))
                for row, (asked, answer) in enumerate(zip(rows, answers, strict=True), 1)
                if asked.error is None
            )
            if pace:
                _spread(store, number, pace, len(rows))
        export(store, CoreRegistry(), home)  # type: ignore[arg-type]
    return folder


def _planned(job: int, row: int, asked: Asked) -> PlannedRow:
    return PlannedRow(
        job=job,
        sample=Sample(
            row=row,
            data_index=asked.page,
            images=(asked.image,),
            question=asked.question,
            reference=asked.reference,
            doc_class=asked.doc_class,
            question_type=asked.question_type,
            split="test",
            answer_bbox=asked.box,
            other_references=asked.others,
        ),
        key=None if asked.error else _key(job, row),
        images=(str(asked.file),) if asked.file and not asked.error else (),
        question=asked.question,
        error=asked.error,
    )


def _result(row: int, answer: str | None, pace: float | None) -> GenerationResult:
    if answer is None:
        return GenerationResult.failed(str(row), RequestError("not enough memory for this request", "out_of_memory"))
    tokens = len(answer) // 3 + 1
    times = {}
    if pace is not None:
        times["time_to_first_token"] = 0.4 * pace * (1 + row % 5 / 10)
        times["time_per_output_token"] = pace / 50
        times["total_time"] = times["time_to_first_token"] + (tokens - 1) * pace / 50
    return GenerationResult(
        id=str(row),
        text=answer,
        token_ids=tuple(range(tokens)),
        finish_reason="stop",
        prompt_tokens=120 + row % 40,
        **times,
    )


def _spread(store: RunStore, job: int, pace: float, count: int) -> None:
    """Let a second hold 1 / pace answers, as if they had come one after the other."""
    start = time.time() - pace * count
    moments = [(start + pace * row, _key(job, row)) for row in range(1, count + 1)]
    store._db.executemany("UPDATE answers SET answered_at = ? WHERE key = ?", moments)


def _key(job: int, row: int) -> bytes:
    return hashlib.sha256(f"{job} {row}".encode()).digest()
