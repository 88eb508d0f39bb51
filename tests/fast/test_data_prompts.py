"""Prompt collections and system prompts."""

from __future__ import annotations

from pathlib import Path

import pytest
from vlmhb.contract.dataset import Sample
from vlmhb.data.prompts import prompt_key, question_of, read_prompts, read_system_prompt
from vlmhb.errors import ConfigError, Fault, RequestError

FORMATS = Path(__file__).parents[1] / "formats"


def write(folder: Path, *lines: str, header: str = "prompt;doc_class_question_type;cer") -> Path:
    path = folder / "prompts.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8-sig")
    return path


def faults_of(path: Path) -> list[Fault]:
    with pytest.raises(ConfigError) as caught:
        read_prompts(path)
    return list(caught.value.faults)


def sample(doc_class: str = "card", question_type: str = "Номер", question: str = "own?") -> Sample:
    return Sample(
        row=7,
        data_index="1",
        images=(),
        question=question,
        reference="",
        doc_class=doc_class,
        question_type=question_type,
    )


def test_a_collection_of_the_older_project() -> None:
    path = FORMATS / "PromptCollections/VQA/cards_mini/first_try.csv"
    prompts = read_prompts(path)
    assert prompts.path == path
    assert list(prompts.prompts) == ["card Номер", "card Фамилия"]
    assert str(prompts.prompt_for(sample("card", "Фамилия"))).endswith("Пример: Иванов.")


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        (("0.2", "0.1", "0.3"), 1),
        (("0,2", "0.1", "0,05"), 2),
        (("0.1", "0.1", "0.1"), 0),
        (("", "0.9", ""), 1),
        (("", "", ""), 0),
        (("1.5", "7", "0"), 2),
        (("0.10", "9e-2", "0.095"), 1),
    ],
)
def test_the_lowest_rate_is_meant_and_the_first_of_equals(tmp_path: Path, rates: tuple[str, ...], best: int) -> None:
    lines = [f"prompt {index};card Номер;{rate}" for index, rate in enumerate(rates)]
    assert read_prompts(write(tmp_path, *lines)).prompts == {"card Номер": f"prompt {best}"}


def test_the_rate_may_be_left_out_and_other_columns_mean_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "card Номер,x,ask", header="doc_class_question_type,other,prompt")
    assert read_prompts(path).prompts == {"card Номер": "ask"}


def test_a_prompt_keeps_its_text(tmp_path: Path) -> None:
    path = write(tmp_path, '" two\nlines; ""x"" ";card Номер;0')
    assert read_prompts(path).prompts["card Номер"] == ' two\nlines; "x" '


def test_a_rate_that_is_no_number_is_a_fault(tmp_path: Path) -> None:
    faults = faults_of(write(tmp_path, "a;k;0.1", "b;k;low", "c;k;nan"))
    assert [(f.row, f.line, f.column, f.value) for f in faults] == [(2, 3, "cer", "low"), (3, 4, "cer", "nan")]


def test_all_faults_at_once(tmp_path: Path) -> None:
    faults = faults_of(write(tmp_path, ";k;0.1", "b;k", "c;k;x"))
    assert [(fault.row, fault.column) for fault in faults] == [(1, "prompt"), (2, None), (3, "cer")]


def test_missing_columns_are_faults_of_the_header(tmp_path: Path) -> None:
    faults = faults_of(write(tmp_path, "a;b", header="text;key"))
    assert [(fault.line, fault.column) for fault in faults] == [(1, "prompt"), (1, "doc_class_question_type")]


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    assert faults_of(tmp_path / "none.csv")[0].file == str(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("doc_class", "question_type", "key"),
    [("card", "Номер", "card Номер"), ("id card", "first name", "id card first name"), ("", "a", "a"), ("c", "", "c")],
)
def test_the_key_is_class_space_type(doc_class: str, question_type: str, key: str) -> None:
    assert prompt_key(sample(doc_class, question_type)) == key


def test_what_is_asked(tmp_path: Path) -> None:
    prompts = read_prompts(write(tmp_path, "ask this;card Номер;0"))
    assert question_of(sample(), prompts) == ("ask this", None)
    assert question_of(sample(question=""), prompts) == ("ask this", None)
    assert question_of(sample(), None) == ("own?", None)


def test_a_missing_key_falls_back_and_is_said(tmp_path: Path) -> None:
    prompts = read_prompts(write(tmp_path, "ask this;card Номер;0"))
    question, note = question_of(sample("bill"), prompts)
    assert question == "own?"
    assert note == "prompts.csv has no prompt for 'bill Номер'; the row's own question was asked"


def test_nothing_to_ask_is_an_error_of_the_row(tmp_path: Path) -> None:
    prompts = read_prompts(write(tmp_path, "ask this;card Номер;0"))
    with pytest.raises(RequestError, match=r"row 7 has no question$"):
        question_of(sample(question=" "), None)
    with pytest.raises(RequestError, match=r"row 7 has no question, and prompts\.csv has no prompt for 'bill Номер'"):
        question_of(sample("bill", question=""), prompts)


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"Be short.", "Be short."), (b"\xef\xbb\xbfone\r\ntwo\r\n\r\n", "one\ntwo"), (b"  x \n", "  x ")],
)
def test_a_system_prompt_file(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "s.txt").write_bytes(content)
    assert read_system_prompt(tmp_path / "s.txt") == text


@pytest.mark.parametrize(("content", "reason"), [(b"\xcf\xf0\xe8", "UTF-8"), (b" \n", "empty"), (None, "No such file")])
def test_a_system_prompt_file_that_cannot_be_used(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "s.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason) as caught:
        read_system_prompt(path)
    assert caught.value.faults[0].file == str(path)
