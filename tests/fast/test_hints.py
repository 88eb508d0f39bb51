"""Which settings of a loaded model each engine says cost speed."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from support.envs import ROOT
from vlmhb.contract.hints import Hint, with_hints

GOOD: dict[str, dict[str, Any]] = {
    "vllm": {
        "device": "cuda",
        "enforce_eager": False,
        "prefix_caching": True,
        "kv_cache_tokens": 65536,
        "context_length": 32768,
        "max_num_seqs": 16,
    },
    "sglang": {
        "device": "cuda",
        "cuda_graph": True,
        "prefix_caching": True,
        "kv_cache_tokens": 65536,
        "context_length": 32768,
        "max_running_requests": None,
    },
    "hf": {"device": "cpu", "dtype": "float32", "batch_size": 8, "threads": 2},
}


def rules(engine: str) -> tuple[Hint, ...]:
    """The rules of an engine, which may not be installed here."""
    path = ROOT / "plugins" / f"vlmhb-{engine}" / "src" / f"vlmhb_{engine}" / "hints.py"
    spec = importlib.util.spec_from_file_location(f"hints_{engine}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: tuple[Hint, ...] = module.RULES
    return found


def hints(engine: str, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> list[str]:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    said: list[str] = with_hints({**GOOD[engine], **changed}, rules(engine))["hints"]
    return said


@pytest.mark.parametrize("engine", GOOD)
def test_good_settings_need_no_hint(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hints(engine, monkeypatch) == []


@pytest.mark.parametrize(
    ("engine", "changed", "part"),
    [
        ("vllm", {"enforce_eager": True}, "enforce_eager=false"),
        ("vllm", {"prefix_caching": False}, "enable_prefix_caching=true"),
        ("vllm", {"kv_cache_tokens": 40000}, "40000 tokens, less than two requests of 32768"),
        ("vllm", {"max_num_seqs": 1}, "max_num_seqs"),
        ("sglang", {"cuda_graph": False}, "cuda_graph=true"),
        ("sglang", {"prefix_caching": False}, "enable_prefix_caching=true"),
        ("sglang", {"kv_cache_tokens": 40000}, "40000 tokens"),
        ("sglang", {"max_running_requests": 1}, "max_running_requests"),
        ("hf", {"batch_size": 1}, "batch_size"),
        ("hf", {"threads": 1}, "threads=4"),
        ("hf", {"threads": 16}, "16 threads share 8 cores"),
        ("hf", {"dtype": "float16"}, "dtype=float32"),
    ],
)
def test_each_costly_setting_has_its_hint(
    engine: str, changed: dict[str, Any], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (said,) = hints(engine, monkeypatch, **changed)
    assert part in said


def test_what_costs_nothing_on_a_cpu_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hints("vllm", monkeypatch, device="cpu", enforce_eager=True) == []
    assert hints("sglang", monkeypatch, device="cpu", cuda_graph=False) == []
    assert hints("hf", monkeypatch, device="cuda:0", threads=1, dtype="float16") == []
    assert hints("vllm", monkeypatch, kv_cache_tokens=None) == [], "the engine does not say how much it holds"
