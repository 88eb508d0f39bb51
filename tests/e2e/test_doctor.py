"""``vlmhb doctor --probe`` and ``--matrix`` as commands, with the scripted engine under the names of the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from vlmhb import ModelCheck, Support

WAYS = ("native", "transformers")
BOTH = ModelCheck(
    supports=(
        Support(implementation="native", verdict="supported"),
        Support(implementation="transformers", verdict="supported"),
    ),
    auto="native",
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a config."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    return path


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VLMHB_SCRIPTED_CHECK", msgspec.json.encode(BOTH).decode())
    monkeypatch.setenv("VLMHB_SCRIPTED_ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))


def cells(done) -> dict[str, dict]:
    return {f"{cell['backend']} {cell['implementation']}": cell for cell in json.loads(done.stdout)["probe"]["cells"]}


def test_a_probe_compares_every_implementation_with_hf(cli, script, model):
    script.rules({"backend": "sglang", "id": "2 images, 1", "answer": "another"})
    found = cells(cli("doctor", model, "--probe", "-b", "vllm", "-b", "sglang", "--json"))
    assert list(found) == ["hf transformers", *(f"{engine} {way}" for engine in ("vllm", "sglang") for way in WAYS)]
    assert found["vllm native"]["outcome"] == "same tokens"
    assert (found["sglang native"]["outcome"], found["sglang native"]["unlike"]) == ("differs", "2 images, 1")
    assert len(found["vllm native"]["comparisons"]) == 8


@pytest.mark.slow
def test_the_exit_code_wants_the_same_tokens(cli, script, model):
    assert cli("doctor", model, "--probe", "-b", "vllm").returncode == 0
    script.rules({"backend": "vllm", "id": "text, 1", "answer": "another"})
    done = cli("doctor", model, "--probe", "-b", "vllm", code=1)
    assert "vllm native" in done.stdout
    assert "the shortest request that shows it: text, 1" in done.stdout


@pytest.mark.slow
def test_refusals_crashes_and_failures_are_cells(cli, script, model):
    script.rules(
        {"on": "load", "backend": "vllm", "do": "refuse"}, {"backend": "sglang", "id": "1 image, 1", "do": "segfault"}
    )
    found = cells(cli("doctor", model, "--probe", "-b", "vllm", "-b", "sglang", "--json", code=1))
    assert found["vllm native"]["outcome"] == "refused"
    assert found["sglang native"]["outcome"] == "fails"
    assert found["sglang native"]["requests"] == [1, 8]


def test_nothing_is_left_behind(cli, model, tmp_path, monkeypatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    cli("doctor", model, "--probe", "-b", "vllm")
    assert list(place.iterdir()) == []


def test_a_model_or_the_matrix(cli, model):
    for arguments in ((), (model, "--matrix")):
        assert "give either a MODEL or --matrix" in cli("doctor", *arguments, code=2).stderr


@pytest.mark.slow
def test_the_matrix_is_measured_once_and_written_as_a_page(cli, script, tmp_path):
    families = ("--family", "LLaMA", "--family", "Qwen2-VL")
    arguments = ("doctor", "--matrix", *families, "-b", "vllm", "-b", "sglang", "--out", tmp_path / "page.md")
    script.rules({"on": "load", "backend": "sglang", "do": "refuse"})
    cli(*arguments)
    text = (tmp_path / "page.md").read_text()
    assert "| LLaMA | `LlamaForCausalLM` | answers | refused | refused | same tokens | same tokens |" in text
    loads = script.loads()
    assert loads == 2 + 2 * 2 + 2 * 2, "hf, vllm by both implementations, and each refusal of sglang once"
    cli(*arguments)
    assert script.loads() == loads
    done = cli(*arguments, "--fresh", "--json")
    assert script.loads() == 2 * loads
    assert len(json.loads(done.stdout)) == 10


@pytest.mark.slow
def test_a_difference_is_measured_again_in_a_process_of_its_own(cli, script, tmp_path):
    script.rules({"backend": "vllm", "id": "text, 1", "answer": "another", "skip": 1, "times": 1})
    cli("doctor", "--matrix", "--family", "LLaMA", "--family", "Qwen2-VL", "-b", "vllm", "--out", tmp_path / "page.md")
    found = json.loads((tmp_path / "page.json").read_text())
    assert {entry["cell"]["outcome"] for entry in found} == {"same tokens"}
    pids = [entry["pid"] for entry in script.log() if entry.get("event") == "load" and entry["backend"] == "vllm"]
    assert len(set(pids)) == 3, "one a implementation, and one more for the second try"


def test_a_family_that_there_is_not(cli):
    assert "there is no family 'Qwen9'" in cli("doctor", "--matrix", "--family", "Qwen9", code=2).stderr
