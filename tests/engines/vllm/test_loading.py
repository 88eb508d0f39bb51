"""Loading, refusing to load, and closing."""

from __future__ import annotations

import json
import shutil

import psutil
import pytest
from vlmhb import GenerationRequest, ModelSpec, SamplingParams
from vlmhb.errors import ConfigError, ModelLoadError, VlmhbError

ASK = GenerationRequest.ask("a", "Hi", sampling=SamplingParams(max_tokens=4))


def children():
    return [child.pid for child in psutil.Process().children(recursive=True)]


def edited(tiny, folder, **changes):
    """A copy of the tiny model with another config.json."""
    shutil.copytree(tiny, folder)
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_model_len": 100_000}, "max_model_len 100000 is above the model's own limit of 2048"),
        ({"kv_cache_gib": 1e-6}, "No available memory for the cache blocks.*kv_cache_gib"),
        ({"kv_cache_gib": 0.0005}, "KV cache.*max_model_len"),
        ({"kv_cache_gib": 5000.0}, "smaller kv_cache_gib"),
        ({"engine_args": {"colour": 1}}, "colour.*EngineArgs"),
        ({"engine_args": [1]}, "engine_args must be an object"),
    ],
)
def test_refused_options(options, words, load, tiny):
    with pytest.raises(ModelLoadError, match=words) as caught:
        load(tiny, **options)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(("options", "words"), [({"kv_cache_gib": -1.0}, "kv_cache_gib"), ({"device": "cuda"}, "cpu")])
def test_what_cannot_be_is_refused_before_anything_is_loaded(options, words, load, tiny):
    with pytest.raises(ConfigError, match=words):
        load(tiny, **options)


def test_no_such_folder(load, tmp_path):
    with pytest.raises(ModelLoadError, match="there is no model folder"):
        load(tmp_path / "nothing" / "here")


def test_an_architecture_that_nobody_has(load, tiny, tmp_path):
    folder = edited(tiny, tmp_path / "model", architectures=["MoonForConditionalGeneration"])
    with pytest.raises(ModelLoadError, match="MoonForConditionalGeneration"):
        load(folder, model_impl="native")


def test_weights_that_do_not_fit(load, tiny, tmp_path):
    folder = edited(tiny, tmp_path / "model", intermediate_size=512)
    with pytest.raises(ModelLoadError, match="cannot load"):
        load(folder)


def test_after_a_refusal_the_next_model_loads_and_answers(load, tiny, answers_of):
    with pytest.raises(ModelLoadError):
        load(tiny, kv_cache_gib=1e-6)
    with load(tiny) as model:
        assert answers_of(model, [ASK])["a"].ok


def test_closing_gives_the_memory_back_and_leaves_no_process(load, tiny, answers_of):
    before = children()
    with load(tiny, kv_cache_gib=1.0) as model:
        first = answers_of(model, [ASK])["a"].token_ids
        loaded = psutil.Process().memory_info().rss
    assert children() == before
    assert model.facts() == {}
    sizes = []
    for _ in range(3):
        with load(tiny, kv_cache_gib=1.0) as model:
            assert answers_of(model, [ASK])["a"].token_ids == first
        sizes.append(psutil.Process().memory_info().rss)
    assert sizes[-1] < loaded + (256 << 20), sizes
    model.close()  # a second time does nothing
    with pytest.raises(VlmhbError, match="no model is loaded"):
        list(model.generate_requests([ASK]))


def test_set_num_threads_is_left_as_it_was(load, tiny):
    import torch

    mine = torch.set_num_threads
    with load(tiny):
        assert torch.set_num_threads is mine


def test_a_model_without_images_serves_text(load, tiny, answers_of):
    with load(tiny, max_images=0) as model:
        answers = answers_of(model, [ASK])
    assert answers["a"].ok


def test_float32_is_not_halved_by_auto(load, tiny):
    with load(tiny, dtype="auto") as model:
        assert model.facts()["dtype"] == "float32"


def test_pixels_follow_the_spec(load, tiny, answers_of):
    from parity_requests import picture

    asked = [GenerationRequest.ask("a", "Hi", [picture(640, 480, 1)], sampling=SamplingParams(max_tokens=1))]
    sizes = {}
    for limit in (50_176, 12_544):
        with load(tiny, max_pixels=limit) as model:
            sizes[limit] = answers_of(model, asked)["a"].prompt_tokens
    assert sizes[50_176] - sizes[12_544] >= 30


def test_through_the_hook(tiny):
    import vlmhb_vllm

    spec = ModelSpec(model_path=str(tiny), dtype="float32", options={"kv_cache_gib": 0.5})
    assert vlmhb_vllm.vlmhb_load("other", spec) is None
    with vlmhb_vllm.vlmhb_load("vllm", spec) as model:
        assert [result.id for result in model.generate_requests([ASK])] == ["a"]
