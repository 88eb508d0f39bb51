"""What the backend says about itself, from package metadata alone."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path

from vlmhb import BackendInfo, Capabilities, EngineOption

DEFAULT_BATCH_SIZE = 32
REUSE = ("auto", "off")
CACHES = ("dynamic", "static")

OPTIONS = (
    EngineOption(
        name="batch_size",
        type="int",
        default=DEFAULT_BATCH_SIZE,
        minimum=1,
        help="most requests that are answered together; fewer where memory is short, halved when it runs out",
        changes_answers=False,
    ),
    EngineOption(
        name="attn_implementation",
        type="str",
        default=None,
        help="attention code: sdpa, eager, flash_attention_2, ...; left out: sdpa where the model has it, else eager",
    ),
    EngineOption(
        name="reuse",
        type="str",
        default="auto",
        choices=REUSE,
        help="auto: what prompts about one page have in common is computed once, where the model allows it; off: never",
        changes_answers=False,
    ),
    EngineOption(
        name="cache",
        type="str",
        default="dynamic",
        choices=CACHES,
        help="KV cache: dynamic grows with the answer; static has its full length at once and shares no beginnings",
        changes_answers=False,
    ),
    EngineOption(
        name="compile",
        type="bool",
        default=False,
        help="compile the model's forward pass by torch.compile; needs cache=static",
        changes_answers=False,
    ),
    EngineOption(
        name="threads",
        type="int",
        default=None,
        minimum=1,
        help="CPU threads of torch; left out: OMP_NUM_THREADS, else the cores that nobody uses",
        changes_answers=False,
    ),
)

_UNCOUNTED = {"cuda": ("/dev/dxg", "/dev/kfd"), "mps": ("/System/Library/Frameworks/Metal.framework",)}
"""Drivers of GPUs other than NVIDIA's own on Linux: Windows' below WSL, AMD's, Apple's."""

_NEEDED = ("torch", "torchvision", "accelerate", "qwen_vl_utils")


def describe(backend: str = "hf") -> BackendInfo:
    """The backend in one record; imports no engine."""
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        version = None
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if version is None:
        missing.insert(0, "transformers")
    return BackendInfo(
        name=backend,
        engine="transformers",
        engine_version=version,
        devices=_devices(),
        capabilities=Capabilities(
            text_only=True, images=True, structured_output=False, logprobs=True, streaming=True, batching=True
        ),
        options=OPTIONS,
        problem=f"not installed: {', '.join(missing)}; pip install vlmhb-hf, or vlmhb env create hf"
        if missing
        else None,
    )


def _devices() -> tuple[str, ...]:
    """What the drivers show, since asking torch would import it; those that do not count their devices are one name."""
    folder = Path("/proc/driver/nvidia/gpus")
    if folder.is_dir():
        return (*(f"cuda:{index}" for index in range(len(list(folder.iterdir())))), "cpu")
    uncounted = [name for name, driver in _UNCOUNTED.items() if any(map(os.path.exists, driver))]
    return (*uncounted, "cpu")
