"""The report's tables for programs: CSV and Parquet files beside the page, and what several sections need for them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlmhb.contract.report import ReportEntry, ReportView
from vlmhb.report.view import RunsView

if TYPE_CHECKING:
    import polars

FOLDER = "tables"
_KEPT = (
    *("row", "data_index", "doc_class", "question_type", "status", "wrong", "error_kind", "finish_reason", "flags"),
    *("prompt_tokens", "cached_tokens", "output_tokens"),
    *("queue_time", "time_to_first_token", "time_per_output_token", "total_time"),
)
_TEXTS = (
    *("question", "reference", "other_references", "nearest_reference", "answer", "compared_answer"),
    *("error", "notes", "image_path"),
)


class TablesFolder:
    """The folder of a report's tables: written anew each time, and in place only when it is complete.

    Args:
        report: the report's folder.
    """

    def __init__(self, report: Path) -> None:
        self._final = report / FOLDER
        self._beside = report / f".{FOLDER}.new"
        shutil.rmtree(self._beside, ignore_errors=True)
        self._beside.mkdir(parents=True)

    def add(self, name: str, table: polars.DataFrame) -> list[str]:
        """Write a table.

        Returns:
            The addresses of its files, relative to the page.
        """
        path = self._beside / Path(name).name
        table.write_csv(path.with_name(f"{path.name}.csv"), separator=";", include_bom=True)
        table.write_parquet(path.with_name(f"{path.name}.parquet"))
        return [f"{FOLDER}/{path.name}.{kind}" for kind in ("csv", "parquet")]

    def finish(self) -> None:
        """Put the folder into its place."""
        shutil.rmtree(self._final, ignore_errors=True)
        self._beside.rename(self._final)


def entry_columns(entry: ReportEntry) -> dict[str, str | int]:
    """The first columns of every table: which entry a line is about."""
    return {
        "label": entry.label,
        "dataset": entry.dataset,
        "model": entry.model,
        "backend": entry.backend,
        "prompts": entry.prompts,
        "run": entry.run.resolve().name,
        "config_row": entry.description["config_row"],
    }


def of_entries(parts: Sequence[tuple[ReportEntry, polars.DataFrame]]) -> polars.DataFrame:
    """The tables of several entries below each other; a column that one lacks is null there."""
    import polars as pl

    named = [
        table.select(*(pl.lit(value).alias(name) for name, value in entry_columns(entry).items()), pl.all())
        for entry, table in parts
    ]
    return pl.concat(named, how="diagonal")


def aggregated(view: ReportView, aggregator: str) -> polars.DataFrame:
    """A metrics table of all entries."""
    return of_entries([(entry, view.table(entry, aggregator)) for entry in view.entries])


def samples_table(view: RunsView) -> polars.DataFrame:
    """Every answer of the samples that the viewer shows, with its texts, figures and scores."""
    import polars as pl

    chosen, _ = view.samples
    parts = []
    for entry in view.entries:
        rows = view.rows(entry).join(chosen.select("sample"), on="sample", how="semi", maintain_order="left")
        texts = view.texts(entry, rows["row"].to_list()).select("row", *_TEXTS)
        others = [json.dumps(list(one), ensure_ascii=False) if len(one) else "" for one in texts["other_references"]]
        texts = texts.with_columns(pl.Series("other_references", others, dtype=pl.String))
        table = rows.select(*_KEPT, *entry.metrics).join(texts, on="row", how="left", maintain_order="left")
        parts.append((entry, table.select(*_KEPT[:4], *_TEXTS, *_KEPT[4:], *entry.metrics)))
    return of_entries(parts)


def records_table(records: Sequence[Mapping[str, object]]) -> polars.DataFrame:
    """Records of equal names as a table."""
    import polars as pl

    return pl.DataFrame(records, infer_schema_length=None)
