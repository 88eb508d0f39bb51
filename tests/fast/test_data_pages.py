"""Folders of pages with their answers beside them, and PDF files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from support.pages import pdf, png
from vlmhb.config.cells import CellError
from vlmhb.config.lookup import Places
from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.data.folder import READ_FIELDS
from vlmhb.data.images import find_image
from vlmhb.data.pdf import READ_PAGE
from vlmhb.discovery.registry import Registry
from vlmhb.errors import ImageError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))
    return tmp_path / "home/cache/images"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "scans"
    path.mkdir()
    return path


def opened(registry: Registry, written: Path | str) -> Dataset:
    return Places(Path(), Path(), registry).dataset(str(written), "")


def rows(registry: Registry, written: Path | str) -> list[Sample]:
    return list(opened(registry, written))


def write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


# --- images with a file beside them


def test_images_with_texts_beside_them(registry: Registry, folder: Path) -> None:
    write(folder / "b.png", png())
    write(folder / "b.txt", "\ufeffСтрока 1\nСтрока 2\n")
    write(folder / "чеки/a.JPG", png())
    write(folder / "чеки/a.txt", "12,50")
    write(folder / "notes.md", "no page")
    write(folder / ".hidden/x.png", png())
    first, second = rows(registry, folder)
    assert (first.row, first.data_index, first.images, first.doc_class) == (1, "b", ("b.png",), "")
    assert (first.question, first.question_type, first.reference) == (READ_PAGE, "text", "Строка 1\nСтрока 2")
    assert (second.row, second.data_index, second.images) == (2, "чеки/a", ("чеки/a.JPG",))
    assert (second.doc_class, second.reference, second.problem) == ("чеки", "12,50", None)
    assert rows(registry, f"{folder}?question=Read it.")[0].question == "Read it."


def test_questions_in_a_json_file(registry: Registry, folder: Path) -> None:
    write(folder / "a.png", png())
    asked = [{"question": "Q1", "answer": 1.50, "question_type": "sum"}, {"question": "Q2", "answers": ["x", "y"]}]
    write(folder / "a.json", json.dumps(asked).replace("1.5", "1.50"))
    write(folder / "b.png", png())
    write(folder / "b.json", json.dumps({"question": "Q3", "answer": "z", "image": "/etc/passwd", "id": "7"}))
    first, second, third = rows(registry, folder)
    assert [(row.row, row.data_index, row.images) for row in (first, second, third)] == [
        (1, "a", ("a.png",)),
        (2, "a", ("a.png",)),
        (3, "7", ("b.png",)),
    ]
    assert (first.question, first.reference, first.question_type) == ("Q1", "1.50", "sum")
    assert (second.reference, second.other_references) == ("x", ("y",))


def test_a_json_file_of_fields_is_itself_the_answer(registry: Registry, folder: Path) -> None:
    write(folder / "a.png", png())
    write(folder / "a.json", '{"имя": "Аня", "суммы": [1.5, 2]}')
    (row,) = rows(registry, folder)
    assert (row.question, row.question_type) == (READ_FIELDS, "fields")
    assert row.reference == '{"имя": "Аня", "суммы": [1.5, 2]}'


def test_what_is_wrong_beside_an_image_is_a_problem_of_its_row(registry: Registry, folder: Path) -> None:
    for name in ("a", "b", "c", "d"):
        write(folder / f"{name}.png", png())
    write(folder / "b.txt", "x")
    write(folder / "b.json", "{}")
    write(folder / "c.json", "{")
    write(folder / "d.txt", b"\xff\xfe\x00")
    found = [str(row.problem) for row in rows(registry, folder)]
    assert "there is no a.txt or a.json with the right answer" in found[0]
    assert "b.txt and b.json both exist" in found[1]
    assert "c.json cannot be read" in found[2]
    assert "d.txt cannot be read" in found[3]


def test_a_folder_without_a_page_that_has_an_answer_is_not_walked_to_its_end(
    registry: Registry, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.png", png())
    with pytest.raises(CellError, match="no dataset of an installed format") as caught:
        opened(registry, folder)
    assert "or pages with their answers beside them" in str(caught.value.hint)
    monkeypatch.setattr("vlmhb.data.folder._LOOKED_AT", 5)
    for number in range(5):
        write(folder / f"sub/{number}.md", "no page")
    write(folder / "z.png", png())
    write(folder / "z.txt", "too far away")
    with pytest.raises(CellError, match="no dataset"):
        opened(registry, folder)
    write(folder / "a.txt", "x")
    assert [row.reference for row in rows(registry, folder) if not row.problem] == ["x", "too far away"]


def test_an_empty_folder_is_no_dataset(registry: Registry, folder: Path) -> None:
    write(folder / "a.txt", "x")
    with pytest.raises(CellError, match=r"no dataset of an installed format \(vlmhyperbench.*folder\)"):
        opened(registry, folder)


def test_an_annotation_goes_before_the_files(registry: Registry, folder: Path) -> None:
    write(folder / "images/1.png", png())
    write(folder / "annotation.csv", "data_index;image_path;question;answer\n1;images/1.png;Q;A\n")
    assert [row.question for row in rows(registry, folder)] == ["Q"]


# --- PDF


def test_each_page_is_a_row_with_its_text(registry: Registry, folder: Path) -> None:
    write(folder / "d.pdf", pdf([["Invoice 12", "Total 5.50"], [], ["Page three"]]))
    dataset = opened(registry, folder / "d.pdf")
    first, second, third = list(dataset)
    assert (first.row, first.data_index, first.images) == (1, "d", ("d.pdf#page=1",))
    assert (first.question, first.question_type, first.reference) == (READ_PAGE, "text", "Invoice 12\nTotal 5.50")
    assert (second.images, second.reference) == (("d.pdf#page=2",), "")
    assert "page 2 has no text layer" in str(second.problem)
    assert (third.row, third.reference, third.problem) == (3, "Page three", None)


@pytest.mark.parametrize(("options", "size"), [("", (417, 209)), ("?dpi=72", (200, 100)), ("?dpi=144", (400, 200))])
def test_pages_are_rendered_at_the_chosen_resolution(
    registry: Registry, folder: Path, cache: Path, options: str, size: tuple[int, int]
) -> None:
    write(folder / "d.pdf", pdf([["Invoice 12"]]))
    dataset = opened(registry, f"{folder / 'd.pdf'}{options}")
    (row,) = list(dataset)
    assert not list(cache.rglob("*.png"))  # nobody has asked for a picture yet
    path = find_image(dataset, row.images[0])
    with Image.open(path) as picture:
        assert (picture.size, picture.mode) == (size, "RGB")
        dark = sum(picture.convert("L").histogram()[:128])
    assert dark > 50
    before = path.stat().st_mtime_ns
    assert find_image(dataset, row.images[0]) == path
    assert path.stat().st_mtime_ns == before
    assert len(list(cache.rglob("*.png"))) == 1


def test_another_file_of_the_same_name_is_rendered_again(registry: Registry, folder: Path) -> None:
    write(folder / "d.pdf", pdf([["A"]]))
    dataset = opened(registry, folder / "d.pdf")
    first = find_image(dataset, "d.pdf#page=1").read_bytes()
    write(folder / "d.pdf", pdf([["BBBBBB"]], size=(300, 100)))
    assert find_image(dataset, "d.pdf#page=1").read_bytes() != first


def test_files_that_cannot_be_opened_are_rows_with_the_reason(registry: Registry, folder: Path) -> None:
    write(folder / "a.pdf", b"%PDF-1.4 broken")
    write(folder / "b.pdf", pdf([["secret"]], password="x"))
    write(folder / "c/d.pdf", pdf([["text"]]))
    write(folder / "e.pdf", b"")
    write(folder / "f.png", png())
    write(folder / "f.txt", "png")
    found = rows(registry, folder)
    assert [row.row for row in found] == [1, 2, 3, 4, 5]
    assert "a.pdf: it is no readable PDF" in str(found[0].problem)
    assert "b.pdf: it needs a password" in str(found[1].problem)
    assert (found[2].images, found[2].doc_class, found[2].reference) == (("c/d.pdf#page=1",), "c", "text")
    assert "e.pdf: it is no readable PDF" in str(found[3].problem)
    assert (found[4].images, found[4].reference) == (("f.png",), "png")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("d.pdf#page=9", "the page cannot be rendered"),
        ("none.pdf#page=1", "there is no such file"),
        ("../d.pdf#page=1", "may not leave"),
    ],
)
def test_pages_that_are_not_there(registry: Registry, folder: Path, written: str, said: str) -> None:
    write(folder / "d.pdf", pdf([["A"]]))
    with pytest.raises(ImageError, match=said):
        find_image(opened(registry, folder / "d.pdf"), written)


def test_a_page_of_too_many_pixels_is_refused_before_it_is_rendered(registry: Registry, folder: Path) -> None:
    write(folder / "d.pdf", pdf([["A"]], size=(14_000, 14_000)))
    with pytest.raises(ImageError, match="29167 x 29167 pixels at 150 dpi are too many"):
        find_image(opened(registry, folder / "d.pdf"), "d.pdf#page=1")


@pytest.mark.parametrize("dpi", ["abc", "0", "5000", "-1", ""])
def test_a_resolution_that_is_none(registry: Registry, folder: Path, dpi: str) -> None:
    write(folder / "d.pdf", pdf([["A"]]))
    for path in (folder, folder / "d.pdf"):
        with pytest.raises(CellError, match="dpi must be a whole number from 20 to 1200"):
            opened(registry, f"{path}?dpi={dpi}")
