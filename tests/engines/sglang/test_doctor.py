"""``vlmhb doctor`` and the sglang plugin: its verdicts, in a process that loads nothing, and what loading does.

Starting an engine takes SGLang a minute or more. So only the model that the session's engine runs is really loaded; the
other verdicts are held to what loading the twins was seen to do with this version.
"""

from __future__ import annotations

import json

import doctor_cases
import pytest
from vlmhb.doctor.kv_cache import kv_cache_bytes

NO_CODE = ("refused", "SGLang has no code of its own")
SUPPORTED = ("supported", "")
CONDITIONS = {
    "own code": "trust_remote_code",
    "an architecture that only own code has": "trust_remote_code",
    "no processor": "holds no processor",
    "own code, without its package": "a_package_of_nobody",
    "phi3_v, not trusted": "trust_remote_code",
    "minicpmv, not trusted": "trust_remote_code",
}
SEEN = {
    "llama": (SUPPORTED, SUPPORTED),
    "gpt2": (SUPPORTED, ("refused", "break at the first request")),
    "bloom": (NO_CODE, ("refused", "does not support custom attention backends")),
    "falcon": (NO_CODE, ("refused", "does not support custom attention backends")),
    "qwen2_vl": (SUPPORTED, SUPPORTED),
    "qwen2_5_vl": (SUPPORTED, SUPPORTED),
    "qwen3_vl": (SUPPORTED, SUPPORTED),
    "llava": (("refused", "'Conv2d' object has no attribute 'num_embeddings'"), SUPPORTED),
    "idefics3": (NO_CODE, SUPPORTED),
    "a window": (("refused", "no sliding window"), ("refused", "no sliding window")),
    "weights that lack a tensor": (SUPPORTED, SUPPORTED),
    "unknown model type": (("refused", "zephyron"), ("refused", "zephyron")),
    "smolvlm": (NO_CODE, SUPPORTED),
    "internvl": (NO_CODE, ("refused", "tie_word_embeddings")),
    "Donut": (NO_CODE, ("refused", "'VisionEncoderDecoderConfig' object has no attribute 'hidden_size'")),
    "TrOCR": (NO_CODE, ("refused", "'VisionEncoderDecoderConfig' object has no attribute 'hidden_size'")),
    "phi3_v, trusted": (NO_CODE, ("refused", "")),
    "minicpmv, trusted": (
        ("refused", "shared_experts_config"),
        ("refused", "Unrecognized configuration class"),
    ),
    "deepseek_ocr2": (NO_CODE, ("refused", "parameter")),
    "the first DeepSeek-OCR": (("refused", "DeepseekVLV2Processor"), ("refused", "DeepseekVLV2Processor")),
}
"""Case -> what SGLang 0.5.23 does with it, by its own code and by that of transformers."""


GIB = 1 << 30
ROUNDED_TO = 0.001
"""GiB, to which SGLang rounds what it reports."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory, tiny):
    """Case -> its folder and the plugin's answer."""
    return doctor_cases.ask("sglang", {**SEEN, **CONDITIONS}, tiny, tmp_path_factory.mktemp("doctor"))


@pytest.fixture(scope="module")
def checks(asked):
    """Case -> the plugin's answer."""
    return {name: found.check for name, found in asked.items()}


@pytest.mark.parametrize("name", SEEN)
def test_what_was_seen(name, checks):
    for support, (verdict, words) in zip(checks[name].supports, SEEN[name], strict=True):
        assert support.verdict == verdict, support
        assert words in support.reason


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_say_what_to_do(name, checks):
    for support in checks[name].supports:
        assert support.verdict == "condition", support
        assert CONDITIONS[name] in f"{support.reason} {support.advice}"


def test_weights_that_stay_unset_are_said(checks):
    """SGLang loads such a model without a word; of its own classes most do not even tell which weights they set."""
    (note,) = checks["weights that lack a tensor"].supports[1].notes
    assert "unset" in note
    assert "layers.1.mlp.down_proj.weight" in note
    assert checks["llama"].supports[1].notes == ()


def test_what_auto_takes(checks):
    assert {name: checks[name].auto for name in ("llama", "bloom", "idefics3")} == {
        "llama": "native",
        "bloom": "transformers",
        "idefics3": "transformers",
    }


def test_the_engine_that_runs_was_said_to_run(checks, model):
    """The session's engine runs the tiny Qwen2-VL by SGLang's own code."""
    assert checks["qwen2_vl"].supports[0].verdict == "supported"
    assert model.facts()["model_impl"] == "auto"
    assert checks["qwen2_vl"].auto == "native"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen2_vl"])
def test_the_kv_cache_is_what_sglang_reports(family, asked, script):
    """Heads of keys and values in groups, one for each head, and beside pictures. Each takes an engine of its own: the
    session's has so small a pool that rounding alone may be more than what is asked for."""
    folder, _, check = asked[family]
    process = script(f"""
        import asyncio, json
        from vlmhb_sglang import SGLangModel

        with SGLangModel().load({str(folder)!r}, dtype="float32", max_total_tokens=100_000) as model:
            state = model._engine.tokenizer_manager.get_internal_state()
            (found,) = asyncio.run_coroutine_threadsafe(state, model._pump._loop).result(60)
            print(json.dumps([found["memory_usage"], model.facts()["kv_cache_tokens"]]), flush=True)
    """)
    out, _ = process.communicate(timeout=540)
    assert process.returncode == 0
    used, tokens = json.loads(out.splitlines()[-1])
    assert used["token_capacity"] == tokens
    assert used["kvcache"] > 40 * ROUNDED_TO
    estimate = kv_cache_bytes(check.facts.text_config, tokens, "float32")
    assert estimate == pytest.approx(used["kvcache"] * GIB, rel=0.05)
