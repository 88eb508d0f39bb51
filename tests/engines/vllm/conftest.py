"""Tests of vLLM run in an environment that holds it, with vlmhb, the vllm and demo plugins, and pytest.

Each module loads its models itself, one at a time: vLLM's state belongs to the process.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vlmhb import GenerationRequest, GenerationResult

HERE = Path(__file__).parent
INSTALLED = importlib.util.find_spec("vllm") is not None
KV_CACHE_GIB = 0.5

if not INSTALLED:
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here. The engine's own warnings are not ours to mend."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session", autouse=True)
def _fast_inspection() -> None:
    """Let vLLM look at a model class in this process; it starts a Python of its own for each, half a minute long."""
    from vlmhb_vllm import settings

    settings.set_environment(cpu=True, options={})
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda inspect: inspect()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's tiny Qwen2-VL."""
    from vlmhb_demo import tiny_model

    return tiny_model.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def load() -> Callable[..., Any]:
    """Load a model in float32 with a small KV cache; keyword arguments as for ``load``."""
    from vlmhb_vllm import VLLMModel

    def loaded(folder: Path, **kwargs: Any) -> VLLMModel:
        return VLLMModel().load(folder, **{"dtype": "float32", "kv_cache_gib": KV_CACHE_GIB, **kwargs})

    return loaded


@pytest.fixture(scope="session")
def answers_of() -> Callable[[Any, list[GenerationRequest]], dict[str, GenerationResult]]:
    """Answer requests and return results by id; every request has exactly one."""

    def answers(model: Any, requests: list[GenerationRequest]) -> dict[str, GenerationResult]:
        results = list(model.generate_requests(requests))
        assert sorted(result.id for result in results) == sorted(request.id for request in requests)
        return {result.id: result for result in results}

    return answers


@pytest.fixture(scope="module")
def model(load: Callable[..., Any], tiny: Path) -> Iterator[Any]:
    """The tiny model on vLLM's own implementation, one for a module."""
    with load(tiny, model_impl="native", max_images=2, max_num_seqs=4) as loaded:
        yield loaded
