"""Prompts with places for a row's values: ``Answer in one word: {question}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from string import ascii_uppercase

from vlmhb.contract.dataset import Sample
from vlmhb.data.records import NAMES
from vlmhb.errors import RequestError

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ANSWERS = {*NAMES["answer"], "other_answers", "other_references"}

FIELDS: dict[str, Callable[[Sample], str]] = {
    "question": lambda sample: sample.question,
    "doc_class": lambda sample: sample.doc_class,
    "question_type": lambda sample: sample.question_type,
    "data_index": lambda sample: sample.data_index,
    "split": lambda sample: sample.split,
    "image_path": lambda sample: "|".join(sample.images),
    "answer_bbox": lambda sample: sample.answer_bbox,
    "json_schema": lambda sample: sample.json_schema,
    "choices": lambda sample: "\n".join(f"{letter}. {text}" for letter, text in _lettered(sample.choices)),
}
"""What every row has, empty or not; the dataset's further columns stand beside them."""


class TemplateError(ValueError):
    """A template cannot be read; ``hint`` says what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Template:
    """A text in which ``{name}`` stands for a value of the row; ``{{`` and ``}}`` are braces.

    Attributes:
        text: as written.
        names: the values that it needs, lower case.

    Raises:
        TemplateError: a brace stands alone, a place has no name, or the right answer is asked for.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts: list[tuple[str, str]] = []
        at = 0
        for match in _PLACE.finditer(text):
            self._parts.append((text[at : match.start()], ""))
            self._parts.append(_place(match))
            at = match.end()
        self._parts.append((text[at:], ""))
        self.names = tuple(dict.fromkeys(name for _, name in self._parts if name))

    def fill(self, sample: Sample) -> str:
        """The prompt for a row.

        Raises:
            RequestError: the row has no such value, or its question is asked for and empty.
        """
        return "".join(value_of(sample, name) if name else text for text, name in self._parts)


def value_of(sample: Sample, name: str) -> str:
    """A row's value by its name.

    Raises:
        RequestError: see :meth:`Template.fill`.
    """
    if name in FIELDS:
        value = FIELDS[name](sample)
        if name == "question" and not value.strip():
            raise RequestError(f"row {sample.row} has no question, and its prompt has a place for it")
        return value
    if name not in sample.fields:
        raise RequestError(f"row {sample.row} has no value {name}, and its prompt has a place for it")
    return sample.fields[name]


def _lettered(texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return zip(ascii_uppercase, texts, strict=False)


def _place(match: re.Match[str]) -> tuple[str, str]:
    """A part of a template: a text, or the name of a value."""
    found = match[0]
    if found in ("{{", "}}"):
        return found[0], ""
    if len(found) == 1:
        raise TemplateError(f"a {found!r} stands alone.", f"A brace that is to be asked is written twice: {found * 2}")
    name = match[1].strip().casefold()
    if not name:
        raise TemplateError("a place has no name: {}.", "Braces that are to be asked are written twice: {{}}")
    if name in _ANSWERS:
        raise TemplateError(f"the prompt would tell the model the right answer: {found}.", "Take it out.")
    return "", name
