"""Engine tests share the modules beside this file, and the reference: Hugging Face."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from vlmhb import GenerationRequest, GenerationResult

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def hf_answers() -> Callable[..., dict[str, GenerationResult]]:
    """What the hf plugin answers in its own environment, in float32, one request at a time; results by id."""
    from vlmhb.environments.manage import find_environment
    from vlmhb.worker.model import WorkerModel

    launch = find_environment("hf")
    assert launch is not None, "make it: vlmhb env create hf --device cpu"

    def answers(folder: Path, requests: Sequence[GenerationRequest], **fields: Any) -> dict[str, GenerationResult]:
        with WorkerModel("hf", launch).load(folder, dtype="float32", device="cpu", batch_size=1, **fields) as model:
            return {result.id: result for result in model.generate_requests(requests)}

    return answers
