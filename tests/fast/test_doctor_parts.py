"""What ``vlmhb doctor`` says without an engine: files, weights, memory, places; and what an engine's refusal means."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from vlmhb import ModelCheck, ModelFacts, ModelSpec, Support
from vlmhb.contract.request import DEFAULT_MAX_TOKENS
from vlmhb.doctor import devices, memory
from vlmhb.doctor.devices import Device
from vlmhb.doctor.files import look
from vlmhb.doctor.kv_cache import kv_cache_bytes
from vlmhb.doctor.place import local_folder
from vlmhb.doctor.weights import Weights, read_weights
from vlmhb.errors import ModelLoadError
from vlmhb.prompting import ModelFolder, open_model_folder
from vlmhb.prompting.examine import needs_values, obstacle, shortened

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
}
VISUAL = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "vision_config": {"depth": 2}}


def make(path: Path, config: dict[str, object], **files: object) -> Path:
    """A model's folder; ``__`` in a name stands for the dot, and what is no text is written as JSON."""
    path.mkdir(parents=True, exist_ok=True)
    for name, content in {"config__json": config, **files}.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (path / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return path


def safetensors(file: Path, **tensors: tuple[str, list[int]]) -> Path:
    """A file with a header and no values: whoever reads the values finds none."""
    header = json.dumps({name: {"dtype": kind, "shape": shape} for name, (kind, shape) in tensors.items()}).encode()
    file.write_bytes(struct.pack("<Q", len(header)) + header)
    return file


def opened(path: Path) -> ModelFolder:
    return open_model_folder(ModelSpec(model_path=str(path)))


def groups(path: Path) -> dict[str, tuple[tuple[str, ...], str]]:
    found = look(opened(path))
    return {group.kind: (group.found, group.missing) for group in found}


# --- files


def test_a_whole_text_model_lacks_nothing(tmp_path):
    make(tmp_path, LLAMA, tokenizer__json={}, tokenizer_config__json={"chat_template": "{{ x }}"})
    safetensors(tmp_path / "model.safetensors")
    assert groups(tmp_path) == {
        "tokenizer": (("tokenizer.json", "tokenizer_config.json"), ""),
        "chat template": (("tokenizer_config.json",), ""),
        "weights": (("model.safetensors",), ""),
    }


def test_what_is_missing_is_named(tmp_path):
    found = groups(make(tmp_path, VISUAL, tokenizer_config__json={}))
    assert found["tokenizer"][1].startswith("a tokenizer")
    assert found["processor"][1] == "preprocessor_config.json or processor_config.json"
    assert found["chat template"][1] == "a chat template"
    assert found["weights"][1].startswith("weights")


def test_shards_that_the_index_names_and_the_folder_lacks(tmp_path):
    names = [f"model-0000{number}-of-00005.safetensors" for number in range(1, 6)]
    index = {"weight_map": {f"layer{number}": name for number, name in enumerate(names * 2)}}
    make(tmp_path, LLAMA, model__safetensors__index__json=index)
    safetensors(tmp_path / names[0])
    assert opened(tmp_path).weight_files == names
    assert groups(tmp_path)["weights"] == ((names[0],), f"{', '.join(names[1:4])} and 1 more")


def test_the_weights_are_those_that_engines_read(tmp_path):
    make(tmp_path, LLAMA, pytorch_model__bin="")
    assert opened(tmp_path).weight_files == ["pytorch_model.bin"]
    safetensors(tmp_path / "b.safetensors")
    safetensors(tmp_path / "consolidated.safetensors")
    assert opened(tmp_path).weight_files == ["b.safetensors", "consolidated.safetensors"]
    safetensors(tmp_path / "model.safetensors")
    assert opened(tmp_path).weight_files == ["model.safetensors"]


def test_own_code_that_is_not_there(tmp_path):
    references = {"AutoConfig": "configuration_x.XConfig", "AutoModel": ["modeling_x.X", "other/repository--y.Y"]}
    make(tmp_path, {**LLAMA, "auto_map": references}, configuration_x__py="")
    assert groups(tmp_path)["own code"] == (("configuration_x.py",), "modeling_x.py")


def test_a_damaged_json_file_is_an_error_in_words(tmp_path):
    make(tmp_path, LLAMA, tokenizer_config__json="{")
    with pytest.raises(ModelLoadError, match=r"tokenizer_config\.json cannot be read"):
        groups(tmp_path)


@pytest.mark.parametrize(
    ("config", "files", "images", "code"),
    [
        (LLAMA, {}, False, False),
        (VISUAL, {}, True, False),
        (LLAMA, {"processor_config__json": {}}, True, False),
        ({**LLAMA, "auto_map": {}}, {}, False, True),
        (LLAMA, {"tokenizer_config__json": {"auto_map": {"AutoTokenizer": "t.T"}}}, False, True),
    ],
)
def test_what_the_folder_expects(tmp_path, config, files, images, code):
    folder = opened(make(tmp_path, config, **files))
    assert (folder.expects_images, folder.own_code) == (images, code)


# --- weights


def test_weights_are_counted_from_headers(tmp_path):
    make(tmp_path, LLAMA)
    safetensors(tmp_path / "a.safetensors", one=("BF16", [10, 20]), two=("F32", [5]), scales=("F8_E4M3", [3]))
    safetensors(tmp_path / "b.safetensors", packed=("I32", [7]), scalar=("F16", []))
    found = read_weights(opened(tmp_path))
    assert (found.numbers, found.fixed_bytes) == (206, 31)
    assert found.stored == {"BF16": 400, "F32": 20, "F8_E4M3": 3, "I32": 28, "F16": 2}
    assert found.bytes_in("float32") == 206 * 4 + 31
    assert found.bytes_in("bfloat16") == 206 * 2 + 31


@pytest.mark.parametrize(
    ("config", "metadata", "numbers"),
    [
        ({"torch_dtype": "bfloat16"}, {"total_size": 1000}, 500),
        ({"dtype": "float32"}, {"total_size": 1000, "total_parameters": 300}, 300),
        ({}, {"total_size": 1000}, None),
        ({"dtype": "bfloat16", "quantization_config": {}}, {"total_size": 1000}, None),
        ({"dtype": "bfloat16"}, None, None),
    ],
)
def test_weights_that_are_not_there_yet_are_taken_from_the_index(tmp_path, config, metadata, numbers):
    index = {"metadata": metadata, "weight_map": {"x": "model-1.safetensors"}}
    make(tmp_path, {**LLAMA, **config}, model__safetensors__index__json=index)
    found = read_weights(opened(tmp_path))
    assert (found.numbers if found else None) == numbers


def test_a_folder_without_weights_says_nothing(tmp_path):
    assert read_weights(opened(make(tmp_path, LLAMA))) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0",
        struct.pack("<Q", 1 << 40),
        struct.pack("<Q", 50) + b"{",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 35) + b'{"a": {"dtype": "F3", "shape": [2]}}',
    ],
)
def test_a_damaged_weight_file_is_an_error_in_words(tmp_path, content):
    make(tmp_path, LLAMA)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelLoadError, match=r"model\.safetensors is no whole safetensors file.*download complete"):
        read_weights(opened(tmp_path))


