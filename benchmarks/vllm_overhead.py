"""What vlmhb's way through vLLM costs: ``VLLMModel.generate_requests`` against vLLM's own ``LLM.generate``.

200 questions about 40 pages, on the demo's tiny Qwen2-VL in float32, by one and the same engine in this process, in
alternating rounds with fresh pages and emptied caches:

- direct: the script of the Qwen2-VL model card for vLLM: apply_chat_template, process_vision_info for every request,
  then one ``LLM.generate`` with all of them;
- vlmhb: ``generate_requests``.

Exit code 1 when vlmhb answers less than 0.95 times as many requests a second, or when one token differs. To be run by
the Python of an environment that holds vLLM, vlmhb-vllm and vlmhb-demo.

Usage: python benchmarks/vllm_overhead.py [--rounds N] [--requests N] [--max-tokens N]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from _results import record

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

LIMIT = 0.95
QUESTIONS = 5

Answers = dict[str, tuple[int, ...]]
Asked = list[tuple[str, Path]]


def write_pages(folder: Path, count: int, seed: int) -> list[Path]:
    """Pages of different sizes: smooth random patterns."""
    import numpy as np
    from PIL import Image

    draw = np.random.default_rng(seed)
    paths = []
    for number in range(count):
        width, height = int(draw.integers(300, 900)), int(draw.integers(300, 900))
        cells = draw.integers(0, 256, (height // 24, width // 24, 3), dtype=np.uint8)
        path = folder / f"page-{seed}-{number}.png"
        Image.fromarray(cells).resize((width, height), Image.Resampling.BICUBIC).save(path)
        paths.append(path)
    return paths


def ask_directly(llm: Any, processor: Any, asked: Asked, max_tokens: int) -> tuple[Answers, float]:
    """All requests in one call; answers, and seconds until the first of them was there."""
    from qwen_vl_utils import process_vision_info
    from vllm import SamplingParams

    started = time.perf_counter()
    size = processor.image_processor.size
    bounds = {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]}
    inputs = []
    for question, path in asked:
        content = [{"type": "image", "image": str(path), **bounds}, {"type": "text", "text": question}]
        messages = [{"role": "user", "content": content}]
        text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        images, _ = process_vision_info(messages)
        inputs.append({"prompt": text, "multi_modal_data": {"image": images}})
    outputs = llm.generate(inputs, SamplingParams(temperature=0, max_tokens=max_tokens), use_tqdm=False)
    answers = {str(number): tuple(output.outputs[0].token_ids) for number, output in enumerate(outputs)}
    return answers, time.perf_counter() - started


def ask_vlmhb(model: Any, asked: Asked, max_tokens: int) -> tuple[Answers, float]:
    """The same through vlmhb."""
    from vlmhb import GenerationRequest, ImageInput, SamplingParams

    started = time.perf_counter()
    sampling = SamplingParams(max_tokens=max_tokens)
    requests = (
        GenerationRequest.ask(str(number), question, [ImageInput(path=str(path))], sampling=sampling)
        for number, (question, path) in enumerate(asked)
    )
    answers: Answers = {}
    first = 0.0
    for result in model.generate_requests(requests):
        first = first or time.perf_counter() - started
        answers[result.id] = result.token_ids
    return answers, first


def main() -> int:
    """Run the rounds and say the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--max-tokens", type=int, default=24)
    options = parser.parse_args()

    from vlmhb_demo import tiny_model
    from vlmhb_vllm import VLLMModel

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = VLLMModel().load(tiny_model.make(folder / "model"), dtype="float32", kv_cache_gib=1.0)
        llm, processor = model._llm, model._builder.processor
        seconds: dict[str, list[float]] = {"direct": [], "vlmhb": []}
        firsts: dict[str, list[float]] = {"direct": [], "vlmhb": []}
        for turn in range(options.rounds + 1):
            pages = write_pages(folder, options.requests // QUESTIONS, seed=turn)
            asked = [(f"What is in field {q}?", page) for page in pages for q in range(QUESTIONS)]
            answers = {}
            for way in ("direct", "vlmhb") if turn % 2 else ("vlmhb", "direct"):
                llm.reset_prefix_cache()
                llm.reset_mm_cache()
                started = time.perf_counter()
                if way == "direct":
                    answers[way], first = ask_directly(llm, processor, asked, options.max_tokens)
                else:
                    answers[way], first = ask_vlmhb(model, asked, options.max_tokens)
                if turn:  # the first round warms up
                    seconds[way].append(time.perf_counter() - started)
                    firsts[way].append(first)
            if answers["direct"] != answers["vlmhb"]:
                print("the tokens differ")
                return 1
        model.close()
    rates = {way: len(asked) / median(times) for way, times in seconds.items()}
    for way, rate in rates.items():
        print(f"{way:>7}: {rate:6.1f} requests/s, first answer after {median(firsts[way]):.2f} s")
    ratio = median(d / v for d, v in zip(seconds["direct"], seconds["vlmhb"], strict=True))
    print(f"vlmhb / direct: {ratio:.3f} (median of {options.rounds} rounds; at least {LIMIT})")
    return int(not record("requests a second through vlmhb with vllm alone", ratio, LIMIT, at_least=True))


if __name__ == "__main__":
    sys.exit(main())
