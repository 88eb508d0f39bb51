"""Prompt collections and system prompts, as the older project keeps them, and prompt templates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path

from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.data.tables import Record, Table, TableError
from vlmhb.data.templates import FIELDS, Template, TemplateError
from vlmhb.errors import ConfigError, Fault, RequestError

_PROMPT, _TEMPLATE, _KEY, _CER = "prompt", "prompt_template", "doc_class_question_type", "cer"
ANY = "*"
"""The key of the prompt for rows whose own key is not there."""
_LOOKED_AT = 200


class PromptCollection:
    """Prompts that replace the rows' own questions, chosen by doc class and question type.

    Attributes:
        path: the file.
        prompts: the prompt of each key; a key is the doc class, one space, the question type, or :data:`ANY`.
        templates: those of them that have places for a row's values, by key, and where each stands.
    """

    def __init__(
        self, path: Path, prompts: dict[str, str], templates: Mapping[str, tuple[Template, Fault]] | None = None
    ) -> None:
        self.path = path
        self.prompts = prompts
        self.templates = templates or {}

    def prompt_for(self, sample: Sample) -> str | None:
        """The prompt for a row, or None when the collection has none for it.

        Raises:
            RequestError: the prompt has a place for a value that the row lacks.
        """
        key = self._key(sample)
        if key in self.templates:
            try:
                return self.templates[key][0].fill(sample)
            except RequestError as error:
                raise RequestError(f"{error} ({self.path.name}, row {self.templates[key][1].row})") from error
        return self.prompts.get(key)

    def unknown_values(self, dataset: Dataset) -> list[Fault]:
        """Places for values that no row of the dataset has, of the first rows that the template is for.

        Raises:
            DatasetError: the dataset cannot be read.
        """
        lacking: dict[str, set[str]] = {
            key: further for key, (template, _) in self.templates.items() if (further := {*template.names} - {*FIELDS})
        }
        if not lacking:
            return []
        met: set[str] = set()
        names: dict[str, None] = {}
        for sample in itertools.islice(dataset, _LOOKED_AT):
            names |= dict.fromkeys(sample.fields)
            key = self._key(sample)
            if key in lacking and not sample.problem:
                met.add(key)
                lacking[key] -= sample.fields.keys()
        there = ", ".join([*FIELDS, *names])
        return [
            _fault(self.templates[key][1], f"the dataset {dataset.name} has no column {name}.", f"It has {there}.")
            for key in lacking
            if key in met
            for name in sorted(lacking[key])
        ]

    def _key(self, sample: Sample) -> str:
        key = prompt_key(sample)
        return key if key in self.prompts else ANY


def prompt_key(sample: Sample) -> str:
    """The key of a row in a prompt collection."""
    return f"{sample.doc_class.strip()} {sample.question_type.strip()}".strip()


def question_of(sample: Sample, prompts: PromptCollection | None) -> tuple[str, str | None]:
    """What to ask for a row, and a note when the collection has nothing for it and the row's own question is taken.

    Raises:
        RequestError: neither the row nor the collection has a question.
    """
    prompt = prompts.prompt_for(sample) if prompts else None
    if prompt is not None:
        return prompt, None
    missing = f"{prompts.path.name} has no prompt for {prompt_key(sample)!r}" if prompts else None
    if not sample.question.strip():
        raise RequestError(f"row {sample.row} has no question" + (f", and {missing}" if missing else ""))
    return sample.question, f"{missing}; the row's own question was asked" if missing else None


def read_prompts(path: Path) -> PromptCollection:
    """Read a prompt collection: prompts as they are in the column ``prompt``, or templates in ``prompt_template``.

    Of several prompts with one key, the one with the lowest ``cer`` is meant; without a ``cer`` it comes last, and of
    equal ones the first in the file counts.

    Raises:
        ConfigError: every fault of the file.
    """
    faults: list[Fault] = []
    best: dict[str, tuple[float, Record]] = {}
    column = _PROMPT
    templates: dict[str, tuple[Template, Fault]] = {}
    try:
        table = Table(path)
        column = _prompt_column(table, faults)
        for record in () if faults else table.records(faults):
            prompt, key = record.cells[table.columns[column]], record.cells[table.columns[_KEY]].strip()
            cer = _cer(table, record, faults)
            place = table.fault("the prompt is empty.", row=record.row, line=record.line, column=column)
            if not prompt.strip():
                faults.append(place)
            template = _template(prompt, place, faults) if column == _TEMPLATE and prompt.strip() else None
            if key not in best or cer < best[key][0]:
                best[key] = (cer, record)
                if template:
                    templates[key] = template, place
    except TableError as error:
        faults.append(error.fault)
    if faults:
        raise ConfigError(faults)
    prompts = {key: record.cells[table.columns[column]] for key, (_, record) in best.items()}
    return PromptCollection(path, prompts, templates)


def _prompt_column(table: Table, faults: list[Fault]) -> str:
    """The column that holds the prompts; faults of the header are added to the list."""
    if _PROMPT in table.columns and _TEMPLATE in table.columns:
        message = f"a prompt collection has either {_PROMPT} or {_TEMPLATE}."
        faults.append(table.fault(message, line=table.header_line, column=_TEMPLATE))
    column = _TEMPLATE if _TEMPLATE in table.columns else _PROMPT
    faults.extend(table.missing((column, _KEY), "a prompt collection needs this column."))
    return column


def _template(text: str, place: Fault, faults: list[Fault]) -> Template | None:
    try:
        return Template(text)
    except TemplateError as error:
        faults.append(_fault(place, str(error), error.hint))
        return None


def _fault(place: Fault, message: str, hint: str) -> Fault:
    """A fault at the place of another."""
    return Fault(message=message, file=place.file, row=place.row, line=place.line, column=place.column, hint=hint)


def _cer(table: Table, record: Record, faults: list[Fault]) -> float:
    at = table.columns.get(_CER)
    text = record.cells[at].strip() if at is not None else ""
    if not text:
        return math.inf
    try:
        cer = float(text.replace(",", "."))
    except ValueError:
        cer = math.nan
    if math.isnan(cer):
        faults.append(
            Fault(
                message=f"{text!r} is not a number.",
                file=str(table.path),
                row=record.row,
                line=record.line,
                column=_CER,
                value=text,
            )
        )
    return cer


def read_system_prompt(path: Path) -> str:
    """The text of a system prompt file, without the line breaks at its end.

    Raises:
        ConfigError: it cannot be read, is not UTF-8, or is empty.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError([Fault(message=f"the system prompt cannot be read: {reason}.", file=str(path))]) from error
    if not text.strip():
        raise ConfigError([Fault(message="the system prompt is empty.", file=str(path))])
    return text
