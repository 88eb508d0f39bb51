"""``vlmhb doctor`` as a command: a scripted engine is asked in a process of its own, and its answer is kept."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.envs import Env
from vlmhb import ModelCheck, ModelFacts, Support

from .test_doctor_parts import LLAMA, make, safetensors

Doctor = Callable[..., subprocess.CompletedProcess[str]]

FINE = ModelCheck(
    supports=(Support(implementation="native", verdict="supported", notes=("it is slow.",)),), auto="native"
)
TWO = ModelCheck(
    supports=(
        Support(implementation="native", verdict="refused", reason="no such class.", advice="Use another."),
        Support(implementation="transformers", verdict="supported"),
    ),
    auto="native",
    facts=ModelFacts(text_config=LLAMA, page_tokens=1234, parameters=1000),
)
CODE = Support(implementation="native", verdict="condition", reason="its own code.", advice="Set trust_remote_code.")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A whole folder whose weights have no values: reading them would fail."""
    path = make(
        tmp_path / "model",
        {**LLAMA, "dtype": "bfloat16", "max_position_embeddings": 4096},
        tokenizer__json={},
        chat_template__jinja="{{ x }}",
        generation_config__json={"temperature": 0.01, "do_sample": True},
    )
    safetensors(path / "model.safetensors", x=("BF16", [1000]))
    return path


@pytest.fixture
def doctor(scripted_env: Env, tmp_path: Path) -> Doctor:
    """Run the command; ``check`` is what the scripted engine says."""

    def run(*arguments: object, check: ModelCheck | str | None = FINE) -> subprocess.CompletedProcess[str]:
        said = check if isinstance(check, str) else msgspec.json.encode(check).decode()
        env = {} if check is None else {"VLMHB_SCRIPTED_CHECK": said}
        return scripted_env.vlmhb(
            *("doctor", *map(str, arguments)),
            check=False,
            VLMHB_HOME=str(tmp_path / "home"),
            VLMHB_SCRIPTED_ASKED=str(tmp_path / "asked"),
            HF_HUB_CACHE=str(tmp_path / "hub"),
            **env,
        )

    return run


