"""Models of the hf tests: made once, loaded once a module."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import twins
from vlmhb import GenerationControl, GenerationRequest, GenerationResult, SamplingParams

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model by its family's name; ``qwen2_vl`` is the demo's."""
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            target = tmp_path_factory.mktemp("twins") / family
            if family == "qwen2_vl":
                from vlmhb_demo import tiny_model

                made[family] = tiny_model.make(target)
            else:
                made[family] = twins.make(family, target)
        return made[family]

    return folder


@pytest.fixture(scope="session")
def tiny(folder_of: Callable[[str], Path]) -> Path:
    """The demo's tiny Qwen2-VL."""
    return folder_of("qwen2_vl")


@pytest.fixture(scope="module")
def model(tiny: Path) -> Iterable[Any]:
    """It, loaded in float32."""
    from vlmhb_hf import HuggingFaceModel

    with HuggingFaceModel().load(tiny, dtype="float32", threads=1) as loaded:
        yield loaded


def ask(id: str, question: str, *images: Any, **fields: Any) -> GenerationRequest:
    """A request; names of sampling parameters go into ``sampling``."""
    params = {name: fields.pop(name) for name in SamplingParams.__struct_fields__ if name in fields}
    return GenerationRequest.ask(
        id, question, images, sampling=SamplingParams(**{"max_tokens": 16, **params}), **fields
    )


def answers(
    model: Any, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
) -> dict[str, GenerationResult]:
    """All results by id; each id must come once."""
    results = list(model.generate_requests(requests, control))
    by_id = {result.id: result for result in results}
    assert len(by_id) == len(results)
    return by_id


def one_by_one(model: Any, requests: Iterable[GenerationRequest]) -> dict[str, GenerationResult]:
    """The same with a call of its own for each request."""
    return {result.id: result for request in requests for result in model.generate_requests([request])}
