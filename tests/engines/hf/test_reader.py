"""The embedded reader on all of the demo's pages: it reads as well as its card and the README say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.envs import ROOT, Env

pytestmark = [pytest.mark.hf, pytest.mark.slow]

TOLERANCE = 0.011
"""Two answers of a hundred may differ on another processor, where float32 sums come out differently."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of ``vlmhb demo`` on the real engine, and what it printed."""
    out = tmp_path_factory.mktemp("demo")
    done: subprocess.CompletedProcess[str] = Env(Path(sys.prefix)).vlmhb("demo", "--out", str(out))
    return out, done.stdout


@pytest.fixture(scope="module")
def scores(demo: tuple[Path, str]):
    """The module that scores the reader; it lies beside the package."""
    sys.path.insert(0, str(ROOT / "plugins" / "vlmhb-demo"))
    try:
        from training import scores

        return scores
    finally:
        sys.path.pop(0)


def test_clean_pages_are_read_well(demo, scores):
    found = scores.read(demo[0] / "answers.csv")
    clean = found["clean", "all"]
    assert (clean.fields, clean.choices, clean.texts) == (360, 90, 70)
    assert clean.field_exact >= 0.85
    assert clean.field_cer <= 0.05
    assert clean.text_cer <= 0.02


def test_the_model_card_says_what_comes_out(demo, scores):
    from vlmhb_demo.models.reader import FOLDER

    card = (FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    table = scores.table(scores.read(demo[0] / "answers.csv"))
    _same(_lines(card, ("clean", "worn")), _lines(table, ("clean", "worn")))


def test_the_readme_shows_what_comes_out(demo):
    for name in ("README.md", "README.ru.md"):
        shown = (ROOT / name).read_text(encoding="utf-8").split("```text")[1].split("```")[0]
        _same(_lines(shown, ("demo-documents",)), _lines(demo[1], ("demo-documents",)))


def _lines(text: str, words: tuple[str, ...]) -> list[list[str]]:
    """The cells of those table rows that hold one of the words."""
    rows = [[cell.strip() for cell in re.split("[│|]", line)[1:-1]] for line in text.splitlines()]
    return [row for row in rows if any(word in row for word in words)]


def _same(said: list[list[str]], found: list[list[str]]) -> None:
    assert len(said) == len(found) > 7
    for old, new in zip(said, found, strict=True):
        assert len(old) == len(new)
        for was, now in zip(old, new, strict=True):
            number = re.fullmatch(r"\d+\.\d+", now)
            assert abs(float(was) - float(now)) <= TOLERANCE if number else was == now, f"{old}\n{new}"
