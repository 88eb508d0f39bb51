"""How many rows may be answered together, by the model's sizes and the memory that is free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from vlmhb.memory import free_memory

_SHARE = 0.5
"""Of the free memory, for one batch; the rest is for what the estimate leaves out and for batches in preparation."""

_PICTURES = 8
"""How often the bytes of prepared pictures count; see :class:`MemoryBudget`."""

_PROCESS = Path("/proc/self/statm")


class MemoryBudget:
    """Estimates what a batch takes.

    Bytes of ``rows`` prompts of ``tokens`` tokens, the answer included, with element size s::

        rows * (tokens * (2 * KV + s * (8 * hidden + 3 * intermediate)) + tokens**2 * scores + vocabulary * 4)
            + 8 * pages * tokens * pixels

    KV are the bytes of keys and values of one token in all layers; it counts twice, since a growing cache is copied.
    The second term of the inner bracket are the activations of one layer. ``scores`` is 4 (a float32 mask) and, where
    attention is computed without a fused kernel, 8 more for each head. ``pixels`` are the processor's bytes of a
    picture for one of its tokens, as :meth:`learn` has seen them; they count eight times: two batches in
    preparation beside the one that is answered, the processor's copies, and what the model's eyes make of them.
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
        self.pixels = 0.0

    def learn(self, pixels: int, tokens: int) -> None:
        """Args: bytes of an encoded batch's pictures, and how many tokens they are by the family's estimate."""
        if tokens > 0:
            self.pixels = max(self.pixels, pixels / tokens)

    def needed(self, rows: int, tokens: int, pages: int = 0) -> int:
        """Bytes that so many rows of so many tokens about so many pages take, about."""
        texts = rows * (tokens * self._token + tokens * tokens * self._pair + self._row)
        return texts + int(_PICTURES * pages * tokens * self.pixels)

    def fits(self, rows: int, tokens: int, pages: int = 0) -> bool:
        """Whether so many rows of so many tokens may be answered together; one row always may try."""
        return rows <= 1 or self.needed(rows, tokens, pages) <= _SHARE * self.free()

    def free(self) -> int:
        """Bytes that are free on the model's device now."""
        if self._device.type == "cuda":
            unused = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
            return int(torch.cuda.mem_get_info(self._device)[0]) + unused
        left = _address_space()
        return free_memory() if left is None else min(free_memory(), left)


def budget_of(model: Any) -> MemoryBudget | None:
    """The budget of a model; None where its config does not say its sizes in the usual words."""
    try:
        return MemoryBudget(model)
    except AttributeError:
        return None


def _address_space() -> int | None:
    if not _PROCESS.is_file():
        return None
    import resource  # not on Windows

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return None
    used = int(_PROCESS.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    return max(0, most - used)
