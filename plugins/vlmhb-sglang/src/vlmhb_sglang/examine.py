"""Whether SGLang could load a model: its own registry, config checks and model classes, with shapes for weights."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from vlmhb import ModelCheck, ModelSpec, Support
from vlmhb.errors import ModelLoadError

from vlmhb_sglang import checks, fallback, faults, info, settings

if TYPE_CHECKING:
    from vlmhb.prompting import ModelFolder, PromptBuilder

IMPLEMENTATIONS: tuple[Literal["native", "transformers"], ...] = ("native", "transformers")

_CAUSAL = "on a CPU the tokens of an image do not see each other, and answers about images differ."
SILENT = {
    ("gemma3", "native"): _CAUSAL,
    ("gemma3", "transformers"): _CAUSAL,
    ("mllama", "native"): "it takes image features from other vision layers than transformers 5, and answers differ.",
    ("paligemma", "transformers"): "the prompt's tokens see only what stands before them, and answers differ.",
}
"""Model type and implementation -> what is computed differently from transformers, found with SGLang 0.5.23."""


_LOST = (
    "SGLang's class for it is a wrapper: its loader sets shared_experts_config on it, goes on with what is inside, and "
    "does not find it there."
)


def check_model(spec: ModelSpec) -> ModelCheck:
    """A verdict for SGLang's own implementation and for that of transformers.

    Args:
        spec: the model's folder, and what it is to be loaded with.
    """
    cpu = checks.on_cpu(spec, info.backend_info())
    settings.set_environment(cpu=cpu)
    from vlmhb.prompting import PromptBuilder, open_model_folder
    from vlmhb.prompting.examine import model_facts, obstacle, refused

    folder = open_model_folder(spec)
    auto = _auto(folder)
    try:
        builder = PromptBuilder(spec, folder)
        facts, notes = model_facts(builder, _config(folder, spec))
    except ModelLoadError as error:
        stop = obstacle(error, str(error), folder, spec)
        return ModelCheck(supports=tuple(refused(name, stop) for name in IMPLEMENTATIONS), auto=auto)
    supports = tuple(_support(name, spec, builder, tuple(notes), cpu=cpu) for name in IMPLEMENTATIONS)
    return ModelCheck(supports=supports, auto=auto, facts=facts)


def _config(folder: ModelFolder, spec: ModelSpec) -> Any:
    from sglang.srt.utils.hf_transformers_utils import get_config

    try:
        return get_config(str(folder.path), trust_remote_code=spec.trust_remote_code)
    except Exception as error:  # SGLang, transformers or the folder's own code; all of them mean the same here
        raise ModelLoadError(_words(error)) from error


def _auto(folder: ModelFolder) -> Literal["native", "transformers"]:
    """What SGLang takes by itself: its own code where the registry knows the architecture."""
    return "native" if fallback.has_own_code(folder.config.get("architectures") or ()) else "transformers"


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


def _try(spec: ModelSpec, builder: PromptBuilder, *, cpu: bool) -> tuple[str, ...]:
    """Do what loading does, up to reading weights; returns notes."""
    faults.refuse_known_faults(spec, builder.folder)
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.plugins import load_plugins
    from sglang.srt.runtime_context import SpawnRanks, publish
    from sglang.srt.server_args import ServerArgs
    from vlmhb.prompting import context_length

    _registered(spec, builder.folder)
    load_plugins()
    context = context_length(builder.folder, spec)
    arguments = settings.engine_arguments(spec, builder.folder, cpu=cpu, context=context)
    server = ServerArgs(**{**arguments, "tp_size": 1})
    publish(server, role="scheduler", ranks=SpawnRanks(world_rank=0, gpu_id=0))
    config = ModelConfig.from_server_args(server)
    if builder.takes_images and not config.is_multimodal:
        raise ModelLoadError("SGLang runs the text part of this model only, and takes no images.")
    if config.is_multimodal:
        _processor(config, server)
    with _process_group(server, "cpu" if cpu else "cuda"):
        return _build(config, builder.folder)


def _registered(spec: ModelSpec, folder: ModelFolder) -> None:
    """Refuse ``native`` where SGLang has no code of its own: it would take transformers' without a word."""
    if spec.model_impl == "native" and _auto(folder) != "native":
        raise fallback.no_own_code(folder.config.get("architectures") or ())


def _processor(config: Any, server: Any) -> None:
    """Make SGLang's processor for the model's images."""
    from sglang.srt.managers.multimodal_processor import get_mm_processor, import_processors
    from sglang.srt.managers.tokenizer_manager import get_processor_wrapper
    from sglang.srt.multimodal.transport import determine_tensor_transport_mode

    import_processors("sglang.srt.multimodal.processors")
    mode = determine_tensor_transport_mode()
    get_mm_processor(config.hf_config, server, get_processor_wrapper(), mode, model_config=config)


def _build(config: Any, folder: ModelFolder) -> tuple[str, ...]:
    """Make the model on the device ``meta`` and give it its weights' names and shapes as the files have them.

    Returns:
        A note about weights that the files do not fill; SGLang says nothing about them.
    """
    import torch
    from sglang.srt.configs.load_config import LoadConfig
    from sglang.srt.distributed import bootstrap
    from sglang.srt.model_loader import loader
    from sglang.srt.model_loader.utils import set_default_torch_dtype
    from vlmhb.prompting.examine import weight_shapes

    model_class, _ = loader.get_model_architecture(config)
    if not issubclass(model_class, torch.nn.Module):  # MiniCPM-V's of 0.5.23
        raise ModelLoadError(_LOST)
    bootstrap.init_layer_runtime(model_config=config)
    load = LoadConfig()
    with set_default_torch_dtype(config.dtype), torch.device("meta"), _no_memory():
        model = loader._initialize_model(config, load, loader._get_quantization_config(config, load))
    shapes = list(weight_shapes(folder))
    loaded = model.load_weights(iter(shapes)) if shapes else None
    if not isinstance(loaded, set):  # most of SGLang's own classes do not say what they loaded
        return ()
    unset = sorted(name for name, _ in model.named_parameters() if name not in loaded)
    return (f"it leaves {len(unset)} of the weights unset ({unset[0]}), and answers are wrong.",) if unset else ()


@contextlib.contextmanager
def _no_memory() -> Iterator[None]:
    """Let the Transformers implementation leave its parameters without memory; it takes some on the real device."""
    from sglang.srt.models import transformers

    real, transformers.get_device = transformers.get_device, lambda: "meta"
    try:
        yield
    finally:
        transformers.get_device = real


@contextlib.contextmanager
def _process_group(server: Any, device: str) -> Iterator[None]:
    """The groups of one process that SGLang's layers ask for their rank."""
    from sglang.srt.distributed import bootstrap, parallel_state

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bootstrap.init_parallel_runtime(server_args=server, device=device, dist_port=port)
    try:
        yield
    finally:
        parallel_state.destroy_model_parallel()
        parallel_state.destroy_distributed_environment()
        bootstrap._PARALLEL_INITIALISED = False


def _words(error: BaseException) -> str:
    if isinstance(error, ModelLoadError):
        return str(error)
    words = " ".join(str(error).split()).partition(" Supported architectures:")[0]
    return words if isinstance(error, ValueError) and words else f"{type(error).__name__}: {words}"
