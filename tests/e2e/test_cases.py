"""The shared cases, each through the command line, against what ``cases.json`` says must happen.

Answers reach the run through the scripted engine where a question identifies its row, and through ``vlmhb score``
where several rows ask the same thing and are taken to be answered differently.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.envs import Env
from support.runs import RunResults, kill_when_stored, read_csv, write_csv
from support.scripts import ScriptFile

from .conftest import Cli

CASES = Path(__file__).parents[1] / "cases"
ALL = {case["id"]: case for case in json.loads((CASES / "cases.json").read_text(encoding="utf-8"))["cases"]}
METRICS = "CER,WER,exact_match,ANLS"
PLAIN_CASES = ("C02", "C03", "C04", "C05", "C06", "C07", "C12", "C13", "C14", "C15", "C17", "C18", "C23", "C26", "C27")


def case_folder(name: str, tmp_path: Path) -> Path:
    """A copy of a case's files."""
    return Path(shutil.copytree(CASES / name, tmp_path / name))


def given_answers(folder: Path) -> list[str]:
    """The answers that the model is taken to have given, in row order."""
    if (folder / "answers.jsonl").exists():
        lines = (folder / "answers.jsonl").read_text(encoding="utf-8").split("\n")
        return [json.loads(line)["answer"] for line in lines if line]
    return [line["answer"] for line in read_csv(folder / "answers.csv")]


def run_case(folder: Path, cli: Cli, script: ScriptFile, expect: dict[str, Any]) -> RunResults:
    """Answer a case's dataset and score it."""
    rows = read_csv(folder / "dataset" / "annotation.csv")
    said = [
        ((row["question"], Path(row["image_path"].replace("\\", "/").strip()).name), answer)
        for row, answer in zip(rows, given_answers(folder), strict=True)
    ]
    out = folder / "out"
    code = expect.get("exit_code", 0)
    if len(set(said)) == len(dict(said)):
        script.rules(*({"question": q, "image": image, "answer": answer} for (q, image), answer in said))
        config = write_csv(
            folder / "config.csv",
            [{"dataset": "dataset", "backend": "scripted", "model_name": "tiny", "metrics": METRICS}],
        )
        cli("run", config, "--out", out, code=code)
    else:
        file = next(path for path in folder.glob("answers.*"))
        cli("score", "-d", folder / "dataset", "-a", file, "--metrics", METRICS, "--out", out, code=code)
    return RunResults(out)


def check_numbers(found: dict[str, str], expected: dict[str, Any], where: str) -> None:
    """Compare a line of a table with the numbers of a case."""
    names = {"exact_match_over_scored": "exact_match_mean"}
    for name, value in expected.items():
        if name == "by_option":
            continue
        cell = found[names.get(name, name)]
        if value is None:
            assert cell == "", f"{where}: {name} should not exist, not {cell}"
        else:
            assert float(cell) == pytest.approx(value, abs=1e-4), f"{where}: {name}"


def check(results: RunResults, expect: dict[str, Any]) -> None:
    """Check rows and groups against a case."""
    lines = {int(line["row"]): line for line in results.answers}
    if "dataset" in expect:
        assert len(lines) == expect["dataset"]["rows"]
    for row in expect.get("rows", ()):
        line = lines[row["row"]]
        allowed = row["status"] if isinstance(row["status"], list) else [row["status"]]
        assert line["status"] in allowed, line
        for text in row.get("message_mentions", ()):
            assert text.lower() in line["error"].lower(), line["error"]
        for name in ("reference", "answer"):
            if name in row:
                assert line[name] == row[name]
        metrics = {name: row[name] for name in ("cer", "wer", "exact_match", "anls") if name in row}
        check_numbers(line, metrics, f"row {row['row']}")
    check_numbers(results.general, expect.get("general", {}), "general")
    for table, key in (("by_id", "data_index"), ("by_doc_type", "doc_class")):
        groups = {line[key]: line for line in results.table(table)}
        wanted = expect.get(table, {})
        if wanted:
            assert list(groups) == list(wanted)
        if isinstance(wanted, dict):
            for name, numbers in wanted.items():
                check_numbers(groups[name], numbers, f"{table} {name}")


