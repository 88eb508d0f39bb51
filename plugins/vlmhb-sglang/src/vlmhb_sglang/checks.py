"""What can be said about a model before SGLang is started, which takes a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from vlmhb import BackendInfo, ModelSpec
from vlmhb.errors import ModelLoadError

if TYPE_CHECKING:
    from vlmhb.prompting import ModelFolder


def on_cpu(spec: ModelSpec, backend: BackendInfo) -> bool:
    """Whether the model will run on a CPU.

    Raises:
        ModelLoadError: there is no such device here.
    """
    kinds = {device.partition(":")[0] for device in backend.devices}
    wanted = spec.device.partition(":")[0]
    if wanted == "auto":
        return "cuda" not in kinds
    if wanted not in kinds:
        raise ModelLoadError(f"device {spec.device} cannot be used here; SGLang finds {', '.join(backend.devices)}.")
    return wanted == "cpu"


class KnownFault(NamedTuple):
    """A kind of model that SGLang loads without an error and computes wrongly.

    Attributes:
        applies: whether a folder's model, loaded by a spec, is of this kind.
        reason: what SGLang does.
        advice: what to do instead.
        everywhere: it holds for the code of transformers too, which SGLang runs with attention of its own.
    """

    applies: Callable[[ModelFolder, ModelSpec], bool]
    reason: str
    advice: str = "Use model_impl transformers, or another backend."
    everywhere: bool = False


MISTRAL_WINDOW = 4096
"""Tokens of the window where a Mistral's config names none; a config without a window says null."""


def _vision(folder: ModelFolder) -> dict[str, object]:
    config = folder.config.get("vision_config")
    return config if isinstance(config, dict) else {}


def _is_one_of(folder: ModelFolder, *architectures: str) -> bool:
    return bool(set(architectures).intersection(folder.config.get("architectures") or []))


def _is_longer_than_its_window(folder: ModelFolder, spec: ModelSpec) -> bool:
    from vlmhb.prompting import context_length

    if folder.text_config.get("model_type") != "mistral":
        return False
    window = folder.text_config.get("sliding_window", MISTRAL_WINDOW)
    context = context_length(folder, spec)
    return window is not None and (context is None or context > window)


KNOWN_FAULTS = (
    KnownFault(
        lambda folder, _: _is_one_of(folder, "GPT2LMHeadModel") and folder.config.get("tie_word_embeddings") is False,
        "its GPT-2 always uses the token embedding as output layer, and this model has an output layer of its own",
    ),
    KnownFault(
        lambda folder, _: (
            _is_one_of(folder, "LlavaForConditionalGeneration", "Mistral3ForConditionalGeneration")
            and _vision(folder).get("model_type") == "pixtral"
            and _vision(folder).get("hidden_act") != "silu"
        ),
        "its Pixtral vision tower always uses the activation 'silu', and this model's is another one",
    ),
    KnownFault(
        _is_longer_than_its_window,
        "its Mistral has no sliding window, and lets a token see all that stands before it",
        "Use another backend, or a max_model_len of at most the model's sliding_window.",
        everywhere=True,
    ),
)
"""Found with SGLang 0.5.23 by comparing its tokens with those of transformers."""


def refuse_known_faults(spec: ModelSpec, folder: ModelFolder) -> None:
    """Refuse a model whose answers would be wrong without anybody noticing.

    Raises:
        ModelLoadError: it is one of :data:`KNOWN_FAULTS`.
    """
    for fault in KNOWN_FAULTS:
        if (fault.everywhere or spec.model_impl != "transformers") and fault.applies(folder, spec):
            raise ModelLoadError(f"SGLang would compute {folder.path.name} wrongly: {fault.reason}. {fault.advice}")


def advice(spec: ModelSpec) -> str:
    """What else could be tried when SGLang refused a model."""
    if spec.model_impl == "transformers":
        return ""
    return ". The Transformers implementation may do: model_impl transformers"
