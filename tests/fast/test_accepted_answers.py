"""Several accepted answers for one question: the best counts, in every metric and on the way through a run."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from vlmhb.cli.app import app
from vlmhb.contract.dataset import Sample
from vlmhb.contract.metric import Pairs
from vlmhb.data.details import Details, details_of, read_details
from vlmhb.errors import ConfigError
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.scoring import Scorer

METRICS = vlmhb_metrics()
words = st.text("абв 12", max_size=6).map(str.strip)


def sample(*accepted: str, choices: Sequence[str] = (), schema: str = "") -> Sample:
    return Sample(
        row=1,
        data_index="1",
        images=(),
        question="Q",
        reference=accepted[0],
        other_references=tuple(accepted[1:]),
        choices=tuple(choices),
        json_schema=schema,
    )


def frame(*rows: tuple[Sample, str | None, str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "row": range(1, len(rows) + 1),
            "data_index": [sample.data_index for sample, _, _ in rows],
            "doc_class": [""] * len(rows),
            "question_type": [""] * len(rows),
            "reference": [sample.reference for sample, _, _ in rows],
            "answer": pl.Series([answer for _, answer, _ in rows], dtype=pl.String),
            "status": ["error" if answer is None else "ok" for _, answer, _ in rows],
            "details": [details_of(sample) for sample, _, _ in rows],
            "finish_reason": [reason for _, _, reason in rows],
        }
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(words, min_size=1, max_size=4), words), min_size=1, max_size=5))
def test_the_best_of_the_accepted_answers_counts(rows: list[tuple[list[str], str]]) -> None:
    scorer = Scorer(METRICS, "plain")
    scored = scorer.add(frame(*((sample(*accepted), answer, "stop") for accepted, answer in rows)))
    general = scorer.table("general").to_dicts()[0]
    for metric in METRICS:
        best = []
        for accepted, answer in rows:
            found = metric.score(Pairs(accepted, [answer] * len(accepted), finish_reasons=["stop"] * len(accepted)))
            place = int(np.argmax(found["value"]) if metric.higher_is_better else np.argmin(found["value"]))
            best.append({part: numbers[place] for part, numbers in found.items()})
        assert scored[metric.name].to_list() == pytest.approx([row["value"] for row in best]), metric.name
        corpus = metric.corpus({part: np.array([sum(row[part] for row in best)]) for part in best[0]})
        if corpus is not None and not np.isnan(corpus[0]):
            assert general[f"{metric.name}_corpus"] == pytest.approx(corpus[0]), metric.name
    assert scored["right"].to_list() == [answer in accepted for accepted, answer in rows]


def test_rows_keep_their_places_beside_rows_that_failed() -> None:
    rows = frame(
        (sample("a"), None, ""),
        (sample("x", "b"), "b", "stop"),
        (sample("c", "x", "y"), "y", "stop"),
        (sample("d"), "e", "stop"),
    )
    scored = Scorer([metric for metric in METRICS if metric.name == "exact_match"]).add(rows)
    assert scored["exact_match"].to_list() == [None, 1.0, 1.0, 0.0]
    assert scored["right"].to_list() == [None, True, True, False]


def test_metrics_see_what_the_row_has() -> None:
    schema = '{"type": "object"}'
    loop = "<think>" + "и так далее " * 20
    rows = frame(
        (sample("B", choices=["cat", "dog"]), "It is a dog", "stop"),
        (sample("{}", schema=schema), "[]", "stop"),
        (sample("{}", schema=schema), "{}", "stop"),
        (sample("12"), loop, "length"),
    )
    scored = Scorer(METRICS).add(rows)
    assert scored["multiple_choice"].to_list()[0] == 1
    assert scored["json_valid"].to_list()[:3] == [0, 0, 1]
    assert scored["repetition_loop"].to_list() == [0, 0, 0, 1]  # thinking is left out of the score, not of this
    assert scored["truncation"].to_list() == [0, 0, 0, 1]
    assert scored["scored_answer"].to_list()[3] == ""


def test_metrics_that_look_into_the_texts_get_them_as_they_are() -> None:
    rows = frame((sample('{"имя": "Ёлки, палки"}'), '{"имя": "елки палки"}', "stop"))
    scored = Scorer(METRICS, "yo,case,punctuation").add(rows)
    assert scored["json_f1"].to_list() == scored["json_parses"].to_list() == scored["anls_star"].to_list() == [1]


@pytest.mark.parametrize(
    "row",
    [sample("a"), sample("a", "ё", ""), sample("a", choices=["x", 'y"']), sample("a", schema='{"type": "object"}')],
)
def test_details_read_back(row: Sample) -> None:
    found = read_details(details_of(row))
    assert (found.other_references, found.choices, found.json_schema) == (
        row.other_references,
        row.choices,
        row.json_schema,
    )
    assert read_details(None) == read_details("") == Details()
    assert details_of(sample("a")) == ""


def test_from_the_dataset_to_the_tables(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/annotation.csv").write_text(
        "data_index;image_path;question;answer;other_answers;choices\n"
        "1;;Сумма?;12,50;['12.50', '12,5'];\n1;;Кто?;B;;['кот', 'пёс']\n2;;Имя?;Аня;;\n",
        encoding="utf-8",
    )
    (tmp_path / "a.csv").write_text("row;answer\n1;12.50\n2;пёс\n3;Оля\n", encoding="utf-8")
    arguments = ["score", "-d", str(tmp_path / "d"), "-a", str(tmp_path / "a.csv"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*arguments, "--metrics", "em,cer,multiple_choice"])
    assert done.exit_code == 0, done.output
    with (tmp_path / "out/answers.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert [row["exact_match"] for row in rows] == ["1", "0", "0"]
    assert [row["multiple_choice"] for row in rows] == ["1", "1", "0"]
    assert [json.loads(row["other_references"] or "[]") for row in rows] == [["12.50", "12,5"], [], []]


def test_nobody_knows_why_answers_made_elsewhere_ended(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"question": "Q", "answer": "a"}\n' * 2)
    (tmp_path / "a.csv").write_text(f"row;answer\n1;a\n2;{'so on ' * 20}\n")
    arguments = [
        "score",
        "-d",
        str(tmp_path / "d.jsonl"),
        "-a",
        str(tmp_path / "a.csv"),
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, [*arguments, "--metrics", "repetition_loop,truncation"])
    assert done.exit_code == 0, done.output
    with (tmp_path / "out/answers.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert [row["finish_reason"] for row in rows] == ["", ""]
    assert [(row["repetition_loop"], row["truncation"]) for row in rows] == [("0", "0"), ("1", "0")]


def test_a_metric_whose_package_is_missing_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from vlmhb.config.choices import metric_names
    from vlmhb.discovery.registry import Registry
    from vlmhb.metrics.json_valid import JsonValid

    registry = Registry()
    assert metric_names("json_valid,cer", registry) == ("json_valid", "cer")
    monkeypatch.setattr(JsonValid, "packages", ("no-such-distribution",))
    with pytest.raises(ConfigError, match=r"json_valid needs no-such-distribution.*pip install 'vlmhb\[structured\]'"):
        metric_names("json_valid,cer", registry)
    assert metric_names("cer", registry) == ("cer",)
