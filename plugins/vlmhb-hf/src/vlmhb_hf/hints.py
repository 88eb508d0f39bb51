"""Settings that cost speed on transformers."""

from __future__ import annotations

import os

from vlmhb.contract.hints import Hint

_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

RULES = (
    Hint(lambda facts: facts["batch_size"] == 1, "one request at a time: raise batch_size."),
    Hint(
        lambda facts: facts["device"] == "cpu" and facts["threads"] == 1 and _CORES >= 4,
        f"one thread, and there are {_CORES} cores: try -o threads={_CORES // 2}, unless others use them.",
    ),
    Hint(
        lambda facts: facts["device"] == "cpu" and facts["threads"] > _CORES,
        f"{{threads}} threads share {_CORES} cores: -o threads={_CORES} or fewer.",
    ),
    Hint(
        lambda facts: facts["device"] == "cpu" and facts["dtype"] == "float16",
        "float16 is slow on a CPU: -o dtype=float32, or bfloat16 where the processor has it.",
    ),
)
