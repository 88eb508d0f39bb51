"""How many tokens fit: one rule for engines that otherwise warn, clip or refuse."""

from __future__ import annotations

from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.errors import ModelLoadError, RequestError
from vlmhb.prompting.folder import ModelFolder

_CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx")


def context_length(folder: ModelFolder, spec: ModelSpec) -> int | None:
    """Most tokens of prompt and answer together: ``spec.max_model_len`` or the model's own limit; None is unlimited.

    Raises:
        ModelLoadError: ``spec.max_model_len`` is above the model's own limit, or below 1.
    """
    sizes = [config.get(name) for config in (folder.text_config, folder.config) for name in _CONTEXT_NAMES]
    own = next((size for size in sizes if isinstance(size, int) and size > 0), None)
    if spec.max_model_len is None:
        return own
    if spec.max_model_len < 1:
        raise ModelLoadError(f"max_model_len must be at least 1, not {spec.max_model_len}.")
    if own is not None and spec.max_model_len > own:
        raise ModelLoadError(f"max_model_len {spec.max_model_len} is above the model's own limit of {own} tokens.")
    return spec.max_model_len


def fit_to_context(prompt_tokens: int, request: GenerationRequest, context: int | None) -> tuple[int, tuple[str, ...]]:
    """How many tokens the answer may have.

    Args:
        prompt_tokens: tokens of the prompt, image placeholders expanded.
        request: what is asked; ``max_tokens`` is its wish.
        context: see :func:`context_length`.

    Returns:
        ``max_tokens``, clipped to the context, and a note when it was clipped.

    Raises:
        RequestError: the prompt leaves no room for an answer (kind ``too_long``).
    """
    wanted = request.sampling.max_tokens
    if context is None or prompt_tokens + wanted <= context:
        return wanted, ()
    room = context - prompt_tokens
    if room < 1:
        raise RequestError(
            f"the prompt has {prompt_tokens} tokens and the model's context holds {context}, "
            "which leaves no room for an answer; make the images smaller (max_pixels) or the text shorter.",
            kind="too_long",
        )
    note = f"max_tokens was lowered from {wanted} to {room}: the prompt has {prompt_tokens} of the context's {context}."
    return room, (note,)
