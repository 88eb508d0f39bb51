"""The VLMHyperBench dataset folder: every row comes out as it stands in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from vlmhb.contract.dataset import Sample
from vlmhb.data.builtin import vlmhb_datasets
from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat
from vlmhb.errors import DatasetError

HEADER = "data_index;split;image_path;question;answer;doc_class;question_type;answer_bbox"
FORMATS = Path(__file__).parents[1] / "formats"


def dataset(folder: Path, *rows: str, header: str = HEADER) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "annotation.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8", newline="")
    return folder


def samples(folder: Path) -> list[Sample]:
    return list(VlmHyperBenchFormat().open(folder, "name"))


def test_the_core_offers_the_format() -> None:
    assert [format.name for format in vlmhb_datasets()][-1] == "vlmhyperbench"  # asked before the others


def test_every_column_of_a_row(tmp_path: Path) -> None:
    folder = dataset(tmp_path, "07;test;images/a.png;Номер?;0012 345678;card;number;[1, 2, 3, 4]")
    expected = Sample(
        row=1,
        data_index="07",
        images=("images/a.png",),
        question="Номер?",
        reference="0012 345678",
        doc_class="card",
        question_type="number",
        split="test",
        answer_bbox="[1, 2, 3, 4]",
    )
    assert samples(folder) == [expected]


def test_a_dataset_of_the_older_project() -> None:
    opened = VlmHyperBenchFormat().open(FORMATS / "Datasets/VQA/cards_mini", "cards_mini")
    assert (opened.name, opened.root) == ("cards_mini", FORMATS / "Datasets/VQA/cards_mini")
    rows = list(opened)
    assert [(row.row, row.data_index) for row in rows] == [(1, "1"), (2, "1"), (3, "2"), (4, "2")]
    assert [row.reference for row in rows] == ["Примеров", "0012 345678", "Образцова", "0099 000001"]
    assert list(opened) == rows


def test_only_four_columns_are_needed_in_any_order(tmp_path: Path) -> None:
    folder = dataset(tmp_path, "42,images/a.png,1,What?", header="Answer,image_path,data_index,Question")
    assert samples(folder) == [
        Sample(row=1, data_index="1", images=("images/a.png",), question="What?", reference="42")
    ]


def test_prompt_stands_for_question_where_there_is_none(tmp_path: Path) -> None:
    header = "data_index;image_path;prompt;answer"
    assert samples(dataset(tmp_path, "1;a.png;P;42", header=header))[0].question == "P"
    both = dataset(tmp_path, "1;a.png;P;42;Q", header=f"{header};question")
    assert samples(both)[0].question == "Q"


@pytest.mark.parametrize("name", ["data_index", "image_path", "question", "answer"])
def test_a_missing_column_is_named_with_the_header(tmp_path: Path, name: str) -> None:
    header = ";".join(column for column in HEADER.split(";") if column != name)
    with pytest.raises(DatasetError, match=f"lacks the column {name};.*split") as caught:
        samples(dataset(tmp_path, header=header))
    assert str(tmp_path / "annotation.csv") in str(caught.value)


def test_all_missing_columns_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="columns data_index, image_path, question, answer;"):
        samples(dataset(tmp_path, header="a;b"))


@pytest.mark.parametrize(
    ("cell", "images"),
    [
        ("['images/1.png', 'images/2.png']", ("images/1.png", "images/2.png")),
        ('"[""a.png"", ""b.png""]"', ("a.png", "b.png")),
        ("[a.png]", ("a.png",)),
        ("a.png|b.png", ("a.png|b.png",)),
        ("a, b.png", ("a, b.png",)),
        ("images\\a.png ", ("images\\a.png ",)),
        ("", ()),
    ],
)
def test_several_images_are_a_bracket_list(tmp_path: Path, cell: str, images: tuple[str, ...]) -> None:
    assert samples(dataset(tmp_path, f"1;t;{cell};Q;A;c;q;"))[0].images == images


@pytest.mark.parametrize("cell", ["['a.png'", "['a.png' 'b.png']", "[a.png,]b]", '"[""a.png"', "['a.png', 'b.png"])
def test_a_list_of_images_that_cannot_be_read_is_the_problem_of_its_row(tmp_path: Path, cell: str) -> None:
    bad, good = samples(dataset(tmp_path, f"1;t;{cell};Q;A;c;q;", "2;t;a.png;Q;A;c;q;"))
    assert str(bad.problem).startswith("image_path: the list ")
    assert (bad.images, good.images, good.problem) == ((), ("a.png",), None)


HEADER_MORE = "data_index;image_path;question;answer;other_answers;choices;json_schema"


def test_further_answers_options_and_a_schema(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/sum.json").write_text('\ufeff{"type": "object"}', encoding="utf-8")
    dataset(
        tmp_path,
        "1;a.png;Q;12,50;['12.50', '12,5'];;",
        "1;a.png;Q;B;;['a cat', 'a dog'];schemas\\sum.json",
        '1;a.png;Q;A;12.50, 12.5;[]; {"type": "array"}',
        header=HEADER_MORE,
    )
    first, second, third = samples(tmp_path)
    assert (first.reference, first.other_references, first.choices) == ("12,50", ("12.50", "12,5"), ())
    assert (second.choices, second.json_schema) == (("a cat", "a dog"), '{"type": "object"}')
    assert (third.other_references, third.json_schema) == (("12.50", "12.5"), '{"type": "array"}')


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("['12;;", "other_answers: the list is not closed"),
        (";['a' 'b'];", "choices: "),
        (";;none.json", "json_schema none.json: there is no such file"),
        (";;../x.json", "json_schema ../x.json: the path must be relative"),
        (";;{", "json_schema is no JSON"),
        (";;bad.json", "json_schema bad.json is no JSON Schema"),
    ],
)
def test_a_cell_that_cannot_be_read_is_a_problem_of_its_row(tmp_path: Path, cells: str, said: str) -> None:
    (tmp_path / "bad.json").write_text("[]")
    (row,) = samples(dataset(tmp_path, f"1;a.png;Q;A;{cells}", header=HEADER_MORE))
    assert said in str(row.problem)
    assert (row.question, row.reference) == ("Q", "A")


def test_a_malformed_record_is_a_row_with_a_problem_in_its_place(tmp_path: Path) -> None:
    folder = dataset(tmp_path, "1;t;a.png;Q;A;c;q;", "2;t;a.png;Q; with;A;c;q;", "3;t;a.png;Q;A;c;q;", "4", ";;;;;;;")
    rows = samples(folder)
    assert [row.row for row in rows] == [1, 2, 3, 4, 5]
    assert [row.problem is None for row in rows] == [True, False, True, False, False]
    assert "row 2 (line 3)" in str(rows[1].problem)
    assert "9 cells" in str(rows[1].problem)
    assert "empty" in str(rows[4].problem)


def test_what_makes_the_rest_unreadable_is_an_error_with_its_place(tmp_path: Path) -> None:
    folder = dataset(tmp_path, "1;t;a.png;Q;A;c;q;", '2;t;a.png;"Q;A;c;q;', "3;t;a.png;Q;A;c;q;")
    rows = iter(VlmHyperBenchFormat().open(folder, "name"))
    assert next(rows).row == 1
    with pytest.raises(DatasetError, match=r"row 2 \(line 3\).*never closed"):
        next(rows)


def test_another_encoding_is_an_error_with_its_line(tmp_path: Path) -> None:
    dataset(tmp_path)
    (tmp_path / "annotation.csv").write_bytes(f"{HEADER}\n1;t;a;Имя;x;c;q;\n".encode("cp1251"))
    with pytest.raises(DatasetError, match=r"line 2: .*UTF-8"):
        samples(tmp_path)


def test_a_folder_or_its_annotation_is_recognised(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "d", "1;t;a.png;Q;A;c;q;")
    format = VlmHyperBenchFormat()
    assert format.recognises(folder)
    assert format.recognises(folder / "annotation.csv")
    assert not format.recognises(tmp_path)
    assert not format.recognises(tmp_path / "none")
    assert not format.recognises(folder / "annotation.csv" / "x")
    assert format.open(folder / "annotation.csv", "n").root == folder
