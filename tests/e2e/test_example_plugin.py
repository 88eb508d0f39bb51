"""The example of a third party's plugin: built, installed beside the core alone, and used."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
import uv
from support.docs import name_tables
from support.envs import CORE, ROOT, Env, make_env, run
from support.runs import RunResults, read_csv, write_csv

EXAMPLE = ROOT / "examples" / "vlmhb-baseline"
ROWS = [("Colour?", "blue"), ("Colour?", "red"), ("Colour?", "blue"), ("Size?", "10; 20")]


@pytest.fixture(scope="module")
def example_env(tmp_path_factory: pytest.TempPathFactory) -> Env:
    """The core and the example's wheel; nothing else of this project. pytest is for the example's own tests."""
    folder = tmp_path_factory.mktemp("example")
    wheels = folder / "wheels"
    run([uv.find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", str(wheels), str(EXAMPLE)])
    (wheel,) = wheels.glob("*.whl")
    return make_env(folder / "env", CORE, wheel, f"pytest=={metadata.version('pytest')}")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config of two rows on a dataset of four; the pages are no pictures, since nothing opens them."""
    cards = tmp_path / "cards"
    (cards / "images").mkdir(parents=True)
    for number in range(1, 5):
        (cards / "images" / f"{number}.png").write_bytes(b"page %d" % number)
    rows = [
        {"data_index": "1", "image_path": f"images/{number}.png", "question": question, "answer": answer}
        for number, (question, answer) in enumerate(ROWS, 1)
    ]
    annotation = write_csv(cards / "annotation.csv", rows)
    common = {"dataset": "cards", "backend": "baseline", "metrics": "exact_match,contains"}
    return write_csv(
        tmp_path / "user_config.csv",
        [
            {**common, "model_name": "majority", "model_options": f"learn_from={annotation}"},
            {**common, "model_name": "colours", "model_options": "answer='red or blue'"},
        ],
    )


def test_it_is_listed_with_its_options_and_its_metric(example_env: Env) -> None:
    content = json.loads(example_env.vlmhb("backends", "--json").stdout)
    (entry,) = [entry for entry in content["backends"] if entry["name"] == "baseline"]
    assert entry["status"] == "installed"
    assert (entry["distribution"], entry["engine_version"]) == ("vlmhb-baseline", "0.1.0")
    assert {option["name"] for option in entry["options"]} == {"answer", "learn_from"}
    assert [plugin["distribution"] for plugin in content["plugins"]] == ["vlmhb-baseline"]
    assert content["left_out"] == []


def test_a_run_with_it_is_scored_by_its_metric(example_env: Env, config: Path, tmp_path: Path) -> None:
    done = example_env.vlmhb("run", str(config), "--out", str(tmp_path / "out"))
    assert "contains" in done.stdout
    results = RunResults(tmp_path / "out")
    assert [line["answer"] for line in results.answers] == ["blue", "blue", "blue", "10; 20", *["red or blue"] * 4]
    assert [line["contains"] for line in results.answers] == ["1", "0", "1", "1", "1", "1", "1", "0"]
    found = [(line["exact_match_mean"], line["contains_mean"]) for line in results.table("general")]
    assert found == [("0.75", "0.75"), ("0", "0.75")]
    facts = {model["model_name"]: model["facts"] for model in results.manifest["models"]}
    assert facts["majority"]["questions_learnt"] == 2


@pytest.mark.slow
def test_a_second_run_asks_nothing_and_a_changed_option_asks_again(
    example_env: Env, config: Path, tmp_path: Path
) -> None:
    arguments = ("run", str(config), "--out", str(tmp_path / "out"))
    example_env.vlmhb(*arguments)
    assert "Answered now: 0; reused from before: 8." in example_env.vlmhb(*arguments).stdout
    config.write_text(config.read_text(encoding="utf-8").replace("red or blue", "green"), encoding="utf-8")
    assert "Answered now: 4; reused from before: 4." in example_env.vlmhb(*arguments).stdout


def test_a_file_that_is_not_there_is_said_without_a_traceback(example_env: Env, config: Path, tmp_path: Path) -> None:
    text = config.read_text(encoding="utf-8").replace("annotation.csv", "absent.csv")
    config.write_text(text, encoding="utf-8")
    done = example_env.vlmhb("run", str(config), "--out", str(tmp_path / "out"), check=False)
    assert done.returncode == 1
    assert "absent.csv cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
    assert [line["status"] for line in RunResults(tmp_path / "out").answers] == ["error"] * 4 + ["ok"] * 4


def test_its_own_tests_pass(example_env: Env) -> None:
    example_env.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests"))


def test_the_documentation_names_every_field_of_the_manifest(example_env: Env, config: Path, tmp_path: Path) -> None:
    example_env.vlmhb("run", str(config), "--out", str(tmp_path / "out"))
    manifest = RunResults(tmp_path / "out").manifest
    tables = name_tables()
    assert set(manifest) == set(tables["manifest-fields"].rows)
    for job in manifest["jobs"]:
        assert set(job) == set(tables["manifest-job-fields"].rows)
    for model in manifest["models"]:
        assert set(model) == set(tables["manifest-model-fields"].rows)
        assert set(model["startup"]) == set(tables["model-startup-fields"].rows)
    assert set(manifest["startup"]) == set(tables["startup-fields"].rows)
    assert set(manifest["machine"]) == set(re.findall(r"`(\w+)`", tables["manifest-fields"].rows["machine"]["holds"]))


def test_the_documentation_names_every_column_of_a_comparison(example_env: Env, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cards = str(config.parent / "cards")
    example_env.vlmhb("compare", "any", "-b", "baseline,baseline", "-d", cards, "--out", str(out))
    assert list(read_csv(out / "compare.csv")[0]) == list(name_tables()["compare-columns"].rows)
