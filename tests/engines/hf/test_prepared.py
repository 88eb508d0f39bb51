"""A worker whose transformers was imported before its turn."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from vlmhb import GenerationRequest, ModelSpec, SamplingParams
from vlmhb.worker.model import WorkerModel


@pytest.mark.slow
def test_a_prepared_worker_only_loads_and_answers_the_same_tokens(tiny: Path) -> None:
    spec = ModelSpec(model_path=str(tiny), dtype="float32")
    requests = [GenerationRequest.ask("1", "What is written here?", sampling=SamplingParams(max_tokens=8))]
    with WorkerModel("hf") as model:
        model.load_spec(spec)
        expected = [result.token_ids for result in model.generate_requests(requests)]
        usual = model.startup()
    with WorkerModel("hf") as model:
        model.prepare(spec)
        time.sleep(2 * (usual["worker"] + usual["imports"]))
        model.load_spec(spec)
        assert [result.token_ids for result in model.generate_requests(requests)] == expected
        startup = model.startup()
    assert usual["imports"] > 0.5, "torch takes its time"
    assert startup["imports"] > 0.5
    assert startup["waited"] < usual["waited"] - 0.5 * usual["imports"]
