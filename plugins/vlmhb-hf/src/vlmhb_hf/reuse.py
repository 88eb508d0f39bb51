"""How far a model lets prompts share work: found out from its classes, then proved on the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from transformers import DynamicCache, GenerationConfig, GenerationMixin
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from vlmhb_hf.decoding import Decoding
from vlmhb_hf.sharing import Shared

Level = Literal["prefix", "off"]

PROOF_STEPS = 3
"""Tokens whose logits are compared."""

_LIMITS = {torch.float32: 1e-3, torch.float64: 1e-3}
_LIMIT_16_BIT = 0.05
"""Greatest difference of two logits, as a share of the greatest distance of a logit from their mean, that rounding
explains. Measured in float32: below 1e-5; a wrong position or mask: above 0.1."""

_LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope")


class Reuse:
    """What one loaded model shares between requests.

    Attributes:
        wish: the option: ``auto`` or ``off``.
        level: what is done now: ``prefix`` is the common beginning of prompts.
        own_loop: whether :class:`vlmhb_hf.decoding.Decoding` may run the model.
        windows: the smallest sliding window, tokens; None without any.
        misfit: ids, an image counted as one, of the last batch that was too long for the windows.
        reason: why not more is done; empty when nothing is missing.
        difference: the greatest relative difference of logits that the proof found; None before.
    """

    def __init__(self, model: Any, wish: str) -> None:
        """Look at the model's classes; nothing is computed."""
        self.wish = wish
        self.difference: float | None = None
        self.reason = own_loop_obstacle(model)
        self.own_loop = not self.reason
        self.windows: int | None = None
        self.misfit = 2**62
        self.level: Level = "off"
        if wish == "auto":
            self.reason = self.reason or prefix_obstacle(model)
            if not self.reason:
                self.level, self.windows = "prefix", smallest_window(model)

    @property
    def proved(self) -> bool:
        """Whether sharing was compared with the plain path."""
        return self.difference is not None

    def fits(self, slots: int) -> bool:
        """Whether so many tokens, padding included, fit into the model's sliding windows."""
        return self.windows is None or slots <= self.windows

    def judge(self, difference: float, limit: float) -> None:
        """Take the result of the proof."""
        self.difference = difference
        if not difference <= limit:
            self._fall(f"logits differ by {difference:.2g} of their range from those of whole prompts")

    def give_up(self, reason: str) -> None:
        """Leave everything to transformers' own loop from now on."""
        self.own_loop = False
        self._fall(reason)

    def news(self) -> list[str]:
        """What the user should know about it now."""
        if self.wish != "auto" or self.level == "prefix":
            return []
        return [f"questions about one page share no work on this model: {self.reason}."]

    def facts(self) -> dict[str, Any]:
        """What to write down about it."""
        return {"level": self.level, "reason": self.reason, "largest_difference": self.difference}

    def _fall(self, reason: str) -> None:
        self.level, self.reason = "off", reason


def own_loop_obstacle(model: Any) -> str:
    """Why the model must run in its own ``generate``; empty when it need not."""
    kind = type(model)
    if getattr(kind, "generate", None) is not GenerationMixin.generate:
        return f"{kind.__name__} generates in its own way"
    if model.is_remote_code():
        return f"{kind.__name__} is the folder's own code"
    if model.config.is_encoder_decoder:
        return f"{kind.__name__} has an encoder and a decoder"
    if getattr(model.config.get_text_config(decoder=True), "cross_attention_layers", None):
        return f"layers of {kind.__name__} look across at the picture"
    if not model._supports_default_dynamic_cache():
        return f"{kind.__name__} keeps its state in a cache of its own"
    strange = sorted({type(layer).__name__ for layer in _layers(model)} - {"DynamicLayer", "DynamicSlidingWindowLayer"})
    return f"layers of {kind.__name__} keep more than keys and values ({', '.join(strange)})" if strange else ""


def prefix_obstacle(model: Any) -> str:
    """Why a prompt's beginning may not be computed alone, as far as the config says it; empty when it may."""
    config = model.config.get_text_config(decoder=True)
    rope = getattr(config, "rope_parameters", None) or {}
    entries = [rope, *(entry for entry in rope.values() if isinstance(entry, dict))]
    types = {entry.get("rope_type") for entry in entries} & set(_LENGTH_DEPENDENT_ROPE)
    return f"positions depend on the prompt's length (rope_type {', '.join(sorted(types))})" if types else ""


def smallest_window(model: Any) -> int | None:
    """The smallest sliding window of the model's layers, tokens; None without any."""
    windows = [layer.sliding_window for layer in _layers(model) if isinstance(layer, DynamicSlidingWindowLayer)]
    return min(windows, default=None)


def largest_difference(
    model: Any, plain: dict[str, Any], heads: dict[str, Any], shared: Shared, pad: int, once: Sequence[str]
) -> float:
    """Compare the logits of shared heads with those of ``generate`` on whole prompts, over a few tokens.

    Args:
        model: the model.
        plain: inputs of whole prompts.
        heads: inputs of the heads.
        shared: how the prompts follow from them.
        pad: the padding id.
        once: names of inputs that only the first pass takes.

    Returns:
        The greatest difference, divided by the greatest distance of a logit from the mean of its row.
    """

    def config(**more: Any) -> GenerationConfig:
        return GenerationConfig(max_new_tokens=PROOF_STEPS, do_sample=False, pad_token_id=pad, **more)

    out = model.generate(**plain, generation_config=config(output_logits=True, return_dict_in_generate=True))
    wanted = torch.stack(out.logits).float()
    follow = _Follow(out.sequences[:, -PROOF_STEPS:])
    model.generate(**heads, generation_config=config(), custom_generate=Decoding(follow, follow, shared, pad, once))
    found = torch.stack(follow.seen)
    spread = (wanted - wanted.mean(-1, keepdim=True)).abs().max()
    return float((wanted - found).abs().max() / spread)


def limit_of(dtype: torch.dtype) -> float:
    """The difference that rounding explains."""
    return _LIMITS.get(dtype, _LIMIT_16_BIT)


class _Follow:
    """Chooses the tokens that it was given, and keeps the logits."""

    def __init__(self, tokens: torch.Tensor) -> None:
        self.seen: list[torch.Tensor] = []
        self._tokens = tokens

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = len(self.seen)
        self.seen.append(scores)
        return torch.nn.functional.one_hot(self._tokens[:, step], scores.shape[-1])

    def take(self, tokens: Sequence[int]) -> list[int]:
        return list(range(len(tokens))) if len(self.seen) < self._tokens.shape[1] else []

    def leave(self) -> None:
        """No row leaves before the last step."""

    def keep(self, places: Sequence[int]) -> None:
        """No row leaves before the last step."""


def _layers(model: Any) -> list[Any]:
    layers: list[Any] = DynamicCache(config=model.config.get_text_config(decoder=True)).layers
    return layers or [DynamicLayer()]
