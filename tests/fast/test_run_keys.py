"""Answers are kept under what was asked: any change that can change the answer changes the key, nothing else does."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from vlmhb import BackendInfo, EngineOption, ModelSpec, SamplingParams
from vlmhb.run.keys import asker_key, model_fingerprint, page_key, question_key

INFO = BackendInfo(
    name="hf",
    engine="transformers",
    engine_version="5",
    devices=("cpu",),
    options=(
        EngineOption(name="batch_size", type="int", default=16, changes_answers=False),
        EngineOption(name="attn_implementation", type="str"),
    ),
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 20_000)
    return folder


def key(model: Path, system: str | None = None, sampling: dict[str, Any] | None = None, **spec: Any) -> bytes:
    return asker_key(INFO, ModelSpec(model_path=str(model), **spec), SamplingParams(**(sampling or {})), system)


def test_the_same_model_elsewhere_has_the_same_key(model: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(model, tmp_path / "copy"))
    (copy / ".cache").mkdir()
    (copy / ".cache" / "download.lock").write_text("x")
    assert key(model) == key(copy)


@pytest.mark.parametrize("at", [0, 70_000, 2_500_000, -1])
def test_further_training_changes_the_fingerprint(model: Path, at: int) -> None:
    before = model_fingerprint(str(model))
    weights = model / "model.safetensors"
    content = bytearray(weights.read_bytes())
    start = at % len(content)
    content[start : start + 400_000] = bytes(len(content[start : start + 400_000]))
    content[at] = 7
    weights.write_bytes(bytes(content))
    assert model_fingerprint(str(model)) != before


def test_a_changed_config_file_changes_the_fingerprint(model: Path) -> None:
    before = model_fingerprint(str(model))
    (model / "config.json").write_text("[]")
    assert model_fingerprint(str(model)) != before
    assert model_fingerprint("Qwen/Qwen2-VL-2B-Instruct") == "name:Qwen/Qwen2-VL-2B-Instruct"


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Answer in one word."},
        {"dtype": "float32"},
        {"max_pixels": 1000},
        {"model_impl": "transformers"},
        {"revision": "v2"},
        {"options": {"attn_implementation": "eager"}},
        {"sampling": {"temperature": 0.5}},
        {"sampling": {"max_tokens": 3}},
        {"sampling": {"seed": 1}},
        {"sampling": {"stop": ("x",)}},
    ],
)
def test_what_can_change_an_answer_changes_the_key(model: Path, change: dict[str, Any]) -> None:
    assert key(model, **change) != key(model)


def test_batch_size_does_not(model: Path) -> None:
    assert key(model, options={"batch_size": 4}) == key(model, options={"batch_size": 8}) == key(model)


def test_every_part_of_the_question_counts(model: Path) -> None:
    asker = key(model)
    keys = {
        question_key(page_key(asker, ["d1"]), "сумма?"),
        question_key(page_key(asker, ["d2"]), "сумма?"),
        question_key(page_key(asker, ["d1", "d2"]), "сумма?"),
        question_key(page_key(asker, ["d2", "d1"]), "сумма?"),
        question_key(page_key(asker, []), "сумма?"),
        question_key(page_key(asker, ["d1"]), "сумма"),
        question_key(page_key(b"other", ["d1"]), "сумма?"),
        question_key(page_key(asker, ["d1"]), "сумма?", '{"type": "object"}'),
        question_key(page_key(asker, ["d1"]), "сумма?", '{"type": "array"}'),
        question_key(page_key(asker, ["d1"]), 'сумма?{"type": "object"}'),
    }
    assert len(keys) == 10


def test_a_question_without_a_schema_has_the_key_that_older_runs_stored() -> None:
    older = hashlib.sha256(b"asker" + b"d1" + b"\0" + "сумма?".encode()).digest()
    page = page_key(b"asker", ["d1"])
    assert question_key(page, "сумма?") == question_key(page, "сумма?", "") == older
