"""What can be said about a model before SGLang is started: SGLang itself ends its process over some of these."""

from __future__ import annotations

from vlmhb import ModelSpec


def on_cpu(spec: ModelSpec) -> bool:
    """Whether the model will run on a CPU."""
    from vlmhb_sglang.info import gpus

    if spec.device == "cpu":
        return True
    return spec.device == "auto" and gpus() == 0
