"""Several prompts in one report: which are best for what, and how sure that is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support.stored import Asked, CoreRegistry, store_run
from vlmhb.report.load import load_run
from vlmhb.report.prompts import PromptComparison, prompt_comparisons
from vlmhb.report.view import RunsView
from vlmhb.report.write import write_report
from vlmhb.stats.interval import mean_interval
from vlmhb.stats.paired import sign_flip_p

PAGES = 30
ROWS = [
    Asked(str(page), f"{kind}?", "абвг", doc_class="чек" if page % 3 else "акт", question_type=kind)
    for page in range(PAGES)
    for kind in ("sum", "date")
]


def run(folder: Path, prompts: str, right: dict[str, float], seed: int, **more: object) -> Path:
    """A run in which a question of some type is answered rightly with a probability."""
    rng = np.random.default_rng(seed)
    answers = ["абвг" if rng.random() < right[row.question_type] else "xxxx" for row in ROWS]
    more = {"metrics": ("exact_match", "cer"), "prompts": prompts, **more}
    return store_run(folder, ROWS, {"m": answers}, **more)  # type: ignore[arg-type]


def comparisons(*runs: Path) -> tuple[RunsView, list[PromptComparison]]:
    registry = CoreRegistry()
    view = RunsView([load_run(one, registry) for one in runs], registry.metrics(), runs[0], "en")  # type: ignore[arg-type]
    return view, prompt_comparisons(view)


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Terse is best for sums, long for dates, and the dataset's own questions for nothing."""
    chances = {"": (0.2, 0.2), "terse": (0.95, 0.5), "long": (0.3, 0.97)}
    return [
        run(tmp_path / (name or "own"), name, {"sum": chance[0], "date": chance[1]}, seed)
        for seed, (name, chance) in enumerate(chances.items())
    ]


def test_the_best_prompts_by_question_type(runs: list[Path]) -> None:
    view, (comparison,) = comparisons(*runs)
    found = {(best.column, best.group): best for best in comparison.best}
    assert list(found) == [
        ("", ""),
        ("question_type", "sum"),
        ("question_type", "date"),
        ("doc_class", "акт"),
        ("doc_class", "чек"),
    ]
    assert comparison.asker == "m · hf"
    for kind, best, second in (("sum", "terse", "long"), ("date", "long", "terse")):
        line = found["question_type", kind]
        names = [comparison.name(view, one) for one in (line.best, line.second)]
        assert names == [best, second]
        assert (line.sure, line.rows) == (True, PAGES)


def test_the_figures_are_those_of_the_tests_by_hand(runs: list[Path]) -> None:
    view, (comparison,) = comparisons(*runs)
    line = next(best for best in comparison.best if best.group == "sum")
    values = {
        entry.prompts: view.rows(entry).filter(view.rows(entry)["question_type"] == "sum") for entry in view.entries
    }
    own, other = (values[name]["exact_match"].to_numpy() for name in ("terse", "long"))
    pages = values["terse"]["page"].to_numpy()
    assert line.mean == pytest.approx(own.mean())
    assert line.interval == pytest.approx(mean_interval(own, pages, bounds=(0, 1)))
    assert line.lead.difference == pytest.approx((own - other).mean())
    assert line.lead.interval == pytest.approx(mean_interval(own - other, pages))
    others = [best.p for best in comparison.best if best.column == "question_type" and best.group != "sum"]
    assert line.p in (pytest.approx(2 * sign_flip_p(own - other, pages)), pytest.approx(max(line.p, *others)))
    assert comparison.best[0].p == pytest.approx(_p_of_all(view, comparison))


def _p_of_all(view: RunsView, comparison: PromptComparison) -> float:
    """Of the comparison over all rows, which is not corrected."""
    best, second = (view.rows(one) for one in (comparison.best[0].best, comparison.best[0].second))
    change = best["exact_match"].to_numpy() - second["exact_match"].to_numpy()
    return sign_flip_p(change, best["page"].to_numpy())


def test_equal_prompts_are_not_told_apart(tmp_path: Path) -> None:
    same = {"sum": 0.6, "date": 0.6}
    _, (comparison,) = comparisons(*(run(tmp_path / str(seed), f"p{seed}", same, seed) for seed in range(4)))
    assert not any(best.sure for best in comparison.best)


def test_lower_is_better_for_error_rates(runs: list[Path], tmp_path: Path) -> None:
    good = run(tmp_path / "g", "good", {"sum": 0.95, "date": 0.95}, 1, metrics=("cer",))
    bad = run(tmp_path / "b", "bad", {"sum": 0.1, "date": 0.1}, 2, metrics=("cer",))
    _, (comparison,) = comparisons(bad, good)
    assert {best.best.prompts for best in comparison.best} == {"good"}
    assert all(best.lead.difference > 0 for best in comparison.best)


def test_what_differs_in_more_than_prompts_is_not_compared(tmp_path: Path) -> None:
    right = {"sum": 1.0, "date": 1.0}
    first = run(tmp_path / "a", "terse", right, 1)
    others = [
        run(tmp_path / "b", "long", right, 1, backend="vllm"),
        run(tmp_path / "c", "long", right, 1, sampling={"temperature": 1}),
        run(tmp_path / "d", "long", right, 1, normalize=["case"]),
        run(tmp_path / "e", "long", right, 1, dataset=Path("forms")),
        run(tmp_path / "f", "terse", right, 2),
    ]
    for other in others:
        assert comparisons(first, other)[1] == [], other.name


def test_the_same_prompts_twice_go_by_their_labels(tmp_path: Path) -> None:
    right = {"sum": 1.0, "date": 0.5}
    names = {"a": "terse", "b": "terse", "c": "long"}
    view, (comparison,) = comparisons(*(run(tmp_path / at, name, right, 1) for at, name in names.items()))
    said = [comparison.name(view, entry) for entry in comparison.entries]
    assert said == ["m · hf · terse · a", "m · hf · terse · b", "long"]


@pytest.mark.parametrize(
    ("language", "sentence", "overall"),
    [
        ("en", "Best by question type: terse — sum*; long — date*.", "Best prompts of m · hf by Exact match: "),
        (
            "ru",
            "Лучшие по типам вопросов: terse — sum*; long — date*.",
            "Лучшие промпты m · hf по метрике Exact match: ",
        ),
    ],
)
def test_the_report_names_them(runs: list[Path], language: str, sentence: str, overall: str) -> None:
    folder = runs[0] / "report"
    write_report(runs, CoreRegistry(), folder, language=language)  # type: ignore[arg-type]
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.count(sentence) == 1
    assert page.index('id="leaderboard"') < page.index(sentence) < page.index('id="prompts"')
    section = page[page.index('id="prompts"') :].split("</section>")[0]
    assert re.search(r"terse.*long", section, re.DOTALL)
    assert "p (" in section
    assert page.count(overall) == 1
    assert re.search(r"95 % (interval|интервал) 0\.\d+ … 0\.\d+", page[page.index(overall) :][:200])
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert sentence.replace("*", "\\*") in markdown
    assert re.search(r"\| sum.*\| terse \|", markdown)


def test_one_set_of_prompts_has_no_section(runs: list[Path]) -> None:
    folder = runs[1] / "report"
    write_report([runs[1]], CoreRegistry(), folder)  # type: ignore[arg-type]
    assert 'id="prompts"' not in (folder / "index.html").read_text(encoding="utf-8")