def read(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_what_it_tells(doctor, model):
    done = doctor(model, "-b", "scripted", check=msgspec.structs.replace(FINE, facts=TWO.facts))
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == str(model)
    for line in (
        "architecture LlamaForCausalLM (llama)",
        "takes text; family in vlmhb: plain",
        "context 4,096 tokens",
        "weights model.safetensors",
        "would set do_sample=True, temperature=0.01 (generation_config.json; vlmhb leaves it out)",
        "weights 4.0 kB in float32, 2.0 kB in bfloat16, 2.0 kB in float16 (from the headers of the weight files)",
        "KV cache 131.1 MB in bfloat16 for 1,000 tokens",
        "a scan of A4 2480 x 3508 pixels become 1,234 tokens",
        "it is slow.",
    ):
        assert line in lines, line
    assert any(line.startswith("* scripted native supported vlmhb-scripted") for line in lines)
    assert any(line.startswith("cpu ") and line.endswith("at a time") for line in lines)


def test_json_holds_the_same(doctor, model):
    found = read(doctor(model, "-b", "scripted", "--json", check=TWO))
    assert not found["can"]
    assert found["memory"]["kv_cache"] == 2 * 32 * 8 * 128 * 2 * 1000
    assert found["sampling_defaults"] == {"do_sample": True, "temperature": 0.01}
    native, other = found["engines"]
    assert (native["verdict"], native["reason"], native["chosen"]) == ("refused", "no such class.", True)
    assert native["advice"] == "Use another. It loads with -o model_impl=transformers."
    assert (other["implementation"], other["verdict"], other["chosen"]) == ("transformers", "supported", False)


@pytest.mark.parametrize(
    ("check", "arguments", "code"),
    [
        (FINE, [], 0),
        (TWO, [], 1),
        (TWO, ["-o", "model_impl=transformers"], 0),
        (ModelCheck(supports=(CODE,), auto="native"), [], 1),
        (None, [], 1),
        ("raise", [], 1),
    ],
)
def test_the_exit_code_says_whether_it_loads_as_asked(doctor, model, check, arguments, code):
    done = doctor(model, "-b", "scripted", *arguments, check=check)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_engines_that_cannot_be_asked_are_unknown_and_the_reason_is_said(doctor, model):
    for check, reason in (("raise", "ValueError: an odd model"), (None, "cannot say whether a model would load")):
        (found,) = read(doctor(model, "-b", "scripted", "--json", check=check))["engines"]
        assert found["verdict"] == "unknown"
        assert reason in found["reason"]


def test_without_a_name_the_official_engines_are_listed(doctor, model):
    found = read(doctor(model, "--json"))["engines"]
    assert [entry["backend"] for entry in found] == ["hf", "vllm", "sglang"]  # the scripted engine takes no folders
    assert all(entry["verdict"] == "unknown" and "vlmhb env create" in entry["advice"] for entry in found)


@pytest.mark.slow
def test_an_answer_is_kept_until_something_changes(doctor, model, tmp_path):
    asked = tmp_path / "asked"

    def times() -> int:
        return len(asked.read_text().splitlines())

    doctor(model, "-b", "scripted")
    started = time.monotonic()
    done = doctor(model, "-b", "scripted")
    assert time.monotonic() - started < 2
    assert (done.returncode, done.stderr, times()) == (0, "", 1)
    doctor(model, "-b", "scripted", "--fresh")
    assert times() == 2
    doctor(model, "-b", "scripted", "-o", "dtype=float32")
    assert times() == 3
    doctor(model, "-b", "scripted", "-b", "hf", "-o", "delay=2", "-o", "of_another_engine=1")
    assert asked.read_text().splitlines()[3] == "scripted auto {'delay': 2.0}"
    (model / "tokenizer.json").write_text("[]")
    doctor(model, "-b", "scripted")
    assert times() == 5
    doctor(model, "-b", "scripted", check="raise")
    assert times() == 5
    for kept in (tmp_path / "home" / "doctor").iterdir():
        kept.write_text("{")
    assert doctor(model, "-b", "scripted", check="raise").returncode == 1
    assert times() == 6


def test_a_part_of_the_weights(doctor, model):
    index = {"weight_map": {"x": "model.safetensors", "y": "model-2.safetensors"}, "metadata": {"total_size": 8000}}
    make(model, {**LLAMA, "dtype": "bfloat16"}, model__safetensors__index__json=index)
    found = read(doctor(model, "-b", "scripted", "--json"))
    (entry,) = found["engines"]
    assert (entry["verdict"], found["can"]) == ("condition", False)
    assert "model-2.safetensors" in entry["reason"]
    assert found["memory"]["weights"]["bfloat16"] == 8000
    (model / "model.safetensors").unlink()
    found = read(doctor(model, "-b", "scripted", "--json"))
    assert found["can"]
    assert "not in the folder yet" in found["engines"][0]["notes"][-1]


def test_sizes_that_are_not_known(doctor, model):
    (model / "model.safetensors").unlink()
    make(model, {"model_type": "llama"})
    done = doctor(model, "-b", "scripted")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "weights not known" in lines
    assert "KV cache not known for 1,000 tokens" in lines
    assert "architecture not named in config.json (llama)" in lines
    assert any(line.startswith("cpu ") and line.endswith(" free") for line in lines)


def test_a_model_that_is_nowhere(doctor, tmp_path):
    done = doctor(tmp_path / "nowhere", "-b", "scripted")
    assert done.returncode == 2
    assert "there is no model folder" in done.stderr
    done = doctor("org/name", "-b", "scripted")
    assert done.returncode == 2
    assert "Fetch it" in done.stderr
    (tmp_path / "empty").mkdir()
    done = doctor(tmp_path / "empty", "-b", "scripted")
    assert done.returncode == 2
    assert "holds no config.json" in done.stderr


def test_an_engine_that_does_not_exist(doctor, model):
    done = doctor(model, "-b", "nonesuch", "--json")
    assert done.returncode == 2
    assert "nonesuch" in done.stderr


def test_a_value_of_the_wrong_kind(doctor, model):
    done = doctor(model, "-b", "scripted", "-o", "dtype=float7")
    assert done.returncode == 2
    assert "'float7' is not one of auto, float32" in done.stderr
    done = doctor(model, "-b", "scripted", "-o", "dellay=2")
    assert done.returncode == 2
    assert "no option 'dellay' of scripted. Did you mean delay?" in done.stderr
