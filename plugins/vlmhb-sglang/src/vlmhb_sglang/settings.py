"""From a model spec to SGLang's settings: environment variables first, then the arguments of the engine."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from vlmhb import ModelSpec
from vlmhb.errors import ModelLoadError

from vlmhb_sglang.cpu import PLATFORM
from vlmhb_sglang.cpu.names import ATTENTION

if TYPE_CHECKING:
    from vlmhb.prompting import ModelFolder

MODEL_IMPL = {"auto": "auto", "native": "sglang", "transformers": "transformers"}
"""vlmhb's names of the model implementations -> SGLang's."""

CPU_MAX_RUNNING = 64
CPU_MEM_FRACTION = 0.3
CPU_CONTEXTS = 4
"""Full contexts that the KV cache has room for on a CPU, where SGLang would otherwise take a third of the memory."""
CPU_MAX_TOKENS = 131_072

SLACK = 8
"""Tokens that SGLang keeps back of a context (it refuses prompts of the last 6 lengths and cuts answers 2 tokens
short). Its context is made longer by this much; what fits is decided before a request gets there."""


def set_environment(*, cpu: bool) -> None:
    """Set what SGLang reads from the environment, before it is imported. What the user has set stays."""
    wanted = {
        "SGLANG_RETURN_ORIGINAL_LOGPROB": "1",  # log-probabilities before temperature
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",  # for SLACK
    }
    if cpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        wanted["SGLANG_USE_CPU_ENGINE"] = "0"  # that is the build with own C++ kernels
        wanted["SGLANG_PLATFORM"] = PLATFORM
        # SGLang compiles some helpers even so: half a minute at the first image.
        wanted["TORCHDYNAMO_DISABLE"] = "1"
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def engine_arguments(spec: ModelSpec, folder: ModelFolder, *, cpu: bool, context: int | None) -> dict[str, Any]:
    """The arguments of ``sglang.Engine`` for a spec; ``options["engine_args"]`` overrules all of them.

    Args:
        spec: what to load.
        folder: its folder.
        cpu: whether the device is a CPU.
        context: tokens of prompt and answer together, or None when neither spec nor model limits them.

    Raises:
        ModelLoadError: a value that SGLang could not make sense of.
    """
    options = {name: value for name, value in spec.options.items() if value is not None}
    extra = options.get("engine_args", {})
    if not isinstance(extra, dict):
        raise ModelLoadError(f"option engine_args must be an object of SGLang's engine arguments, not {extra!r}")
    arguments: dict[str, Any] = {
        "model_path": str(folder.path),
        "dtype": folder.dtype_for(spec),
        "model_impl": MODEL_IMPL[spec.model_impl],
        "trust_remote_code": spec.trust_remote_code,
        "tp_size": options.get("tensor_parallel_size", 1),
        "random_seed": 0,
        "sampling_defaults": "openai",  # from the request, not from the model's folder
        "grammar_backend": "xgrammar",
        "constrained_json_disable_any_whitespace": True,
        "disable_radix_cache": not options.get("enable_prefix_caching", True),
        "enable_deterministic_inference": deterministic(options, cpu=cpu),
        "enable_metrics": True,  # without it there are no times
        "skip_server_warmup": True,
        "log_level": "warning",
        "custom_sigquit_handler": signal.SIG_IGN,  # a failing child is noticed by its end, see vlmhb_sglang.engine
        **(_cpu_arguments(context) if cpu else _gpu_arguments(spec, options)),
    }
    if context is not None:
        arguments["context_length"] = context + SLACK
    if folder.has_processor:
        arguments["enable_multimodal"] = True
    named = ("max_running_requests", "max_total_tokens", "mem_fraction_static", "attention_backend",
             "mm_attention_backend", "chunked_prefill_size", "quantization")  # fmt: skip
    arguments.update({name: options[name] for name in named if name in options})
    return {**arguments, **extra}


def deterministic(options: dict[str, Any], *, cpu: bool) -> bool:
    """Whether SGLang runs in its deterministic mode, the only one in which it honours a request's seed.

    On a CPU it costs nothing that could be measured. On a GPU it changes kernels and takes speed, so there it is
    for the user to ask for; results of requests that draw tokens say when the seed was not used.
    """
    wanted = options.get("deterministic")
    return cpu if wanted is None else bool(wanted)


def _cpu_arguments(context: int | None) -> dict[str, Any]:
    return {
        "device": "cpu",
        "attention_backend": ATTENTION,
        "mm_attention_backend": "sdpa",
        "sampling_backend": "pytorch",
        "disable_cuda_graph": True,
        "disable_overlap_schedule": True,
        "sleep_on_idle": True,  # else the scheduler keeps a core busy all the time
        "mem_fraction_static": CPU_MEM_FRACTION,
        "max_running_requests": CPU_MAX_RUNNING,
        "max_total_tokens": max(CPU_CONTEXTS * context, context + SLACK) if context else CPU_MAX_TOKENS,
    }


def _gpu_arguments(spec: ModelSpec, options: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"device": "cuda", "disable_cuda_graph": not options.get("cuda_graph", True)}
    index = spec.device.partition(":")[2]
    if index:
        if not index.isdigit():
            raise ModelLoadError(f"device must be auto, cpu, cuda or cuda:N with a number N, not {spec.device!r}")
        arguments["base_gpu_id"] = int(index)
    return arguments
