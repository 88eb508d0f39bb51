"""What vLLM's code for CPUs breaks at with the first request: put right where that is one call, else refused before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vlmhb.errors import ModelLoadError

if TYPE_CHECKING:
    from vlmhb.prompting import ModelFolder


def refuse_known_faults(folder: ModelFolder, arguments: Mapping[str, Any]) -> None:
    """Refuse what cannot be answered on a CPU; found with vLLM 0.32.0.

    Args:
        folder: the model's.
        arguments: of the engine.

    Raises:
        ModelLoadError: it has layers of linear attention, which are computed in bfloat16 only.
    """
    linear = "linear_attention" in (folder.text_config.get("layer_types") or ())
    dtype = str(arguments["dtype"]).removeprefix("torch.")
    if linear and dtype not in ("bfloat16", "auto") and arguments["model_impl"] != "transformers":
        raise ModelLoadError(
            f"vLLM would break at the first request of {folder.path.name}: on a CPU it computes layers of linear "
            f"attention in bfloat16 only, and this is {dtype}. Set dtype to bfloat16, or use another backend."
        )


def put_cpu_right() -> None:
    """Let code that asks on a CPU, too, whether a CUDA graph is captured hear that none is (MiniCPM-V's resampler)."""
    import torch

    if not torch.cuda.is_available():
        torch.cuda.is_current_stream_capturing = lambda: False
