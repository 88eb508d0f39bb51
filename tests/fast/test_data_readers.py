"""Datasets as people have them: JSON lines, VLMEvalKit TSV, Parquet, saved Hugging Face datasets."""

from __future__ import annotations

import base64
import csv
import json
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.pages import png
from vlmhb.config.cells import CellError
from vlmhb.config.lookup import Places
from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.data.embedded import embedded_file, keep_image
from vlmhb.data.images import find_image
from vlmhb.discovery.registry import Registry
from vlmhb.errors import ImageError

WHITE, RED = png(), png((255, 0, 0))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))
    return tmp_path / "home/cache/images"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


def opened(registry: Registry, written: Path | str) -> Dataset:
    return Places(Path(), Path(), registry).dataset(str(written), "")


def rows(registry: Registry, written: Path | str) -> list[Sample]:
    return list(opened(registry, written))


def pixels(dataset: Dataset, sample: Sample) -> list[bytes]:
    return [find_image(dataset, written).read_bytes() for written in sample.images]


def lines(path: Path, *records: Any) -> Path:
    text = (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


# --- JSON lines


def test_json_lines(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images/1.png").write_bytes(RED)
    address = f"data:image/png;base64,{base64.b64encode(WHITE).decode()}"
    path = lines(
        tmp_path / "d.jsonl",
        {"id": "a", "images": ["images/1.png"], "question": "Сумма?", "answer": "12,50", "doc_class": "чек"},
        "",
        '{"id": 007, "image": "images/1.png"}',
        '{"id": 7, "image": "images/1.png", "question": "N?", "answers": [1.50, "1,5"], "split": "test"}',
        {
            "images": [address, "images/1.png"],
            "prompt": "Q",
            "answer": {"имя": ["Аня"]},
            "json_schema": {"type": "object"},
        },
        {"question": "Q", "answer": "B", "choices": ["a cat", 2]},
    )
    dataset = opened(registry, path)
    first, broken, second, third, fourth = list(dataset)
    assert (first.row, first.data_index, first.question, first.reference) == (1, "a", "Сумма?", "12,50")
    assert (first.doc_class, first.question_type, first.problem) == ("чек", "", None)
    assert broken.row == 2
    assert "line 3: this is no JSON object" in str(broken.problem)
    assert (second.row, second.data_index, second.reference, second.other_references) == (3, "7", "1.50", ("1,5",))
    assert second.split == "test"
    assert json.loads(third.reference) == {"имя": ["Аня"]}
    assert json.loads(third.json_schema) == {"type": "object"}
    assert pixels(dataset, third) == [WHITE, RED]
    assert (fourth.data_index, fourth.choices, fourth.images) == ("5", ("a cat", "2"), ())
    assert list(dataset) == [first, broken, second, third, fourth]


def test_numbers_within_json_lines_stay_numbers_as_they_are_written(tmp_path: Path, registry: Registry) -> None:
    line = (
        '{"question": "Q", "answer": {"sum": 1.50, "n": [7, -1e3, "8"], "x": null, "\\"": true},'
        ' "bbox": [1, 2.0, 3, 4], "json_schema": {"minimum": 1, "multipleOf": 0.10}}'
    )
    (sample,) = opened(registry, lines(tmp_path / "d.jsonl", line))
    assert sample.reference == '{"sum": 1.50, "n": [7, -1e3, "8"], "x": null, "\\"": true}'
    assert sample.answer_bbox == "[1, 2.0, 3, 4]"
    assert json.loads(sample.json_schema) == {"minimum": 1, "multipleOf": 0.1}


@pytest.mark.parametrize("depth", [300, 700, 100_000])
def test_a_value_nested_deeply_is_read_or_is_an_error_of_its_row(
    tmp_path: Path, registry: Registry, depth: int
) -> None:
    value = "[" * depth + "]" * depth
    deep = f'{{"question": "Q", "answer": {{"x": {value}}}}}'
    first, good = opened(registry, lines(tmp_path / "d.jsonl", deep, {"question": "Q", "answer": "a"}))
    if first.problem:
        assert "nested too deeply" in first.problem or "recursion" in first.problem
    else:
        assert first.reference == f'{{"x": {value}}}'
    assert (first.problem is None) or depth > 300
    assert good.problem is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"question": "Q"}, "the record has no answer"),
        ({"question": "Q", "answer": None}, "the record has no answer"),
        ({"question": "Q", "answers": []}, "the record has no answer"),
        ("[1]", "this is no JSON object"),
        ("{", "this is no JSON object"),
        ({"answer": "a", "image": {"x": 1}}, "an image must be a path"),
        ({"answer": "a", "image": "data:image/png;base64,???"}, "is no base64"),
        ({"answer": "a", "json_schema": "none.json"}, "json_schema none.json"),
    ],
)
def test_a_fault_of_a_line_is_a_problem_of_its_row(registry: Registry, tmp_path: Path, record: Any, said: str) -> None:
    first, second = rows(registry, lines(tmp_path / "d.jsonl", record, {"answer": "a"}))
    assert said in str(first.problem)
    assert second.problem is None


