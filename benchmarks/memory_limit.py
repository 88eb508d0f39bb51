"""Whether a run under a memory limit ends with every row answered: 2,000 questions, pages of 100 to 5,000 pixels.

The limit bounds the address space of each process of ``vlmhb run`` (``RLIMIT_AS``). It is what a process with the model
loaded and one answer given takes, and so much more as a third of the largest batch would take by the plugin's
estimate. That the largest batch exceeds it is tried first: 32 different largest pages together, with the estimate out
of action, must run out of memory. Exit code 1 when they do not, or when a row is without an answer.

Usage: python benchmarks/memory_limit.py [--requests 2000] [--pages 40] [--max-pixels 800000]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

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

LARGEST = 32
"""Requests of the largest batch: the default of ``batch_size``."""
SMALLEST_SIDE, LARGEST_SIDE = 100, 5000
SHARE = 3
"""The limit leaves one such part of what the largest batch is estimated to take."""
MAX_TOKENS = 4
CONTEXT = 8192


def write_pages(folder: Path, count: int) -> list[str]:
    """Names of pages whose sides grow evenly in ratio from 100 to 5,000 pixels, every second one lying."""
    from PIL import Image

    folder.mkdir(parents=True)
    names = []
    for number in range(count):
        side = round(SMALLEST_SIDE * (LARGEST_SIDE / SMALLEST_SIDE) ** (number / max(1, count - 1)))
        size = (side, max(SMALLEST_SIDE, side * 7 // 10))
        cells = Image.effect_noise((48, 48), 60 + number).convert("RGB")
        names.append(f"{number:03}.jpg")
        cells.resize(size if number % 2 else size[::-1]).save(folder / names[-1], quality=60)
    return names


def write_run(folder: Path, model: Path, options: argparse.Namespace) -> Path:
    """The dataset and the config that asks it; returns the config's path."""
    pages = write_pages(folder / "dataset" / "images", options.pages)
    with (folder / "dataset" / "annotation.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["data_index", "image_path", "question", "answer", "doc_class", "question_type"])
        for number in range(options.requests):
            page = pages[number % len(pages)]
            long = " and again" * (100 if number % 17 == 0 else number % 3)
            writer.writerow(
                [number, f"images/{page}", f"Question {number}: what is written{long}?", "42", "form", "text"]
            )
    config = folder / "user_config.csv"
    config.write_text(
        "dataset;backend;model_name;metrics;max_tokens;max_pixels;dtype\n"
        f"dataset;hf;{model};['exact_match'];{MAX_TOKENS};{options.max_pixels};float32\n",
        encoding="utf-8",
    )
    return config


def with_long_context(model: Path) -> Path:
    """Let the tiny model take the longest prompts; its positions are computed, so nothing else changes."""
    file = model / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    for part in (config, config.get("text_config", {})):
        if "max_position_embeddings" in part:
            part["max_position_embeddings"] = CONTEXT
    file.write_text(json.dumps(config), encoding="utf-8")
    return model


def address_space(peak: bool = False) -> int:
    """Bytes of this process's address space, now or at most so far."""
    name = "VmPeak" if peak else "VmSize"
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def probe(model_folder: Path, page: Path, max_pixels: int) -> None:
    """In a process of its own: find the limit and try the largest batch under it; prints both as JSON."""
    import io

    from PIL import Image
    from vlmhb import GenerationRequest, ImageInput, SamplingParams
    from vlmhb_hf import HuggingFaceModel

    def request(number: int) -> GenerationRequest:
        buffer = io.BytesIO()
        Image.open(page).point(lambda value: (value + number) % 256).save(buffer, "JPEG", quality=60)
        image = ImageInput(data=buffer.getvalue(), name=f"{number}.jpg")
        return GenerationRequest.ask(str(number), "What?", [image], sampling=SamplingParams(max_tokens=MAX_TOKENS))

    with HuggingFaceModel().load(model_folder, dtype="float32", max_pixels=max_pixels) as model:
        one = next(iter(model.generate_requests([request(0)])))
        estimate = model._budget.needed(LARGEST, one.prompt_tokens + MAX_TOKENS)
        limit = address_space(peak=True) + estimate // SHARE
        requests = [request(number) for number in range(LARGEST)]
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        model._budget = None
        results = list(model.generate_requests(requests))
        print(json.dumps({
            "limit": limit, "tokens": one.prompt_tokens, "estimate": estimate, "answered": sum(r.ok for r in results),
            "ran_out": sum(any("memory ran out" in note for note in result.notes) for result in results),
            "failure": next((str(result.failure) for result in results if not result.ok), None),
        }))  # fmt: skip


def count_answers(folder: Path) -> tuple[int, int]:
    """Rows with an answer, and all rows."""
    with (folder / "answers.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    for row in [row for row in rows if row["status"] != "ok"][:3]:
        print(f"   {row}")
    return sum(row["status"] == "ok" for row in rows), len(rows)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--max-pixels", type=int, default=800_000)
    parser.add_argument("--probe", nargs=2, type=Path, metavar=("MODEL", "PAGE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        probe(*options.probe, options.max_pixels)
        return 0
    from vlmhb_demo import tiny_model

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = with_long_context(tiny_model.make(folder / "model"))
        config = write_run(folder, model, options)
        page = folder / "dataset" / "images" / f"{options.pages - 1:03}.jpg"
        command = [sys.executable, __file__, "--max-pixels", str(options.max_pixels), "--probe", str(model), str(page)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(f"limit {found['limit'] / 2**20:.0f} MiB of address space, largest prompt {found['tokens']} tokens")
        print(f"{LARGEST} of them without the estimate: memory ran out for {found['ran_out']} requests, {found}")
        start = time.perf_counter()
        run = subprocess.run(
            [str(Path(sys.executable).with_name("vlmhb")), "run", str(config), "--out", str(folder / "run")],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (found["limit"], resource.RLIM_INFINITY)),
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        if not (folder / "run" / "answers.csv").is_file():
            print(run.stdout[-3000:], run.stderr[-3000:])
            return 1
        answered, rows = count_answers(folder / "run")
        print(run.stdout[-1500:], run.stderr[-1500:])
    print(f"{answered} of {rows} rows answered in {seconds:.0f} s; exit code {run.returncode}")
    what = f"rows answered of {rows}, under a limit that {LARGEST} of the largest pages exceed"
    kept = record(what, answered, options.requests, at_least=True, unit="rows")
    return int(not kept or not found["ran_out"] or run.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
