"""What the framework adds around an engine: a whole run against calling the engine's plugin directly.

The same requests over the demo's pages, one torch thread, alternating rounds: 500 to the trained reader, and 1,400 to
the demo's random Qwen2-VL, seven in a row on a page, whose answers cost so little that all else shows. *Direct* is the
time of ``list(model.generate_requests(requests))``, requests in hand and model loaded. *Run* is everything ``vlmhb
run`` does from reading the config to the written exports (planning, decoding, storing, scoring), less loading the model
in its worker; the HTML report at its end is timed apart. Exit code 1 when the median of run/direct is above 1.05 or an
answer differs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import csv
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import vlmhb
from _results import record
from vlmhb.config.plan import read_plan_config
from vlmhb.contract.model import ModelInterface
from vlmhb.engines import Engines
from vlmhb.report.write import report_of_run
from vlmhb.run import runner
from vlmhb_demo import tiny_model

LIMIT = 1.05


class Clock:
    """A listener that notes how long loading took; ``report`` is what the report took."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.report = 0.0

    def timed_report(self, folder: Path, engines: Engines) -> list[str]:
        """Write the report and note the time."""
        start = time.perf_counter()
        notes = report_of_run(folder, engines)
        self.report = time.perf_counter() - start
        return notes

    def __getattr__(self, name: str) -> object:
        return lambda *arguments: None

    def loading(self, *arguments: object) -> None:
        """Start."""
        self.seconds -= time.perf_counter()

    def loaded(self, *arguments: object) -> None:
        """Stop."""
        self.seconds += time.perf_counter()


def write_dataset(folder: Path, pages: list[Path], count: int, each: int) -> list[tuple[str, Path]]:
    """A dataset of ``count`` different questions over the pages, ``each`` on one and the rest on all in turn."""
    (folder / "images").mkdir(parents=True)
    for page in pages:
        (folder / "images" / page.name).write_bytes(page.read_bytes())
    questions = [
        (f"Вопрос {number}: что здесь написано?", pages[number // each % len(pages)]) for number in range(count)
    ]
    with (folder / "annotation.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["data_index", "image_path", "question", "answer", "doc_class", "question_type"])
        writer.writerows((page.stem, f"images/{page.name}", text, "42", "form", "text") for text, page in questions)
    return [(text, folder / "images" / page.name) for text, page in questions]


def direct_round(model: ModelInterface, questions: list[tuple[str, Path]], max_tokens: int) -> tuple[float, list[str]]:
    """Seconds and answers of one direct call."""
    sampling = vlmhb.SamplingParams(max_tokens=max_tokens)
    requests = [
        vlmhb.GenerationRequest.ask(str(n), text, [vlmhb.ImageInput(path=str(page))], sampling=sampling)
        for n, (text, page) in enumerate(questions)
    ]
    start = time.perf_counter()
    results = {result.id: result.text for result in model.generate_requests(requests)}
    return time.perf_counter() - start, [results[request.id] for request in requests]


def run_round(config: Path, folder: Path) -> tuple[float, float, list[str]]:
    """Seconds of one whole run, less loading and less the report; those of the report; and its answers."""
    clock = Clock()
    runner.report_of_run = clock.timed_report
    start = time.perf_counter()
    registry = Engines()
    runner.run(read_plan_config(config, registry), registry, config, folder, clock)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start - clock.seconds - clock.report
    with (folder / "answers.csv").open(encoding="utf-8-sig", newline="") as file:
        return seconds, clock.report, [line["answer"] for line in csv.DictReader(file, delimiter=";")]


def measure(model_name: str, pages: list[Path], requests: int, each: int, max_tokens: int, rounds: int) -> bool:
    """Measure one model and print; returns whether the limit is kept."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        questions = write_dataset(folder / "dataset", pages, requests, each)
        config = folder / "user_config.csv"
        config.write_text(
            "dataset;backend;model_name;metrics;max_tokens;dtype\n"
            f"dataset;hf;{model_name};['CER','WER','exact_match'];{max_tokens};float32\n",
            encoding="utf-8",
        )
        ratios = []
        with vlmhb.load(model_name, backend="hf", dtype="float32") as model:
            direct_round(model, questions[:16], max_tokens)
            for number in range(rounds):
                direct, expected = direct_round(model, questions, max_tokens)
                whole, report, answers = run_round(config, folder / f"run{number}")
                if answers != expected:
                    print("the answers of the run differ from those of the direct call")
                    return False
                ratios.append(whole / direct)
                print(
                    f"round {number + 1}: direct {direct:.1f} s, run {whole:.1f} s, ratio {ratios[-1]:.3f}, "
                    f"report {report:.2f} s",
                    flush=True,
                )
    name = Path(model_name).name
    print(f"run / direct: {median(ratios):.3f} (limit {LIMIT}), {requests} requests to {name}, answers equal")
    return record(f"a run of {requests} requests to {name} with the plugin alone", median(ratios), LIMIT)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    pages = sorted(Path(Engines().named_datasets()["demo-documents"].path, "images").iterdir())
    with tempfile.TemporaryDirectory() as temporary:
        tiny = tiny_model.make(Path(temporary) / "tiny")
        kept = measure("vlmhb-reader", pages[:24], 500, 1, 64, arguments.rounds)
        kept &= measure(str(tiny), pages, 1400, 7, 16, arguments.rounds)
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
