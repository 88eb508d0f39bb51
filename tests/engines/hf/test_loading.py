"""Loading: what is decided and recorded, what is refused and why, and that closing gives everything back."""

import gc
import json
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import vlmhb
from parity_requests import picture
from vlmhb.errors import ConfigError, ModelLoadError
from vlmhb_hf import HuggingFaceModel, info

from .conftest import answers, ask

pytestmark = pytest.mark.hf


def changed(tiny, tmp_path, **config):
    """A copy of the model with entries of config.json replaced; None removes one."""
    folder = shutil.copytree(tiny, tmp_path / "model")
    file = folder / "config.json"
    values = {**json.loads(file.read_text(encoding="utf-8")), **config}
    file.write_text(json.dumps({k: v for k, v in values.items() if v is not None}), encoding="utf-8")
    return folder


def test_facts_say_what_was_decided(model):
    facts = model.facts()
    assert facts["class"] == "Qwen2VLForConditionalGeneration"
    assert (facts["dtype"], facts["device"], facts["batch_size"], facts["threads"]) == ("float32", "cpu", 32, 1)
    assert set(facts["attention"].values()) == {"sdpa"}
    assert facts["context_length"] == 2048
    assert facts["stop_token_ids"]
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize(("dtype", "loaded"), [("auto", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16")])
def test_dtypes(tiny, dtype, loaded):
    with HuggingFaceModel().load(tiny, dtype=dtype, device="cpu") as model:
        assert model.facts()["dtype"] == loaded
        assert answers(model, [ask("0", "What?", max_tokens=3)])["0"].ok


def test_eager_and_sdpa_are_what_was_asked_for_and_agree(tiny, model):
    with HuggingFaceModel().load(tiny, dtype="float32", attn_implementation="eager") as eager:
        assert set(eager.facts()["attention"].values()) == {"eager"}
        requests = [ask(str(index), "What is it?" * (index + 1)) for index in range(3)]
        wanted = {id: result.token_ids for id, result in answers(model, requests).items()}
        assert {id: result.token_ids for id, result in answers(eager, requests).items()} == wanted


@pytest.mark.parametrize("wish", ["flash_attention_2", "no_such_attention"])
def test_an_attention_that_cannot_be_had_is_refused_and_not_replaced(tiny, wish):
    with pytest.raises(ModelLoadError, match=wish):
        HuggingFaceModel().load(tiny, attn_implementation=wish, device="cpu")


def test_a_wrong_option_is_a_config_error(tiny):
    with pytest.raises(ConfigError, match="Did you mean batch_size"):
        HuggingFaceModel().load(tiny, batch_siz=3)
    with pytest.raises(ConfigError, match="batch_size must be of type int"):
        HuggingFaceModel().load(tiny, batch_size="3")
    with pytest.raises(ConfigError, match="batch_size must be at least 1, not 0"):
        HuggingFaceModel().load(tiny, batch_size=0)
    with pytest.raises(ConfigError, match="reuse must be one of auto, off"):
        HuggingFaceModel().load(tiny, reuse="always")
    with pytest.raises(ConfigError, match="cannot use the device 'tpu:0' here"):
        HuggingFaceModel().load(tiny, device="tpu:0")


def broken_weights(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def missing_weights(folder):
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    weights = load_file(file)
    kept = {name: values for name, values in weights.items() if "layers.2." not in name}
    save_file(kept, file, metadata={"format": "pt"})


def other_shape(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 512}), encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (shutil.rmtree, "there is no model folder"),
        (lambda folder: (folder / "config.json").unlink(), "holds no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json cannot be read"),
        (lambda folder: (folder / "config.json").write_text("[]"), "must hold a JSON object"),
        (lambda folder: (folder / "model.safetensors").unlink(), "cannot be loaded: .*safetensors"),
        (broken_weights, "cannot be loaded"),
        (missing_weights, r"lacks 12 of the weights that its architecture needs \(.*layers\.2"),
        (other_shape, r"holds 12 weights of other sizes.*should be \("),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "the processor of model cannot be loaded"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_in_plain_words(tiny, tmp_path, spoil, message):
    folder = shutil.copytree(tiny, tmp_path / "model")
    spoil(folder)
    with pytest.raises(ModelLoadError, match=message):
        HuggingFaceModel().load(folder)


def test_an_unknown_architecture_is_named(tiny, tmp_path):
    folder = changed(tiny, tmp_path, model_type="from_the_future", architectures=["FromTheFuture"])
    with pytest.raises(ModelLoadError, match="from_the_future"):
        HuggingFaceModel().load(folder)


def test_remote_code_is_not_run_unless_asked_for(tiny, tmp_path):
    folder = changed(
        tiny, tmp_path, model_type="own_kind", auto_map={"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    )
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nraise SystemExit\n")
    with pytest.raises(ModelLoadError, match="trust_remote_code"):
        HuggingFaceModel().load(folder)
    assert not (tmp_path / "ran").exists()


def test_a_context_above_the_models_own_is_refused(tiny):
    with pytest.raises(ModelLoadError, match="max_model_len 4096 is above the model's own limit of 2048"):
        HuggingFaceModel().load(tiny, max_model_len=4096)


HOSTILE = {
    "do_sample": True,
    "temperature": 5.0,
    "top_k": 1,
    "repetition_penalty": 1.9,
    "max_length": 12,
    "max_new_tokens": 2,
    "num_beams": 3,
    "no_repeat_ngram_size": 1,
    "suppress_tokens": [3, 4, 5],
}


def test_a_generation_config_does_not_leak_in_and_is_reported_once(tiny, model, tmp_path):
    folder = shutil.copytree(tiny, tmp_path / "model")
    file = folder / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **HOSTILE}), encoding="utf-8")
    requests = [ask(str(index), "What is it? " * (index + 1)) for index in range(3)]
    wanted = {id: result.token_ids for id, result in answers(model, requests).items()}
    with HuggingFaceModel().load(folder, dtype="float32") as hostile:
        results = answers(hostile, requests)
        assert {id: result.token_ids for id, result in results.items()} == wanted
        assert hostile.facts()["ignored_generation_config"] == HOSTILE
        again = answers(hostile, requests)
    said = [note for result in (*results.values(), *again.values()) for note in result.notes]
    assert len(said) == 1
    assert "temperature=5.0" in said[0]


def test_every_end_token_of_the_folder_ends_an_answer(tiny, model, tmp_path):
    """The generation config names a token that the greedy answer begins with."""
    whole = answers(model, [ask("0", "What is it?")])["0"]
    folder = shutil.copytree(tiny, tmp_path / "model")
    file = folder / "generation_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**config, "eos_token_id": [whole.token_ids[3]]}), encoding="utf-8")
    with HuggingFaceModel().load(folder, dtype="float32") as other:
        result = answers(other, [ask("0", "What is it?")])["0"]
    place = whole.token_ids.index(whole.token_ids[3])
    assert (result.token_ids, result.finish_reason) == (whole.token_ids[: place + 1], "stop")


def test_closing_gives_everything_back_and_loading_again_works(tiny):
    import torch

    model = HuggingFaceModel().load(tiny, dtype="float32")
    before = answers(model, [ask("0", "What?")])["0"].token_ids
    held = weakref.ref(model._model)
    weights = [weakref.ref(parameter) for parameter in model._model.parameters()]
    model.close()
    gc.collect()
    assert held() is None
    assert not any(weight() is not None for weight in weights)
    if torch.cuda.is_available():
        assert torch.cuda.memory_allocated() == 0
    assert model.facts() == {}
    model.close()
    assert answers(model.load(tiny, dtype="float32"), [ask("0", "What?")])["0"].token_ids == before
    model.load(tiny, dtype="float32")  # without closing first
    assert answers(model, [ask("0", "What?")])["0"].token_ids == before
    model.close()


@pytest.mark.slow
def test_memory_does_not_grow_over_many_loads(tiny):
    code = (
        "import gc, sys, psutil\n"
        "from vlmhb_hf import HuggingFaceModel\n"
        "own, seen = psutil.Process(), []\n"
        "for _ in range(6):\n"
        "    with HuggingFaceModel().load(sys.argv[1], dtype='float32', threads=1) as model:\n"
        "        model.generate(['What?'] * 4, max_tokens=4)\n"
        "    gc.collect()\n"
        "    seen.append(own.memory_info().rss)\n"
        "print((max(seen[3:]) - seen[1]) / 2**20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tiny)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20  # the model has 5 MB; a leak of it would be 20 and more


def test_the_backend_is_found_and_described_without_its_engine():
    code = (
        "import sys, vlmhb\n"
        "info = {i.name: i for i in vlmhb.backends()}['hf']\n"
        "print(info.engine, info.engine_version, info.problem, info.capabilities.batching)\n"
        "print([name for name in ('torch', 'transformers', 'numpy', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["transformers 5.24.0 None True", "[]"]


def test_vlmhb_load_gives_the_same_model(tiny, model):
    with vlmhb.load(str(tiny), backend="hf", dtype="float32") as loaded:
        assert loaded.generate("What?", max_tokens=6) == model.generate("What?", max_tokens=6)


def test_devices_of_drivers_that_do_not_count_them_are_one_name(tmp_path, monkeypatch):
    if Path("/proc/driver/nvidia/gpus").is_dir():
        pytest.skip("this machine's driver counts its devices")
    (tmp_path / "kfd").touch()
    monkeypatch.setattr(info, "_UNCOUNTED", {"cuda": (str(tmp_path / "dxg"), str(tmp_path / "kfd")), "mps": ("/none",)})
    assert info.describe().devices == ("cuda", "cpu")


@pytest.mark.parametrize(
    "options",
    [{"cache": "static"}, pytest.param({"cache": "static", "compile": True}, marks=pytest.mark.slow)],
    ids=["static", "compiled"],
)
def test_a_cache_of_fixed_length_gives_the_same_tokens(tiny, model, options):
    requests = [ask(f"{size}-{question}", question, picture(size, 90, size), max_tokens=12)
                for size in (90, 200) for question in ("What is it?", "Hi", "Назовите дату")]  # fmt: skip
    wanted = {id: result.token_ids for id, result in answers(model, requests).items()}
    with HuggingFaceModel().load(tiny, dtype="float32", threads=1, **options) as other:
        results = answers(other, requests)
        facts = other.facts()
    assert {id: result.token_ids for id, result in results.items()} == wanted
    assert (facts["cache"], facts["compiled"]) == ("static", "compile" in options)
    assert facts["reuse"]["reason"] == "the KV cache is static"
    assert set(facts["reuse"]["batches"]) == {"features"}


def test_compiling_needs_a_cache_of_fixed_length(tiny):
    with pytest.raises(ModelLoadError, match="compile needs a KV cache of fixed length: add cache=static"):
        HuggingFaceModel().load(tiny, compile=True)
