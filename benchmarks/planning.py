"""How long it takes to plan 1,000,000 rows, and to find what is left to ask when the run is started again.

A dataset of so many different questions about eight pages, as ``annotation.csv``. No engine is loaded. *Plan* is all
that ``vlmhb run`` does before it loads a model: config, rows, keys, images, database. *Resume* is the same on the
folder that the plan is in, where half of the questions are answered, up to the first question to ask, and *ask*
reads all that are left. Each is a process of its own, for its peak memory. Exit code 1 when plan or resume takes more
than 10 seconds of a core for 1,000,000 rows, or when memory grows by more than 300 bytes a row beyond that of 1,000.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _results import record

LIMIT_SECONDS = 10.0
LIMIT_BYTES = 300
PAGES = 8


def write_dataset(folder: Path, rows: int) -> Path:
    """The dataset and a config that asks it; returns the config."""
    from PIL import Image

    (folder / "data" / "images").mkdir(parents=True)
    for page in range(PAGES):
        Image.new("RGB", (64, 64), (page, page, page)).save(folder / "data" / "images" / f"{page}.png")
    with (folder / "data" / "annotation.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["data_index", "image_path", "question", "answer", "doc_class", "question_type"])
        for n in range(rows):
            page = n % PAGES
            writer.writerow([page, f"images/{page}.png", f"What is in field {n} of the form?", n, "form", "text"])
    config = folder / "user_config.csv"
    config.write_text("dataset;backend;model_name;metrics\ndata;hf;tiny-qwen2-vl;['CER']\n", encoding="utf-8")
    return config


def step(name: str, folder: Path) -> None:
    """Child: do one step and print its seconds, rows and peak memory as JSON."""
    from vlmhb.config.plan import read_plan_config
    from vlmhb.engines import Engines
    from vlmhb.run.plan import ImageDigests, describe_job, plan_rows
    from vlmhb.run.store import RunStore

    config = folder / "user_config.csv"
    started, cpu = time.perf_counter(), time.process_time()
    registry = Engines()
    plan = read_plan_config(config, registry)
    with RunStore(folder / "run.sqlite") as store:
        if name == "answer":
            answer_half(store)
        else:
            digests = ImageDigests(store)
            described = {
                number: describe_job(job, registry.backend_info(job.backend)) for number, job in enumerate(plan.jobs, 1)
            }
            rows = (
                row
                for number, job in enumerate(plan.jobs, 1)
                for row in plan_rows(number, job, registry.backend_info(job.backend), digests)
            )
            store.replace_plan(described, rows)
            store.counts()
            store.most_images(described)
            left = store.pending_count(described)
            next(iter(store.pending(described)), None)
        if name == "ask":
            started, cpu = time.perf_counter(), time.process_time()
            left = sum(1 for _ in store.pending(described))
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "left": left if name != "answer" else 0, "peak": peak}))


def answer_half(store: object) -> None:
    """Store an answer to every second question."""
    from vlmhb import GenerationResult

    result = GenerationResult(id="", text="1", token_ids=(1,), finish_reason="stop")
    keys = [key for number, key in enumerate(question.key for question in store.pending([1])) if number % 2]  # type: ignore[attr-defined]
    store.save_all((key, result) for key in keys)  # type: ignore[attr-defined]


def measure(rows: int) -> dict[str, dict[str, float]]:
    """All steps on a dataset of so many rows."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        write_dataset(Path(name), rows)
        for one in ("plan", "answer", "resume", "ask"):
            command = [sys.executable, __file__, "--step", one, "--folder", name]
            found[one] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["plan"]["left"] == rows
    assert found["resume"]["left"] == rows - rows // 2 == found["ask"]["left"]
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--step", choices=("plan", "answer", "resume", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step(options.step, options.folder)
        return 0
    few, many = measure(1_000), measure(options.rows)
    failed = False
    for name in ("plan", "resume", "ask"):
        seconds, cpu, peak = (many[name][key] for key in ("seconds", "cpu", "peak"))
        per_row = (peak - few[name]["peak"]) / options.rows
        limit = LIMIT_SECONDS * options.rows / 1_000_000 if name != "ask" else None
        failed |= not record(f"{name} of {options.rows:,} rows", cpu, limit, unit="s of a core")
        failed |= not record(f"{name}, memory", per_row, LIMIT_BYTES, unit="bytes a row")
        print(f"{name:7} {seconds:6.1f} s ({cpu:.1f} s of a core), {options.rows:,} rows,", end=" ")
        print(f"{peak / 1e6:.0f} MB, {per_row:.0f} bytes a row")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