def test_a_line_that_is_no_text_and_a_byte_order_mark(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "annotation.jsonl").write_bytes(b'\xef\xbb\xbf{"answer": "a"}\n{"answer": "\xff"}\n')
    first, second = rows(registry, tmp_path)
    assert (first.reference, first.problem) == ("a", None)
    assert "line 2: the text is not UTF-8" in str(second.problem)


def test_columns_of_other_names(registry: Registry, tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", {"frage": "Q", "antwort": "A", "answer": "no"})
    (row,) = rows(registry, f"{path}?question=frage&answer=antwort")
    assert (row.question, row.reference) == ("Q", "A")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("?qestion=x", "no option 'qestion'. Did you mean question"),
        ("?question", "'question' is no name=value"),
        ("?question=a&question=b", "comes twice"),
    ],
)
def test_options_that_cannot_be(registry: Registry, tmp_path: Path, options: str, said: str) -> None:
    path = lines(tmp_path / "d.jsonl", {"answer": "A"})
    with pytest.raises(CellError) as caught:
        opened(registry, f"{path}{options}")
    assert said in str(caught.value)


def test_a_name_with_a_question_mark_is_a_name(registry: Registry, tmp_path: Path) -> None:
    path = lines(tmp_path / "d?x=1.jsonl", {"answer": "A"})
    assert len(rows(registry, path)) == 1


def test_a_folder_format_without_options(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "annotation.csv").write_text("data_index;image_path;question;answer\n")
    with pytest.raises(CellError, match=r"vlmhyperbench have no option 'dpi'\. It has none"):
        opened(registry, f"{tmp_path}?dpi=1")


# --- VLMEvalKit


def tsv(path: Path, header: list[str], *records: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *records])
    return path


def test_vlmevalkit(registry: Registry, tmp_path: Path) -> None:
    white, red = (base64.b64encode(content).decode() for content in (WHITE, RED))
    header = ["index", "image", "question", "hint", "A", "B", "C", "D", "answer", "category", "split"]
    path = tsv(
        tmp_path / "d.tsv",
        header,
        ["10", white, 'What, "exactly"?', "", "a cat", "a dog", "", "", "B", "animals", "dev"],
        ["11", f"['{white}', '{red}']", "Both?\nSay.", "look", "", "", "", "", "yes", "", ""],
        ["12", "10", "Again?", "look", "yes", "no", "perhaps", "", "A", "", ""],
        ["13", "99", "Q", "", "", "", "", "", "A", "", ""],
        ["14", "", "No image?", "", "", "", "", "", "A", "", ""],
        ["15", "Q" * 80 + "?", "Q", "", "", "", "", "", "A", "", ""],
    )
    dataset = opened(registry, path)
    found = list(dataset)
    first, second, third = found[:3]
    assert first.question == (
        'Question: What, "exactly"?\nOptions:\nA. a cat\nB. a dog\n'
        "Please select the correct answer from the options above."
    )
    assert (first.reference, first.choices, first.question_type, first.split) == (
        "B",
        ("a cat", "a dog"),
        "animals",
        "dev",
    )
    assert (second.question, second.choices) == ("Both?\nSay.", ())
    assert third.question.startswith("Hint: look\nQuestion: Again?\nOptions:\nA. yes")
    assert [pixels(dataset, sample) for sample in found[:3]] == [[WHITE], [WHITE, RED], [WHITE]]
    assert [sample.data_index for sample in found] == ["10", "11", "12", "13", "14", "15"]
    assert "that of index '99'" in str(found[3].problem)
    assert (found[4].images, found[4].problem) == ((), None)
    assert "is no base64" in str(found[5].problem)


