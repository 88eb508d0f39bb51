"""How many rows may be answered together, by the model's sizes and the memory that is free."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import torch

_SHARE = 0.5
"""Of the free memory, for one batch; the rest is for what the estimate leaves out and for batches in preparation."""

_GROUP = Path("/sys/fs/cgroup")


class MemoryBudget:
    """Estimates what a batch takes.

    Bytes of ``rows`` prompts of ``tokens`` tokens, the answer included, with element size s::

        rows * (tokens * (2 * KV + s * (8 * hidden + 3 * intermediate)) + tokens**2 * scores + vocabulary * 4)

    KV are the bytes of keys and values of one token in all layers; it counts twice, since a growing cache is copied.
    The second term of the inner bracket are the activations of one layer. ``scores`` is 4 (a float32 mask) and, where
    attention is computed without a fused kernel, 8 more for each head.
    """

    def __init__(self, model: Any) -> None:
        """Args: a loaded torch model."""
        config = model.config.get_text_config(decoder=True)
        size = model.dtype.itemsize
        hidden = config.hidden_size
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        head = getattr(config, "head_dim", None) or hidden // heads
        wide = getattr(config, "intermediate_size", None) or 4 * hidden
        eager = getattr(config, "_attn_implementation", "eager") == "eager"
        self._device = model.device
        self._token = 2 * (2 * config.num_hidden_layers * kv_heads * head * size) + size * (8 * hidden + 3 * wide)
        self._pair = 4 + (8 * heads if eager else 0)
        self._row = 4 * config.vocab_size

    def needed(self, rows: int, tokens: int) -> int:
        """Bytes that so many rows of so many tokens take, about."""
        return rows * (tokens * self._token + tokens * tokens * self._pair + self._row)

    def fits(self, rows: int, tokens: int) -> bool:
        """Whether so many rows of so many tokens may be answered together; one row always may try."""
        return rows <= 1 or self.needed(rows, tokens) <= _SHARE * self.free()

    def free(self) -> int:
        """Bytes that are free on the model's device now."""
        if self._device.type == "cuda":
            unused = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
            return int(torch.cuda.mem_get_info(self._device)[0]) + unused
        return min(limit for limit in (_machine(), _group(), _address_space()) if limit is not None)


def budget_of(model: Any) -> MemoryBudget | None:
    """The budget of a model; None where its config does not say its sizes in the usual words."""
    try:
        return MemoryBudget(model)
    except AttributeError:
        return None


def _machine() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 2**62


def _group() -> int | None:
    try:
        most, used = ((_GROUP / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return None
    return None if most == "max" else max(0, int(most) - int(used))


def _address_space() -> int | None:
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return None
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    return max(0, most - used)
