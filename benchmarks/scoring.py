"""How much scoring costs over the least that any scorer must do.

Writes an SQLite file of stored answers, then measures in alternating rounds, each in a process of its own:

- least: read the pairs of reference and answer (``fetchmany``) and call rapidfuzz's own ``cpdist`` on them;
- vlmhb: read the rows, ``Scorer.add`` chunk by chunk, and make all tables.

Usage: python benchmarks/scoring.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from _results import record

METRICS = {
    "cer": ("cer",),
    "cer_wer_em": ("cer", "wer", "exact_match"),
    "cer_wer_em_anls": ("cer", "wer", "exact_match", "anls"),
}
LIMITS = {"cer": 1.5, "cer_wer_em_anls": 3.0}
COLUMNS = ("row", "data_index", "doc_class", "question_type", "reference", "answer", "status")
FETCH = 10_000

SURNAMES = ["Иванов", "Смирнова", "Кузнецов", "Попова", "Васильев", "Соловьёв", "Фёдорова", "Йорданский"]
NAMES = ["Иван", "Мария", "Алёна Игоревна", "Пётр", "Сергей Петрович"]
STREETS = ["ул. Ленина", "пр-т Мира", "ул. Садовая", "наб. реки Фонтанки"]
FIELDS: dict[str, Callable[[random.Random], str]] = {
    "name": lambda r: f"{r.choice(SURNAMES)} {r.choice(NAMES)}",
    "number": lambda r: f"{r.randrange(10**4):04d} {r.randrange(10**6):06d}",
    "date": lambda r: f"{r.randrange(1, 29):02d}.{r.randrange(1, 13):02d}.{r.randrange(1950, 2026)}",
    "total": lambda r: f"{r.randrange(1, 999)} {r.randrange(1000):03d},{r.randrange(100):02d} руб.",
    "organisation": lambda r: f"ООО «{r.choice(SURNAMES)} и партнёры»",
    "address": lambda r: f"г. Тверь, {r.choice(STREETS)}, д. {r.randrange(1, 200)}, кв. {r.randrange(1, 300)}",
}
DOCUMENTS = {
    "passport": ("name", "number", "date"),
    "invoice": ("number", "total", "organisation", "address"),
    "receipt": ("total", "date"),
}


def answered(reference: str, r: random.Random) -> str:
    """What a model might have read: right in six of ten, else with the usual faults."""
    kind, place = r.random(), r.randrange(len(reference))
    if kind < 0.6:
        return reference
    if kind < 0.75:
        return reference[:place] + r.choice("абвеикнорст0123456789") + reference[place + 1 :]
    if kind < 0.85:
        return reference[:place] + reference[place + 1 :]
    if kind < 0.90:
        return reference.replace(" ", "\u00a0")
    if kind < 0.96:
        return f"Ответ: {reference}"
    return r.choice(["", "не удалось прочитать", reference.upper()])


def rows(count: int) -> Iterator[tuple[int, str, str, str, str, str | None, str]]:
    """Rows of the table; one in a hundred has no answer."""
    r = random.Random(20260801)
    row = document = 0
    while row < count:
        document += 1
        doc_class = r.choice(list(DOCUMENTS))
        for field in DOCUMENTS[doc_class][: count - row]:
            row += 1
            reference = FIELDS[field](r)
            failed = r.random() < 0.01
            answer = None if failed else answered(reference, r)
            yield row, f"{document:07d}", doc_class, field, reference, answer, "error" if failed else "ok"


def write(path: Path, count: int) -> None:
    """Make the file of stored answers."""
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE answers (row INTEGER PRIMARY KEY, data_index TEXT, doc_class TEXT, question_type TEXT, "
            "reference TEXT, answer TEXT, status TEXT)"
        )
        db.executemany("INSERT INTO answers VALUES (?,?,?,?,?,?,?)", rows(count))
    db.close()


def least(path: str) -> None:
    """Read the pairs and compute their edit distances; keep nothing."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    db = sqlite3.connect(path)
    cursor = db.execute("SELECT reference, answer FROM answers WHERE status = 'ok'")
    while chunk := cursor.fetchmany(FETCH):
        references, answers = zip(*chunk, strict=True)
        cpdist(references, answers, scorer=Levenshtein.distance)
    db.close()


def scored(path: str, names: tuple[str, ...]) -> None:
    """Read the rows, score them, make every table."""
    import polars as pl
    from vlmhb.metrics.builtin import vlmhb_metrics
    from vlmhb.metrics.scoring import AGGREGATORS, Scorer
    from vlmhb.metrics.stored import read_frames

    known = {metric.name: metric for metric in vlmhb_metrics()}
    scorer = Scorer([known[name] for name in names])
    schema = {name: pl.Int64 if name == "row" else pl.String for name in COLUMNS}
    for frame in read_frames(Path(path), f"SELECT {', '.join(COLUMNS)} FROM answers", schema):
        scorer.add(frame)
    for aggregator in AGGREGATORS:
        scorer.table(aggregator)


def measure(path: str, what: str) -> dict[str, float]:
    """One measurement in this process, its imports left out."""
    for module in ("numpy", "polars", "rapidfuzz.process", "rapidfuzz.distance", "vlmhb.metrics.scoring"):
        importlib.import_module(module)
    wall, cpu = time.perf_counter(), time.process_time()
    if what == "least":
        least(path)
    else:
        scored(path, METRICS[what])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # ru_maxrss is in KiB on Linux and in bytes on macOS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"wall": wall, "cpu": cpu, "peak_mb": peak / 1e6}


def main() -> int:
    """Run the rounds and print one line a set of metrics; 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", nargs=2, metavar=("FILE", "WHAT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure)))
        return 0
    found: dict[str, list[dict[str, float]]] = {what: [] for what in ("least", *METRICS)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.sqlite"
        write(path, arguments.rows)
        for _ in range(arguments.rounds):
            for what, measured in found.items():
                command = [sys.executable, __file__, "--measure", str(path), what]
                measured.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return report(arguments.rows, found)


def report(count: int, found: dict[str, list[dict[str, float]]]) -> int:
    """Print medians; ratios are medians of the rounds' own ratios."""
    passed = 0
    print(f"{count:,} stored answers, {len(found['least'])} rounds, medians")
    print(f"{'':18}{'wall s':>8}{'cpu s':>8}{'wall ratio':>12}{'cpu ratio':>11}{'limit':>7}{'peak MB':>9}")
    for what, rounds in found.items():
        ratio = {
            clock: statistics.median(one[clock] / base[clock] for one, base in zip(rounds, found["least"], strict=True))
            for clock in ("wall", "cpu")
        }
        middle = {key: statistics.median(one[key] for one in rounds) for key in ("wall", "cpu", "peak_mb")}
        limit = LIMITS.get(what)
        if limit is not None:
            passed += not record(f"{what}, {count:,} answers, with the least", ratio["wall"], limit)
        print(
            f"{what:18}{middle['wall']:8.2f}{middle['cpu']:8.2f}{ratio['wall']:12.2f}{ratio['cpu']:11.2f}"
            f"{limit or '':>7}{middle['peak_mb']:9.0f}"
        )
    return 1 if passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