@pytest.mark.parametrize("name", PLAIN_CASES)
def test_rows_and_groups(name: str, tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    expect = ALL[name]["expect"]
    results = run_case(case_folder(name, tmp_path), cli, script, expect)
    check(results, expect)
    if (results.folder / "manifest.json").exists():
        assert results.manifest["rows"]["error"] == sum(line["status"] == "error" for line in results.answers)


def test_c01_byte_order_mark_and_quotes_change_nothing(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    folder = case_folder("C01", tmp_path)
    write_csv(folder / "vlm_base.csv", [{"model_name": "tiny-model", "model_path": ""}])
    results = []
    for config in ("user_config.csv", "user_config_plain.csv"):
        cli("run", folder / config, "--out", folder / "out")
        results.append(RunResults(folder / "out"))
        assert list(results[-1].answers[0])[1] == "dataset"
    cells = [
        [{k: v for k, v in line.items() if k != "dataset" and "time" not in k} for line in r.answers] for r in results
    ]
    assert cells[0] == cells[1]
    assert len(script.asked()) == 1, "both rows of both datasets ask the same question about the same picture"
    expect = ALL["C01"]["expect"]
    cli("score", "-d", folder / "dataset", "-a", folder / "answers.csv", "--out", folder / "scored")
    check(RunResults(folder / "scored"), expect)


def test_c07_a_decompression_bomb_takes_little_memory(tmp_path: Path, named_env: Env, script: ScriptFile) -> None:
    folder = case_folder("C07", tmp_path)
    write_csv(folder / "config.csv", [{"dataset": "dataset", "backend": "scripted", "model_name": "tiny"}])
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [str(named_env.path / "bin" / "vlmhb"), "run", str(folder / "config.csv"), "--out", str(folder / "out")]
    done = named_env.run("-c", code, *command, VLMHB_SCRIPT=str(script.path))
    assert int(done.stdout.split()[-1]) < 1_000_000, "kilobytes of the largest process"


@pytest.mark.parametrize("option", ["plain", "nfc", "whitespace", "yo", "default"])
@pytest.mark.parametrize("name", ["C02", "C16"])
def test_text_options(name: str, option: str, tmp_path: Path, cli: Cli) -> None:
    folder = case_folder(name, tmp_path)
    chosen = [] if option == "default" else ["--normalize", option]
    cli("score", "-d", folder / "dataset", "-a", folder / "answers.csv", *chosen, "--out", folder / "out")
    results = RunResults(folder / "out")
    expect = ALL[name]["expect"]
    for row in expect["rows"]:
        if option in row.get("by_option", {}):
            check_numbers(results.answers[row["row"] - 1], row["by_option"][option], f"{option} row {row['row']}")
    check_numbers(results.general, expect.get("general", {}).get("by_option", {}).get(option, {}), option)
    assert results.general["normalize"] == ("nfc,whitespace" if option == "default" else option)


def test_c19_killed_after_the_third_answer(tmp_path: Path, cli: Cli, script: ScriptFile, named_env: Env) -> None:
    folder = case_folder("C19", tmp_path)
    rows = read_csv(folder / "dataset" / "annotation.csv")
    rules = [
        {"image": Path(row["image_path"]).name, "answer": text}
        for row, text in zip(rows, given_answers(folder), strict=True)
    ]
    options = "batch=1,delay=0.2"
    row = {"dataset": "dataset", "backend": "scripted", "model_name": "tiny", "model_options": options}
    config = write_csv(folder / "config.csv", [row])
    script.rules(*rules)
    kill_when_stored(3, named_env, script, "run", config, "--out", folder / "out")
    first = script.asked()
    (folder / "out" / "answers.csv").write_bytes(b"\xef\xbb\xbfconfig_row;dataset;ta")
    cli("run", config, "--out", folder / "out")
    second = script.asked()[len(first) :]
    assert len(second) == 3
    assert not set(second) & set(first[:3])
    results = RunResults(folder / "out")
    check(results, ALL["C19"]["expect"])
    cli("run", config, "--out", folder / "out")
    assert len(script.asked()) == len(first) + len(second)
    cli("run", config, "--out", folder / "undisturbed")
    undisturbed = RunResults(folder / "undisturbed")
    assert without_times(results.answers) == without_times(undisturbed.answers)
    assert results.general == undisturbed.general


def without_times(answers: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{name: cell for name, cell in line.items() if "time" not in name} for line in answers]


@pytest.mark.slow
def test_c20_answers_belong_to_a_model_and_an_engine(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    folder = case_folder("C20", tmp_path)
    expect = ALL["C20"]["expect"]
    questions = [row["question"] for row in read_csv(folder / "dataset" / "annotation.csv")]
    given = read_csv(folder / "answers_by_model.csv")
    script.rules(
        *({"model": g["model_name"], "question": questions[int(g["row"]) - 1], "answer": g["answer"]} for g in given)
    )
    out = folder / "out"
    before = 0
    for step in ("user_config.csv", "other_engine.csv", "user_config.csv again"):
        cli("run", folder / step.split()[0], "--out", out)
        log = [line for line in script.log() if "event" not in line]
        for model, rows in expect["asked"][step].items():
            found = [line["question"] for line in log[before:] if line["model"] == model]
            assert sorted(found) == sorted(questions[row - 1] for row in rows), (step, model)
        before = len(log)
    cli("score", out, "--metrics", "CER,exact_match")
    for line in RunResults(out).table("general"):
        check_numbers(line, expect["general"][line["model_name"]], line["model_name"])


def test_c25_out_of_memory_on_one_row(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    folder = case_folder("C25", tmp_path)
    rows = read_csv(folder / "dataset" / "annotation.csv")
    for number, row in enumerate(rows, 1):
        row["question"] = f"{row['question']} {number}"
    write_csv(folder / "dataset" / "annotation.csv", rows)
    answers = [
        {"question": row["question"], "answer": text} for row, text in zip(rows, given_answers(folder), strict=True)
    ]
    script.rules({"on": "batch", "image": "large.png"}, *answers)
    config = write_csv(folder / "config.csv", [{"dataset": "dataset", "backend": "scripted", "model_name": "tiny"}])
    cli("run", config, "--out", folder / "out", code=1)
    results = RunResults(folder / "out")
    check(results, ALL["C25"]["expect"])
    assert "tried alone" in results.answers[1]["notes"]
    assert "asked again" in results.answers[0]["notes"]
    alone = [line for line in script.log() if line.get("batch") == 1 and "large.png" in line["images"]]
    assert 1 <= len(alone) <= 3


def test_c28_all_faults_at_once_and_nothing_run(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    folder = case_folder("C28", tmp_path)
    done = cli("run", folder / "user_config.csv", "--out", folder / "out", code=2)
    lines = done.stderr.splitlines()
    for fault in ALL["C28"]["expect"]["config"]["errors"]:
        matching = [line for line in lines if f"row {fault['row']} " in line and f"column {fault['column']}" in line]
        assert matching, f"no line about {fault}:\n{done.stderr}"
        assert any(all(text in line for text in fault["mentions"]) for line in matching), matching
    assert script.log() == []


def test_c29_thinking_is_kept_and_not_scored(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    folder = case_folder("C29", tmp_path)
    expect = ALL["C29"]["expect"]
    results = run_case(folder, cli, script, expect)
    check(results, expect)
    for row, line, given in zip(expect["rows"], results.answers, given_answers(folder), strict=True):
        assert line["answer"] == given
        assert line["scored_answer"] == row["scored"]
        assert ("thinking_unclosed" in line["flags"]) == row.get("flagged", False)
