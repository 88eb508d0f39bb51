"""How much is won when questions about one page share its computation: the hf plugin against the plain loop.

Pages of different sizes, several questions each or one, in float32 with one torch thread, in alternating rounds:

- plain: the model card's loop, one request at a time: chat template, the family's resizing where it has one (Qwen-VL:
  ``process_vision_info``), processor, ``model.generate``, ``batch_decode``;
- plugin: ``HuggingFaceModel.generate_requests`` with its defaults, and with ``reuse=off``.

Models: ``tiny`` (the demo's random Qwen2-VL), ``reader`` (its trained reader), a family of ``tests/engines``, or
a folder. Exit code 1 when a token differs, or when the tiny model's speed-up is below 7 with seven questions a page or
below 2.2 with one. At last, not timed: the share of the answers in bfloat16 that are those of the plain loop.

Usage: python benchmarks/hf_reuse.py [--models tiny reader llava] [--questions 7 1] [--pages 8] [--rounds 5] [--cpu]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from _results import record

os.environ.setdefault("OMP_NUM_THREADS", "1")

LIMITS = {7: 7.0, 1: 2.2}
"""Wanted of the tiny model, by questions a page."""

SHARE_DTYPE = "bfloat16"

MODELS = (
    *("tiny", "reader", "qwen2_5_vl", "qwen3_vl", "llava", "llava_onevision", "idefics3", "smolvlm", "mistral3"),
    *("gemma3", "paligemma", "minicpmv4_6"),
)

QUESTIONS = (
    "What is the number of the document?",
    "Какая фамилия указана в документе?",
    "What is the total to pay?",
    "Назовите дату.",
    "What is the date of birth?",
    "Кто подписал документ?",
    "Which currency is used?",
)

Answers = dict[str, tuple[int, ...]]


def write_pages(folder: Path, count: int) -> list[Path]:
    """Pages of different sizes: smooth patterns with lines across them."""
    import numpy as np
    from PIL import Image

    paths = []
    for seed in range(count):
        draw = np.random.default_rng(seed)
        width, height = int(draw.integers(300, 900)), int(draw.integers(300, 900))
        cells = draw.integers(0, 256, (height // 24, width // 24, 3), dtype=np.uint8)
        path = folder / f"page{seed:02}.png"
        Image.fromarray(cells).resize((width, height), Image.Resampling.BICUBIC).save(path)
        paths.append(path)
    return paths


class Plain:
    """The loop of a model card."""

    def __init__(self, folder: Path, max_tokens: int, dtype: str = "float32") -> None:
        import torch
        from transformers import AutoModelForImageTextToText, AutoProcessor

        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
        self.processor = AutoProcessor.from_pretrained(folder)
        self.max_tokens = max_tokens
        self.resizes = "qwen" in self.model.config.model_type

    def __call__(self, asked: list[tuple[str, Path]]) -> Answers:
        """Ask one by one."""
        return {str(index): self.answer(question, page) for index, (question, page) in enumerate(asked)}

    def answer(self, question: str, page: Path) -> tuple[int, ...]:
        """One request, from the file to the text."""
        image, images = self.pictures(question, page)
        messages = [{"role": "user", "content": [image, {"type": "text", "text": question}]}]
        text = self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        inputs = self.processor(text=[text], images=images, padding=True, return_tensors="pt").to(self.model.dtype)
        generated = self.model.generate(**inputs, max_new_tokens=self.max_tokens, do_sample=False)
        trimmed = generated[:, inputs.input_ids.shape[1] :]
        self.processor.batch_decode(trimmed, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return tuple(trimmed[0].tolist())

    def pictures(self, question: str, page: Path) -> tuple[dict[str, Any], list[Any]]:
        """The image's part of the message, and the pictures for the processor."""
        if not self.resizes:
            from PIL import Image

            return {"type": "image"}, [Image.open(page).convert("RGB")]
        from qwen_vl_utils import process_vision_info

        settings = self.processor.image_processor
        limits = {"min_pixels": settings.size["shortest_edge"], "max_pixels": settings.size["longest_edge"]}
        image = {"type": "image", "image": str(page), **limits}
        chat = [{"role": "user", "content": [image]}]
        return image, process_vision_info(chat, image_patch_size=settings.patch_size)[0]


def plugin(model: Any, asked: list[tuple[str, Path]], max_tokens: int) -> Answers:
    """All requests through the plugin."""
    from vlmhb import GenerationRequest, ImageInput, SamplingParams

    sampling = SamplingParams(max_tokens=max_tokens)
    requests = (
        GenerationRequest.ask(str(index), question, [ImageInput(path=str(page))], sampling=sampling)
        for index, (question, page) in enumerate(asked)
    )
    return {result.id: result.token_ids for result in model.generate_requests(requests)}


