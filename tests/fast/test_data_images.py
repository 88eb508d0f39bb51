"""Image paths as people write them lead to a file inside the dataset, or to a sentence about why not."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from vlmhb.data.images import resolve_image
from vlmhb.errors import ImageError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "dataset"
    for name in ("images/a.png", "images/sub/b.png", "images/Скан 1.jpg"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (tmp_path / "secret.png").write_bytes(b"x")
    return folder


def refusal(root: Path, written: str) -> str:
    with pytest.raises(ImageError) as caught:
        resolve_image(root, written)
    assert caught.value.kind == "image"
    return str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        "images/a.png",
        "images\\a.png",
        "./images/a.png",
        ".\\images\\a.png",
        "images//a.png",
        " images/a.png ",
        "images/./a.png",
    ],
)
def test_either_slash_and_spaces_around(root: Path, written: str) -> None:
    assert resolve_image(root, written) == root / "images" / "a.png"


def test_mixed_slashes_and_spaces_inside(root: Path) -> None:
    assert resolve_image(root, "images/sub\\b.png") == root / "images" / "sub" / "b.png"
    assert resolve_image(root, "images/Скан 1.jpg").read_bytes() == b"x"


@pytest.mark.parametrize(
    "written",
    ["/etc/passwd", "\\\\server\\share\\a.png", "C:\\scans\\a.png", "c:/scans/a.png", "C:a.png", "/images/a.png"],
)
def test_absolute_paths_are_refused(root: Path, written: str) -> None:
    message = refusal(root, written)
    assert written in message
    assert "relative" in message


@pytest.mark.parametrize(
    "written", ["../secret.png", "images/../../secret.png", "..\\secret.png", "images/..", ".", "./"]
)
def test_paths_out_of_the_folder_are_refused(root: Path, written: str) -> None:
    assert "may not leave" in refusal(root, written)


@pytest.mark.parametrize("link", ["images/link.png", "linked/secret.png"])
def test_a_link_out_of_the_folder_is_refused_and_its_target_named(root: Path, link: str) -> None:
    path = root / link
    if path.name == "link.png":
        path.symlink_to(root.parent / "secret.png")
    else:
        path.parent.symlink_to(root.parent)
    message = refusal(root, link)
    assert str(root.parent / "secret.png") in message
    assert "outside" in message


def test_links_inside_the_folder_and_to_the_folder_are_followed(root: Path) -> None:
    (root / "same.png").symlink_to(root / "images" / "a.png")
    assert resolve_image(root, "same.png").read_bytes() == b"x"
    (root.parent / "other").symlink_to(root)
    assert resolve_image(root.parent / "other", "images/a.png").read_bytes() == b"x"


def test_a_relative_dataset_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    assert resolve_image(Path("dataset"), "images/a.png") == Path("dataset/images/a.png")


@pytest.mark.parametrize(
    "written", ["http://host/a.png", "https://host/a.png", "file:///a.png", "data:image/png;base64,AA=="]
)
def test_addresses_are_not_fetched(root: Path, written: str) -> None:
    assert "not fetched" in refusal(root, written)


@pytest.mark.parametrize("written", ["", "   ", "a\0b.png"])
def test_what_is_no_path(root: Path, written: str) -> None:
    assert "no image path" in refusal(root, written)


@pytest.mark.parametrize("written", ["images/none.png", "none/a.png", "images/a.png/b.png"])
def test_a_missing_file_is_named(root: Path, written: str) -> None:
    message = refusal(root, written)
    assert message.startswith(f"image {written}: there is no such file")
    assert "there is no such file;" not in message


@pytest.mark.parametrize(
    ("written", "near"),
    [("images/A.PNG", "a.png"), ("images/a.jpg", "a.png"), ("images/a", "a.png"), ("images/скан 1.JPG", "Скан 1.jpg")],
)
def test_a_file_of_nearly_the_same_name_is_named(root: Path, written: str, near: str) -> None:
    assert refusal(root, written).endswith(f"there is {near}")


def test_another_unicode_form_of_the_name_is_named(root: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "йод.png")
    (root / "images" / decomposed).write_bytes(b"x")
    assert refusal(root, "images/" + unicodedata.normalize("NFC", "йод.png")).endswith(f"there is {decomposed}")


def test_a_near_name_is_found_after_the_folder_has_changed(root: Path) -> None:
    assert "there is c" not in refusal(root, "images/c.png")
    (root / "images" / "c.jpg").write_bytes(b"x")
    assert refusal(root, "images/c.png").endswith("there is c.jpg")


def test_a_folder_is_no_image(root: Path) -> None:
    assert "a folder" in refusal(root, "images/sub")


def test_a_name_too_long_for_the_file_system_is_missing(root: Path) -> None:
    assert refusal(root, "images/" + "x" * 5000)
