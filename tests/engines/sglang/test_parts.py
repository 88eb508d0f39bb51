"""The plugin's parts that need no running engine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from vlmhb import ModelSpec
from vlmhb.errors import ModelLoadError
from vlmhb.prompting import ModelFolder


def folder(tmp_path, **config):
    return ModelFolder(path=tmp_path, config=config, generation_config={})


def murmur3(data: bytes, seed: int = 0) -> int:
    """MurmurHash3_x86_32 of whole words, in plain integers."""
    mask = 0xFFFFFFFF
    state = seed
    for start in range(0, len(data), 4):
        word = int.from_bytes(data[start : start + 4], "little") * 0xCC9E2D51 & mask
        word = (word << 15 | word >> 17) & mask
        state ^= word * 0x1B873593 & mask
        state = (state << 13 | state >> 19) & mask
        state = (state * 5 + 0xE6546B64) & mask
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    return state ^ state >> 16


def test_murmur3_itself():
    assert murmur3(b"test") == 0xBA6BD213  # a published value


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_the_seeded_hash(dtype):
    import torch
    from vlmhb_sglang.cpu.seeded_hash import seeded_hash

    seeds, positions, columns = [0, 1, 2**40 + 7, 2**63 - 1], [0, 5, 2047, 2**20], [0, 1, 255, 151_935]
    got = seeded_hash(
        torch.tensor(seeds).to(getattr(torch, dtype)), torch.tensor(positions), torch.tensor(columns)
    ).tolist()
    for row, (seed, position) in enumerate(zip(seeds, positions, strict=True)):
        for column, token in enumerate(columns):
            data = seed.to_bytes(8, "little") + position.to_bytes(4, "little") + token.to_bytes(4, "little")
            assert got[row][column] == murmur3(data)


def test_the_last_words_of_a_traceback():
    from vlmhb_sglang.children import last_words

    text = (
        'It hit an exception: Traceback (most recent call last):\n  File "a.py", line 1\n    x()\nValueError: no\nway'
    )
    assert last_words(text) == "ValueError: no way"


def test_the_plugin_imports_no_engine():
    code = "import sys, vlmhb_sglang as p; p.vlmhb_backend_info('sglang'); p.vlmhb_environment('sglang', 'cpu')\n"
    code += "print([name for name in ('sglang', 'torch', 'transformers') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_platform_steps_aside_where_there_is_an_accelerator(monkeypatch):
    import torch
    from vlmhb_sglang.cpu import activate

    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert activate() is None
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert activate() == "vlmhb_sglang.cpu.platform:TorchPlatform"


def test_gpus_are_counted_from_the_driver(tmp_path):
    from vlmhb_sglang.info import gpus

    assert gpus(tmp_path / "none") == 0
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:02:00.0").mkdir()
    assert gpus(tmp_path) == 2


def test_arguments_for_a_cpu_and_for_a_gpu(tmp_path):
    from vlmhb_sglang.settings import SLACK, engine_arguments

    model = folder(tmp_path, torch_dtype="bfloat16")
    spec = ModelSpec(model_path="x", options={"mem_fraction_static": 0.5, "tensor_parallel_size": 1})
    cpu = engine_arguments(spec, model, cpu=True, context=1000)
    assert (cpu["device"], cpu["dtype"], cpu["context_length"]) == ("cpu", "bfloat16", 1000 + SLACK)
    assert (cpu["max_total_tokens"], cpu["mem_fraction_static"]) == (4000, 0.5)
    assert cpu["enable_deterministic_inference"]
    spec = ModelSpec(
        model_path="x", device="cuda:2", model_impl="native", options={"engine_args": {"log_level": "info"}}
    )
    gpu = engine_arguments(spec, model, cpu=False, context=None)
    assert (gpu["device"], gpu["base_gpu_id"], gpu["model_impl"], gpu["log_level"]) == ("cuda", 2, "sglang", "info")
    assert "context_length" not in gpu
    assert not gpu["enable_deterministic_inference"]
    spec = ModelSpec(model_path="x", device="cuda", options={"deterministic": True})
    assert engine_arguments(spec, model, cpu=False, context=10)["enable_deterministic_inference"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"device": "cuda:x"}, "cuda:N"),
        ({"options": {"engine_args": "--log-level info"}}, "engine_args must be an object"),
    ],
)
def test_settings_that_make_no_sense(tmp_path, fields, words):
    from vlmhb_sglang.settings import engine_arguments

    with pytest.raises(ModelLoadError, match=words):
        engine_arguments(ModelSpec(model_path="x", **fields), folder(tmp_path), cpu=False, context=None)


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["GPT2LMHeadModel"], "tie_word_embeddings": False},
        {
            "architectures": ["LlavaForConditionalGeneration"],
            "vision_config": {"model_type": "pixtral", "hidden_act": "gelu"},
        },
    ],
)
def test_models_that_would_be_computed_wrongly(tmp_path, config):
    from vlmhb_sglang.faults import refuse_known_faults

    with pytest.raises(ModelLoadError, match="wrongly"):
        refuse_known_faults(ModelSpec(model_path="x", model_impl="native"), folder(tmp_path, **config))
    refuse_known_faults(ModelSpec(model_path="x", model_impl="transformers"), folder(tmp_path, **config))


@pytest.mark.parametrize("config", [{"model_type": "gpt2"}, {"text_config": {"model_type": "gpt2"}}])
def test_a_class_that_joins_heads_itself(tmp_path, config):
    from vlmhb_sglang.faults import refuse_known_faults

    with pytest.raises(ModelLoadError, match=r"break at the first request.*joins.*model_impl native"):
        refuse_known_faults(ModelSpec(model_path="x", model_impl="transformers"), folder(tmp_path, **config))
    refuse_known_faults(ModelSpec(model_path="x", model_impl="native"), folder(tmp_path, **config))


@pytest.mark.parametrize("own", [True, False])
def test_auto_is_the_implementation_that_sglang_would_take(tmp_path, monkeypatch, own):
    from vlmhb_sglang import fallback
    from vlmhb_sglang.faults import refuse_known_faults

    monkeypatch.setattr(fallback, "has_own_code", lambda _: own)
    refused = {"model_type": "gpt2"}
    if own:
        refused |= {"architectures": ["GPT2LMHeadModel"], "tie_word_embeddings": False}
    with pytest.raises(ModelLoadError, match="output layer" if own else "joins"):
        refuse_known_faults(ModelSpec(model_path="x"), folder(tmp_path, **refused))
    taken = {"model_type": "gpt2"} if own else {"architectures": ["GPT2LMHeadModel"], "tie_word_embeddings": False}
    refuse_known_faults(ModelSpec(model_path="x"), folder(tmp_path, **taken))


@pytest.mark.parametrize(
    ("top", "language_part", "has_output_layer", "rightly"),
    [
        (True, False, False, False),
        (True, False, True, True),  # the output layer is loaded all the same
        (False, True, True, False),
        (True, True, False, True),
        (False, False, True, True),
    ],
)
def test_where_the_config_says_that_the_output_layer_is_the_embedding(
    tmp_path, top, language_part, has_output_layer, rightly
):
    import torch
    from safetensors.torch import save_file
    from vlmhb.prompting import open_model_folder
    from vlmhb_sglang.faults import refuse_known_faults

    text = {"model_type": "qwen2", "tie_word_embeddings": language_part}
    config = {"model_type": "internvl", "tie_word_embeddings": top, "text_config": text, "vision_config": {"depth": 1}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    spec = ModelSpec(model_path=str(tmp_path), model_impl="transformers")
    refuse_known_faults(spec, open_model_folder(spec))  # nothing is known about the weights
    names = ["model.norm.weight", *(["lm_head.weight"] if has_output_layer else [])]
    save_file({name: torch.zeros(1) for name in names}, tmp_path / "model.safetensors")
    if rightly:
        refuse_known_faults(spec, open_model_folder(spec))
    else:
        with pytest.raises(ModelLoadError, match=r"wrongly.*tie_word_embeddings"):
            refuse_known_faults(spec, open_model_folder(spec))
        native = ModelSpec(model_path=str(tmp_path), model_impl="native")
        refuse_known_faults(native, open_model_folder(native))


MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "max_position_embeddings": 32_768}
IN_LLAVA = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "text_config": MISTRAL}


@pytest.mark.parametrize("implementation", ["auto", "native", "transformers"])
@pytest.mark.parametrize("config", [MISTRAL, MISTRAL | {"sliding_window": 4096}, IN_LLAVA])
def test_a_window_that_sglang_does_not_have(tmp_path, config, implementation):
    """No implementation has it, so another one is no advice; a context that fits into the window is."""
    from vlmhb_sglang.faults import refuse_known_faults

    model = folder(tmp_path, **config)
    with pytest.raises(ModelLoadError, match=r"sliding window.*max_model_len") as caught:
        refuse_known_faults(ModelSpec(model_path="x", model_impl=implementation), model)
    assert "model_impl" not in str(caught.value)
    refuse_known_faults(ModelSpec(model_path="x", model_impl=implementation, max_model_len=4096), model)
    with pytest.raises(ModelLoadError, match="sliding window"):
        refuse_known_faults(ModelSpec(model_path="x", model_impl=implementation, max_model_len=4097), model)


@pytest.mark.parametrize("window", [None, 32_768])
def test_a_window_that_nothing_reaches(tmp_path, window):
    from vlmhb_sglang.faults import refuse_known_faults

    refuse_known_faults(ModelSpec(model_path="x"), folder(tmp_path, **MISTRAL, sliding_window=window))


def test_what_a_processor_made_is_read_both_ways():
    """SGLang wants a dictionary, and its GLM-4V asks it for attributes."""
    import copy

    from vlmhb_sglang.asking import Features

    made = Features({"image_grid_thw": 3}, format="processor_output")
    assert isinstance(made, dict)
    assert (made["image_grid_thw"], made.image_grid_thw, made.format) == (3, 3, "processor_output")
    assert getattr(made, "attention_mask", None) is None
    assert copy.deepcopy(made) == made


def test_models_without_a_known_fault(tmp_path):
    from vlmhb_sglang.faults import refuse_known_faults

    for config in (
        {"architectures": ["GPT2LMHeadModel"]},
        {"architectures": ["LlavaForConditionalGeneration"], "vision_config": {"model_type": "clip_vision_model"}},
        {
            "architectures": ["LlavaForConditionalGeneration"],
            "vision_config": {"model_type": "pixtral", "hidden_act": "silu"},
        },
        {},
    ):
        refuse_known_faults(ModelSpec(model_path="x", model_impl="native"), folder(tmp_path, **config))


def test_devices_that_are_not_there():
    from vlmhb_sglang.checks import on_cpu
    from vlmhb_sglang.info import backend_info

    info = backend_info()
    assert on_cpu(ModelSpec(model_path="x", device="cpu"), info)
    with pytest.raises(ModelLoadError, match="tpu"):
        on_cpu(ModelSpec(model_path="x", device="tpu"), info)


def test_a_missing_folder_is_said_before_sglang_is_started(tmp_path):
    from vlmhb_sglang import SGLangModel

    with pytest.raises(ModelLoadError, match="no model folder"):
        SGLangModel().load(tmp_path / "nothing")


def test_recipes():
    from vlmhb_sglang.recipe import recipe

    for device in ("cpu", "cuda"):
        found = recipe(device)
        assert found.requirements == ("sglang==0.5.23",)
        compile(found.verify, "verify", "exec")
        assert found.disk_bytes > 5e9
