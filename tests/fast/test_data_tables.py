"""Tables are read as they are written, and say where they are wrong."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vlmhb.data.tables import Record, Table, TableError, write_table
from vlmhb.errors import Fault, RunError


def table(folder: Path, content: bytes | str, **options: bool) -> Table:
    path = folder / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Table(path, **options)


def cells(folder: Path, content: bytes | str, **options: bool) -> list[list[str]]:
    return [record.cells for record in table(folder, content, **options).records()]


def fault_of(folder: Path, content: bytes | str, **options: bool) -> Fault:
    with pytest.raises(TableError) as caught:
        list(table(folder, content, **options).records())
    assert caught.value.fault.file == str(folder / "t.csv")
    return caught.value.fault


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    return content.getvalue()


# --- what is read


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("header", ['"a";"b"', "a;b", " a ; b "])
def test_a_byte_order_mark_and_quotes_do_not_get_into_the_header(tmp_path: Path, mark: bytes, header: str) -> None:
    assert table(tmp_path, mark + f"{header}\n1;2\n".encode()).header == ("a", "b")


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("a;b;c", ";"),
        ("a,b,c", ","),
        ("a\tb\tc", "\t"),
        ('a;"b,x,y";c', ";"),
        ('"a;1;2;3",b', ","),
        ("alone", ";"),
        ('"with ""; quotes;;",b', ","),
        ('"two\nlines;;",b', ","),
    ],
)
def test_the_header_decides_the_delimiter(tmp_path: Path, header: str, delimiter: str) -> None:
    assert table(tmp_path, header + "\n").delimiter == delimiter


@pytest.mark.parametrize(
    ("said", "text"), [("sep=;", "a;b,c"), ("SEP=,", "a,b;c"), ("sep=\t", "a\tb;;;c"), ("sep=|", "a|b;c")]
)
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_that_names_the_delimiter_is_no_header(
    tmp_path: Path, start: str, said: str, text: str, end: str
) -> None:
    read = table(tmp_path, f"{start}{said}{end}{text}{end}{text}{end}")
    header = tuple(text.split(read.delimiter))
    assert (read.delimiter, read.header, read.header_line) == (said[-1], header, 2)
    assert list(read.records()) == [Record(1, 3, list(header))]


@pytest.mark.parametrize("text", ["a;b\nsep=,;x\n", "sep=;b\n1;2\n", '"sep=,"\nx\n'])
def test_the_same_words_elsewhere_are_text(tmp_path: Path, text: str) -> None:
    assert table(tmp_path, text).header_line == 1


def test_cells_stay_text(tmp_path: Path) -> None:
    row = ["007", "NA", "null", "1.0", "nan", "None", " padded ", "", "1 234", "TRUE"]
    assert cells(tmp_path, ";".join("abcdefghij") + "\n" + ";".join(row) + "\n") == [row]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_every_line_end_ends_a_record(tmp_path: Path, end: str, last: bool) -> None:
    assert cells(tmp_path, end.join(["a;b", "1;2", "3;4"]) + end * last) == [["1", "2"], ["3", "4"]]


def test_a_cell_may_hold_delimiters_quotes_and_line_breaks(tmp_path: Path) -> None:
    assert cells(tmp_path, 'a;b\r\n"x;""y""\r\nz\n\r";2\r\n') == [['x;"y"\r\nz\n\r', "2"]]


def test_characters_that_only_some_programs_take_for_line_ends_are_part_of_the_cell(tmp_path: Path) -> None:
    odd = "1\f2\v3\x1c4\x1d5\x1e6\x857\u20288\u2029"
    assert cells(tmp_path, f"a;b\n{odd};x\n") == [[odd, "x"]]


def test_a_nul_is_a_character(tmp_path: Path) -> None:
    assert cells(tmp_path, "a;b\nx\0y;2\n") == [["x\0y", "2"]]


def test_a_cell_may_be_large(tmp_path: Path) -> None:
    assert cells(tmp_path, f"a;b\n{'x' * 300_000};2\n") == [["x" * 300_000, "2"]]


def test_records_are_numbered_and_know_their_line(tmp_path: Path) -> None:
    content = 'a;b\n1;2\n\n"3\n\n3";4\n   \n5;6\n'
    records = [Record(1, 2, ["1", "2"]), Record(2, 4, ["3\n\n3", "4"]), Record(3, 8, ["5", "6"])]
    assert list(table(tmp_path, content).records()) == records


def test_lines_are_counted_from_the_start_of_the_file_when_the_header_comes_late(tmp_path: Path) -> None:
    read = table(tmp_path, "\n\na;b\n1;2\n")
    assert read.header_line == 3
    assert [record.line for record in read.records()] == [4]


def test_records_can_be_read_again(tmp_path: Path) -> None:
    read = table(tmp_path, "a\n1\n2\n")
    assert list(read.records()) == list(read.records()) != []


def test_records_are_streamed(tmp_path: Path) -> None:
    records = table(tmp_path, "a;b\n" + "1;2\n" * 100_000 + "broken\n").records()
    assert [next(records).row for _ in range(3)] == [1, 2, 3]


def test_an_empty_cell_of_a_single_column_is_a_record_when_quoted(tmp_path: Path) -> None:
    assert cells(tmp_path, 'a\n""\nx\n') == [[""], ["x"]]


def test_names_are_found_whatever_their_case(tmp_path: Path) -> None:
    assert table(tmp_path, "Data_Index;ANSWER\n").columns == {"data_index": 0, "answer": 1}


def test_columns_without_a_name_mean_nothing(tmp_path: Path) -> None:
    read = table(tmp_path, ";a;b;;\n0;1;2;;\n")
    assert read.columns == {"a": 1, "b": 2}
    assert [record.cells for record in read.records()] == [["0", "1", "2", "", ""]]


# --- comments


def test_comments_stand_where_a_record_would_begin(tmp_path: Path) -> None:
    content = '# first; "\n#\na;b\n# second\n1;"x\n# no comment\n"\n#last'
    read = table(tmp_path, content, comments=True)
    assert read.header == ("a", "b")
    assert list(read.records()) == [Record(1, 5, ["1", "x\n# no comment\n"])]


def test_without_leave_a_hash_is_text(tmp_path: Path) -> None:
    assert cells(tmp_path, "a;b\n#1;2\n") == [["#1", "2"]]


# --- faults


@pytest.mark.parametrize(
    ("content", "row", "line", "counts"),
    [
        ("a;b\n1;2\n1\n", 2, 3, ("1 cell,", "has 2")),
        ("a;b\n1;2;3\n", 1, 2, ("3 cells", "has 2")),
        ('a;b\n"1\n1";2\n\n1;2;\n', 2, 5, ("3 cells", "has 2")),
    ],
)
def test_a_record_of_another_width_says_its_row_and_line(
    tmp_path: Path, content: str, row: int, line: int, counts: tuple[str, str]
) -> None:
    fault = fault_of(tmp_path, content)
    assert (fault.row, fault.line) == (row, line)
    assert all(count in fault.message for count in counts)


def test_all_records_of_another_width_can_be_had_at_once(tmp_path: Path) -> None:
    faults: list[Fault] = []
    records = list(table(tmp_path, "a;b\n1\n1;2\n1;2;3\n3;4\n").records(faults))
    assert [(fault.row, fault.line) for fault in faults] == [(1, 2), (3, 4)]
    assert [record.row for record in records] == [2, 4]


def test_a_quote_that_is_never_closed_says_where_it_opens(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, 'a;b\n1;2\n3;"4\n5;6\n')
    assert (fault.row, fault.line) == (2, 3)
    assert "never closed" in fault.message


def test_text_after_a_closing_quote_is_refused(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, 'a;b\n1;"ООО" Ромашка\n')
    assert (fault.row, fault.line) == (1, 2)
    assert "twice" in fault.message


def test_a_quote_inside_a_bare_cell_is_text(tmp_path: Path) -> None:
    assert cells(tmp_path, 'a;b\nООО "Ромашка";2\n') == [['ООО "Ромашка"', "2"]]


@pytest.mark.parametrize("lines_before", [0, 1, 5000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_another_encoding_says_the_line_and_what_to_do(tmp_path: Path, lines_before: int, end: bytes) -> None:
    content = b"a;b" + end + (b"1;\xd1\x8f" + end) * lines_before + "имя;2".encode("windows-1251") + end
    fault = fault_of(tmp_path, content)
    assert fault.line == lines_before + 2
    assert "0xE8" in fault.message
    assert "Save it as UTF-8" in fault.message


def test_a_header_in_another_encoding_is_on_line_1(tmp_path: Path) -> None:
    assert fault_of(tmp_path, "имя;b\n1;2\n".encode("cp866")).line == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path: Path, encoding: str) -> None:
    assert "UTF-16" in fault_of(tmp_path, "a;b\n1;2\n".encode(encoding)).message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (zipped(), "a workbook of a spreadsheet program"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook of an old spreadsheet program"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "no text file"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "no text file"),
        (b"%PDF-1.4\n\xe2\xe3\xcf\xd3\nstream\0", "no text file"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    message = fault_of(tmp_path, content).message
    assert says in message
    assert "CSV" in message


@pytest.mark.parametrize("header", ["a|b|c", "a b c", "a : b"])
def test_a_header_of_one_cell_is_one_fault_about_the_delimiter(tmp_path: Path, header: str) -> None:
    (fault,) = table(tmp_path, f"{header}\n").missing(("x", "y"), "is missing.")
    assert fault.line == 1
    assert f"the header is one cell, {header!r}. Cells are separated by ; or , or a tab." in fault.message
    assert [f.column for f in table(tmp_path, "a b\n").missing(("a b", "b"), "is missing.")] == ["b"]
    assert [f.column for f in table(tmp_path, "a\n").missing(("x", "y"), "is missing.")] == ["x", "y"]
    assert [f.column for f in table(tmp_path, "k;a\n").missing(("x", "y"), "is missing.")] == ["x", "y"]


@pytest.mark.parametrize("content", ["", "\n\n", "   \n", "\ufeff", ";;;\n"])
def test_an_empty_file_has_no_columns(tmp_path: Path, content: str) -> None:
    assert "empty" in fault_of(tmp_path, content).message


@pytest.mark.parametrize("header", ["a;b;a", "a;b; A "])
def test_a_name_may_stand_once(tmp_path: Path, header: str) -> None:
    fault = fault_of(tmp_path, f"\n{header}\n1;2;3\n")
    assert (fault.line, fault.column) == (2, header.split(";")[2].strip())


def test_a_missing_file_and_a_folder_are_faults(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(TableError) as caught:
            Table(path)
        assert caught.value.fault.file == str(path)


def test_a_fault_of_a_line_shows_the_line() -> None:
    assert str(Fault(message="bad.", file="f.csv", line=3, column="a")) == "f.csv, line 3, column a: bad."


# --- what is written


ODD_TEXTS = [
    "",
    " ",
    "=1+1",
    "a\r\nb",
    "a\rb",
    "\r",
    "\n",
    "a\fb\x01c\0d",
    'say "no"; or, not\t',
    "\ufeff42",
    "😀",
    "#x",
    "\u2028\x85",
    "NA",
    "007",
]


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
def test_odd_texts_read_back_exactly(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "out.csv"
    rows = [[text, other] for text in ODD_TEXTS for other in ODD_TEXTS]
    write_table(path, ("first", "second"), rows, delimiter)
    assert [record.cells for record in Table(path).records()] == rows


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), width=st.integers(1, 4), delimiter=st.sampled_from(";,\t"))
def test_any_text_reads_back_exactly(tmp_path: Path, data: st.DataObject, width: int, delimiter: str) -> None:
    cell = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("\"\r\n;,\t'#\ufeff\0 ")), max_size=12)
    rows = data.draw(st.lists(st.lists(cell, min_size=width, max_size=width), max_size=5))
    path = tmp_path / "out.csv"
    write_table(path, [f"c{index}" for index in range(width)], rows, delimiter)
    read = Table(path)
    assert read.delimiter == (delimiter if width > 1 else ";")
    assert [record.cells for record in read.records()] == rows
    assert [record.row for record in read.records()] == list(range(1, len(rows) + 1))


def test_other_readers_see_the_same(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    rows = [["1", "строка\r\nстрока"], ["2", 'a;"b"'], ["3", "\ufeff42"]]
    write_table(path, ("row", "answer"), rows)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        assert list(csv.reader(stream, delimiter=";")) == [["row", "answer"], *rows]
    frame = polars.read_csv(path, separator=";", infer_schema=False)
    assert [list(row) for row in frame.rows()] == rows


def test_the_file_begins_with_one_byte_order_mark_and_has_crlf(tmp_path: Path) -> None:
    write_table(tmp_path / "out.csv", ("a", "b"), [["1", "2"]])
    assert (tmp_path / "out.csv").read_bytes() == b"\xef\xbb\xbfa;b\r\n1;2\r\n"


def test_lone_surrogates_become_the_replacement_character(tmp_path: Path) -> None:
    write_table(tmp_path / "out.csv", ("a", "b"), [["x\ud83dy", "\udc00"], ["😀", "ok"]])
    assert [record.cells for record in Table(tmp_path / "out.csv").records()] == [["x\ufffdy", "\ufffd"], ["😀", "ok"]]


def test_other_values_are_written_as_text(tmp_path: Path) -> None:
    write_table(tmp_path / "out.csv", ("a", "b", "c"), [[None, 1, 0.5]])
    assert [record.cells for record in Table(tmp_path / "out.csv").records()] == [["", "1", "0.5"]]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_table(path, ("a",), [["old"]])

    def rows() -> object:
        yield ["new"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(path, ("a",), rows())  # type: ignore[arg-type]
    assert [record.cells for record in Table(path).records()] == [["old"]]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_an_error_of_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write .*out\.csv"):
        write_table(tmp_path / "none" / "out.csv", ("a",), [])


def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_table(tmp_path / "out.csv", ("a",), [])
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode
