"""From a model spec to vLLM's settings: environment variables first, then the arguments of the engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from vlmhb import ModelSpec
from vlmhb.errors import ModelLoadError

if TYPE_CHECKING:
    from vlmhb.prompting import PromptBuilder

MODEL_IMPL = {"auto": "auto", "native": "vllm", "transformers": "transformers"}
"""vlmhb's names of the model implementations -> vLLM's."""

CPU_MAX_NUM_SEQS = 16
CPU_KV_CACHE_GIB = 4.0
CPU_BLOCK_SIZE = 32
"""vLLM's default on a CPU is 128 tokens, and only whole blocks are reused: most prompts would never hit the cache."""

GIB = 1 << 30


def set_environment(*, cpu: bool, options: dict[str, Any]) -> None:
    """Set what vLLM reads from the environment, before it is imported. What the user has set stays.

    On a CPU everything runs in this process: starting vLLM's two further processes costs more than they bring there,
    and nothing can be left behind. ``engine_process`` overrules the variable, since the user asked for it here.
    """
    wanted = {
        "VLLM_NO_USAGE_STATS": "1",  # nothing leaves the machine
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # stdout belongs to answers
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    }
    own_process = options.get("engine_process")
    if own_process is None and cpu:
        wanted["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    if cpu and options.get("enforce_eager") is not False:
        # vLLM compiles some helpers (log-probabilities, grammar masks) even in eager mode: half a minute on a CPU.
        wanted["TORCHDYNAMO_DISABLE"] = "1"
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    if own_process is not None:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1" if own_process else "0"


def in_one_process() -> bool:
    """Whether vLLM's engine core will run in this process."""
    return os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0"


def engine_arguments(spec: ModelSpec, builder: PromptBuilder, *, cpu: bool) -> dict[str, Any]:
    """The arguments of ``vllm.LLM`` for a spec; ``options["engine_args"]`` overrules all of them.

    Args:
        spec: what to load.
        builder: makes the prompts of this model; knows its folder, its limits and its image processor.
        cpu: whether the device is a CPU.

    Raises:
        ModelLoadError: a value that vLLM could not make sense of.
    """
    options = {name: value for name, value in spec.options.items() if value is not None}
    extra = options.get("engine_args", {})
    if not isinstance(extra, dict):
        raise ModelLoadError(f"option engine_args must be an object of vLLM's engine arguments, not {extra!r}")
    parallel = options.get("tensor_parallel_size", 1)
    arguments: dict[str, Any] = {
        "model": str(builder.folder.path),
        "dtype": builder.folder.dtype_for(spec),
        "max_model_len": spec.max_model_len,
        "model_impl": MODEL_IMPL[spec.model_impl],
        "trust_remote_code": spec.trust_remote_code,
        "seed": 0,
        "generation_config": "vllm",  # sampling defaults come from the request, not from the model's folder
        "disable_log_stats": False,  # without it there are no times
        "max_logprobs": -1,
        "logprobs_mode": "raw_logprobs",
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        "enable_prefix_caching": options.get("enable_prefix_caching", True),
        "enforce_eager": options.get("enforce_eager", cpu),
        "gpu_memory_utilization": options.get("gpu_memory_utilization", 0.9),
        "tensor_parallel_size": parallel,
        "use_tqdm_on_load": False,
    }
    if builder.takes_images:
        arguments["limit_mm_per_prompt"] = {"image": builder.max_images, "video": 0}
        arguments["mm_processor_kwargs"] = processor_arguments(builder)
    for name in ("max_num_seqs", "max_num_batched_tokens", "block_size", "quantization"):
        if name in options:
            arguments[name] = options[name]
    if cpu:
        arguments.setdefault("max_num_seqs", CPU_MAX_NUM_SEQS)
        arguments.setdefault("block_size", CPU_BLOCK_SIZE)
    arguments.update(_kv_cache(options, cpu=cpu))
    if parallel == 1 and in_one_process():
        arguments["distributed_executor_backend"] = "uni"
    if spec.device.startswith("cuda:"):
        arguments["device_ids"] = _device_ids(spec.device, parallel)
    return {**arguments, **extra}


def processor_arguments(builder: PromptBuilder) -> dict[str, Any] | None:
    """Arguments for the image processor inside vLLM, so that it leaves the sizes that the pictures already have.

    The bounds on the size are named too: vLLM finds out from them how many tokens a picture may have.
    """
    arguments = dict(builder.family.processor_options)
    if arguments.get("do_resize") is False:
        size = builder.processor.image_processor.size
        arguments["size"] = {"shortest_edge": size["shortest_edge"], "longest_edge": size["longest_edge"]}
    return arguments or None


def _kv_cache(options: dict[str, Any], *, cpu: bool) -> dict[str, int]:
    """The KV cache's size, unless vLLM should find it (on a GPU) or the user's environment says it."""
    size = options.get("kv_cache_gib")
    if size is None:
        if not cpu or os.environ.get("VLLM_CPU_KVCACHE_SPACE"):
            return {}
        size = CPU_KV_CACHE_GIB
    if size <= 0:
        raise ModelLoadError(f"option kv_cache_gib must be above 0, not {size}")
    return {"kv_cache_memory_bytes": int(size * GIB)}


def _device_ids(device: str, count: int) -> list[int]:
    first = device.removeprefix("cuda:")
    if not first.isdigit():
        raise ModelLoadError(f"device must be auto, cpu, cuda or cuda:N with a number N, not {device!r}")
    return list(range(int(first), int(first) + count))
