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
        architectures: names in ``architectures`` of config.json.
        applies: whether a folder's model is of this kind.
        reason: what SGLang does.
    """

    architectures: tuple[str, ...]
    applies: Callable[[ModelFolder], bool]
    reason: str


KNOWN_FAULTS = (
    KnownFault(
        ("GPT2LMHeadModel",),
        lambda folder: folder.config.get("tie_word_embeddings") is False,
        "its GPT-2 always uses the token embedding as output layer, and this model has an output layer of its own",
    ),
    KnownFault(
        ("LlavaForConditionalGeneration", "Mistral3ForConditionalGeneration"),
        lambda folder: _vision(folder).get("model_type") == "pixtral" and _vision(folder).get("hidden_act") != "silu",
        "its Pixtral vision tower always uses the activation 'silu', and this model's is another one",
    ),
)
"""Found with SGLang 0.5.23 by comparing its tokens with those of transformers."""


def refuse_known_faults(spec: ModelSpec, folder: ModelFolder) -> None:
    """Refuse a model whose answers would be wrong without anybody noticing.

    Raises:
        ModelLoadError: it is one of :data:`KNOWN_FAULTS`.
    """
    if spec.model_impl == "transformers":
        return
    architectures = folder.config.get("architectures") or []
    for fault in KNOWN_FAULTS:
        if set(fault.architectures).intersection(architectures) and fault.applies(folder):
            raise ModelLoadError(
                f"SGLang would compute {folder.path.name} wrongly: {fault.reason}. "
                "Use model_impl transformers, or another backend."
            )


def advice(spec: ModelSpec) -> str:
    """What else could be tried when SGLang refused a model."""
    if spec.model_impl == "transformers":
        return ""
    return ". The Transformers implementation may do: model_impl transformers"


def _vision(folder: ModelFolder) -> dict[str, object]:
    config = folder.config.get("vision_config")
    return config if isinstance(config, dict) else {}
