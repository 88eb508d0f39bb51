"""``vlmhb dataset``: checking, converting, showing."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from support.pages import pdf, png
from vlmhb.cli.app import app
from vlmhb.data.check import KINDS, Checker
from vlmhb.data.lists import parse_list, write_list
from vlmhb.data.oddities import decomposed, look_alikes, unseen
from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat
from vlmhb.discovery.registry import Registry
from vlmhb.run.score import open_dataset

HEADER = "data_index;image_path;question;answer;doc_class;question_type"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))


def folder(path: Path, *rows: str, header: str = HEADER) -> Path:
    (path / "images").mkdir(parents=True)
    (path / "annotation.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8", newline="")
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["dataset", *map(str, arguments)])


def samples(path: Path | str) -> list[tuple[object, ...]]:
    """What a dataset says, without where its rows and images stand."""
    return [
        (
            s.data_index,
            len(s.images),
            s.question,
            s.reference,
            s.other_references,
            s.choices,
            s.json_schema,
            s.doc_class,
            s.question_type,
            s.split,
            s.problem,
        )
        for s in open_dataset(str(path), Registry())
    ]


# --- check


def test_every_fault_is_listed_with_its_row(tmp_path: Path) -> None:
    nfd = unicodedata.normalize("NFD", "Первый")
    path = folder(
        tmp_path / "d",
        "1;images/a.png;Total?;12;чек;sum",
        "1;images/none.png;Total?;12;чек;sum",
        "2;images/cut.png;Total?;12;чек;sum",
        "3;images/a.png;Date?;;чек;date",
        "1;images/a.png;Total?;12;чек;sum",
        "1;images/a.png;Total?;13;чек;sum",
        "4;images/a.png;Name?;Рoссия;чек;name",
        f"5;images/a.png;Name of 5?;{nfd};чек;name",
        "6;images/a.png;Name of 6?;a\u200bb;чек;name",
        "7;images/a.png;;x;чек;name",
        "8;images/a.png;Too; many; cells;x;чек;name",
        "1;images/b.png;Total?;12;чек;sum",
    )
    (path / "images/a.png").write_bytes(png())
    (path / "images/b.png").write_bytes(png((1, 2, 3)))
    (path / "images/cut.png").write_bytes(png(size=(200, 200))[:-40])
    done = call("check", path)
    assert done.exit_code == 1
    lines = done.output.splitlines()
    expected = [
        ("row 2, images: image images/none.png: there is no such file", "missing-image"),
        ("row 3, images: cut.png cannot be read", "unreadable-image"),
        ("row 4, reference: it is empty", "empty-reference"),
        ("row 5: it asks the same about the same images as row 1.", "repeated-row"),
        ("row 6: it asks the same about the same images as row 1, with another answer.", "conflicting-rows"),
        ("row 7, reference: 'Рoссия' mixes the Latin and the Cyrillic alphabet: look at o.", "look-alike-letters"),
        ("row 8, reference: й is not written as one character", "decomposed-letters"),
        ("row 9, reference: it holds U+200B.", "unseen-characters"),
        ("row 10, question: it is empty", "no-question"),
        ("row 11: ", "unreadable-row"),
        ("row 12, data_index: '1' stands with the same question in row 1, about other images.", "repeated-id"),
    ]
    missing_image_also_repeats = "row 2, data_index: '1' stands with the same question in row 1"
    lines = [line for line in lines if missing_image_also_repeats not in line]
    assert len(lines) == len(expected) + 1
    for line, (start, kind) in zip(lines, expected, strict=False):
        assert line.startswith(start), line
        assert line.endswith(f"[{kind}]"), line
    assert lines[-1].startswith("12 rows, 4 of them cannot be asked. Faults, of which a row may have several: 1 ")
    assert {kind for _, kind in expected} == set(KINDS)


def test_remarks_alone_end_well_and_quick_opens_no_image(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;images/a.png;Q;;c;q")
    (path / "images/a.png").write_bytes(png(size=(200, 200))[:-40])
    done = call("check", path, "--quick")
    assert (done.exit_code, done.output.splitlines()[-1]) == (
        0,
        "1 row, 0 of them cannot be asked. Remarks: 1 empty-reference.",
    )
    assert call("check", path).exit_code == 1


def test_check_for_programs(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;images/none.png;Q;x;c;q", "2;;Q;x;c;q")
    found = json.loads(call("check", path, "--json").output)
    assert (found["rows"], found["unaskable"], found["kinds"]) == (2, 1, {"missing-image": 1})
    (finding,) = found["findings"]
    assert (finding["row"], finding["kind"], finding["field"]) == (1, "missing-image", "images")


def test_faults_are_counted_beside_the_rows_that_have_them(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;images/none.png;;x;c;q", "2;;;x;c;q", "3;;Q;;c;q")
    done = call("check", path)
    assert (done.exit_code, done.output.splitlines()[-1]) == (
        1,
        "3 rows, 2 of them cannot be asked. Faults, of which a row may have several: 2 no-question, 1 missing-image. "
        "Remarks: 1 empty-reference.",
    )


def test_a_dataset_in_order(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;;Q;x;c;q")
    assert call("check", path).output == "1 row, 0 of them cannot be asked. Nothing was found.\n"


def test_pages_of_one_pdf_share_their_id_and_question(tmp_path: Path) -> None:
    (tmp_path / "d.pdf").write_bytes(pdf([["One"], ["Two"], []]))
    checker = Checker(open_dataset(str(tmp_path / "d.pdf"), Registry()))
    assert [(finding.row, finding.kind) for finding in checker] == [(3, "unreadable-row")]


def test_an_image_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vlmhb.images import decode

    opened = []
    real = decode.open_image
    monkeypatch.setattr(decode, "open_image", lambda image: opened.append(image.path) or real(image))
    path = folder(tmp_path / "d", *(f"{n};images/a.png;Q{n};x;c;q" for n in range(5)))
    (path / "images/a.png").write_bytes(png())
    assert list(Checker(open_dataset(str(path), Registry()))) == []
    assert len(opened) == 1


def test_no_dataset_is_a_message(tmp_path: Path) -> None:
    done = call("check", tmp_path / "none")
    assert done.exit_code == 2
    assert "there is no dataset" in done.output


# --- odd characters


@pytest.mark.parametrize(
    ("text", "letters"),
    [("Рoссия", "o"), ("Cчёт", "C"), ("TOBAР", "Р"), ("Moсква", "Mo"), ("№ (OОО).", "O"), ("а1b", "а")],
)
def test_letters_of_the_other_alphabet(text: str, letters: str) -> None:
    assert [found for _, found in look_alikes(text)] == [letters]


@pytest.mark.parametrize("text", ["Москва", "Moscow", "iPhone и Android", "PDF-файл", "Zвук", "1С", "№ 5", "", "Qт"])
def test_words_without_look_alikes(text: str) -> None:
    assert list(look_alikes(text)) == []


@settings(max_examples=300, deadline=None)
@given(st.text("абвйёАЙxyzABC éñ 12", max_size=30))
def test_composed_texts_have_no_decomposed_letters(text: str) -> None:
    whole = unicodedata.normalize("NFC", text)
    assert decomposed(whole) == []
    assert bool(decomposed(unicodedata.normalize("NFD", text))) == (unicodedata.normalize("NFD", text) != whole)
    assert unseen(whole) == []


@pytest.mark.parametrize(
    ("text", "names"), [("a\ufffdb", ["U+FFFD"]), ("\ufeffa\x00", ["U+0000", "U+FEFF"]), ("a\tb\n\u00a0", [])]
)
def test_characters_that_nobody_sees(text: str, names: list[str]) -> None:
    assert unseen(text) == names


# --- convert


def test_lists_are_written_as_they_are_read() -> None:
    assert write_list(()) == ""
    assert write_list(["a'b", "c,d"]) == r"['a\'b', 'c,d']"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=20), max_size=5))
def test_every_list_reads_back(texts: list[str]) -> None:
    assert list(parse_list(write_list(texts))) == texts


def test_every_format_becomes_a_folder_that_says_the_same(tmp_path: Path) -> None:
    import base64

    source = tmp_path / "source"
    source.mkdir()
    (source / "sub").mkdir()
    (source / "sub/a 1.png").write_bytes(png())
    image = base64.b64encode(png((1, 2, 3))).decode()
    records = [
        {
            "id": "7",
            "image": "sub/a 1.png",
            "question": 'Q; "1"\n?',
            "answers": ["12,50", "it's 12.50"],
            "doc_class": "чек",
        },
        {"id": "8", "images": ["sub/a 1.png", f"data:image/png;base64,{image}"], "question": "Q", "answer": ""},
        {"question": "Q", "answer": "B", "choices": ["x", "y;z"], "json_schema": {"type": "object"}, "split": "test"},
    ]
    (source / "d.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    (source / "d.tsv").write_text(f"index\timage\tquestion\tA\tB\tanswer\n1\t{image}\tQ\ta cat\ta dog\tB\n")
    (source / "d.pdf").write_bytes(pdf([["Page one"], ["Page two"]]))
    pages = source / "pages"
    pages.mkdir()
    (pages / "p.png").write_bytes(png())
    (pages / "p.json").write_text('{"имя": "Аня"}', encoding="utf-8")
    for place in ("d.jsonl", "d.tsv", "d.pdf", "pages"):
        out = tmp_path / f"out-{place}"
        done = call("convert", source / place, out)
        assert done.exit_code == 0, done.output
        assert samples(out) == samples(source / place)
        assert call("check", out).exit_code == 0
        names = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
        assert all(name == "annotation.csv" or name.startswith("images/") for name in names)
    assert (tmp_path / "out-d.pdf/images/d-page2.png").is_file()
    assert (tmp_path / "out-d.jsonl/images/sub/a 1.png").read_bytes() == png()


def test_further_values_become_columns(tmp_path: Path) -> None:
    records: list[dict[str, object]] = [{"question": "?", "answer": "x", "Unit": "кг; 1"} for _ in range(200)]
    records.append({"question": "!", "answer": "y", "late": "z"})
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    done = call("convert", tmp_path / "d.jsonl", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "row 201: late is left out, which the first 200 rows lack" in done.output
    first, *_, last = VlmHyperBenchFormat().open(tmp_path / "out", "d")
    assert (dict(first.fields), dict(last.fields)) == ({"unit": "кг; 1"}, {"unit": ""})


def test_a_line_that_is_no_json_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("{broken\n{}\n")
    first, second = call("check", tmp_path / "d.jsonl").output.splitlines()[:2]
    assert "no JSON object" in first
    assert "has no answer" not in first
    assert "has no answer" in second


def test_rows_that_cannot_be_asked_are_left_out_and_named(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;images/none.png;Q;x;c;q", "2;;Q;y;c;q", "3")
    done = call("convert", path, tmp_path / "out")
    assert done.exit_code == 1
    assert "row 1 is left out: image images/none.png" in done.output
    assert "row 3 is left out" in done.output
    assert f"1 row: {tmp_path / 'out'}; 2 left out" in done.output
    assert [row[3] for row in samples(tmp_path / "out")] == ["y"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;;Q;x;c;q")
    done = call("convert", path, path)
    assert done.exit_code == 2
    assert "is not empty" in done.output
    assert call("convert", path, tmp_path / "out").exit_code == 0


# --- show


def test_counts_and_a_sheet(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "d",
        "1;images/a.png;Q1;x;чек;sum",
        "1;images/a.png;Q2;x;чек;sum",
        "2;images/b.png;Q3;x;паспорт;name",
        "3;images/cut.png;Q4;x;;",
        "4",
    )
    (path / "images/a.png").write_bytes(png((255, 0, 0), (900, 300)))
    (path / "images/b.png").write_bytes(png((0, 0, 255), (300, 900)))
    (path / "images/cut.png").write_bytes(b"x")
    done = call("show", path, "--sheet", tmp_path / "sheet.png")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0] == "5 rows about 4 documents and 3 images."
    assert lines[1] == "1 row cannot be asked; 'vlmhb dataset check' says why."
    assert [line.split() for line in lines[2:6]] == [
        ["doc", "class", "question", "type", "rows", "documents"],
        ["чек", "sum", "2", "1"],
        ["паспорт", "name", "1", "1"],
        ["(none)", "(none)", "2", "2"],
    ]
    assert "row 4 is not shown: cut.png" in done.output
    assert lines[-1] == f"Contact sheet: {tmp_path / 'sheet.png'}"
    with Image.open(tmp_path / "sheet.png") as sheet:
        colours = {colour for _, colour in sheet.getcolors(100_000) or ()}
        assert {(255, 0, 0), (0, 0, 255)} <= colours
        assert sheet.size == (470, 256)


def test_a_sheet_without_pages_and_one_that_cannot_be_written(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;;Q;x;c;q")
    done = call("show", path, "--sheet", tmp_path / "sheet.png")
    assert (done.exit_code, "there is no page to show" in done.output) == (2, True)
    (path / "images/a.png").write_bytes(png())
    other = folder(tmp_path / "e", "1;images/a.png;Q;x;c;q")
    (other / "images/a.png").write_bytes(png())
    assert "cannot be written" in call("show", other, "--sheet", tmp_path / "none/sheet.png").output


def test_show_for_programs(tmp_path: Path) -> None:
    path = folder(tmp_path / "d", "1;;Q;x;c;q", "1;;R;x;c;r")
    found = json.loads(call("show", path, "--json").output)
    assert (found["rows"], found["documents"], found["images"]) == (2, 1, 0)
    assert [group["question_type"] for group in found["groups"]] == ["q", "r"]
