"""Several prompts in one run: each asked, none twice, and told apart in every table."""

from __future__ import annotations

from pathlib import Path

from PIL import Image
from support.runs import RunResults, write_csv
from support.scripts import ScriptFile

from .conftest import Cli

PROMPTS = {
    "terse": ("prompt_template", "{question} In {currency}."),
    "long": ("prompt_template", "Read the page and answer. {question}"),
    "same": ("prompt", "Total? In RUB."),
}


def bench(folder: Path) -> Path:
    """A dataset of three rows with a column of its own, and three prompt collections; returns the config's place."""
    (folder / "dataset" / "images").mkdir(parents=True)
    Image.new("RGB", (56, 56), "white").save(folder / "dataset" / "images" / "a.png")
    rows = [("1", "Total?", "RUB"), ("1", "Date?", "RUB"), ("2", "Total?", "EUR")]
    write_csv(
        folder / "dataset" / "annotation.csv",
        [
            {
                "data_index": index,
                "image_path": "images/a.png",
                "question": question,
                "answer": f"{question} In RUB.",
                "doc_class": "bill",
                "question_type": question.casefold().strip("?"),
                "currency": currency,
            }
            for index, question, currency in rows
        ],
    )
    for name, (column, text) in PROMPTS.items():
        write_csv(folder / f"{name}.csv", [{column: text, "doc_class_question_type": "*"}])
    return folder / "user_config.csv"


def test_several_prompts_in_one_run(tmp_path: Path, cli: Cli, script: ScriptFile) -> None:
    config = write_csv(
        bench(tmp_path),
        [
            {"dataset": "dataset", "backend": "scripted", "model_name": "tiny", "prompt_collection": cell}
            for cell in ("", "['terse.csv', 'long.csv', 'same.csv']")
        ],
    )
    done = cli("run", config, "--out", tmp_path / "out")
    results = RunResults(tmp_path / "out")
    asked = {(line["prompts"], line["row"]): line["question"] for line in results.answers}
    assert len(asked) == 12
    assert asked["terse", "1"] == asked["same", "1"] == "Total? In RUB."
    assert asked["terse", "3"] == "Total? In EUR."
    assert asked["long", "2"] == "Read the page and answer. Date?"
    assert asked["", "2"] == "Date?"
    assert sorted(script.asked()) == sorted(set(script.asked()))
    assert len(script.asked()) == len({line["question"] for line in results.answers}) == 7
    assert script.loads() == 1
    general = {line["prompts"]: line for line in results.table("general")}
    assert list(general) == ["", "terse", "long", "same"]
    assert [line["config_row"] for line in general.values()] == ["1", "2", "2", "2"]
    assert general["terse"]["exact_match_mean"] == "0.666667"
    assert {job["prompts"] for job in results.manifest["jobs"]} == {"", "terse", "long", "same"}
    assert "terse" in done.stdout
    assert "(the dataset's)" in done.stdout
    assert 'id="prompts"' in (tmp_path / "out" / "report" / "index.html").read_text(encoding="utf-8")
    compared = cli("compare", f"{tmp_path / 'out'}:2:terse", f"{tmp_path / 'out'}:2:long")
    assert (
        "first:  tiny on scripted (out, row 2, terse)\n  second: tiny on scripted (out, row 2, long)" in compared.stdout
    )
    refused = cli("compare", f"{tmp_path / 'out'}:2:terse", f"{tmp_path / 'out'}:2:none", code=2)
    assert "has no prompts none; it has terse, long, same" in refused.stderr
    again = cli("run", config, "--out", tmp_path / "out")
    assert "Answered now: 0; reused from before: 12" in again.stdout


def test_what_is_wrong_with_a_template_is_said_before_anything_is_asked(
    tmp_path: Path, cli: Cli, script: ScriptFile
) -> None:
    config = bench(tmp_path)
    write_csv(
        tmp_path / "bad.csv",
        [
            {"prompt_template": text, "doc_class_question_type": key}
            for text, key in (("{question}", "bill date"), ("{curency}?", "*"))
        ],
    )
    row = {"dataset": "dataset", "backend": "scripted", "model_name": "tiny", "prompt_collection": "bad.csv"}
    done = cli("run", write_csv(config, [row]), "--out", tmp_path / "out", code=2)
    assert "bad.csv, row 2 (line 3), column prompt_template: the dataset dataset has no column curency." in done.stderr
    assert "currency" in done.stderr
    assert script.log() == []
