"""What a model takes of a device's memory, and how many requests fit beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from vlmhb.contract.check import ModelFacts
from vlmhb.contract.request import DEFAULT_MAX_TOKENS
from vlmhb.doctor.devices import Device
from vlmhb.doctor.kv_cache import kv_cache_bytes
from vlmhb.doctor.weights import BYTES, Weights

QUESTION_TOKENS = 256
"""Taken for the text of a question with its chat template."""
USABLE = 0.9
"""Share of a device's free memory that weights and cache may take; the rest is for what is being computed."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A device, and the most requests of one page that fit on it at a time; None where a size is not known."""

    device: Device
    batch: int | None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory in bytes.

    Attributes:
        weights: by the dtype the model is loaded in; empty when nothing is known.
        weights_source: where they are known from, in words.
        dtype: the one that the following are for.
        kv_cache: keys and values of 1,000 tokens of one request; None when the config does not say.
        page_tokens: tokens of a scan of A4; None for a text model, or when no engine could be asked.
        request_tokens: tokens of a request with one page, its question and the longest answer by default, within the
            model's context.
        fits: the devices of this machine.
    """

    weights: dict[str, int]
    weights_source: str
    dtype: str
    kv_cache: int | None
    page_tokens: int | None
    request_tokens: int
    fits: tuple[Fit, ...]


def estimate(
    weights: Weights | None,
    facts: ModelFacts | None,
    config: dict[str, Any],
    context: int | None,
    dtype: str,
    devices: list[Device],
) -> Memory:
    """Put the sizes together.

    Args:
        weights: what the files say; without it the engine's count of parameters is taken.
        facts: what an engine said.
        config: the language model's config as the folder has it, for when no engine filled in its defaults.
        context: most tokens of a request; None is no limit.
        dtype: the dtype to load.
        devices: where it could run.
    """
    if weights is None and facts is not None and facts.parameters:
        weights = Weights(numbers=facts.parameters, source="the config: the model was built without memory")
    text_config = facts.text_config if facts is not None and facts.text_config else config
    page = facts.page_tokens if facts is not None else None
    wanted = (page or 0) + QUESTION_TOKENS + DEFAULT_MAX_TOKENS
    tokens = wanted if context is None else min(wanted, context)
    request = kv_cache_bytes(text_config, tokens, dtype)
    return Memory(
        weights={name: weights.bytes_in(name) for name in BYTES} if weights else {},
        weights_source=weights.source if weights else "",
        dtype=dtype,
        kv_cache=kv_cache_bytes(text_config, 1000, dtype),
        page_tokens=page,
        request_tokens=tokens,
        fits=tuple(Fit(device=device, batch=_batch(device, weights, request, dtype)) for device in devices),
    )


def _batch(device: Device, weights: Weights | None, request: int | None, dtype: str) -> int | None:
    if weights is None or not request:
        return None
    return max(0, int(device.free * USABLE) - weights.bytes_in(dtype)) // request
