"""Models that SGLang loads without an error and then computes wrongly, or breaks at: refused before it is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from vlmhb import ModelSpec
from vlmhb.errors import ModelLoadError

from vlmhb_sglang import fallback

if TYPE_CHECKING:
    from vlmhb.prompting import ModelFolder


class KnownFault(NamedTuple):
    """A kind of model that SGLang takes and does not answer rightly.

    Attributes:
        applies: whether a folder's model, loaded by a spec, is of this kind.
        reason: what SGLang does.
        advice: what to do instead.
        implementations: those that do it; that of transformers too is run with attention and output layer of SGLang.
        breaks: it ends at the first request, instead of answering something else.
    """

    applies: Callable[[ModelFolder, ModelSpec], bool]
    reason: str
    advice: str = "Use model_impl transformers, or another backend."
    implementations: tuple[str, ...] = ("native",)
    breaks: bool = False


MISTRAL_WINDOW = 4096
"""Tokens of the window where a Mistral's config names none; a config without a window says null."""

JOINS_HEADS_ITSELF = ("gpt2",)
"""Model types whose class in transformers joins the heads of what attention gives it. No config says so."""


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


def _ties_by_another_entry(folder: ModelFolder, spec: ModelSpec) -> bool:
    """Whether config and language part differ about the output layer being the embedding, and the weights show it.

    Weights with an output layer of their own are loaded by SGLang whatever the top of the config says.
    """
    if spec.model_impl == "native" or not folder.expects_images:
        return False
    from transformers import AutoConfig
    from vlmhb.prompting.examine import weight_names

    try:
        config = AutoConfig.from_pretrained(str(folder.path), trust_remote_code=spec.trust_remote_code)
    except Exception:  # noqa: BLE001 - the folder's own code may run in there; SGLang itself says what is wrong
        return False
    tied = bool(getattr(config, "tie_word_embeddings", False))
    tied_here = bool(getattr(config.get_text_config(decoder=True), "tie_word_embeddings", False))
    names = weight_names(folder)
    has_output_layer = any(name.endswith("lm_head.weight") for name in names)
    return bool(names) and tied != tied_here and has_output_layer == tied_here


KNOWN_FAULTS = (
    KnownFault(
        lambda folder, _: _is_one_of(folder, "GPT2LMHeadModel") and folder.config.get("tie_word_embeddings") is False,
        "its GPT-2 always uses the token embedding as output layer, and this model has an output layer of its own",
    ),
    KnownFault(
        lambda folder, _: folder.text_config.get("model_type") in JOINS_HEADS_ITSELF,
        "it joins the heads of attention, and the class in transformers joins them once more",
        "Use model_impl native, or another backend.",
        implementations=("transformers",),
        breaks=True,
    ),
    KnownFault(
        _ties_by_another_entry,
        "tie_word_embeddings at the top of the config is not what its language part says; SGLang goes by the language "
        "part, and the weights were saved by the top",
        "Use model_impl native where SGLang has its own code for the model, else another backend.",
        implementations=("transformers",),
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
        implementations=("native", "transformers"),
    ),
)
"""Found with SGLang 0.5.23 by comparing its tokens with those of transformers."""


def refuse_known_faults(spec: ModelSpec, folder: ModelFolder) -> None:
    """Refuse a model that SGLang would not answer rightly; where ``auto`` decides by it, SGLang's models are imported.

    Raises:
        ModelLoadError: it is one of :data:`KNOWN_FAULTS`.
    """
    for fault in KNOWN_FAULTS:
        if fault.applies(folder, spec) and _is_run_by(fault.implementations, spec, folder):
            name = folder.path.name
            what = f"break at the first request of {name}" if fault.breaks else f"compute {name} wrongly"
            raise ModelLoadError(f"SGLang would {what}: {fault.reason}. {fault.advice}")


def _is_run_by(implementations: tuple[str, ...], spec: ModelSpec, folder: ModelFolder) -> bool:
    """Whether the model would be run by one of these implementations."""
    if spec.model_impl != "auto":
        return spec.model_impl in implementations
    if len(implementations) > 1:
        return True
    return (implementations[0] == "native") == fallback.has_own_code(folder.config.get("architectures") or ())
