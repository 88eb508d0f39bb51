"""How long until the first answer: ``vlmhb run`` against a short script that uses the engine by itself.

Both are started from nothing, alternately. *Direct* is a process of the engine's environment that imports the engine,
loads the demo's tiny Qwen2-VL in float32, asks it about four pages in one call, and says so when the answers are there.
*Run* is the command with a config of one row and the same four questions; its time ends when the first answer is in the
run's database. Exit code 1 when the median of run is above 1.1 times that of direct for one of the engines.

Usage: python benchmarks/first_answer.py [--backends hf,vllm,sglang] [--rounds N]

The engines come from where ``vlmhb run`` would take them: this environment, or their managed ones.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from _engines import installed
from _results import record

os.environ.setdefault("OMP_NUM_THREADS", "1")

LIMIT = 1.1
PAGES = 4
MAX_TOKENS = 8

PROMPTS = """
import json, sys
from PIL import Image

model_path, pages = sys.argv[1], json.loads(sys.argv[2])
images = [Image.open(page).convert("RGB") for page in pages]
text = "<|im_start|>user\\n<|vision_start|><|image_pad|><|vision_end|>What is the total?<|im_end|>\\n"
prompts = [text + "<|im_start|>assistant\\n"] * len(images)
"""
DIRECT = {
    "hf": """
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor
processor = AutoProcessor.from_pretrained(model_path)
processor.tokenizer.padding_side = "left"
model = AutoModelForImageTextToText.from_pretrained(model_path, dtype=torch.float32).eval()
inputs = processor(text=prompts, images=images, padding=True, return_tensors="pt")
with torch.inference_mode():
    model.generate(**inputs, max_new_tokens=MAX_TOKENS, do_sample=False)
""",
    "vllm": """
import os
os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "TORCHDYNAMO_DISABLE": "1", "VLLM_NO_USAGE_STATS": "1"}
from vllm import LLM, SamplingParams
llm = LLM(model_path, dtype="float32", enforce_eager=True, max_num_seqs=16, block_size=32, seed=0,
          kv_cache_memory_bytes=4 << 30, limit_mm_per_prompt={"image": 1, "video": 0},
          distributed_executor_backend="uni")
asked = [{"prompt": p, "multi_modal_data": {"image": i}} for p, i in zip(prompts, images)]
llm.generate(asked, SamplingParams(temperature=0, max_tokens=MAX_TOKENS))
""",
    "sglang": """
import os
os.environ |= {"SGLANG_USE_CPU_ENGINE": "0", "SGLANG_PLATFORM": "vlmhb_cpu", "TORCHDYNAMO_DISABLE": "1",
               "CUDA_VISIBLE_DEVICES": ""}
import sglang
if __name__ == "__main__":
    engine = sglang.Engine(
        model_path=model_path, device="cpu", attention_backend="torch_native", mm_attention_backend="sdpa",
        disable_cuda_graph=True, mem_fraction_static=0.3, max_total_tokens=8192, dtype="float32",
        enable_multimodal=True, disable_overlap_schedule=True, skip_server_warmup=True, sampling_backend="pytorch",
        grammar_backend="xgrammar", log_level="error")
    engine.generate(prompt=prompts, image_data=images, sampling_params={"temperature": 0, "max_new_tokens": MAX_TOKENS})
""",
}
"""What somebody writes who uses the engine without vlmhb, with the settings that vlmhb gives it on a CPU."""


def make_run(folder: Path, model: Path, pages: list[Path], backend: str) -> Path:
    """A config of one row that asks each page once."""
    (folder / "dataset" / "images").mkdir(parents=True)
    rows = [("data_index", "image_path", "question", "answer", "doc_class", "question_type")]
    for page in pages:
        (folder / "dataset" / "images" / page.name).write_bytes(page.read_bytes())
        rows.append((page.stem, f"images/{page.name}", "What is the total?", "42", "form", "number"))
    write(folder / "dataset" / "annotation.csv", rows)
    write(folder / "vlm_base.csv", [("model_name", "model_path", "dtype"), ("tiny", str(model), "float32")])
    rows = [("dataset", "backend", "model_name", "max_tokens"), ("dataset", backend, "tiny", str(MAX_TOKENS))]
    return write(folder / "user_config.csv", rows)


def write(path: Path, rows: list[tuple[str, ...]]) -> Path:
    """A table with semicolons."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    return path


def time_direct(python: str, script: Path, model: Path, pages: list[Path], log: Path) -> float:
    """Seconds from the start of the script until its answers are there."""
    command = [python, str(script), str(model), json.dumps([str(page) for page in pages])]
    with log.open("ab") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output)
        assert process.stdout is not None
        for line in process.stdout:
            if line == b"answered\n":
                seconds = time.perf_counter() - started
                process.communicate()
                return seconds
    raise RuntimeError(f"the direct script ended with {process.wait()}; see {log}")


def time_run(config: Path, out: Path, log: Path) -> float:
    """Seconds from the start of ``vlmhb run`` until an answer is stored."""
    command = [str(Path(sys.executable).with_name("vlmhb")), "run", str(config), "--out", str(out)]
    with log.open("ab") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=output)
        while not stored(out / "run.sqlite"):
            if process.poll() is not None:
                raise RuntimeError(f"vlmhb run ended with {process.returncode}; see {log}")
            time.sleep(0.01)
        seconds = time.perf_counter() - started
        process.wait()
    return seconds


def stored(database: Path) -> bool:
    """Whether the database holds an answer."""
    if not database.exists():
        return False
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM answers WHERE ok").fetchone()[0] > 0
    except sqlite3.OperationalError:
        return False


def measure(backend: str, rounds: int, folder: Path) -> float:
    """Alternating rounds on one engine; the ratio of the medians."""
    from vlmhb.environments.manage import find_environment
    from vlmhb_demo import DATASET, tiny_model

    launch = find_environment(backend)
    if launch is None:
        raise SystemExit(f"there is no environment for {backend}; make it: vlmhb env create {backend}")
    model = tiny_model.make(folder / "model")
    pages = sorted((DATASET / "images").iterdir())[:PAGES]
    config = make_run(folder, model, pages, backend)
    script = folder / "direct.py"
    source = f"{PROMPTS}MAX_TOKENS = {MAX_TOKENS}\n{DIRECT[backend]}"
    said = 'print("answered", flush=True)\n'
    script.write_text(source + ("    " if "__main__" in source else "") + said)
    times: dict[str, list[float]] = {"direct": [], "run": []}
    for number in range(rounds + 1):
        direct = time_direct(launch.python, script, model, pages, folder / "direct.log")
        run = time_run(config, folder / f"out-{number}", folder / "run.log")
        if number:  # the first round warms the disk's cache up
            times["direct"].append(direct)
            times["run"].append(run)
    found = {name: median(values) for name, values in times.items()}
    ratio = found["run"] / found["direct"]
    print(
        f"{backend:>7}: direct {found['direct']:.1f} s, vlmhb run {found['run']:.1f} s, ratio {ratio:.2f}", flush=True
    )
    return ratio


def main() -> int:
    """Measure the engines one after another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", help="comma-separated; left out: all that have an environment")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    worst = 0.0
    for backend in (options.backends or installed()).split(","):
        with tempfile.TemporaryDirectory() as folder:
            ratio = measure(backend, options.rounds, Path(folder))
            record(f"`vlmhb run` on {backend} with a script, to the first answer", ratio, LIMIT)
            worst = max(worst, ratio)
    print(f"worst: {worst:.2f} (limit {LIMIT})")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