# --- the KV cache


@pytest.mark.parametrize(
    ("change", "numbers"),
    [
        ({}, 2 * 32 * 8 * 128),
        ({"num_key_value_heads": None}, 2 * 32 * 32 * 128),
        ({"head_dim": 64}, 2 * 32 * 8 * 64),
        ({"multi_query": True}, 2 * 32 * 128),
        ({"multi_query": True, "new_decoder_architecture": True}, 2 * 32 * 8 * 128),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, 32 * 576),
        ({"cross_attention_layers": [3, 7]}, 2 * 30 * 8 * 128),
        ({"layer_types": ["linear_attention", "full_attention"] * 16}, 2 * 16 * 8 * 128),
        ({"num_kv_shared_layers": 12}, 2 * 20 * 8 * 128),
        ({"use_sliding_window": False, "sliding_window": 100}, 2 * 32 * 8 * 128),
    ],
)
def test_a_token_takes_what_the_layers_keep(change, numbers):
    config = {**LLAMA, **change}
    assert kv_cache_bytes(config, 1000, "float16") == numbers * 1000 * 2
    assert kv_cache_bytes(config, 10, "float32") == numbers * 10 * 4


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({}, 32 * 100),
        ({"sliding_window_pattern": 4}, 24 * 100 + 8 * 1000),
        ({"layer_types": ["sliding_attention"] * 16 + ["full_attention"] * 16}, 16 * 100 + 16 * 1000),
        ({"layer_types": ["chunked_attention"] * 32, "sliding_window": None, "attention_chunk_size": 64}, 32 * 64),
    ],
)
def test_a_window_bounds_what_a_layer_keeps(change, tokens):
    config = {**LLAMA, "sliding_window": 100, **change}
    assert kv_cache_bytes(config, 1000, "float16") == 2 * 8 * 128 * 2 * tokens


