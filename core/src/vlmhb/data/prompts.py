"""Prompt collections and system prompts, as the older project keeps them."""

from __future__ import annotations

import math
from pathlib import Path

from vlmhb.contract.dataset import Sample
from vlmhb.data.tables import Record, Table, TableError
from vlmhb.errors import ConfigError, Fault, RequestError

_PROMPT, _KEY, _CER = "prompt", "doc_class_question_type", "cer"


class PromptCollection:
    """Prompts that replace the rows' own questions, chosen by doc class and question type.

    Attributes:
        path: the file.
        prompts: the prompt of each key; a key is the doc class, one space, the question type.
    """

    def __init__(self, path: Path, prompts: dict[str, str]) -> None:
        self.path = path
        self.prompts = prompts

    def prompt_for(self, sample: Sample) -> str | None:
        """The prompt for a row, or None when the collection has none for its key."""
        return self.prompts.get(prompt_key(sample))


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
    """Read a prompt collection.

    Of several prompts with one key, the one with the lowest ``cer`` is meant; without a ``cer`` it comes last, and of
    equal ones the first in the file counts.

    Raises:
        ConfigError: every fault of the file.
    """
    faults: list[Fault] = []
    best: dict[str, tuple[float, str]] = {}
    try:
        table = Table(path)
        missing = [name for name in (_PROMPT, _KEY) if name not in table.columns]
        message = "a prompt collection needs this column."
        faults.extend(table.fault(message, line=table.header_line, column=name) for name in missing)
        for record in () if missing else table.records(faults):
            prompt, key = record.cells[table.columns[_PROMPT]], record.cells[table.columns[_KEY]].strip()
            cer = _cer(table, record, faults)
            if not prompt.strip():
                faults.append(table.fault("the prompt is empty.", row=record.row, line=record.line, column=_PROMPT))
            elif key not in best or cer < best[key][0]:
                best[key] = (cer, prompt)
    except TableError as error:
        faults.append(error.fault)
    if faults:
        raise ConfigError(faults)
    return PromptCollection(path, {key: prompt for key, (_, prompt) in best.items()})


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