def test_vlmevalkit_with_paths(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(RED)
    header = ["index", "image_path", "question", "answer"]
    path = tsv(
        tmp_path / "d.tsv", header, ["1", "a.png", "Q", "A"], ["2", "['a.png', '../b.png']", "Q", "A"], ["3", "a.png"]
    )
    dataset = opened(registry, path)
    first, second, third = list(dataset)
    assert pixels(dataset, first) == [RED]
    with pytest.raises(ImageError, match="may not leave"):
        pixels(dataset, second)
    assert "the record has 2 cells" in str(third.problem)


def test_a_tsv_of_something_else_is_refused(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(CellError, match="lacks the column answer, image; its header has a, question"):
        opened(registry, tsv(tmp_path / "d.tsv", ["a", "question"]))


# --- Parquet


def parquet(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_parquet_with_images_as_bytes_and_paths(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(WHITE)
    path = parquet(
        tmp_path / "d.parquet",
        id=[7, 8, 9],
        image=[{"bytes": RED, "path": None}, {"bytes": None, "path": "a.png"}, None],
        question=["Q1", "Q2", "Q3"],
        answers=[["a", "b"], ["c"], []],
        unused=[object.__name__] * 3,
    )
    dataset = opened(registry, path)
    first, second, third = list(dataset)
    assert (first.data_index, first.reference, first.other_references) == ("7", "a", ("b",))
    assert pixels(dataset, first) == [RED]
    assert pixels(dataset, second) == [WHITE]
    assert (third.images, third.problem) == ((), "the record has no answer (answer, or a list in answers)")


def test_parquet_with_several_images_and_plain_bytes(registry: Registry, tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", images=[[WHITE, RED], []], query=["Q", "R"], answer=[1.5, 2.0])
    dataset = opened(registry, path)
    first, second = list(dataset)
    assert pixels(dataset, first) == [WHITE, RED]
    assert (second.images, second.question, second.reference) == ((), "R", "2.0")


def test_splits_of_a_folder_of_parquet_files(registry: Registry, tmp_path: Path) -> None:
    for split, part in (("train", 0), ("train", 1), ("test", 0)):
        parquet(tmp_path / f"data/{split}-0000{part}-of-00002.parquet", question=["Q"], answer=[f"{split}{part}"])
    found = rows(registry, tmp_path)
    assert [(row.row, row.split, row.reference) for row in found] == [
        (1, "test", "test0"),
        (2, "train", "train0"),
        (3, "train", "train1"),
    ]
    assert [row.reference for row in rows(registry, f"{tmp_path}?split=train")] == ["train0", "train1"]
    with pytest.raises(CellError, match="no split 'dev'; it has test, train"):
        opened(registry, f"{tmp_path}?split=dev")


@pytest.mark.parametrize(
    ("options", "said"),
    [("", r"no column answer or answers; it has question, label"), ("?answer=lable", "no column for answer=lable")],
)
def test_parquet_without_an_answer_is_refused(registry: Registry, tmp_path: Path, options: str, said: str) -> None:
    path = parquet(tmp_path / "d.parquet", question=["Q"], label=["A"])
    with pytest.raises(CellError, match=said):
        opened(registry, f"{path}{options}")
    assert rows(registry, f"{path}?answer=label")[0].reference == "A"


def test_a_file_that_is_no_parquet(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "d.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(CellError, match=r"d\.parquet cannot be read as Parquet"):
        opened(registry, tmp_path / "d.parquet")


# --- Hugging Face


@pytest.mark.filterwarnings("ignore")
def test_a_dataset_saved_by_the_library(registry: Registry, tmp_path: Path) -> None:
    import datasets

    features = datasets.Features(
        {"id": datasets.Value("int32"), "image": datasets.Image(), "question": datasets.Value("string"),
         "answers": datasets.List(datasets.Value("string")), "images": datasets.List(datasets.Image())}
    )  # fmt: skip
    content: Mapping[str, list[Any]] = {
        "id": [3, 4],
        "image": [{"bytes": RED, "path": "x.png"}, {"bytes": WHITE, "path": None}],
        "question": ["Q", "R"],
        "answers": [["a", "b"], ["c"]],
        "images": [[{"bytes": WHITE, "path": None}, {"bytes": RED, "path": None}], []],
    }
    one = datasets.Dataset.from_dict(dict(content), features=features)
    one.remove_columns("images").save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"test": one, "dev": one.select([1])}).save_to_disk(str(tmp_path / "both"))
    dataset = opened(registry, tmp_path / "one")
    first, second = list(dataset)
    assert (first.data_index, first.question, first.reference, first.other_references) == ("3", "Q", "a", ("b",))
    assert [pixels(dataset, sample) for sample in (first, second)] == [[RED], [WHITE]]
    both = opened(registry, tmp_path / "both")
    assert [(row.row, row.split) for row in both] == [(1, "test"), (2, "test"), (3, "dev")]
    assert pixels(both, next(iter(both))) == [WHITE, RED]
    assert [row.question for row in rows(registry, f"{tmp_path / 'both'}?split=dev&question=id")] == ["4"]
    with pytest.raises(CellError, match="no split 'train'; it has"):
        opened(registry, f"{tmp_path / 'both'}?split=train")


# --- images in the cache


def test_an_image_is_kept_once_under_its_content(cache: Path) -> None:
    name = keep_image(RED)
    assert name == keep_image(RED)
    assert name != keep_image(WHITE)
    assert len(list(cache.rglob("*.png"))) == 2
    found = embedded_file(name)
    assert found is not None
    assert found.read_bytes() == RED
    assert embedded_file("images/a.png") is None
    found.unlink()
    with pytest.raises(ImageError, match="not in the cache"):
        embedded_file(name)


@pytest.mark.parametrize("name", ["embedded:../../x", "embedded:", "embedded:" + "0" * 64 + ".png"])
def test_names_lead_nowhere_else(name: str) -> None:
    with pytest.raises(ImageError, match="not in the cache"):
        embedded_file(name)


def test_no_bytes_are_no_image() -> None:
    with pytest.raises(ImageError, match="0 bytes"):
        keep_image(b"")


# --- streaming


def peak(samples: Iterator[Sample]) -> int:
    """Most memory that Python objects take while the samples pass by, in bytes."""
    tracemalloc.start()
    for _ in samples:
        pass
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.parametrize("kind", ["jsonl", "tsv", "parquet", "csv"])
def test_memory_does_not_grow_with_the_rows(registry: Registry, tmp_path: Path, kind: str) -> None:
    used = []
    for count in (500, 5_000):
        answers = [f"ответ {n} " * 20 for n in range(count)]
        if kind == "jsonl":
            path = lines(tmp_path / f"{count}.jsonl", *({"question": "Q", "answer": answer} for answer in answers))
        elif kind == "parquet":
            path = parquet(tmp_path / f"{count}.parquet", question=["Q"] * count, answer=answers)
        elif kind == "tsv":
            records = (["", "Q", answer] for answer in answers)
            path = tsv(tmp_path / f"{count}.tsv", ["image", "question", "answer"], *records)
        else:
            path = tmp_path / str(count)
            path.mkdir()
            text = "".join(f"1;;Q;{answer}\n" for answer in answers)
            (path / "annotation.csv").write_text(f"data_index;image_path;question;answer\n{text}", encoding="utf-8")
        used.append(peak(iter(opened(registry, path))))
    assert used[1] < used[0] * 2
