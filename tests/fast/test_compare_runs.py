"""``vlmhb compare RUN_A RUN_B``: what two runs have in common, and how far apart they are."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.stored import Asked, store_run
from vlmhb.cli.app import app
from vlmhb.stats.interval import mean_interval
from vlmhb.stats.paired import mcnemar_p

PAGES = 12
ROWS = [
    Asked(str(page), f"{kind}?", "абвг", doc_class="чек" if page % 2 else "акт", question_type=kind)
    for page in range(PAGES)
    for kind in ("sum", "date")
]


def run(folder: Path, right: Sequence[bool | None], model: str = "m", **more: object) -> Path:
    answers = [None if is_right is None else "абвг" if is_right else "абв" for is_right in right]
    return store_run(folder, ROWS, {model: answers}, **more)  # type: ignore[arg-type]


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def found(*arguments: object) -> list[dict[str, object]]:
    done = compare(*arguments, "--json")
    assert done.exit_code == 0, done.output
    result: list[dict[str, object]] = json.loads(done.output)
    return result


@pytest.fixture
def results(tmp_path: Path) -> tuple[list[bool], list[bool], Path, Path]:
    rng = np.random.default_rng(3)
    first = (rng.random(len(ROWS)) < 0.4).tolist()
    second = (rng.random(len(ROWS)) < 0.8).tolist()
    return first, second, run(tmp_path / "a", first), run(tmp_path / "b", second)


def test_the_difference_is_paired_and_clustered(results: tuple[list[bool], list[bool], Path, Path]) -> None:
    first, second, a, b = results
    (comparison,) = found(a, b)
    assert (comparison["rows"], comparison["same_text"]) == (
        24,
        sum(x == y for x, y in zip(first, second, strict=True)),
    )
    differences = {one["metric"]: one for one in comparison["differences"]}  # type: ignore[attr-defined]
    exact = differences["exact_match"]
    change = np.array(second, float) - np.array(first, float)
    span = mean_interval(change, [int(row.page) for row in ROWS])
    assert span is not None
    assert (exact["low"], exact["high"]) == pytest.approx(tuple(span))
    assert exact["difference"] == pytest.approx(change.mean()) == pytest.approx(exact["second"] - exact["first"])
    only = int((change < 0).sum()), int((change > 0).sum())
    assert (exact["only_first"], exact["only_second"], exact["pages"]) == (*only, PAGES)
    assert exact["mcnemar_p"] == pytest.approx(mcnemar_p(*only))
    assert exact["p"] <= exact["p_holm"] <= 1
    assert differences["cer"]["difference"] == pytest.approx(-change.mean() / 4)
    assert differences["cer"]["mcnemar_p"] is None


def test_a_run_and_itself_do_not_differ(results: tuple[list[bool], list[bool], Path, Path]) -> None:
    _, _, a, _ = results
    (comparison,) = found(a, a)
    assert comparison["same_text"] == comparison["rows"] == comparison["same_tokens"] == 24
    for one in comparison["differences"]:  # type: ignore[attr-defined]
        assert (one["difference"], one["p"], one["p_holm"], one["low"], one["detectable"]) == (0, 1, 1, None, None)


def test_only_rows_that_both_answered_are_compared(tmp_path: Path) -> None:
    first: list[bool | None] = [True] * 24
    second: list[bool | None] = [True] * 24
    first[0] = second[1] = second[2] = None
    second[3] = False
    a, b = run(tmp_path / "a", first), run(tmp_path / "b", second)
    (comparison,) = found(a, b)
    assert (comparison["rows"], comparison["only_first_answered"], comparison["only_second_answered"]) == (21, 2, 1)
    assert comparison["same_text"] == 20
    text = compare(a, b).output
    assert (
        "21 rows that both answered; left out: 2 that only the first answered and 1 that only the second answered"
        in text
    )


def test_groups_are_compared_and_corrected_together(results: tuple[list[bool], list[bool], Path, Path]) -> None:
    first, second, a, b = results
    (comparison,) = found(a, b, "--by", "doc_class")
    differences = comparison["differences"]
    assert [one["group"] for one in differences if one["metric"] == "cer"] == ["all", "акт", "чек"]  # type: ignore[attr-defined]
    smallest = min(differences, key=lambda one: one["p"])  # type: ignore[call-overload]
    assert smallest["p_holm"] == pytest.approx(min(1, 9 * smallest["p"]))
    one = next(one for one in differences if (one["metric"], one["group"]) == ("exact_match", "чек"))  # type: ignore[attr-defined]
    of_class = [at for at, row in enumerate(ROWS) if row.doc_class == "чек"]
    assert one["first"] == pytest.approx(np.mean([first[at] for at in of_class]))
    assert one["second"] == pytest.approx(np.mean([second[at] for at in of_class]))


def test_the_table(results: tuple[list[bool], list[bool], Path, Path], tmp_path: Path) -> None:
    _, _, a, b = results
    done = compare(a, b, "--by", "question_type", "--out", tmp_path / "out")
    assert done.exit_code == 0
    said = done.output.splitlines()
    assert said[:3] == ["cards", "  first:  m on hf (a, row 1)", "  second: m on hf (b, row 1)"]
    assert "McNemar p = " in done.output
    with (tmp_path / "out/differences.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file, delimiter=";"))
    assert [(line["metric"], line["group"]) for line in lines[:3]] == [("cer", "all"), ("cer", "sum"), ("cer", "date")]
    assert all(line["rows"] in ("24", "12") for line in lines)


def test_two_rows_of_one_run(tmp_path: Path) -> None:
    answers = {"x": ["абвг"] * 24, "y": ["абвг"] * 20 + ["абв"] * 4}
    folder = store_run(tmp_path / "r", ROWS, answers)
    (comparison,) = found(f"{folder}:1", f"{folder}:2")
    assert comparison["first"] == "x on hf (r, row 1)"
    assert comparison["same_text"] == 20
    assert [one["rows"] for one in found(folder, folder)] == [24, 24]  # each model with itself
    assert "has no row 3" in compare(f"{folder}:1", f"{folder}:3").output


def test_what_cannot_be_paired_is_refused(tmp_path: Path) -> None:
    rows = [True] * 24
    many = store_run(tmp_path / "many", ROWS, {"x": ["абвг"] * 24, "y": ["абвг"] * 24})
    other = run(tmp_path / "other", rows, model="z")
    assert "it is not clear which rows" in compare(many, other).output
    assert compare(many, other).exit_code == 2
    elsewhere = run(tmp_path / "elsewhere", rows, dataset=Path("forms"))
    assert "have no dataset in common" in compare(other, elsewhere).output
    assert "holds no run" in compare(other, tmp_path / "none").output


def test_different_normalisers_and_metrics_are_said(tmp_path: Path) -> None:
    a = run(tmp_path / "a", [True] * 24)
    b = run(tmp_path / "b", [True] * 24, metrics=("cer", "anls"), normalize=["case"])
    (comparison,) = found(a, b)
    said = " ".join(comparison["notes"])  # type: ignore[arg-type]
    assert "normalised differently: nfc,whitespace and case" in said
    assert "only one of them has anls, exact_match, wer" in said
    assert [one["metric"] for one in comparison["differences"]] == ["cer"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", [["a"], ["a", "b", "c"], ["a", "b", "-b", "hf"], ["a", "-b", "hf"]])
def test_usage(arguments: list[str]) -> None:
    done = compare(*arguments)
    assert done.exit_code == 2
    assert "two run folders, or a MODEL with --backends and --dataset" in done.output
