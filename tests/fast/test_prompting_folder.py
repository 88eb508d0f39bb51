"""What a model's folder says, and how many tokens fit: read as JSON, without an engine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from vlmhb import GenerationRequest, ModelSpec, SamplingParams
from vlmhb.errors import ModelLoadError, RequestError
from vlmhb.prompting import (
    ModelFolder,
    context_length,
    fit_to_context,
    open_model_folder,
    sampling_defaults_of,
    stop_token_ids,
)


def folder(path, config=None, generation=None):
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config or {"model_type": "llama"}), encoding="utf-8")
    if generation is not None:
        (path / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return open_model_folder(ModelSpec(model_path=str(path)))


@pytest.mark.parametrize(
    ("generation", "effective"),
    [
        (None, {}),
        ({}, {}),
        ({"do_sample": False, "temperature": 1.0, "top_p": 1.0, "repetition_penalty": 1.0, "eos_token_id": 2}, {}),
        ({"temperature": None, "top_k": None, "max_length": None}, {}),
        (
            {"do_sample": True, "temperature": 0.01, "top_k": 1, "top_p": 0.001, "repetition_penalty": 1.05},
            {"do_sample": True, "temperature": 0.01, "top_k": 1, "top_p": 0.001, "repetition_penalty": 1.05},
        ),
        ({"max_new_tokens": 20, "transformers_version": "5.0", "pad_token_id": 0}, {"max_new_tokens": 20}),
        ({"forced_bos_token_id": 0}, {"forced_bos_token_id": 0}),
    ],
)
def test_sampling_defaults_are_those_with_an_effect(tmp_path, generation, effective):
    folder(tmp_path / "m", generation=generation)
    assert sampling_defaults_of(tmp_path / "m") == effective


@pytest.mark.parametrize(
    ("config", "generation", "tokenizer", "ids"),
    [
        ({"eos_token_id": 5}, {"eos_token_id": [7, 5]}, 9, (5, 7, 9)),
        ({"text_config": {"eos_token_id": [3]}}, None, None, (3,)),
        ({"eos_token_id": None}, {"eos_token_id": 0}, 0, (0,)),
        ({}, None, None, ()),
    ],
)
def test_end_tokens_are_the_union_of_all_places(tmp_path, config, generation, tokenizer, ids):
    made = folder(tmp_path / "m", {"model_type": "x", **config}, generation)
    assert stop_token_ids(made, SimpleNamespace(eos_token_id=tokenizer)) == ids


@pytest.mark.parametrize(
    ("config", "wish", "context"),
    [
        ({"max_position_embeddings": 2048}, None, 2048),
        ({"text_config": {"max_position_embeddings": 4096}, "max_position_embeddings": 10}, None, 4096),
        ({"n_positions": 1024}, None, 1024),
        ({"seq_length": 512}, 100, 100),
        ({}, None, None),
        ({}, 77, 77),
    ],
)
def test_context_length(tmp_path, config, wish, context):
    made = folder(tmp_path / "m", {"model_type": "x", **config})
    assert context_length(made, ModelSpec(model_path="m", max_model_len=wish)) == context


@pytest.mark.parametrize(("wish", "message"), [(2049, "above the model's own limit of 2048"), (0, "at least 1, not 0")])
def test_impossible_context_lengths(tmp_path, wish, message):
    made = folder(tmp_path / "m", {"model_type": "x", "max_position_embeddings": 2048})
    with pytest.raises(ModelLoadError, match=message):
        context_length(made, ModelSpec(model_path="m", max_model_len=wish))


@pytest.mark.parametrize(
    ("prompt", "wanted", "context", "limit", "notes"),
    [(10, 5, 15, 5, 0), (10, 6, 15, 5, 1), (14, 500, 15, 1, 1), (10, 500, None, 500, 0)],
)
def test_answers_are_fitted_to_the_context(prompt, wanted, context, limit, notes):
    request = GenerationRequest.ask("0", "?", sampling=SamplingParams(max_tokens=wanted))
    got, said = fit_to_context(prompt, request, context)
    assert (got, len(said)) == (limit, notes)


@pytest.mark.parametrize("prompt", [15, 16, 900])
def test_a_prompt_without_room_for_an_answer_is_too_long(prompt):
    with pytest.raises(
        RequestError, match=rf"the prompt has {prompt} tokens and the model's context holds 15"
    ) as caught:
        fit_to_context(prompt, GenerationRequest.ask("0", "?"), 15)
    assert caught.value.kind == "too_long"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no model folder"),
        (lambda path: path.write_text("x"), "is a file; a model is a folder"),
        (lambda path: path.mkdir(), r"holds no config\.json"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("{no")), r"config\.json cannot be read"),
        (lambda path: (path.mkdir(), (path / "config.json").write_text("3")), "must hold a JSON object, not int"),
        (lambda path: (path.mkdir(), (path / "config.json").write_bytes(b"\xff\xfe")), r"config\.json cannot be read"),
    ],
)
def test_folders_that_are_no_models(tmp_path, make, message):
    make(tmp_path / "my model")
    with pytest.raises(ModelLoadError, match=message):
        open_model_folder(ModelSpec(model_path=str(tmp_path / "my model")))


@pytest.mark.parametrize("path", ["./none", "../none", "~/no such model", "/none/there", "models\\none", ".\\none"])
def test_a_path_is_not_looked_for_on_the_hub(path):
    with pytest.raises(ModelLoadError) as caught:
        open_model_folder(ModelSpec(model_path=path))
    assert str(caught.value) == f"there is no model folder {path}."


def test_what_the_folder_is(tmp_path):
    made = folder(tmp_path / "m", {"model_type": "qwen2_vl", "llm_config": {"a": 1}})
    assert (made.model_type, made.text_config, made.has_processor) == ("qwen2_vl", {"a": 1}, False)
    (tmp_path / "m" / "preprocessor_config.json").write_text("{}")
    assert made.has_processor


def test_the_module_imports_no_engine():
    code = "import sys, vlmhb.prompting; print([n for n in ('torch', 'transformers', 'polars') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("config", "asked", "expected"),
    [
        ({"torch_dtype": "float32"}, "auto", "float32"),
        ({"torch_dtype": "torch.float16"}, "auto", "float16"),
        ({"text_config": {"dtype": "bfloat16"}}, "auto", "bfloat16"),
        ({}, "auto", "auto"),
        ({"dtype": "bfloat16"}, "float32", "float32"),
    ],
)
def test_the_dtype_is_the_specs_or_the_configs(config, asked, expected):
    folder = ModelFolder(path=Path("m"), config=config, generation_config={})
    assert folder.dtype_for(ModelSpec(model_path="m", dtype=asked)) == expected


def test_a_hub_that_cannot_be_reached_is_said_in_words(tmp_path):
    code = "import vlmhb, vlmhb.prompting as p; p.open_model_folder(vlmhb.ModelSpec(model_path='org/m'))"
    for setting in ({"HF_ENDPOINT": "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE": "1"}):
        values = {**os.environ, "HF_HOME": str(tmp_path), **setting}
        done = subprocess.run([sys.executable, "-c", code], env=values, capture_output=True, text=True, check=False)
        said = done.stderr.splitlines()[-1]
        assert "ModelLoadError: there is no model folder org/m, and it could not be fetched from the hub: " in said
        assert said.endswith(". If there is no network here, name a model folder.")
        assert "Got:" not in said
