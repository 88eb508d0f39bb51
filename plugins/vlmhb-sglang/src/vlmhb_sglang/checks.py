"""What can be said about a model before SGLang is started, which takes a while."""

from __future__ import annotations

from vlmhb import BackendInfo, ModelSpec
from vlmhb.errors import ModelLoadError


def on_cpu(spec: ModelSpec, backend: BackendInfo) -> bool:
    """Whether the model will run on a CPU.

    Raises:
        ModelLoadError: there is no such device here.
    """
    kinds = {device.partition(":")[0] for device in backend.devices}
    wanted = spec.device.partition(":")[0]
    if wanted == "auto":
        return "cuda" not in kinds
    if wanted not in kinds:
        raise ModelLoadError(f"device {spec.device} cannot be used here; SGLang finds {', '.join(backend.devices)}.")
    return wanted == "cpu"


def advice(spec: ModelSpec) -> str:
    """What else could be tried when SGLang refused a model."""
    if spec.model_impl == "transformers":
        return ""
    return ". The Transformers implementation may do: model_impl transformers"
