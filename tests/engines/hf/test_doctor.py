"""``vlmhb doctor`` and the hf plugin: verdicts are what loading then does, estimates are what is allocated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import doctor_cases
import pytest
from click.testing import CliRunner
from vlmhb import ModelCheck, ModelSpec
from vlmhb.cli.app import app
from vlmhb.doctor.kv_cache import kv_cache_bytes
from vlmhb.doctor.weights import read_weights
from vlmhb.errors import ModelLoadError
from vlmhb.prompting import open_model_folder

VERDICTS = {
    "unknown model type": ("refused", "zephyron"),
    "no model type": ("refused", "no model_type in config.json"),
    "encoder and decoder": ("refused", "T5Config"),
    "own code": ("condition", "trust_remote_code"),
    "own code, without its package": ("condition", "Install a_package_of_nobody"),
    "own code, without its file": ("refused", "own.py"),
    "an architecture that only own code has": ("condition", "trust_remote_code"),
    "phi3_v, not trusted": ("condition", "trust_remote_code"),
    "minicpmv, not trusted": ("condition", "trust_remote_code"),
    "the first DeepSeek-OCR": ("refused", "DeepseekVLV2Processor"),
    "awq": ("condition", "gptqmodel"),
    "gptq": ("condition", "Install optimum"),
    "bitsandbytes": ("condition", "Install bitsandbytes"),
    "compressed tensors": ("condition", "compressed"),
    "no processor": ("condition", "holds no processor"),
    "a processor that needs an absent package": ("condition", "Install num2words"),
    "no tokenizer": ("refused", "tokenizer"),
    "a damaged tokenizer": ("refused", "tokenizer"),
    "weights that lack a tensor": ("refused", "model.layers.1.mlp.down_proj.weight"),
    "weights of another size": ("refused", "is (128, 256) and should be (128, 288)"),
    "a head size of its own": ("refused", "of other sizes than its config says"),
}
"""What is not simply supported, and words of the reason or the advice."""


def check(folder: Path, **fields: Any) -> ModelCheck:
    from vlmhb_hf import vlmhb_check_model

    found = vlmhb_check_model("hf", ModelSpec(model_path=str(folder), device="cpu", dtype="float32", **fields))
    assert found is not None
    return found


def loads(folder: Path, **fields: Any) -> str | None:
    """Why the model does not really load, or None when it does."""
    from vlmhb_hf import HuggingFaceModel

    model = HuggingFaceModel()
    try:
        model.load_spec(ModelSpec(model_path=str(folder), device="cpu", dtype="float32", **fields))
    except ModelLoadError as error:
        return str(error)
    finally:
        model.close()
    return None


def test_there_are_thirty_cases():
    assert len(doctor_cases.CASES) >= 30
    assert set(VERDICTS) < set(doctor_cases.CASES)


@pytest.mark.parametrize("name", doctor_cases.CASES)
@pytest.mark.filterwarnings("ignore")  # of transformers, about folders that are wrong on purpose
def test_the_verdict_is_what_loading_does(name, folder_of, tmp_path, monkeypatch):
    if name == "a processor that needs an absent package":  # it may be here
        monkeypatch.setattr("transformers.models.smolvlm.processing_smolvlm.num2words", None)
    folder, fields = doctor_cases.make(name, folder_of, tmp_path / "model")
    (support,) = check(folder, **fields).supports
    verdict, words = VERDICTS.get(name, ("supported", ""))
    assert (support.verdict, words in f"{support.reason} {support.advice}") == (verdict, True), support
    reason = loads(folder, **fields)
    assert (reason is None) == (verdict == "supported"), reason


def test_what_loading_is_asked_for_counts(folder_of):
    for wanted in ("flash_attention_2", "of_nobody"):
        options = {"attn_implementation": wanted}
        (support,) = check(folder_of("llama"), options=options).supports
        assert support.verdict != "supported"
        assert loads(folder_of("llama"), options=options) is not None


def test_without_weights_only_their_fit_is_left_open(folder_of, tmp_path):
    folder, _ = doctor_cases.make("llava", folder_of, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    found = check(folder)
    assert found.supports[0].verdict == "supported"
    assert found.facts == check(folder_of("llava")).facts


def test_a_model_of_real_size_before_it_is_fetched(folder_of, tmp_path):
    """The sizes of LLaMA 3 8B, whose parameters are 8,030,261,248; nothing of that size is allocated."""
    folder, _ = doctor_cases.make("llama", folder_of, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    sizes = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "head_dim": 128}
    heads = {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}
    doctor_cases.config(**sizes, **heads)(folder)
    facts = check(folder).facts
    assert facts is not None
    assert facts.parameters == 8_030_261_248
    assert kv_cache_bytes(facts.text_config, 1000, "bfloat16") == 131_072_000


def test_notes_of_a_base_model(folder_of, tmp_path):
    folder, _ = doctor_cases.make("no chat template", folder_of, tmp_path / "model")
    assert "no chat template" in check(folder).supports[0].notes[0]
    assert check(folder_of("llama")).supports[0].notes == ()


@pytest.mark.parametrize("family", ["llama", "gpt2", "bloom", "falcon", "qwen2_vl", "llava", "gemma3", "idefics3"])
def test_weights_are_what_is_allocated(family, folder_of):
    from vlmhb_hf import HuggingFaceModel

    folder = folder_of(family)
    with HuggingFaceModel().load(folder, dtype="float32", device="cpu") as model:
        allocated = sum(parameter.numel() for parameter in model._model.parameters())
    weights = read_weights(open_model_folder(ModelSpec(model_path=str(folder))))
    assert weights is not None
    assert weights.bytes_in("float32") == pytest.approx(4 * allocated, rel=0.02)
    facts = check(folder).facts
    assert facts is not None
    assert facts.parameters == allocated


@pytest.mark.parametrize("family", ["llama", "gpt2", "bloom", "falcon", "qwen2_vl", "llava", "gemma3", "mistral"])
def test_the_kv_cache_is_what_transformers_keeps(family, folder_of):
    import torch
    from vlmhb_hf import HuggingFaceModel

    folder = folder_of(family)
    tokens = 48 if family != "mistral" else 15  # of a window of 16 tokens transformers keeps 15
    with HuggingFaceModel().load(folder, dtype="float32", device="cpu") as model, torch.no_grad():
        cache = model._model(input_ids=torch.ones(1, tokens, dtype=torch.long), use_cache=True).past_key_values
    kept = sum(part.numel() * 4 for layer in cache.layers for part in (layer.keys, layer.values))
    facts = check(folder).facts
    assert facts is not None
    assert kv_cache_bytes(facts.text_config, tokens, "float32") == pytest.approx(kept, rel=0.05)


@pytest.mark.parametrize("family", ["qwen2_vl", "llava"])
def test_a_page_is_as_many_tokens_as_a_real_prompt_has(family, folder_of, tmp_path):
    from PIL import Image
    from vlmhb import GenerationRequest, ImageInput, SamplingParams
    from vlmhb_hf import HuggingFaceModel

    Image.effect_noise((2480, 3508), 80).convert("RGB").save(tmp_path / "page.png", compress_level=0)
    params = SamplingParams(max_tokens=1)
    images = {"with": [ImageInput(path=str(tmp_path / "page.png"))], "without": []}
    requests = [GenerationRequest.ask(name, "Hi", found, sampling=params) for name, found in images.items()]
    with HuggingFaceModel().load(folder_of(family), dtype="float32", device="cpu") as model:
        results = {result.id: result for result in model.generate_requests(requests)}
    facts = check(folder_of(family)).facts
    assert facts is not None
    assert facts.page_tokens == results["with"].prompt_tokens - results["without"].prompt_tokens


@pytest.mark.slow
def test_the_command_asks_the_engine_in_its_own_process(folder_of, tmp_path, monkeypatch):
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path))
    arguments = ["doctor", str(folder_of("qwen2_vl")), "-b", "hf", "-o", "dtype=float32", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["family"] == "QwenVL"
    assert found["engines"][0]["verdict"] == "supported"
    assert found["memory"]["page_tokens"] > 0
    start = "import sys; from vlmhb.cli.app import main; sys.argv[0] = 'vlmhb'; main()"
    command = [sys.executable, "-X", "importtime", "-c", start, *arguments]
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(again.stdout)["engines"] == found["engines"]
    assert not {"torch", "transformers", "safetensors"} & {
        line.split("|")[-1].strip() for line in again.stderr.splitlines()
    }
