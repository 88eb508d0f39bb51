"""How far a model lets prompts share work: found out from its classes, then proved on the first batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import torch
from transformers import DynamicCache, GenerationConfig, LogitsProcessorList
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from vlmhb_hf.decoding import Decoding
from vlmhb_hf.features import code_obstacle, features_obstacle
from vlmhb_hf.sharing import Shared

Level = Literal["prefix", "features", "off"]
"""What prompts about one page share: their common beginning, what the vision encoder makes of the page, or nothing."""

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
        level: the most that is done now.
        features: whether what the vision encoder makes of a page may be used again.
        own_loop: whether :class:`vlmhb_hf.decoding.Decoding` may run the model.
        windows: the smallest sliding window, tokens; None without any.
        reason: why not more is done; empty when nothing is missing.
        differences: the greatest relative difference of logits that the proof of a level found.
        batches: how many batches have shared so much.
    """

    def __init__(self, model: Any, wish: str, obstacle: str = "") -> None:
        """Look at the model's classes; nothing is computed.

        Args:
            model: the loaded torch model.
            wish: the option ``reuse``.
            obstacle: why the own loop must not run, whatever the model.
        """
        self.wish = wish
        self.differences: dict[Level, float] = {}
        self.batches: Counter[Level] = Counter()
        self.reason = obstacle or own_loop_obstacle(model)
        self.own_loop = not self.reason
        self.windows: int | None = None
        self.features = wish == "auto" and not features_obstacle(model)
        self._told: Level = "prefix"
        self.level: Level = "off"
        if wish == "auto":
            self.reason = self.reason or prefix_obstacle(model)
            self.level = self._next() if self.reason else "prefix"
            self.windows = smallest_window(model)

    def allows(self, level: Level) -> bool:
        """Whether batches may share so much."""
        return self.features if level == "features" else self.level == level

    def fits(self, slots: int) -> bool:
        """Whether so many tokens, padding included, fit into the model's sliding windows."""
        return self.windows is None or slots <= self.windows

    def judge(self, level: Level, difference: float, limit: float) -> None:
        """Take the result of a level's proof."""
        self.differences[level] = difference
        if not difference <= limit:
            self._fall(level, f"logits differ by {difference:.2g} of their range from those of whole prompts")

    def give_up(self, level: Level, reason: str) -> None:
        """Never again do what failed; with prefixes that is the own loop too, since sharing them needs it."""
        self.own_loop = self.own_loop and level == "features"
        self._fall("features" if level == "features" else "prefix", reason)

    def news(self) -> list[str]:
        """What the user should know about it now and was not told before."""
        if self.wish != "auto" or self.level in ("prefix", self._told):
            return []
        self._told = self.level
        shared = "only its vision features" if self.level == "features" else "no work"
        return [f"questions about one page share {shared} on this model: {self.reason}."]

    def facts(self) -> dict[str, Any]:
        """What to write down about it."""
        difference = max(self.differences.values(), default=None)
        facts = {"level": self.level, "reason": self.reason, "largest_difference": difference}
        return {**facts, "batches": dict(self.batches)}

    def _next(self) -> Level:
        return "features" if self.features else "off"

    def _fall(self, level: Level, reason: str) -> None:
        self.features = self.features and level != "features"
        if self.level == level:
            self.level, self.reason = self._next(), reason


def own_loop_obstacle(model: Any) -> str:
    """Why the model must run in its own ``generate``; empty when it need not."""
    kind = type(model)
    if obstacle := code_obstacle(model):
        return obstacle
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


class Proof:
    """The logits of ``generate`` on whole prompts, over a few tokens; what sharing must come to as well."""

    def __init__(self, model: Any, plain: dict[str, Any], pad: int) -> None:
        """Compute them.

        Args:
            model: the model.
            plain: inputs of whole prompts.
            pad: the padding id.
        """
        self._model = model
        self._pad = pad
        out = self._generate(plain)
        self._tokens = out.sequences[:, -PROOF_STEPS:]
        self._logits = torch.stack(out.logits).float()

    def of_prefix(self, heads: dict[str, Any], shared: Shared, once: Sequence[str]) -> float:
        """The difference when heads are computed once.

        Args:
            heads: inputs of the heads.
            shared: how the prompts follow from them.
            once: names of inputs that only the first pass takes.

        Returns:
            The greatest difference, divided by the greatest distance of a logit from the mean of its row.
        """
        follow = _Follow(self._tokens)
        loop = Decoding(follow, follow, shared, self._pad, once)
        self._model.generate(**heads, generation_config=self._config(), custom_generate=loop)
        return self._difference(torch.stack(follow.seen))

    def of_inputs(self, inputs: dict[str, Any]) -> float:
        """The same for other inputs of the same prompts."""
        follow = LogitsProcessorList([_Follow(self._tokens)])
        return self._difference(torch.stack(self._generate(inputs, logits_processor=follow).logits).float())

    def _generate(self, inputs: dict[str, Any], **more: Any) -> Any:
        config = self._config(output_logits=True, return_dict_in_generate=True)
        return self._model.generate(**inputs, generation_config=config, **more)

    def _config(self, **more: Any) -> GenerationConfig:
        start = self._model.generation_config.decoder_start_token_id
        return GenerationConfig(
            max_new_tokens=PROOF_STEPS, do_sample=False, pad_token_id=self._pad, decoder_start_token_id=start, **more
        )

    def _difference(self, found: torch.Tensor) -> float:
        spread = (self._logits - self._logits.mean(-1, keepdim=True)).abs().max()
        return float((self._logits - found).abs().max() / spread)


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
