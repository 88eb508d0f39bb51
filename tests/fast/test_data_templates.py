"""Prompts with places for a row's values: what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.data.jsonl import JsonLinesFormat
from vlmhb.data.prompts import PromptCollection, question_of, read_prompts
from vlmhb.data.templates import Template, TemplateError
from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat
from vlmhb.errors import ConfigError, RequestError

HEADER = "prompt_template;doc_class_question_type"


def sample(**fields: Any) -> Sample:
    return Sample(**{"row": 7, "data_index": "d", "images": ("a.png",), "question": "Sum?", "reference": "1", **fields})


def collection(folder: Path, *lines: str, header: str = HEADER) -> PromptCollection:
    path = folder / "terse.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return read_prompts(path)


def dataset(folder: Path, *lines: str, header: str) -> Dataset:
    folder.mkdir(exist_ok=True)
    (folder / "annotation.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return VlmHyperBenchFormat().open(folder, "cards")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Briefly: {question}", "Briefly: Sum?"),
        ("{question}{question}", "Sum?Sum?"),
        ("{ Doc_Class } / {question_type}", "bill / total"),
        ('{{"{question_type}": "..."}}', '{"total": "..."}'),
        ("{{}}", "{}"),
        ("{{{data_index}}}", "{d}"),
        ("no place", "no place"),
        ("{choices}", "A. one\nB. two"),
        ("{currency}, {split}, {image_path}", "RUB, , a.png"),
    ],
)
def test_what_a_template_becomes(text: str, filled: str) -> None:
    row = sample(doc_class="bill", question_type="total", choices=("one", "two"), fields={"currency": "RUB"})
    assert Template(text).fill(row) == filled


@given(st.text())
def test_any_text_with_doubled_braces_is_asked_as_it_is(text: str) -> None:
    assert Template(text.replace("{", "{{").replace("}", "}}")).fill(sample()) == text


@given(st.text(alphabet="{}", max_size=6), st.text(max_size=5))
def test_a_value_is_never_read_as_a_template(braces: str, words: str) -> None:
    assert Template("<{question}>").fill(sample(question=f"?{braces}{words}{braces}")) == f"<?{braces}{words}{braces}>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a { b", "'{' stands alone"),
        ("a } b", "'}' stands alone"),
        ('{"surname": {question}}', "stands alone"),
        ("{}", "has no name"),
        ("{answer}", "the right answer"),
        ("{Reference}", "the right answer"),
        ("{other_answers}", "the right answer"),
    ],
)
def test_a_template_that_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        Template(text)
    cell = '"' + text.replace('"', '""') + '"'
    with pytest.raises(ConfigError) as caught:
        collection(tmp_path, "fine {question};a b", f"{cell};card name")
    (fault,) = caught.value.faults
    assert (fault.row, fault.line, fault.column) == (2, 3, "prompt_template")
    assert reason in fault.message
    assert fault.hint


def test_prompts_of_the_older_project_keep_their_braces(tmp_path: Path) -> None:
    text = '{question} as {"surname": {}} and {answer} { {{'
    path = tmp_path / "old.csv"
    path.write_text("prompt;doc_class_question_type\n" + '"' + text.replace('"', '""') + '";card name\n')
    row = sample(doc_class="card", question_type="name")
    assert question_of(row, read_prompts(path)) == (text, None)


def test_a_file_has_prompts_or_templates(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="either prompt or prompt_template"):
        collection(tmp_path, "a;b;k", header="prompt;prompt_template;doc_class_question_type")


def test_the_star_is_for_rows_whose_key_is_not_there(tmp_path: Path) -> None:
    prompts = collection(tmp_path, "Name: {question};card name", "Any: {question};*")
    assert question_of(sample(doc_class="card", question_type="name"), prompts) == ("Name: Sum?", None)
    assert question_of(sample(doc_class="bill"), prompts) == ("Any: Sum?", None)
    plain = collection(tmp_path, "ask;*", header="prompt;doc_class_question_type")
    assert question_of(sample(), plain) == ("ask", None)


def test_the_best_of_several_templates_with_one_key_counts(tmp_path: Path) -> None:
    lines = ("a {question};card name;0.3", "b {question};card name;0.1", "c {question};card name;0.2")
    prompts = collection(tmp_path, *lines, header=f"{HEADER};cer")
    assert question_of(sample(doc_class="card", question_type="name"), prompts)[0] == "b Sum?"


def test_a_value_that_a_row_lacks_is_an_error_of_the_row(tmp_path: Path) -> None:
    prompts = collection(tmp_path, "{currency}: {question};*")
    with pytest.raises(RequestError, match=r"row 7 has no value currency.*\(terse\.csv, row 1\)"):
        question_of(sample(), prompts)
    with pytest.raises(RequestError, match="row 7 has no question, and its prompt has a place for it"):
        question_of(sample(question=" ", fields={"currency": "RUB"}), prompts)


def test_columns_that_the_dataset_does_not_have_are_faults(tmp_path: Path) -> None:
    header = "data_index;image_path;question;answer;doc_class;question_type;Currency"
    cards = dataset(tmp_path / "cards", "1;;Sum?;1;card;sum;RUB", "2;;Sum?;1;bill;sum;EUR", header=header)
    right = collection(tmp_path, "{question} in {currency}, {doc_class};card sum")
    assert right.unknown_values(cards) == []
    assert next(question_of(one, right)[0] for one in cards) == "Sum? in RUB, card"
    wrong = collection(tmp_path, "{question};card sum", "{amount} {curency};bill sum", "{unmet};other sum")
    faults = wrong.unknown_values(cards)
    assert [(fault.row, fault.column, fault.message) for fault in faults] == [
        (2, "prompt_template", "the dataset cards has no column amount."),
        (2, "prompt_template", "the dataset cards has no column curency."),
    ]
    assert "currency" in str(faults[0].hint)


def test_a_value_that_only_some_records_have(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text('{"question": "a", "answer": "1"}\n{"question": "b", "answer": "1", "Unit": 1.50, "more": [1]}\n')
    prompts = collection(tmp_path, "{question} in {unit};*")
    lines = JsonLinesFormat().open(file, "d")
    assert prompts.unknown_values(lines) == []
    first, second = lines
    with pytest.raises(RequestError, match="row 1 has no value unit"):
        question_of(first, prompts)
    assert question_of(second, prompts)[0] == "b in 1.50"
    assert second.fields == {"unit": "1.50"}


@pytest.mark.parametrize("options", [{}, {"answer": "label"}])
def test_no_answer_is_among_the_further_values(tmp_path: Path, options: dict[str, str]) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text('{"question": "a", "answer": "1", "answers": ["2"], "reference": "3", "label": "4", "x": "y"}\n')
    (row,) = JsonLinesFormat().open_with(file, "d", options)
    expected = {"x": "y"} if options else {"x": "y", "label": "4"}
    assert row.fields == expected
