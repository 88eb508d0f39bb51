"""Answers made elsewhere, from tables and JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vlmhb.data.answers import GivenAnswer, read_answers
from vlmhb.errors import ConfigError, Fault

TESTS = Path(__file__).parents[1]


def write(folder: Path, content: str, name: str = "answers.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode())
    return path


def jsonl(folder: Path, *values: object) -> Path:
    return write(folder, "".join(json.dumps(value) + "\n" for value in values), "answers.jsonl")


def texts(path: Path, rows: int = 3) -> dict[int, str]:
    answers = read_answers(path, rows).by_row
    assert all(answer.error is None for answer in answers.values())
    return {row: answer.text for row, answer in answers.items()}


def faults_of(path: Path, rows: int = 3) -> list[Fault]:
    with pytest.raises(ConfigError) as caught:
        read_answers(path, rows)
    assert {fault.file for fault in caught.value.faults} == {str(path)}
    return list(caught.value.faults)


def test_rows_are_counted_from_1(tmp_path: Path) -> None:
    assert texts(write(tmp_path, "row;answer\n1;a\n3;c\n")) == {1: "a", 3: "c"}


def test_ids_of_the_older_project_are_counted_from_0() -> None:
    path = next((TESTS / "formats/ModelsAnswers").iterdir())
    assert texts(path, 4) == {1: "Примеров", 2: "0012 345678", 3: "Образцова", 4: ""}


def test_text_stays_text(tmp_path: Path) -> None:
    answers = ["007", "NA", "", "1.0", " x ", "null"]
    path = write(tmp_path, "row,answer\n" + "".join(f'{row},"{text}"\n' for row, text in enumerate(answers, 1)))
    assert list(texts(path, 6).values()) == answers


def test_case_27_through_json_lines() -> None:
    expected = {
        1: "=1+1",
        2: "<script>alert(1)</script>",
        3: "a\fb\x01c",
        4: "строка\r\nстрока\tтаб",
        5: "-42",
        6: "@SUM(A1)",
        7: "\ufeff42",
        8: "😀",
    }
    assert texts(TESTS / "cases/C27/answers.jsonl", 8) == expected


def test_json_lines_with_a_mark_blank_lines_and_odd_separators(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufeff\n{"row": 1, "answer": "a\u2028b"}\r\n\r\n{"id": 1, "model_answer": "x"}', "a.txt")
    assert texts(path) == {1: "a\u2028b", 2: "x"}


def test_the_content_decides_the_kind_not_the_name(tmp_path: Path) -> None:
    assert texts(write(tmp_path, '{"row": "1", "answer": "a"}\n', "answers.csv")) == {1: "a"}
    assert texts(write(tmp_path, "row;answer\n1;a\n", "answers.jsonl")) == {1: "a"}


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        ("ok;", None),
        (";", None),
        ("OK;", None),
        ("error;out of memory", "out of memory"),
        ("missing;", "its status is missing"),
    ],
)
def test_status_and_error_say_that_there_is_no_answer(tmp_path: Path, cells: str, error: str | None) -> None:
    path = write(tmp_path, f"row;answer;status;error\n1;text;{cells}\n")
    assert read_answers(path, 3).by_row == {1: GivenAnswer("text", error)}


def test_null_is_no_answer_and_empty_is_one(tmp_path: Path) -> None:
    path = jsonl(tmp_path, {"row": 1, "answer": None}, {"row": 2, "answer": ""}, {"row": 3, "answer": "", "error": "x"})
    errors = {row: answer.error for row, answer in read_answers(path, 3).by_row.items()}
    assert errors == {1: "the answer is null", 2: None, 3: "x"}


def test_columns_that_are_not_used_are_said(tmp_path: Path) -> None:
    answers = read_answers(write(tmp_path, "data_index;row;answer;cer\n9;2;a;0.5\n"), 3)
    assert answers.by_row == {2: GivenAnswer("a")}
    assert len(answers.notes) == 1
    assert "data_index, cer" in answers.notes[0]


@pytest.mark.parametrize(
    ("header", "columns"), [("rows;answer", ["row"]), ("row;text", ["answer"]), ("a;b", ["row", "answer"])]
)
def test_missing_columns_are_named_with_the_header(tmp_path: Path, header: str, columns: list[str]) -> None:
    faults = faults_of(write(tmp_path, f"{header}\n1;2\n"))
    assert [(fault.line, fault.column) for fault in faults] == [(1, column) for column in columns]
    assert all(header.split(";")[0] in fault.message for fault in faults)


@pytest.mark.parametrize(
    ("header", "value", "message"),
    [
        ("row", "0", "from 1 to 3"),
        ("row", "4", "from 1 to 3"),
        ("id", "3", "from 0 to 2"),
        ("row", "-1", "not a row number"),
        ("row", "1.0", "not a row number"),
        ("row", "one", "not a row number"),
        ("row", "", "not a row number"),
        ("row", "²", "not a row number"),
        ("row", "9" * 5000, "not a row number"),
    ],
)
def test_a_number_that_is_no_row_of_the_dataset(tmp_path: Path, header: str, value: str, message: str) -> None:
    fault = faults_of(write(tmp_path, f"{header};answer\n1;a\n{value};b\n"))[0]
    assert (fault.row, fault.line, fault.column, fault.value) == (2, 3, header, value)
    assert message in fault.message


def test_a_row_twice_names_the_first_line(tmp_path: Path) -> None:
    fault = faults_of(write(tmp_path, 'row;answer\n1;"a\nb"\n2;c\n1;d\n'))[0]
    assert (fault.row, fault.line, fault.column) == (3, 5, "row")
    assert "line 2" in fault.message


def test_all_faults_at_once(tmp_path: Path) -> None:
    faults = faults_of(write(tmp_path, "row;answer\n1;a\nx;b\n1;c\n9;d\n2\n3;e\n"))
    assert sorted((fault.row, fault.line) for fault in faults) == [(2, 3), (3, 4), (4, 5), (5, 6)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"row": 1, "answer": 42}', "must be text, not 42"),
        ('{"row": 1, "answer": {"a": "ж"}}', 'not {"a": "ж"}'),
        ('{"row": 1}', "no answer"),
        ('{"answer": "x"}', "no row"),
        ('{"row": true, "answer": "x"}', "not a row number"),
        ('{"row": 1.5, "answer": "x"}', "not a row number"),
        ('{"row": 1, "answer": "x"', "not a JSON object"),
        ("[1, 2]", "not a JSON object"),
        ("plain", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
    ],
)
def test_a_json_line_that_is_wrong(tmp_path: Path, line: str, message: str) -> None:
    fault = faults_of(write(tmp_path, '{"row": 2, "answer": "a"}\n\n' + line + "\n"))[0]
    assert (fault.row, fault.line) == (2, 3)
    assert message in fault.message


def test_other_encodings_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("row;answer\n1;имя\n".encode("cp1251"))
    assert faults_of(path)[0].line == 2
    path.write_bytes(b'{"row": 1, "answer": "a"}\n{"row": 2, "answer": "\xe8"}\n')
    assert faults_of(path)[0].line == 2
    assert "No such file" in faults_of(tmp_path / "none.csv")[0].message
    path.write_bytes(b"")
    assert "empty" in faults_of(path)[0].message


def test_an_unclosed_quote_is_a_fault(tmp_path: Path) -> None:
    fault = faults_of(write(tmp_path, 'row;answer\n1;"a\n2;b\n'))[0]
    assert (fault.row, fault.line) == (1, 2)
