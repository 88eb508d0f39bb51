"""``vlmhb doctor`` and the vllm plugin: a verdict is what loading then really does, by both implementations."""

from __future__ import annotations

import doctor_cases
import pytest
from vlmhb.doctor.kv_cache import kv_cache_bytes
from vlmhb.errors import ModelLoadError

LOADED = [
    *((name, "native") for name in doctor_cases.CASES),
    *((name, "transformers") for name, case in doctor_cases.CASES.items() if case.change is doctor_cases.as_it_is),
]
"""Every case by vLLM's own code, and the twins as they are by that of transformers as well."""
REFUSED = {
    ("gpt2", "transformers"): "were not initialized from checkpoint",
    ("bloom", "transformers"): "not compatible with vLLM",
    ("falcon", "transformers"): "not compatible with vLLM",
}
GIB = 1 << 30


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory, tiny):
    """Case -> its folder, its fields and the plugin's answer."""
    return doctor_cases.ask("vllm", doctor_cases.CASES, tiny, tmp_path_factory.mktemp("doctor"))


@pytest.mark.parametrize(("name", "implementation"), LOADED)
def test_the_verdict_is_what_loading_does(name, implementation, verdicts, load):
    folder, fields, check = verdicts[name]
    (support,) = [entry for entry in check.supports if entry.implementation == implementation]
    try:
        load(folder, model_impl=implementation, **fields).close()
        reason = None
    except ModelLoadError as error:
        reason = str(error)
    assert (support.verdict == "supported") == (reason is None), (support, reason)
    assert REFUSED.get((name, implementation), "") in support.reason
    assert support.reason or support.verdict == "supported"


def test_what_auto_takes(verdicts):
    assert verdicts["llama"].check.auto == "native"
    assert verdicts["unknown model type"].check.auto == "transformers"


@pytest.mark.parametrize("name", ["own code", "an architecture that only own code has", "no processor"])
def test_conditions_say_what_to_do(name, verdicts):
    for support in verdicts[name].check.supports:
        assert support.verdict == "condition"
        assert support.advice


@pytest.mark.parametrize("family", ["llama", "qwen2_vl", "falcon"])
def test_the_kv_cache_is_what_vllm_reports(family, verdicts, load):
    folder, _, check = verdicts[family]
    with load(folder, model_impl="native", kv_cache_gib=0.25) as model:
        facts = model.facts()
    tokens = facts["kv_cache_blocks"] * facts["block_size"]
    assert kv_cache_bytes(check.facts.text_config, tokens, "float32") == pytest.approx(0.25 * GIB, rel=0.05)
