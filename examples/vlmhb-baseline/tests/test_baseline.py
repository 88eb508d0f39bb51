# ruff: noqa: D103
"""The engine and the metric, as vlmhb uses them."""

from __future__ import annotations

from pathlib import Path

import pytest
import vlmhb
from vlmhb.contract.metric import Pairs
from vlmhb.errors import ConfigError, ModelLoadError
from vlmhb_baseline.contains import Contains

ROWS = """\
question;answer
Colour?;red
Colour?;blue
Colour?;blue
Size?;"10; 20"
Shape?;round
Shape?;square
"""


@pytest.fixture
def annotation(tmp_path: Path) -> Path:
    path = tmp_path / "annotation.csv"
    path.write_text(ROWS, encoding="utf-8-sig")
    return path


def test_the_most_frequent_answer_is_given_and_a_constant_for_the_rest(annotation: Path) -> None:
    with vlmhb.load("any name", backend="baseline", learn_from=str(annotation), answer="?") as model:
        answers = model.generate(["Colour?", "Size?", "Weight?"], ["no such page.png", None, None])
        assert model.facts()["questions_learnt"] == 3
    assert answers == ["blue", "10; 20", "?"]


def test_of_equally_frequent_answers_the_first_is_given(annotation: Path) -> None:
    with vlmhb.load("any name", backend="baseline", learn_from=str(annotation)) as model:
        assert model.generate("Shape?") == ["round"]


def test_commas_separate_too(annotation: Path) -> None:
    annotation.write_text("question,answer\nColour?,red\n")
    with vlmhb.load("any name", backend="baseline", learn_from=str(annotation)) as model:
        assert model.generate("Colour?") == ["red"]


def test_nothing_learnt_is_the_constant() -> None:
    with vlmhb.load("any name", backend="baseline") as model:
        assert model.generate("Colour?") == [""]


def test_a_system_prompt_is_no_part_of_the_question(annotation: Path) -> None:
    with vlmhb.load("any name", backend="baseline", learn_from=str(annotation)) as model:
        assert model.generate("Colour?", system="Answer shortly.") == ["blue"]


def test_a_stop_ends_after_the_present_request() -> None:
    control = vlmhb.GenerationControl()
    requests = [vlmhb.GenerationRequest.ask(str(number), "Colour?") for number in range(5)]
    with vlmhb.load("any name", backend="baseline") as model:
        results = model.generate_requests(iter(requests), control)
        assert next(results).id == "0"
        control.stop.set()
        assert list(results) == []


@pytest.mark.parametrize(("content", "said"), [(None, "cannot be read"), ("question;text\na;b\n", "'answer'")])
def test_an_unusable_file_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "annotation.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ModelLoadError, match=said):
        vlmhb.load("any name", backend="baseline", learn_from=str(path))


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean learn_from"):
        vlmhb.load("any name", backend="baseline", lern_from="x")


def test_contains() -> None:
    cases = [("12", "It is 12.", 1), ("12", "It is 13.", 0), ("", "text", 0), ("", "", 1), ("12", "", 0)]
    pairs = Pairs([reference for reference, _, _ in cases], [answer for _, answer, _ in cases])
    assert Contains().score(pairs)["value"].tolist() == [value for _, _, value in cases]
    assert Contains().score(Pairs([], []))["value"].tolist() == []
