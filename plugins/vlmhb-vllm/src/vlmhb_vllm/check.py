"""Whether vLLM could load a model: its own registry, config checks and model classes, with shapes for weights."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from vlmhb import ModelCheck, ModelSpec, Support
from vlmhb.errors import ModelLoadError

from vlmhb_vllm import faults, info, settings
from vlmhb_vllm.refusals import load_reason

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vlmhb.prompting import ModelFolder, PromptBuilder

IMPLEMENTATIONS: tuple[Literal["native", "transformers"], ...] = ("native", "transformers")
"""In this order: loading with ``transformers`` changes that package's classes for the whole process."""

_CAUSAL = "on a CPU the tokens of an image do not see each other, and answers about images differ."
SILENT = {
    ("qwen3_vl", "transformers"): "it leaves out the deepstack layers, and answers about images differ.",
    ("gemma3", "native"): _CAUSAL,
    ("gemma3", "transformers"): _CAUSAL,
}
"""Model type and implementation -> what is computed differently from transformers, found with vLLM 0.32.0."""


def check_model(spec: ModelSpec) -> ModelCheck:
    """A verdict for vLLM's own implementation and for that of transformers.

    Args:
        spec: the model's folder, and what it is to be loaded with.
    """
    from vlmhb_vllm.model import on_cpu

    cpu = on_cpu(spec, info.backend_info())
    settings.set_environment(cpu=cpu, options={})
    from vlmhb.prompting import PromptBuilder, open_model_folder
    from vlmhb.prompting.examine import model_facts, obstacle, refused

    if spec.max_images is None:
        spec = msgspec.structs.replace(spec, max_images=1)
    folder = open_model_folder(spec)
    try:
        builder = PromptBuilder(spec, folder)
        facts, notes = model_facts(builder, _config(folder, spec))
    except ModelLoadError as error:
        stop = obstacle(error, str(error), folder, spec)
        return ModelCheck(supports=tuple(refused(name, stop) for name in IMPLEMENTATIONS), auto=_auto(folder))
    _inspect_here()
    supports = tuple(_support(name, spec, builder, tuple(notes), cpu=cpu) for name in IMPLEMENTATIONS)
    return ModelCheck(supports=supports, auto=_auto(folder), facts=facts)


def _config(folder: ModelFolder, spec: ModelSpec) -> Any:
    from vllm.transformers_utils.config import get_config

    try:
        return get_config(str(folder.path), trust_remote_code=spec.trust_remote_code)
    except Exception as error:  # vLLM, transformers or the folder's own code; all of them mean the same here
        raise ModelLoadError(load_reason(error)) from error


def _auto(folder: ModelFolder) -> Literal["native", "transformers"]:
    """What vLLM takes by itself: its own code where the registry knows the architecture."""
    from vllm.model_executor.models.registry import ModelRegistry

    known = ModelRegistry.get_supported_archs()
    native = any(name in known for name in folder.config.get("architectures") or ())
    return "native" if native else "transformers"


def _support(
    implementation: Literal["native", "transformers"],
    spec: ModelSpec,
    builder: PromptBuilder,
    notes: tuple[str, ...],
    *,
    cpu: bool,
) -> Support:
    from vlmhb.prompting.examine import support_by_trying

    asked = msgspec.structs.replace(spec, model_impl=implementation)
    attempt = partial(_try, asked, builder, cpu=cpu)
    return support_by_trying(implementation, asked, builder.folder, notes, attempt, _words, SILENT)


def _words(error: BaseException) -> str:
    reason = load_reason(error)
    for long_list in (" Supported architectures:", " The available parameters"):
        reason = reason.partition(long_list)[0]
    return reason


def _try(spec: ModelSpec, builder: PromptBuilder, *, cpu: bool) -> tuple[str, ...]:
    """Do what loading does, up to reading weights; returns notes: there are none."""
    from vllm import EngineArgs
    from vllm.multimodal import MULTIMODAL_REGISTRY
    from vllm.multimodal.encoder_budget import MultiModalBudget

    arguments = {**settings.engine_arguments(spec, builder, cpu=cpu), "tensor_parallel_size": 1}
    if cpu:
        faults.refuse_known_faults(builder.folder, arguments)
    config = EngineArgs(**arguments).create_engine_config()
    if config.model_config.is_multimodal_model:
        MultiModalBudget(config, MULTIMODAL_REGISTRY, enable_cache=False)
    elif builder.takes_images:
        raise ModelLoadError("vLLM runs the text part of this model only, and takes no images.")
    _build(config, builder.folder)
    return ()


def _build(config: VllmConfig, folder: ModelFolder) -> None:
    """Make the model on the device ``meta`` and give it its weights' names and shapes as the files have them."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vlmhb.prompting.examine import weight_shapes

    config.device_config.device = torch.device("meta")
    with set_current_vllm_config(config), _process_group(), set_default_torch_dtype(config.model_config.dtype):
        with torch.device("meta"):
            model = initialize_model(config)
        shapes = list(weight_shapes(folder))
        if not shapes:
            return
        loaded = model.load_weights(iter(shapes))
        if config.model_config.quantization is None and loaded is not None:
            DefaultModelLoader(config.load_config).track_weights_loading(model, loaded)


@contextlib.contextmanager
def _process_group() -> Iterator[None]:
    """The group of one process that vLLM's layers ask for their rank."""
    from vllm.distributed import parallel_state

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    parallel_state.init_distributed_environment(1, 0, place, 0, "gloo")
    parallel_state.ensure_model_parallel_initialized(1, 1)
    try:
        yield
    finally:
        parallel_state.destroy_model_parallel()
        parallel_state.destroy_distributed_environment()


def _inspect_here() -> None:
    """Let vLLM look at a model's class in this process, which ends soon; it would start another, half a minute long."""
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda inspect: inspect()
