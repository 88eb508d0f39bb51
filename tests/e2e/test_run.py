"""Runs through the command line: resume, kills, Ctrl-C, damaged input, failing models, full disks."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.envs import CORE, Env, make_env
from support.processes import assert_gone, family, wait_until
from support.runs import RunResults, read_csv, stored_answers, write_csv
from support.scripts import ScriptFile

from .conftest import Cli


def make_dataset(folder: Path, count: int, images: int = 4) -> Path:
    """A dataset of ``count`` different questions over a few small pages."""
    (folder / "images").mkdir(parents=True)
    for number in range(images):
        Image.new("RGB", (56, 56), (number * 40, 90, 90)).save(folder / "images" / f"{number}.png")
    write_csv(
        folder / "annotation.csv",
        [
            {
                "data_index": f"{number % images}",
                "image_path": f"images/{number % images}.png",
                "question": f"Question {number}?",
                "answer": f"Question {number}?" if number % 3 else "another",
                "doc_class": "form" if number % 2 else "bill",
                "question_type": "number",
            }
            for number in range(count)
        ],
    )
    return folder


def make_config(folder: Path, *rows: dict[str, Any], name: str = "user_config.csv") -> Path:
    """A config of rows that run ``dataset`` on the scripted engine unless they say otherwise."""
    return write_csv(
        folder / name, [{"dataset": "dataset", "backend": "scripted", "model_name": "tiny", **r} for r in rows]
    )


def stable(folder: Path) -> list[dict[str, str]]:
    """answers.csv without what differs from run to run."""
    return [{k: v for k, v in line.items() if "time" not in k} for line in read_csv(folder / "answers.csv")]


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_sigkill_at_any_moment_loses_nothing(
    tmp_path: Path, cli: Cli, script: ScriptFile, named_env: Env, kills: int
) -> None:
    make_dataset(tmp_path / "dataset", 200)
    config = make_config(tmp_path, {"model_options": "batch=4,delay=0.004"})
    out = tmp_path / "out"
    moments = random.Random(20)
    command = [str(named_env.path / "bin" / "vlmhb"), "run", str(config), "--out", str(out)]
    environ = {**os.environ, "VLMHB_SCRIPT": str(script.path)}
    killed, kept = 0, 0
    for _ in range(kills):
        process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # a moment while it starts, or a moment while it answers
        wanted = kept + moments.randrange(0, 12)
        deadline = time.monotonic() + moments.uniform(0.2, 2.5)
        while process.poll() is None and stored_answers(out / "run.sqlite") < wanted and time.monotonic() < deadline:
            time.sleep(0.003)
        stored = stored_answers(out / "run.sqlite")
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        now = stored_answers(out / "run.sqlite")
        assert now >= stored >= kept, "an answer that had been stored is gone"
        kept = now
    assert killed >= kills // 2
    cli("run", config, "--out", out)
    cli("run", config, "--out", tmp_path / "undisturbed")
    assert stable(out) == stable(tmp_path / "undisturbed")
    answers = RunResults(out).answers
    assert [line["answer"] for line in answers] == [f"Question {number}?" for number in range(200)]
    asked = script.asked()
    # what was being answered at a kill is asked again, nothing else: at most a batch, twice over, for each kill
    assert len(asked) - 200 <= 200 + kills * 8
    cli("run", config, "--out", out)
    assert script.asked() == asked


def test_the_worker_of_the_next_model_is_prepared_while_the_present_one_answers(
    tmp_path: Path, cli: Cli, script: ScriptFile
) -> None:
    make_dataset(tmp_path / "dataset", 30)
    rows = [{"model_name": name, "model_options": "batch=1,delay=0.05"} for name in ("first", "second")]
    cli("run", make_config(tmp_path, *rows), "--out", tmp_path / "out")
    happened = [(entry["model"], entry.get("event", "ask")) for entry in script.log()]
    prepared = happened.index(("second", "prepare"))
    assert happened.index(("first", "ask")) < prepared < happened.index(("first", "close"))
    assert happened.index(("first", "close")) < happened.index(("second", "load")), "never two models at a time"
    manifest = RunResults(tmp_path / "out").manifest
    startups = {model["model_name"]: model["startup"] for model in manifest["models"]}
    assert [startups[name]["prepared_ahead"] for name in ("first", "second")] == [True, True]
    assert startups["second"]["waited"] < startups["second"]["worker"]
    assert 0 < manifest["startup"]["config"] < manifest["startup"]["first_answer"]
    assert startups["first"]["waited"] < manifest["startup"]["first_answer"]
    assert all(line["status"] == "ok" for line in RunResults(tmp_path / "out").answers)
    before = script.log()
    cli("run", tmp_path / "user_config.csv", "--out", tmp_path / "out")
    assert script.log() == before, "where all is answered no worker is started"


@pytest.mark.slow
def test_ctrl_c_leaves_no_worker_that_was_prepared(tmp_path: Path, script: ScriptFile, named_env: Env) -> None:
    make_dataset(tmp_path / "dataset", 60)
    config = make_config(tmp_path, *({"model_name": n, "model_options": "batch=1,delay=0.05"} for n in ("a", "b")))
    script.rules({"on": "prepare", "model": "b", "do": "hang"})
    command = [str(named_env.path / "bin" / "vlmhb"), "run", str(config), "--out", str(tmp_path / "out")]
    environ = {**os.environ, "VLMHB_SCRIPT": str(script.path)}
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert wait_until(lambda: any(e["model"] == "b" for e in script.log()), 30)
    below = family(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in err) == (1, False), err
    assert len(below) >= 4, "two supervisors and two workers"
    assert_gone(below)
    assert [entry["model"] for entry in script.log() if entry.get("event") == "load"] == ["a"]


@pytest.mark.parametrize("options", ["batch=4,ahead=30", pytest.param("batch=1", marks=pytest.mark.slow)])
def test_ctrl_c_finishes_what_is_being_answered_and_says_how_to_go_on(
    tmp_path: Path, cli: Cli, script: ScriptFile, named_env: Env, options: str
) -> None:
    make_dataset(tmp_path / "dataset", 60)
    config = make_config(tmp_path, {"model_options": f"{options},delay=0.05"})
    command = [str(named_env.path / "bin" / "vlmhb"), "run", str(config), "--out", str(tmp_path / "out")]
    environ = {**os.environ, "VLMHB_SCRIPT": str(script.path)}
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while stored_answers(tmp_path / "out" / "run.sqlite") < 5:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert "Traceback" not in err
    assert "Stopping" in err
    assert f"go on with: vlmhb run {config}" in err
    results = RunResults(tmp_path / "out")
    done = [line for line in results.answers if line["status"] == "ok"]
    assert 5 <= len(done) < 60
    assert len(script.asked()) == len(done), "what was started was finished and stored"
    assert (results.general["missing"], results.general["errors"]) == (str(60 - len(done)), "0")
    assert results.manifest["interrupted"] is True
    cli("run", config, "--out", tmp_path / "out")
    assert len(script.asked()) == 60


def test_ctrl_c_while_the_model_loads_says_so_and_a_second_one_how_to_go_on(
    tmp_path: Path, script: ScriptFile, named_env: Env
) -> None:
    make_dataset(tmp_path / "dataset", 2)
    config = make_config(tmp_path, {})
    script.rules({"on": "load", "do": "hang"})
    command = [str(named_env.path / "bin" / "vlmhb"), "run", str(config), "--out", str(tmp_path / "out")]
    said = tmp_path / "said.txt"
    with said.open("w") as stderr:
        process = subprocess.Popen(
            command,
            env={**os.environ, "VLMHB_SCRIPT": str(script.path)},
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
        assert wait_until(script.loads, 30)
        below = family(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        assert wait_until(lambda: "Stopping: nothing is asked once the model is loaded." in said.read_text(), 10)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 1
    assert f"Go on with: vlmhb run {config}" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert_gone(below)


def damaged_images(folder: Path) -> dict[str, str]:
    """Image files of every difficult kind; name to what the error must say, empty where it can be read."""
    page = Image.effect_noise((80, 60), 60).convert("RGB")
    page.save(folder / "whole.jpg")
    (folder / "truncated.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:900])
    (folder / "zero.png").write_bytes(b"")
    (folder / "text.png").write_text("this is no picture")
    page.convert("CMYK").save(folder / "cmyk.jpg")
    page.convert("P").save(folder / "palette.png")
    Image.new("I;16", (60, 60), 40_000).save(folder / "deep.png")
    exif = page.getexif()
    exif[0x0112] = 6
    page.save(folder / "rotated.jpg", exif=exif)
    Image.new("RGB", (1, 1)).save(folder / "dot.png")
    Image.new("1", (20_000, 8_000)).save(folder / "large.png")
    return {
        "truncated.jpg": "truncated",
        "missing.png": "no such file",
        "zero.png": "empty",
        "text.png": "image",
        "cmyk.jpg": "",
        "palette.png": "",
        "deep.png": "",
        "rotated.jpg": "",
        "dot.png": "",
        "large.png": "",
    }


def test_damaged_images_are_errors_of_their_rows_alone(tmp_path: Path, cli: Cli) -> None:
    dataset = make_dataset(tmp_path / "dataset", 20, images=20)
    expected = damaged_images(dataset / "images")
    rows = read_csv(dataset / "annotation.csv")
    extra = [{**rows[0], "image_path": f"images/{name}", "question": f"About {name}?"} for name in expected]
    write_csv(dataset / "annotation.csv", [*rows[:10], *extra, *rows[10:]])
    cli("run", make_config(tmp_path, {}), "--out", tmp_path / "out", code=1)
    results = RunResults(tmp_path / "out")
    lines = {Path(line["image_path"]).name: line for line in results.answers}
    for name, reason in expected.items():
        assert lines[name]["status"] == ("error" if reason else "ok"), lines[name]
        if reason:
            assert name in lines[name]["error"]
            assert reason in lines[name]["error"]
            assert lines[name]["cer"] == ""
    assert sum(line["status"] == "ok" for line in results.answers) == 20 + sum(not text for text in expected.values())
    assert results.general["errors"] == "4"


@pytest.mark.slow
def test_what_changed_is_asked_again_and_nothing_else(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    dataset = make_dataset(tmp_path / "dataset", 12)
    out = tmp_path / "out"

    def newly_asked(**row: Any) -> int:
        before = len(script.asked())
        cli("run", make_config(tmp_path, row), "--out", out)
        return len(script.asked()) - before

    assert newly_asked() == 12
    assert newly_asked() == 0
    assert newly_asked(metrics="CER") == 0
    assert newly_asked(model_options="batch=2") in (0, 12)
    assert newly_asked(max_tokens="5") == 12
    assert newly_asked(system_prompt="Answer briefly.") == 12
    Image.new("RGB", (56, 56), "red").save(dataset / "images" / "0.png")
    assert newly_asked() == 3
    rows = read_csv(dataset / "annotation.csv")
    rows[5]["question"] = "Something else?"
    rows[7]["answer"] = "another reference"
    write_csv(dataset / "annotation.csv", rows)
    assert newly_asked() == 1


def test_options_of_the_command(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 8)
    config = make_config(tmp_path, {}, {"model_name": "other"})
    out = tmp_path / "out"
    done = cli("run", config, "--out", out, "--limit", "3", "--backend", "vllm", "--max-tokens", "1")
    assert "Answered now: 6" in done.stdout
    lines = RunResults(out).answers
    assert [(line["backend"], line["answer"]) for line in lines] == [("vllm", "Question")] * 6
    assert {line["finish_reason"] for line in lines} == {"length"}
    cli("run", config, "--out", out, "--limit", "3", "--backend", "vllm", "--max-tokens", "1", "--fresh")
    assert len(script.asked()) == 12
    assert "no backend 'vlm'" in cli("run", config, "--backend", "vlm", code=2).stderr
    assert "max_tokens" in cli("run", config, "--max-tokens", "0", code=2).stderr
    assert "batch" in cli("run", config, "-o", "batch=many", code=2).stderr
    assert "Did you mean batch" in cli("run", config, "-o", "batc=2", code=2).stderr


def test_rows_with_one_model_load_it_once(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 4)
    rows = [{"filter_doc_class": name, "model_name": model} for name in ("form", "bill", "") for model in ("a", "b")]
    cli("run", make_config(tmp_path, *rows), "--out", tmp_path / "out")
    assert script.loads() == 2
    assert len(RunResults(tmp_path / "out").table("general")) == 6


@pytest.mark.slow
def test_the_engine_gets_room_for_as_many_images_as_a_row_has(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    rows = read_csv(make_dataset(tmp_path / "dataset", 4) / "annotation.csv")
    rows[2]["image_path"] = str([f"images/{number}.png" for number in (0, 1, 2, 3, 0, 1, 2, 3, 0)])
    write_csv(tmp_path / "dataset" / "annotation.csv", rows)
    config = make_config(tmp_path, {"model_name": "a", "max_images": ""}, {"model_name": "b", "max_images": 12})
    cli("run", config, "--out", tmp_path / "out")
    picture = str(tmp_path / "dataset" / "images" / "0.png")
    for images in ([], ["-i", picture, "-i", picture]):
        cli("generate", "-m", "c", "-b", "scripted", *images, "Hi")
    cli("generate", "-m", "c", "-b", "scripted", "-o", "max_images=3", "Hi")
    cli("compare", "d", "-b", "scripted,vllm", "-d", tmp_path / "dataset", "--out", tmp_path / "compare")
    loads = [(line["model"], line["max_images"]) for line in script.log() if line.get("event") == "load"]
    assert loads == [("a", 9), ("b", 12), ("c", 1), ("c", 2), ("c", 3), ("d", 9), ("d", 9)]


def test_rows_that_cannot_be_asked_are_not_compared(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    annotation = make_dataset(tmp_path / "dataset", 4) / "annotation.csv"
    rows = read_csv(annotation)
    rows[1]["image_path"] = "images/none.png"
    write_csv(annotation, rows)
    with annotation.open("a", encoding="utf-8") as file:
        file.write("too;few\n")
    done = cli("compare", "d", "-b", "scripted,vllm", "-d", tmp_path / "dataset", "--out", tmp_path / "compare")
    assert done.stderr.count("is left out") == 2
    assert "row 2 is left out" in done.stderr
    assert "row 5 is left out" in done.stderr
    assert "3 requests, compared with scripted" in done.stdout


def test_engines_to_compare_are_checked_before_one_is_loaded(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 2)
    asking = ("compare", "d", "-d", tmp_path / "dataset", "--out", tmp_path / "compare", "-b")
    assert "no backend 'foo'" in cli(*asking, "scripted,foo", code=2).stderr
    assert "bathc" in cli(*asking, "scripted,vllm", "-o", "bathc=3", code=2).stderr
    assert script.log() == []


SCHEMA = {"type": "object", "properties": {"sum": {"type": "string"}, "date": {}}, "required": ["sum"]}
NOT_HELD = "asked without its JSON schema: scripted cannot hold an answer to one"


def make_dataset_with_schema(folder: Path) -> Path:
    """Two questions, the first with a schema that a file of the folder holds."""
    folder.mkdir()
    (folder / "sum.json").write_text(json.dumps(SCHEMA))
    rows = [
        {"question": "Sum?", "answer": '{"sum":"5"}', "json_schema": "sum.json"},
        {"question": "Who?", "answer": ""},
    ]
    return write_csv(
        folder / "annotation.csv", [{"data_index": "1", "image_path": "", "json_schema": "", **row} for row in rows]
    )


def schemas_asked(script: ScriptFile, first: int = 0) -> dict[str, Any]:
    """What each question was asked with, from the given request on."""
    return {line["question"]: line["json_schema"] for line in [line for line in script.log() if "id" in line][first:]}


@pytest.mark.slow
def test_an_engine_that_can_is_given_the_rows_schema(
    tmp_path: Path, cli: Cli, script: ScriptFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLMHB_SCRIPTED_STRUCTURED", "vllm")
    make_dataset_with_schema(tmp_path / "dataset")
    config = make_config(tmp_path, {"backend": "vllm"}, {})
    out = tmp_path / "out"
    cli("run", config, "--out", out)
    asked = [(line["backend"], line["question"], line["json_schema"]) for line in script.log() if "id" in line]
    assert sorted(asked, key=str) == sorted(
        [("vllm", "Sum?", SCHEMA), ("vllm", "Who?", None), ("scripted", "Sum?", None), ("scripted", "Who?", None)],
        key=str,
    )
    assert list(next(schema for _, _, schema in asked if schema)["properties"]) == ["sum", "date"], (
        "keys keep their order"
    )
    notes = {(line["backend"], line["question"]): line["notes"] for line in RunResults(out).answers}
    assert notes == {
        ("vllm", "Sum?"): "",
        ("vllm", "Who?"): "",
        ("scripted", "Sum?"): NOT_HELD,
        ("scripted", "Who?"): "",
    }
    cli("run", config, "--out", out)
    assert len(script.asked()) == 4, "the answers are reused"


@pytest.mark.slow
def test_a_changed_schema_asks_only_its_rows_of_engines_that_hold_to_it(
    tmp_path: Path, cli: Cli, script: ScriptFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_dataset_with_schema(tmp_path / "dataset")
    config = make_config(tmp_path, {})
    out = tmp_path / "out"
    cli("run", config, "--out", out)
    (tmp_path / "dataset" / "sum.json").write_text('{"type": "object"}')
    cli("run", config, "--out", out)
    assert len(script.asked()) == 2, "the schema had no part in the answers"
    monkeypatch.setenv("VLMHB_SCRIPTED_STRUCTURED", "scripted")
    cli("run", config, "--out", out)
    assert schemas_asked(script, 2) == {"Sum?": {"type": "object"}}, "the engine can now: other answers are asked for"
    (tmp_path / "dataset" / "sum.json").write_text(json.dumps(SCHEMA))
    cli("run", config, "--out", out)
    assert schemas_asked(script, 3) == {"Sum?": SCHEMA}
    assert [line["notes"] for line in RunResults(out).answers] == ["", ""]


@pytest.mark.slow
def test_answers_held_to_a_schema_are_scored_where_the_engine_is_not_installed(
    tmp_path: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    script: ScriptFile,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("VLMHB_SCRIPTED_STRUCTURED", "vllm")
    make_dataset_with_schema(tmp_path / "dataset")
    out = tmp_path / "out"
    cli("run", make_config(tmp_path, {"backend": "vllm"}), "--out", out)
    bare = make_env(tmp_path_factory.mktemp("envs") / "bare", CORE, editable=True)
    config = make_config(tmp_path, {"backend": "vllm", "only_evaluate_metrics": "True"})
    for _ in range(2):
        done = bare.vlmhb("run", str(config), "--out", str(out), check=False)
        assert done.returncode == 0, done.stderr
        assert [(line["status"], line["notes"]) for line in RunResults(out).answers] == [("ok", ""), ("ok", "")]
    assert len(script.asked()) == 2


def test_a_model_that_does_not_load_is_an_error_of_its_rows(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 4)
    script.rules({"on": "load", "model": "bad", "do": "refuse"}, {"on": "load", "model": "crash", "do": "segfault"})
    config = make_config(tmp_path, {"model_name": "bad"}, {"model_name": "crash"}, {"model_name": "good"})
    cli("run", config, "--out", tmp_path / "out", code=1)
    results = RunResults(tmp_path / "out")
    found = {line["model_name"]: (line["status"], line["error"]) for line in results.answers}
    assert found["good"] == ("ok", "")
    assert found["bad"][0] == found["crash"][0] == "error"
    assert "refuses this model" in found["bad"][1]
    assert "SIGSEGV" in found["crash"][1]
    assert f"Its log is {tmp_path / 'out' / 'logs' / 'scripted-crash.log'}" in found["crash"][1]
    script.rules()
    cli("run", config, "--out", tmp_path / "out")
    assert RunResults(tmp_path / "out").manifest["rows"] == {"ok": 12, "error": 0, "missing": 0}


def test_each_model_has_its_own_log_and_entry_in_the_manifest(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 2)
    rows = [{"model_name": name, "model_options": f"batch={batch}"} for name, batch in (("a", 8), ("a", 2), ("b", 8))]
    cli("run", make_config(tmp_path, *rows), "--out", tmp_path / "out")
    models = RunResults(tmp_path / "out").manifest["models"]
    assert {model["log"]: (model["model_name"], model["facts"]["batch"]) for model in models} == {
        "logs/scripted-a.log": ("a", 8),
        "logs/scripted-a-2.log": ("a", 2),
        "logs/scripted-b.log": ("b", 8),
    }
    assert {path.name for path in (tmp_path / "out" / "logs").iterdir()} == {
        Path(model["log"]).name for model in models
    }


def test_a_request_that_kills_the_engine_is_an_error_row(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 10)
    script.rules({"question": "Question 4?", "do": "segfault"})
    cli("run", make_config(tmp_path, {}), "--out", tmp_path / "out", code=1)
    lines = RunResults(tmp_path / "out").answers
    assert [line["row"] for line in lines if line["status"] != "ok"] == ["5"]
    assert "SIGSEGV" in lines[4]["error"]
    assert (tmp_path / "out" / "logs" / "scripted-tiny.log").stat().st_size > 0
    script.rules()
    again = cli("run", tmp_path / "user_config.csv", "--out", tmp_path / "out")
    assert "10 rows; 1 question to ask\n" in again.stderr, "it failed, but can be asked"


@pytest.mark.slow
def test_only_evaluate_scores_what_is_there(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 6)
    out = tmp_path / "out"
    cli("run", make_config(tmp_path, {}), "--out", out, "--limit", "4")
    asked = len(script.asked())
    done = cli("run", make_config(tmp_path, {"only_evaluate_metrics": "True"}), "--out", out, code=1)
    assert len(script.asked()) == asked
    assert "2 rows not answered" in done.stderr
    assert RunResults(out).general["missing"] == "2"


@pytest.mark.slow
def test_two_configs_of_one_name_do_not_share_a_folder(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_dataset(tmp_path / "a" / "dataset", 2)
    make_dataset(tmp_path / "b" / "dataset", 2)
    for folder in ("a", "b"):
        make_config(tmp_path / folder, {})
    cli("run", "a/user_config.csv")
    cli("run", tmp_path / "a" / "user_config.csv")
    refused = cli("run", "b/user_config.csv", code=2)
    assert "runs/user_config holds the run of" in refused.stderr
    cli("run", "b/user_config.csv", "--out", "runs/b")


@pytest.mark.slow
def test_another_engine_version_is_said(tmp_path: Path, cli: Cli) -> None:
    make_dataset(tmp_path / "dataset", 2)
    config = make_config(tmp_path, {})
    out = tmp_path / "out"
    cli("run", config, "--out", out)
    manifest = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(manifest.replace('"engine_version": "0.1.0"', '"engine_version": "0.0.9"'))
    done = cli("run", config, "--out", out)
    assert "made with vlmhb-scripted 0.0.9, and this is 0.1.0" in done.stderr


def test_score_recomputes_without_a_model(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    make_dataset(tmp_path / "dataset", 6)
    out = tmp_path / "out"
    cli("run", make_config(tmp_path, {"metrics": "CER"}), "--out", out)
    (tmp_path / "dataset").rename(tmp_path / "moved")
    before = len(script.log())
    cli("score", out, "--metrics", "exact_match,wer", "--normalize", "nfkc_case,punctuation")
    assert len(script.log()) == before
    general = RunResults(out).general
    assert "cer_mean" not in general
    assert general["normalize"] == "nfkc_case,punctuation"
    assert RunResults(out).manifest["jobs"][0]["metrics"] == ["exact_match", "wer"]
    assert float(general["exact_match_mean"]) == pytest.approx(4 / 6, abs=1e-5)
    assert "Did you mean" in cli("score", out, "--metrics", "CERR", code=2).stderr
    assert "no run" in cli("score", tmp_path / "moved", code=2).stderr
    assert "either" in cli("score", code=2).stderr


def test_a_folder_in_use_is_refused(tmp_path: Path, cli: Cli, script: ScriptFile, named_env: Env) -> None:
    make_dataset(tmp_path / "dataset", 30)
    config = make_config(tmp_path, {"model_options": "batch=1,delay=0.2"})
    command = [str(named_env.path / "bin" / "vlmhb"), "run", str(config), "--out", str(tmp_path / "out")]
    first = subprocess.Popen(
        command,
        env={**os.environ, "VLMHB_SCRIPT": str(script.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not stored_answers(tmp_path / "out" / "run.sqlite"):
            time.sleep(0.01)
        assert "another process" in cli("run", config, "--out", tmp_path / "out", code=2).stderr
    finally:
        first.kill()
        first.wait()


def test_a_full_disk_ends_the_run_with_a_sentence_and_keeps_what_is_stored(
    tmp_path: Path, cli: Cli, script: ScriptFile, named_env: Env
) -> None:
    make_dataset(tmp_path / "dataset", 300)
    script.rules(*({"question": f"Question {number}?", "answer": "x" * 4000} for number in range(300)))
    config = make_config(tmp_path, {})

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    done = subprocess.run(
        [str(named_env.path / "bin" / "vlmhb"), "run", str(config), "--out", str(tmp_path / "out")],
        env={**os.environ, "VLMHB_SCRIPT": str(script.path)},
        preexec_fn=small_files,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "Answers stored before are safe" in done.stderr
    kept = stored_answers(tmp_path / "out" / "run.sqlite")
    assert 20 < kept < 300
    cli("run", config, "--out", tmp_path / "out")
    assert len(RunResults(tmp_path / "out").answers) == 300
    assert len(set(script.asked())) == 300


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "no_such.csv"), "no_such.csv"),
        (("run",), "Missing argument"),
        (("runn", "x.csv"), "Did you mean run?"),
        (("score", "no_such_folder"), "no run"),
        (("generate", "-m", "x", "-b", "nothing", "hi"), "no backend 'nothing'"),
    ],
)
def test_wrong_usage_is_said_in_words(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    assert said in cli(*arguments, code=2).stderr


def test_generate_prints_the_answer_and_can_print_json(cli: Cli, tmp_path: Path, script: ScriptFile) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "page.png")
    script.rules({"image": "page.png", "answer": "сорок два"})
    done = cli("generate", "-m", "tiny", "-b", "scripted", "-i", tmp_path / "page.png", "Сумма?")
    assert done.stdout == "сорок два\n"
    as_json = json.loads(cli("generate", "-m", "tiny", "-b", "scripted", "--json", "--max-tokens", "1", "a b").stdout)
    assert (as_json["text"], as_json["finish_reason"]) == ("a", "length")
    missing = cli("generate", "-m", "tiny", "-b", "scripted", "-i", tmp_path / "none.png", "?", code=1)
    assert "none.png" in missing.stderr


def test_generate_takes_a_json_schema(
    cli: Cli, tmp_path: Path, script: ScriptFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLMHB_SCRIPTED_STRUCTURED", "vllm")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    asking = ("generate", "-m", "tiny", "--json-schema", schema, "Sum?", "-b")
    assert cli(*asking, "vllm").stdout == "Sum?\n"
    assert schemas_asked(script) == {"Sum?": SCHEMA}
    assert "hf cannot hold an answer to a JSON schema" in cli(*asking, "hf", code=2).stderr
    for content, said in ((b"[1]", "is no JSON Schema"), (b"{", "is no JSON"), (b"\xff", "cannot be read")):
        schema.write_bytes(content)
        refused = cli(*asking, "vllm", code=2).stderr
        assert said in refused
        assert str(schema) in refused
    assert len(script.asked()) == 1


@pytest.mark.slow
def test_while_a_model_loads_everything_is_imported_that_the_end_needs(
    tmp_path: Path, cli: Cli, named_env: Env
) -> None:
    make_dataset(tmp_path / "dataset", 6)
    config = make_config(tmp_path, {"metrics": "['CER','WER','exact_match']"})
    cli("run", config, "--out", tmp_path / "run")
    program = """
import sys
from pathlib import Path
from vlmhb.run.ahead import prepare_the_end
before = set(sys.modules)
prepare_the_end().join()
prepared = set(sys.modules)
from vlmhb.engines import Engines
from vlmhb.report.write import report_of_run
from vlmhb.run.score import score_run
engines, run = Engines(), Path(sys.argv[1])
score_run(run, engines, None, None)
assert report_of_run(run, engines) == []
packages = lambda modules: {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
assert "polars" not in before and "polars" in prepared
print(sorted(packages(sys.modules) - packages(prepared)))
"""
    said = named_env.run("-c", program, str(tmp_path / "run")).stdout
    assert said.strip() == "[]"
