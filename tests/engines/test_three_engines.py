"""One command, three real engines, each in its own environment: the same prompts, the same tokens, the same refusals.

vlmhb runs from an environment that holds the core and nothing else; the engines come from managed environments
(``vlmhb env create vllm --device cpu``).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.envs import CORE, make_env
from support.runs import RunResults, read_csv, write_csv

CASES = Path(__file__).parents[1] / "cases"
ENGINES = ("hf", "vllm", "sglang")
MANY = 9
"""Images of one row; without being told, vLLM makes room for 8."""
pytestmark = [pytest.mark.vllm, pytest.mark.sglang, pytest.mark.slow]

Vlmhb = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def vlmhb(tmp_path_factory: pytest.TempPathFactory) -> Vlmhb:
    """``vlmhb`` of a plain environment, checked for tracebacks; ends with the exit code that is expected."""
    env = make_env(tmp_path_factory.mktemp("plain") / "env", CORE)

    def call(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = env.vlmhb(*map(str, arguments), check=False)
        said = f"vlmhb {' '.join(map(str, arguments))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, said
        assert done.returncode == code, said
        return done

    return call


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, vlmhb: Vlmhb) -> RunResults:
    """A run of one config with three rows that differ only in the backend.

    Its dataset puts the cases together in which engines differ: sizes below a patch (C11), control words in questions
    (C23), broken files (C06), pages of the demo, more images than vLLM makes room for by itself; its model has a
    hostile generation_config.json (C21). It exits with 1, for the rows that must fail.
    """
    from PIL import Image
    from vlmhb_demo import DATASET, tiny_model

    folder = tmp_path_factory.mktemp("three")
    sampling = json.loads((CASES / "C21" / "model" / "generation_config.json").read_text())
    tiny_model.make(folder / "model", context_length=512, generation_config=sampling)
    rows = []
    for case in ("C06", "C08", "C09", "C10", "C11", "C21", "C23"):
        shutil.copytree(CASES / case / "dataset" / "images", folder / "dataset" / "images" / case)
        for row in read_csv(CASES / case / "dataset" / "annotation.csv"):
            path = f"images/{case}/{row['image_path'].removeprefix('images/')}"
            rows.append({**row, "image_path": path, "doc_class": case})
    shutil.copytree(DATASET / "images", folder / "dataset" / "images" / "demo")
    for row in read_csv(DATASET / "annotation.csv")[:12]:
        path = row["image_path"].replace("images/", "images/demo/", 1)
        rows.append({**{name: row[name] for name in rows[0]}, "image_path": path, "doc_class": "demo"})
    text = {"image_path": "", "question": "Сколько будет шесть умножить на семь?", "answer": "42", "doc_class": "text"}
    rows += [{**rows[0], **text}, {**rows[0], **text, "question": "слово " * 600, "doc_class": "long"}]
    small = folder / "dataset" / "images" / "small.png"
    Image.linear_gradient("L").resize((56, 56)).save(small)
    rows.append({**rows[0], **text, "image_path": str(["images/small.png"] * MANY), "doc_class": "many"})
    write_csv(folder / "dataset" / "annotation.csv", rows)
    write_csv(folder / "vlm_base.csv", [{"model_name": "tiny", "model_path": "model", "dtype": "float32"}])
    config = [
        {"dataset": "dataset", "backend": name, "model_name": "tiny", "temperature": "0", "max_tokens": "16"}
        for name in ENGINES
    ]
    vlmhb("run", write_csv(folder / "user_config.csv", config), "--out", folder / "out", code=1)
    return RunResults(folder / "out")


def by_row(results: RunResults) -> dict[str, dict[str, dict[str, str]]]:
    """Answers by row, then engine."""
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for line in results.answers:
        rows.setdefault(line["row"], {})[line["backend"]] = line
    return rows


def test_every_engine_answers_every_row_alike(results: RunResults) -> None:
    rows = by_row(results)
    for row, lines in rows.items():
        assert sorted(lines) == sorted(ENGINES)
        told = {
            name: tuple(
                line[column] for column in ("status", "answer", "finish_reason", "prompt_tokens", "output_tokens")
            )
            for name, line in lines.items()
        }
        assert len(set(told.values())) == 1, (row, lines["hf"]["question"], told)
    texts = [lines["hf"]["answer"] for lines in rows.values() if lines["hf"]["status"] == "ok"]
    assert len(set(texts)) > len(texts) // 2, "answers that are all alike would compare nothing"


def test_one_table_has_the_metrics_of_all_engines(results: RunResults) -> None:
    lines = results.table("general")
    assert [line["backend"] for line in lines] == list(ENGINES)
    own = ("config_row", "backend")
    assert len({tuple(value for name, value in line.items() if name not in own) for line in lines}) == 1


def test_nothing_but_the_core_is_installed_where_it_ran(vlmhb: Vlmhb) -> None:
    found = {entry["name"]: entry for entry in json.loads(vlmhb("backends", "--json").stdout)["backends"]}
    for name in ENGINES:
        assert (found[name]["status"], found[name]["distribution"]) == ("own environment", None)


def test_every_model_is_loaded_once_with_room_for_the_images_of_its_rows(results: RunResults) -> None:
    models = results.manifest["models"]
    assert [model["backend"] for model in models] == list(ENGINES)
    assert [model["facts"]["max_images"] for model in models] == [MANY] * len(ENGINES)
    assert {line["status"] for line in results.answers if line["doc_class"] == "many"} == {"ok"}


def test_what_cannot_be_asked_is_the_same_error_everywhere(results: RunResults) -> None:
    for row, lines in by_row(results).items():
        errors = {line["error"] for line in lines.values()}
        assert len(errors) == 1, (row, errors)
    failed = {line["doc_class"] for line in results.answers if line["status"] == "error"}
    assert failed == {"C06", "long"}
    (too_long,) = {line["error"] for line in results.answers if line["doc_class"] == "long"}
    assert "512" in too_long


def test_control_words_stay_words(results: RunResults) -> None:
    lines = [line for line in results.answers if line["doc_class"] == "C23"]
    assert {line["status"] for line in lines} == {"ok"}


def test_the_models_own_sampling_defaults_are_left_out_and_recorded(results: RunResults) -> None:
    for job in results.manifest["jobs"]:
        sampling = job["sampling"]
        assert (sampling["temperature"], sampling["top_p"], sampling["repetition_penalty"]) == (0.0, 1.0, 1.0)
        assert sampling["max_tokens"] == 16
        assert job["ignored_model_defaults"]["repetition_penalty"] == 1.3
    assert all(model["facts"]["freeze"] for model in results.manifest["models"])


def test_compare_finds_the_same_tokens_on_all_engines(tmp_path: Path, vlmhb: Vlmhb) -> None:
    from vlmhb_demo import DATASET, tiny_model

    done = vlmhb(
        *("compare", tiny_model.make(tmp_path / "tiny"), "-b", "hf,vllm,vllm:transformers,sglang", "-d", DATASET),
        *("--limit", "12", "--max-tokens", "24", "--out", tmp_path / "out", "--json"),
    )
    found = json.loads(done.stdout)
    assert [engine["name"] for engine in found] == ["vllm", "vllm:transformers", "sglang"]
    for engine in found:
        assert [c["verdict"] for c in engine["comparisons"]] == ["same"] * 12, engine["name"]
        assert all(c["prompt_equal"] for c in engine["comparisons"])
    assert len(read_csv(tmp_path / "out" / "compare.csv")) == 36
