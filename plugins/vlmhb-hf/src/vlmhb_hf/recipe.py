"""What a managed environment for Hugging Face transformers holds: the versions that this plugin was tried with."""

from __future__ import annotations

from vlmhb import EnvironmentRecipe

REQUIREMENTS = ("torch==2.14.1", "torchvision==0.29.1", "transformers==5.24.0", "accelerate==1.15.0")

_IMPORTS = """
import torch, torchvision
torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
from transformers import AutoModelForImageTextToText, AutoProcessor
import vlmhb_hf.model
"""
_ON_CUDA = "assert torch.version.cuda, 'this torch was built without CUDA'"


def recipe(device: str) -> EnvironmentRecipe:
    """The environment for one kind of device. One torch serves both.

    Args:
        device: ``cpu`` or ``cuda``.
    """
    if device == "cpu":
        return EnvironmentRecipe(
            requirements=REQUIREMENTS,
            disk_bytes=6_000_000_000,
            env={"CUDA_VISIBLE_DEVICES": ""},
            verify=_IMPORTS,
            note="The torch of package indexes holds CUDA libraries that a CPU will not use.",
        )
    return EnvironmentRecipe(requirements=REQUIREMENTS, disk_bytes=6_000_000_000, verify=f"{_IMPORTS}{_ON_CUDA}")
