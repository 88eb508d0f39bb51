"""What SGLang is here, and what can be set: read from package metadata and the system, without importing SGLang."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from vlmhb import BackendInfo, Capabilities, EngineOption

OPTIONS = (
    EngineOption(
        name="max_running_requests",
        type="int",
        minimum=1,
        help="most requests computed together (64 on a CPU, else SGLang's own)",
        changes_answers=False,
    ),
    EngineOption(
        name="max_total_tokens",
        type="int",
        minimum=1,
        help="most tokens in the KV cache (on a CPU four contexts, else what memory allows)",
        changes_answers=False,
    ),
    EngineOption(
        name="mem_fraction_static",
        type="float",
        minimum=0,
        maximum=1,
        help="share of memory for weights and KV cache (0.3 on a CPU)",
        changes_answers=False,
    ),
    EngineOption(
        name="tensor_parallel_size",
        type="int",
        default=1,
        minimum=1,
        help="GPUs that share one model",
        changes_answers=False,
    ),
    EngineOption(
        name="deterministic",
        type="bool",
        help="deterministic inference, without which SGLang ignores seeds (on on a CPU, off on a GPU)",
    ),
    EngineOption(
        name="enable_prefix_caching",
        type="bool",
        default=True,
        help="reuse the KV cache of equal prompt starts",
        changes_answers=False,
    ),
    EngineOption(
        name="attention_backend", type="str", help="attention kernels (torch_native on a CPU, else SGLang's own)"
    ),
    EngineOption(name="mm_attention_backend", type="str", help="attention kernels of the vision tower (sdpa on a CPU)"),
    EngineOption(
        name="chunked_prefill_size",
        type="int",
        help="most prompt tokens computed in one step",
        changes_answers=False,
    ),
    EngineOption(name="cuda_graph", type="bool", default=True, help="CUDA graphs on a GPU", changes_answers=False),
    EngineOption(name="quantization", type="str", help="quantization method, when the model's config does not name it"),
    EngineOption(name="engine_args", type="json", help="further arguments of SGLang's ServerArgs, as an object"),
)


def version() -> str | None:
    """The installed version of SGLang, or None."""
    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return None


def gpus(driver: Path = Path("/proc/driver/nvidia/gpus")) -> int:
    """How many NVIDIA GPUs the driver knows."""
    return len(list(driver.iterdir())) if driver.is_dir() else 0


def backend_info() -> BackendInfo:
    """The record of the backend ``sglang``."""
    installed = version()
    devices = (*(f"cuda:{index}" for index in range(gpus())), "cpu")
    return BackendInfo(
        name="sglang",
        engine="sglang",
        engine_version=installed,
        devices=devices if installed else (),
        capabilities=Capabilities(
            structured_output=True, logprobs=True, streaming=True, prefix_cache=True, batching=True, continuous=True
        ),
        options=OPTIONS,
        problem=None
        if installed
        else "SGLang is not installed here; make an environment for it: vlmhb env create sglang",
    )