def model_folder(name: str, work: Path) -> Path:
    """The folder of ``tiny``, ``reader`` or a family's twin, made in ``work``; else the one named."""
    import vlmhb_demo

    if name == "tiny":
        from vlmhb_demo import tiny_model

        return tiny_model.make(work / name)
    if name == "reader":
        return Path(vlmhb_demo.__file__).parent / "vlmhb-reader"
    if Path(name).is_dir():
        return Path(name)
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "engines"))
    import twins

    made: Path = twins.make(name, work / name)
    return made


def rounds(
    runs: dict[str, Callable[[], Answers]], count: int, clock: Callable[[], float]
) -> tuple[dict[str, list[float]], dict[str, Answers]]:
    """Seconds of each round and the last answers of each way; a round is all ways, one after the other."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    answers: dict[str, Answers] = {}
    for number in range(count + 1):
        for name, run in runs.items():
            start = clock()
            answers[name] = run()
            if number:  # the first warms up
                seconds[name].append(clock() - start)
    return seconds, answers


def measure(name: str, questions: int, options: argparse.Namespace, work: Path) -> bool:
    """Measure one model with so many questions a page, and print; returns whether all is as wanted."""
    from vlmhb_hf import HuggingFaceModel

    folder = model_folder(name, work)
    asked = [(question, page) for page in write_pages(work, options.pages) for question in QUESTIONS[:questions]]
    plain = Plain(folder, options.max_tokens)
    with (
        HuggingFaceModel().load(folder, dtype="float32", threads=1) as shared,
        HuggingFaceModel().load(folder, dtype="float32", threads=1, reuse="off") as alone,
    ):
        runs = {
            "plain": lambda: plain(asked),
            "reuse=off": lambda: plugin(alone, asked, options.max_tokens),
            "plugin": lambda: plugin(shared, asked, options.max_tokens),
        }
        seconds, answers = rounds(runs, options.rounds, time.process_time if options.cpu else time.perf_counter)
        print(f"== {name}, {questions} question(s) a page; reuse: {shared.facts()['reuse']}")
    return report(name, questions, seconds, answers)


def share(name: str, questions: int, options: argparse.Namespace, work: Path) -> None:
    """Print and record how many answers in 16 bits are those of the plain loop, with and without reuse."""
    from vlmhb_hf import HuggingFaceModel

    folder = model_folder(name, work)
    asked = [(question, page) for page in write_pages(work, options.pages) for question in QUESTIONS[:questions]]
    wanted = Plain(folder, options.max_tokens, SHARE_DTYPE)(asked)
    for reuse in ("auto", "off"):
        with HuggingFaceModel().load(folder, dtype=SHARE_DTYPE, threads=1, reuse=reuse) as model:
            found = plugin(model, asked, options.max_tokens)
        equal = sum(found[id] == tokens for id, tokens in wanted.items()) / len(wanted)
        what = (
            f"{name}, {questions} question(s) a page, {SHARE_DTYPE}, reuse={reuse}: answers equal to the plain loop's"
        )
        print(f"{what}: {equal:.3f} of {len(wanted)}", flush=True)
        record(what, 100 * equal, unit="%")


def report(name: str, questions: int, seconds: dict[str, list[float]], answers: dict[str, Answers]) -> bool:
    """Print the ratios; returns whether all is as wanted."""
    different = 0
    for way, spent in seconds.items():
        ratios = [plain / own for plain, own in zip(seconds["plain"], spent, strict=True)]
        wrong = [id for id, tokens in answers["plain"].items() if answers[way].get(id) != tokens]
        different += len(wrong)
        shown = " ".join(f"{ratio:.2f}" for ratio in ratios)
        rate = len(answers["plain"]) / median(spent)
        print(f"{way:10} {rate:7.2f} requests/s  {median(ratios):5.2f} times plain (rounds: {shown})")
    limit = LIMITS.get(questions) if name == "tiny" else None
    reached = median(plain / own for plain, own in zip(seconds["plain"], seconds["plugin"], strict=True))
    print(f"{reached:.2f} times plain, {limit or 'no limit'} wanted; {different} answers differ", flush=True)
    kept = record(f"{name}, {questions} question(s) a page, requests/s with plain loop", reached, limit, at_least=True)
    return kept and not different


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--questions", nargs="+", type=int, default=[7, 1])
    parser.add_argument("--pages", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=16)
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds, for a machine that others use too")
    options = parser.parse_args()

    import torch

    torch.set_num_threads(1)
    good = True
    for name in options.models:
        for questions in options.questions:
            with tempfile.TemporaryDirectory() as temporary:
                good &= measure(name, questions, options, Path(temporary))
        with tempfile.TemporaryDirectory() as temporary:
            share(name, options.questions[0], options, Path(temporary))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
