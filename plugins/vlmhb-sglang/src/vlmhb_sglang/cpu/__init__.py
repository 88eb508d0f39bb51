"""SGLang on a plain CPU, without a special build: an out-of-tree platform made of torch operators.

The entry point group ``sglang.srt.platforms`` names :func:`activate`. SGLang calls it in each of its processes,
before it imports its own kernels, and imports the class by the name that it returns.
"""

from __future__ import annotations

PLATFORM = "vlmhb_cpu"
"""The entry point's name, as ``SGLANG_PLATFORM`` takes it."""


def activate() -> str | None:
    """Name the platform class, or return None where an accelerator is there to be used by SGLang itself."""
    import torch

    if torch.accelerator.is_available():
        return None
    return "vlmhb_sglang.cpu.platform:TorchPlatform"
