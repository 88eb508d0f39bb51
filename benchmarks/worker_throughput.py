"""What the worker costs: the same requests through a worker and directly on the same engine in the same environment.

Both hold the model loaded; rounds alternate between them, and the one whose turn it is not is stopped. ``direct`` is a
process of the engine's environment that calls ``generate_requests`` in a loop; ``worker`` is ``vlmhb.worker`` with this
process as its owner. Exit code 1 when the worker's requests a second are less than 0.95 of the direct ones.

The engines are the scripted one of the tests (2 ms an answer, more than any real engine's rate), in an environment made
for it, and the real ones that have an environment, with the demo's random model and a page of it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import psutil
from _engines import installed
from _results import record

LIMIT = 0.95
ROOT = Path(__file__).parents[1]
SPECS: dict[str, dict[str, object]] = {
    "scripted": {"delay": 0.002},
    "hf": {"dtype": "float32"},
    "vllm": {"dtype": "float32", "kv_cache_gib": 0.5},
    "sglang": {"dtype": "float32"},
}
"""How each engine is loaded; both ways hold a model at once, so with little memory."""


def make_requests(options: argparse.Namespace) -> Iterator[object]:
    """The workload: short questions, each with the image when one was given."""
    from vlmhb import GenerationRequest, ImageInput, SamplingParams

    images = [ImageInput(path=str(Path(options.image).absolute()))] if options.image else []
    sampling = SamplingParams(max_tokens=options.max_tokens)
    for number in range(options.requests):
        yield GenerationRequest.ask(str(number), f"What is the total of line {number}?", images, sampling=sampling)


def direct_process(options: argparse.Namespace) -> None:
    """Child: load the model here and answer the workload for every line on stdin."""
    import os

    from vlmhb.contract.model import GenerationControl, make_spec
    from vlmhb.discovery.registry import Registry

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    registry = Registry()
    spec = make_spec(registry.backend_info(options.backend), options.model, **json.loads(options.spec))
    model = registry.load_model(options.backend, spec)
    print("ready", file=out, flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        count = sum(result.ok for result in model.generate_requests(make_requests(options), GenerationControl()))
        print(json.dumps([time.perf_counter() - started, count]), file=out, flush=True)
    model.close()


def through_worker(options: argparse.Namespace) -> tuple[Callable[[], tuple[float, int]], Callable[[], None]]:
    """A function that answers the workload through a worker, and one that ends the worker."""
    from vlmhb.worker.launch import Launch
    from vlmhb.worker.model import WorkerModel

    model = WorkerModel(options.backend, Launch(python=options.python))
    model.load(options.model, **json.loads(options.spec))

    def answer() -> tuple[float, int]:
        started = time.perf_counter()
        count = sum(result.ok for result in model.generate_requests(make_requests(options)))
        return time.perf_counter() - started, count

    return answer, model.close


def directly(options: argparse.Namespace) -> tuple[Callable[[], tuple[float, int]], Callable[[], None]]:
    """The same in a process of the engine's environment without a worker."""
    command = [options.python, __file__, "--direct", "--backend", options.backend, "--model", options.model]
    command += ["--spec", options.spec, "--requests", str(options.requests), "--image", options.image]
    child = subprocess.Popen(
        [*command, "--max-tokens", str(options.max_tokens)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"

    def answer() -> tuple[float, int]:
        child.stdin.write("go\n")  # type: ignore[union-attr]
        child.stdin.flush()  # type: ignore[union-attr]
        seconds, count = json.loads(child.stdout.readline())  # type: ignore[union-attr]
        return seconds, count

    def end() -> None:
        child.stdin.close()  # type: ignore[union-attr]
        child.wait()

    return answer, end


@contextlib.contextmanager
def resting(processes: set[psutil.Process]) -> Iterator[None]:
    """Stop processes for a while: an idle engine of SGLang asks for work all the time, and takes a core for it."""
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


def compare(options: argparse.Namespace) -> float:
    """Run the alternating rounds and return the ratio of the median rates."""
    ways = {"direct": directly(options)}
    mine = {"direct": set(psutil.Process().children(recursive=True))}
    with resting(mine["direct"]):
        ways["worker"] = through_worker(options)
    mine["worker"] = set(psutil.Process().children(recursive=True)) - mine["direct"]
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(options.rounds + 1):
        for name, (answer, _) in ways.items():
            other = "worker" if name == "direct" else "direct"
            with resting(mine[other]):
                seconds, count = answer()
            assert count == options.requests, f"{name}: {count} of {options.requests} requests were answered"
            if number:  # the first round warms up
                rates[name].append(count / seconds)
    for _, end in ways.values():
        end()
    for name, values in rates.items():
        print(f"{name}: median {median(values):.1f} requests/s (from {min(values):.1f} to {max(values):.1f})")
    return median(rates["worker"]) / median(rates["direct"])


def place(backend: str, folder: Path) -> dict[str, str]:
    """The Python, the model and the image to measure a backend with."""
    if backend == "scripted":
        sys.path.insert(0, str(ROOT / "tests"))
        from support.envs import CORE, SCRIPTED, make_env

        return {"python": str(make_env(folder / "env", CORE, SCRIPTED).python), "model": "small", "image": ""}
    from vlmhb.environments.manage import find_environment
    from vlmhb_demo import DATASET, tiny_model

    found = find_environment(backend, rebuild=print)
    if found is None:
        raise SystemExit(f"there is no environment for {backend}; make it: vlmhb env create {backend}")
    page = sorted((DATASET / "images").iterdir())[0]
    return {"python": found.python, "model": str(tiny_model.make(folder / "model")), "image": str(page)}


def main() -> int:
    """Run the benchmark; 1 when a ratio is below the limit."""
    parser = argparse.ArgumentParser(description="throughput through a worker against direct use")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--max-tokens", type=int, default=16)
    parser.add_argument("--backends", help="comma-separated; left out: scripted and all that have an environment")
    for name in ("backend", "python", "model", "image", "spec"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("--direct", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.direct:
        direct_process(options)
        return 0
    failed = False
    for backend in (options.backends or f"scripted,{installed()}").strip(",").split(","):
        with tempfile.TemporaryDirectory() as folder:
            chosen = {"backend": backend, "spec": json.dumps(SPECS[backend]), **place(backend, Path(folder))}
            ratio = compare(argparse.Namespace(**{**vars(options), **chosen}))
        print(f"{backend}: worker / direct: {ratio:.3f} (limit {LIMIT})", flush=True)
        failed |= not record(f"requests a second on {backend} in a worker with direct", ratio, LIMIT, at_least=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