def test_gpt2_names_its_sizes_otherwise():
    config = {"n_layer": 12, "n_head": 12, "n_embd": 768}
    assert kv_cache_bytes(config, 1, "float32") == 2 * 12 * 768 * 4


@pytest.mark.parametrize("missing", ["num_hidden_layers", "num_attention_heads", "hidden_size"])
def test_a_config_that_leaves_a_size_out(missing):
    config = {name: value for name, value in LLAMA.items() if name != missing}
    assert kv_cache_bytes(config, 1000, "float16") is None


# --- memory and devices

CPU = Device(name="cpu", title="CPU", total=100_000_000_000, free=60_000_000_000)
SMALL = Device(name="cuda:0", title="a card", total=8_000_000_000, free=8_000_000_000)
EIGHT = Weights(numbers=8_000_000_000, source="the headers")


def test_the_batch_is_what_is_left_beside_the_weights():
    facts = ModelFacts(text_config=LLAMA, page_tokens=8000)
    found = memory.estimate(EIGHT, facts, {}, None, "bfloat16", [CPU, SMALL])
    assert found.weights["float32"] == 32_000_000_000
    assert found.request_tokens == 8000 + memory.QUESTION_TOKENS + DEFAULT_MAX_TOKENS
    cache = kv_cache_bytes(LLAMA, found.request_tokens, "bfloat16")
    assert [fit.batch for fit in found.fits] == [(54_000_000_000 - 16_000_000_000) // cache, 0]


def test_a_request_is_no_longer_than_the_context():
    facts = ModelFacts(page_tokens=8000)
    assert memory.estimate(EIGHT, facts, LLAMA, 4096, "float16", []).request_tokens == 4096


def test_the_count_of_an_engine_stands_in_for_weights_that_are_not_there():
    facts = ModelFacts(text_config=LLAMA, parameters=1000)
    found = memory.estimate(None, facts, {}, None, "float16", [CPU])
    assert found.weights == {"float32": 4000, "bfloat16": 2000, "float16": 2000}
    assert "config" in found.weights_source


def test_what_is_not_known_is_not_guessed():
    found = memory.estimate(None, None, {}, None, "float16", [CPU])
    assert (found.weights, found.kv_cache, found.page_tokens, found.fits[0].batch) == ({}, None, None, None)


def test_the_cpu_has_what_the_container_has_left(monkeypatch):
    monkeypatch.setattr(devices, "total_memory", lambda: 3000)
    monkeypatch.setattr(devices, "free_memory", lambda: 1000)
    assert devices.devices()[-1] == Device(name="cpu", title="CPU", total=3000, free=1000)


def test_gpus_are_those_of_the_driver(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, NVIDIA X 80GB, 81920, 80000'\necho '1, NVIDIA Y, [N/A], 5'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    first, cpu = devices.devices()
    assert (first.name, first.title, first.total, first.free) == ("cuda:0", "NVIDIA X 80GB", 81920 << 20, 80000 << 20)
    assert cpu.name == "cpu"


# --- places


def test_a_hub_id_is_found_in_the_cache_and_not_fetched(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    kept = tmp_path / "models--org--name"
    (kept / "snapshots" / "abc").mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc\n")
    assert local_folder("org/name") == kept / "snapshots" / "abc"
    assert local_folder("org/name", "abc") == kept / "snapshots" / "abc"
    with pytest.raises(ModelLoadError, match=r"the hub's cache .* does not hold it either"):
        local_folder("org/name", "v2")
    with pytest.raises(ModelLoadError, match="no model folder org/other"):
        local_folder("org/other")
    with pytest.raises(ModelLoadError, match="not a hub id"):
        local_folder(str(tmp_path / "nowhere"))
    assert local_folder(str(tmp_path)) == tmp_path


def test_home_of_the_hub_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "hub" / "models--a--b" / "snapshots" / "main").mkdir(parents=True)
    assert local_folder("a/b").name == "main"


# --- what a refusal means

TEXT = dict(LLAMA, model_type="llama")
CODE = {**LLAMA, "model_type": "phi3_v", "auto_map": {"AutoConfig": "configuration_phi3_v.Phi3VConfig"}}
ABSENT = ImportError(
    "Package `num2words` is required to run SmolVLM processor. Install it with `pip install num2words`."
)
REMOTE = ImportError(
    "This modeling file requires the following packages that were not found in your environment: flash_attn, einops. "
    "Run `pip install flash_attn einops`"
)
UNKNOWN = ValueError(
    "The checkpoint you are trying to load has model type `new` but Transformers does not recognize this architecture."
)


@pytest.mark.parametrize(
    ("config", "files", "trusted", "error", "verdict", "words"),
    [
        (TEXT, {}, False, UNKNOWN, "refused", "does not recognize"),
        (TEXT, {}, False, UNKNOWN, "refused", "Another version of the engine may know it"),
        (CODE, {}, False, UNKNOWN, "condition", "trust_remote_code"),
        (CODE, {}, True, UNKNOWN, "refused", "does not recognize"),
        (CODE, {}, True, REMOTE, "condition", "flash_attn, einops"),
        (VISUAL, {"processor_config__json": {}}, False, ABSENT, "condition", "Install num2words"),
        (TEXT, {}, False, ModuleNotFoundError("No module named 'tiktoken'"), "condition", "Install tiktoken"),
        (VISUAL, {}, False, ValueError("Unrecognized configuration class"), "condition", "holds no processor"),
        (VISUAL, {"processor_config__json": {}}, False, ValueError("heads do not fit"), "refused", "heads do not fit"),
        ({**VISUAL, "model_type": "new"}, {}, False, UNKNOWN, "refused", "does not recognize"),
        (TEXT, {}, False, ImportError("Using GPTQ requires optimum (`pip install optimum`)"), "condition", "optimum"),
    ],
)
def test_what_an_engines_refusal_means(tmp_path, config, files, trusted, error, verdict, words):
    spec = ModelSpec(model_path=str(make(tmp_path, config, **files)), trust_remote_code=trusted)
    found = obstacle(error, str(error), open_model_folder(spec), spec)
    assert found.verdict == verdict
    assert words in f"{found.reason} {found.advice}"


def test_a_cause_counts_as_well(tmp_path):
    spec = ModelSpec(model_path=str(make(tmp_path, TEXT)))
    error = ModelLoadError("the processor cannot be loaded")
    error.__cause__ = ABSENT
    assert obstacle(error, str(error), open_model_folder(spec), spec).verdict == "condition"


def test_an_error_about_a_tensor_without_values_says_nothing_about_the_model():
    assert needs_values(NotImplementedError("Cannot copy out of meta tensor; no data!"))
    assert not needs_values(ValueError("no module named lm_head"))


def test_long_words_are_cut():
    assert len(shortened("word " * 200)) == 400


def test_what_loading_takes():
    native = Support(implementation="native", verdict="refused", reason="x")
    other = Support(implementation="transformers", verdict="supported")
    check = ModelCheck(supports=(native, other), auto="native")
    assert check.chosen(ModelSpec(model_path="m")) is native
    assert check.chosen(ModelSpec(model_path="m", model_impl="transformers")) is other
    alone = ModelCheck(supports=(other,), auto="transformers")
    assert alone.chosen(ModelSpec(model_path="m", model_impl="native")) is other


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("vlmhb.cli.doctor", {"torch", "transformers", "numpy", "PIL", "rich", "polars", "safetensors"}),
        ("vlmhb.doctor.diagnosis", {"torch", "transformers", "safetensors", "rich", "polars"}),
    ],
)
def test_nothing_heavy_is_imported(module, heavy):
    code = f"import sys, {module}\nfound = {heavy} & set(sys.modules)\nassert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True)
