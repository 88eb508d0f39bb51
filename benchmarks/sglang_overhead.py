"""What vlmhb's way through SGLang costs: ``SGLangModel.generate_requests`` against the engine's own interface.

200 questions about 40 pages, on the demo's tiny Qwen2-VL in float32, by one and the same engine in this process, in
alternating rounds. Each turn has pages of its own, of the same sizes with other colours: nothing of the engine's
caches (prefixes, picture embeddings) is left over from the other way.

- direct: what ``Engine.generate`` does with all prompts and pictures in one call: apply_chat_template and
  process_vision_info for every request, then ``Engine.async_generate``;
- vlmhb: ``generate_requests``.

Exit code 1 when vlmhb answers less than 0.95 times as many requests a second, or when one token differs on the pages
that both are asked about before the rounds. To be run by the Python of an environment that holds SGLang,
vlmhb-sglang and vlmhb-demo.

Usage: python benchmarks/sglang_overhead.py [--rounds N] [--requests N] [--max-tokens N] [--deterministic 0|1]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from _results import record

os.environ.setdefault("OMP_NUM_THREADS", "1")

LIMIT = 0.95
QUESTIONS = 5

Answers = dict[str, tuple[int, ...]]
Asked = list[tuple[str, Path]]


def write_pages(folder: Path, count: int, seed: int) -> Asked:
    """Questions about smooth random patterns: sizes are the same for every seed."""
    import numpy as np
    from PIL import Image

    sizes, colours = np.random.default_rng(0), np.random.default_rng(seed)
    asked = []
    for number in range(count):
        width, height = int(sizes.integers(300, 900)), int(sizes.integers(300, 900))
        cells = colours.integers(0, 256, (height // 24, width // 24, 3), dtype=np.uint8)
        path = folder / f"page-{seed}-{number}.png"
        Image.fromarray(cells).resize((width, height), Image.Resampling.BICUBIC).save(path)
        asked.extend((f"What is in field {question}?", path) for question in range(QUESTIONS))
    return asked


def ask_directly(model: Any, asked: Asked, max_tokens: int) -> Answers:
    """All requests in one call."""
    from qwen_vl_utils import process_vision_info

    processor = model._asking._builder.processor
    size = processor.image_processor.size
    bounds = {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]}
    prompts, pictures = [], []
    for question, path in asked:
        content = [{"type": "image", "image": str(path), **bounds}, {"type": "text", "text": question}]
        messages = [{"role": "user", "content": content}]
        prompts.append(processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        images, _ = process_vision_info(messages)
        pictures.append(images)
    call = model._engine.async_generate(
        prompt=prompts, image_data=pictures, sampling_params={"temperature": 0, "max_new_tokens": max_tokens}
    )
    outputs = asyncio.run_coroutine_threadsafe(call, model._pump._loop).result()
    return {str(number): tuple(output["output_ids"]) for number, output in enumerate(outputs)}


def ask_vlmhb(model: Any, asked: Asked, max_tokens: int) -> Answers:
    """The same through vlmhb."""
    from vlmhb import GenerationRequest, ImageInput, SamplingParams

    sampling = SamplingParams(max_tokens=max_tokens)
    requests = (
        GenerationRequest.ask(str(number), question, [ImageInput(path=str(path))], sampling=sampling)
        for number, (question, path) in enumerate(asked)
    )
    return {result.id: result.token_ids for result in model.generate_requests(requests)}


WAYS = {"direct": ask_directly, "vlmhb": ask_vlmhb}


def main() -> int:
    """Run the rounds and say the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--deterministic", type=int, choices=(0, 1), default=1)
    options = parser.parse_args()

    from vlmhb_demo import tiny_model
    from vlmhb_sglang import SGLangModel

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        path = tiny_model.make(folder / "model")
        with SGLangModel().load(path, dtype="float32", deterministic=bool(options.deterministic)) as model:
            print(f"loaded in {time.perf_counter() - started:.1f} s")
            count = options.requests // QUESTIONS
            same = write_pages(folder, count, seed=1)
            answers = {way: ask(model, same, options.max_tokens) for way, ask in WAYS.items()}
            if answers["direct"] != answers["vlmhb"]:
                print("the tokens differ")
                return 1
            seconds: dict[str, list[float]] = {way: [] for way in WAYS}
            for turn in range(options.rounds):
                for way in list(WAYS) if turn % 2 else list(WAYS)[::-1]:
                    asked = write_pages(folder, count, seed=10 * turn + list(WAYS).index(way) + 2)
                    started = time.perf_counter()
                    WAYS[way](model, asked, options.max_tokens)
                    seconds[way].append(time.perf_counter() - started)
    for way, times in seconds.items():
        print(f"{way:>7}: {options.requests / median(times):6.1f} requests/s")
    ratio = median(d / v for d, v in zip(seconds["direct"], seconds["vlmhb"], strict=True))
    print(f"vlmhb / direct: {ratio:.3f} (median of {options.rounds} rounds; at least {LIMIT})")
    return int(not record("requests a second through vlmhb with sglang alone", ratio, LIMIT, at_least=True))


if __name__ == "__main__":
    sys.exit(main())
