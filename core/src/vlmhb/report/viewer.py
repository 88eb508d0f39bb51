"""The sample viewer's files: an index of every sample, and chunks with the long texts, loaded when they are needed.

They are scripts and not JSON, since a page opened from a folder may load scripts from beside it and nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vlmhb.contract.report import ReportEntry
from vlmhb.report.pages import Pages

if TYPE_CHECKING:
    import polars

    from vlmhb.report.view import RunsView

CHUNK = 200
"""Samples in one chunk."""
FOLDER = "samples"
_STATUS = {"ok": 0, "error": 1, "missing": 2}
_NOT_IN_ENTRY = 3
_SNIPPET = 60
_ANSWER = ("finish_reason", "flags", "prompt_tokens", "output_tokens")
_TIMES = ("time_to_first_token", "time_per_output_token", "total_time")


def write_viewer(view: RunsView) -> list[str]:
    """Write the data and the page images into the report's folder.

    Returns:
        What a reader must know, in sentences: samples or pages that were left out.
    """
    samples, left_out = view.samples
    notes = [view.text("samples.left_out", shown=len(samples), all=len(samples) + left_out)] if left_out else []
    numbers = {entry.number: _aligned(view, entry, samples) for entry in view.entries}
    pages = Pages(view)
    snippets: list[str] = []
    beside = view.folder / f".{FOLDER}.new"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for number, records in enumerate(_chunks(view, samples, numbers, pages)):
        snippets += [record["ref"][:_SNIPPET] for record in records]
        _write(beside / f"{number}.js", f"vlmhbChunk({number},", records)
    notes += pages.make(samples["wrong"].to_list())
    _write(beside / "index.js", "vlmhbIndex(", _index(view, samples, numbers, snippets) | pages.index())
    target = view.folder / FOLDER
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)
    return notes


def script_json(value: object) -> str:
    """JSON that may stand in a script: nothing in it can end the script or a line of it."""
    text = msgspec.json.encode(value).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _write(path: Path, call: str, value: object) -> None:
    path.write_text(f"{call}{script_json(value)});\n", encoding="utf-8")


def _aligned(view: RunsView, entry: ReportEntry, samples: polars.DataFrame) -> polars.DataFrame:
    """An entry's numbers in the order of the samples, null where it lacks a sample."""
    import polars as pl

    columns = ["sample", "row", "status", "wrong", "error_kind", *_ANSWER, *_TIMES, *entry.metrics]
    rows = view.rows(entry).select(columns).rename({"row": "own_row", "wrong": "own_wrong"})
    rows = rows.unique("sample", keep="first")
    return (
        samples.select("sample")
        .join(rows, on="sample", how="left", maintain_order="left")
        .with_columns(
            pl.col("status").replace_strict(_STATUS, default=_NOT_IN_ENTRY, return_dtype=pl.Int64).alias("code")
        )
    )


def _chunks(
    view: RunsView, samples: polars.DataFrame, numbers: dict[int, polars.DataFrame], pages: Pages
) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(samples), CHUNK):
        size = min(CHUNK, len(samples) - start)
        records: list[dict[str, Any]] = [{"answers": []} for _ in range(size)]
        for entry in view.entries:
            part = numbers[entry.number].slice(start, size)
            wanted = part["own_row"].drop_nulls().to_list()
            texts = {line["row"]: line for line in view.texts(entry, wanted).iter_rows(named=True)} if wanted else {}
            for at, line in enumerate(part.iter_rows(named=True)):
                if line["own_row"] is None:
                    records[at]["answers"].append(None)
                    continue
                text = texts[line["own_row"]]
                if "ref" not in records[at]:
                    records[at] |= _question(text)
                    pages.add(start + at, entry, text)
                records[at]["answers"].append(_answer(records[at], line, text))
        yield records


def _question(text: dict[str, Any]) -> dict[str, Any]:
    """What is asked and what is right; ``refs`` and ``crefs`` (as compared) only where more than one answer is."""
    same = text["compared_reference"] == text["reference"]
    others = {"refs": text["other_references"], "crefs": text["compared_others"]} if text["other_references"] else {}
    return others | {
        "q": text["question"],
        "ref": text["reference"],
        "cref": None if same else text["compared_reference"],
        "file": text["image_path"],
        "box": text["answer_bbox"],
    }


def _answer(record: dict[str, Any], line: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    """What one entry said; what is absent or equal to what stands elsewhere is left out.

    ``k`` is the place of the accepted answer that it is compared with, where that is not the first.
    """
    same = text["compared_answer"] == text["answer"]
    accepted = [text["compared_reference"], *text["compared_others"]]
    found = {
        "k": accepted.index(text["nearest_reference"]) or None,
        "a": text["answer"],
        "c": None if same else text["compared_answer"],
        "q": text["question"] if text["question"] != record["q"] else None,
        "e": text["error"],
        "n": text["notes"] or None,
        "f": line["finish_reason"],
        "g": line["flags"] or None,
        "t": [line[name] for name in ("prompt_tokens", "output_tokens", *_TIMES)],
    }
    return {name: value for name, value in found.items() if value is not None}


def _index(
    view: RunsView, samples: polars.DataFrame, numbers: dict[int, polars.DataFrame], snippets: list[str]
) -> dict[str, Any]:
    classes, types = (samples[name].unique(maintain_order=True).to_list() for name in ("doc_class", "question_type"))
    place = {name: {value: at for at, value in enumerate(some)} for name, some in (("c", classes), ("t", types))}
    return {
        "chunk": CHUNK,
        "datasets": list(view.datasets),
        "classes": classes,
        "types": types,
        "entries": [
            {
                "label": entry.label,
                "dataset": list(view.datasets).index(entry.dataset),
                "metrics": [
                    {"name": n, "title": view.metrics[n].title, "up": view.metrics[n].higher_is_better}
                    for n in entry.metrics
                ],
                "status": numbers[entry.number]["code"].to_list(),
                "wrong": numbers[entry.number]["own_wrong"].fill_null(False).cast(int).to_list(),
                "scores": [numbers[entry.number][name].round(4).to_list() for name in entry.metrics],
            }
            for entry in view.entries
        ],
        "dataset": samples["dataset"].to_list(),
        "row": samples["row"].to_list(),
        "page": samples["data_index"].to_list(),
        "cls": [place["c"][value] for value in samples["doc_class"].to_list()],
        "type": [place["t"][value] for value in samples["question_type"].to_list()],
        "ref": snippets,
    }
