"""Training pages: drawn like the shipped ones, filled with made-up words, never with anything that is shipped."""

from __future__ import annotations

import random
from dataclasses import dataclass

from vlmhb_demo.documents import catalogue, scan
from vlmhb_demo.documents.page import Page, Question
from vlmhb_demo.documents.questions import CHOICES, QUESTIONS
from vlmhb_demo.documents.reserved import reserved

from training.gaze import path
from training.values import MadeUp

WORN = 0.15
"""Part of the pages that are worn."""
ASKED_OFTEN = ("categories", "price", "quantity")
"""Kinds of questions that are slow to learn: where the answer ends is hard to see, or a row has to be found first."""
SHAPES: dict[tuple[int, int], tuple[str, ...]] = {
    (7, 11): ("identity card", "driving licence"),
    (8, 11): ("invoice", "form", "table", "letter"),
    (11, 8): ("receipt",),
}
"""Classes by rows and columns of the page."""


@dataclass(frozen=True)
class Asked:
    """One question about a page, worded, with its answer.

    Attributes:
        path: the image token that shows each letter of the answer, see :func:`training.gaze.path`.
    """

    question: str
    answer: str
    path: tuple[int, ...]


@dataclass(frozen=True)
class Sample:
    """A page and what is asked about it: everything, and some of the fields."""

    page: Page
    worn: bool
    whole: Asked
    fields: tuple[Asked, ...]


def sample(seed: str, doc_class: str, fields: int, worn_part: float = WORN, often: float = 3.0) -> Sample:
    """A page that fits, shares nothing with the shipped ones, and ``fields`` questions about it.

    Args:
        seed: decides everything; starts with ``train/``, as no shipped page's does.
        doc_class: a key of :data:`vlmhb_demo.documents.catalogue.CLASSES`.
        fields: how many questions besides the whole text.
        worn_part: how probable a worn page is.
        often: how much more often than others the fields of :data:`ASKED_OFTEN` are asked.
    """
    rng = random.Random(f"train/{seed}")
    worn = rng.random() < worn_part
    language = rng.choice(catalogue.LANGUAGES)
    while True:
        style = scan.worn_style(rng) if worn else scan.clean_style(rng)
        page = catalogue.draw(doc_class, MadeUp(language, rng), style)
        if page.fits() and not reserved().met_on(page):
            break
    page = (scan.worn if worn else scan.clean)(page, rng)
    return Sample(page, worn, _whole(page, language, rng), _fields(page, language, rng, fields, often))


def _whole(page: Page, language: str, rng: random.Random) -> Asked:
    (question,) = (question for question in page.questions if question.kind == "full text")
    return _asked(page, question, language, rng)


def _fields(page: Page, language: str, rng: random.Random, count: int, often: float) -> tuple[Asked, ...]:
    """Different questions if there are enough; those with a choice of answers are rarer, being easier."""
    left = [question for question in page.questions if question.kind != "full text"]
    weights = [0.35 if q.kind in CHOICES else often if q.kind in ASKED_OFTEN else 1.0 for q in left]
    chosen = []
    for _ in range(count):
        (place,) = rng.choices(range(len(left)), weights)
        chosen.append(left[place])
        weights[place] *= 0.02
    return tuple(_asked(page, question, language, rng) for question in chosen)


def _asked(page: Page, question: Question, language: str, rng: random.Random) -> Asked:
    worded = _worded(question.kind, question.about, language, rng)
    return Asked(worded, question.answer, tuple(path(page, question)))


def _worded(kind: str, about: str, language: str, rng: random.Random) -> str:
    """The first wording, which the shipped pages use, half of the time."""
    wordings = QUESTIONS[language][kind]
    return (wordings[0] if rng.random() < 0.5 else rng.choice(wordings)).format(about=about)
