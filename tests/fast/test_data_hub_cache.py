"""Datasets downloaded from the hub, read from its cache as its own tools lay it out."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import polars as pl
import pytest
from support.pages import png
from vlmhb.config.cells import CellError
from vlmhb.config.lookup import Places
from vlmhb.contract.dataset import Dataset
from vlmhb.data.images import find_image
from vlmhb.discovery.registry import Registry
from vlmhb.errors import ImageError

OLD, NEW = "a" * 40, "b" * 40
ID = "people/cards"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache in a temporary folder."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("VLMHB_HOME", str(tmp_path / "home"))
    return tmp_path / "hub" / "datasets--people--cards"


def download(hub: Path, commit: str, files: dict[str, bytes], *refs: str) -> None:
    """Lay files out as the hub's tools do: blobs by digest, snapshots of links, refs with commits."""
    for name, content in files.items():
        blob = hub / "blobs" / hashlib.sha256(content).hexdigest()
        link = hub / "snapshots" / commit / name
        for path in (blob, link):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link.symlink_to(os.path.relpath(blob, link.parent))
    for ref in refs:
        (hub / "refs").mkdir(exist_ok=True)
        (hub / "refs" / ref).write_text(commit)


def parquet(tmp_path: Path, *answers: str) -> bytes:
    path = tmp_path / "made.parquet"
    image = {"bytes": png(), "path": "a.png"}
    pl.DataFrame(
        [{"image": image, "question": "Sum?", "answer": answer, "unit": "RUB"} for answer in answers]
    ).write_parquet(path)
    return path.read_bytes()


def opened(written: str = ID) -> Dataset:
    return Places(Path(), Path(), Registry()).dataset(written, "")


@pytest.fixture
def cards(hub: Path, tmp_path: Path) -> Path:
    """Two revisions of a dataset with two splits."""
    new = {f"data/{split}-00000-of-00001.parquet": parquet(tmp_path, f"{split} new") for split in ("test", "train")}
    download(hub, OLD, {"data/test-00000-of-00001.parquet": parquet(tmp_path, "old", "older")}, "v1")
    download(hub, NEW, new, "main")
    return hub


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        ("", ["test new", "train new"]),
        ("?split=train", ["train new"]),
        ("?revision=v1", ["old", "older"]),
        ("?revision=main&split=test", ["test new"]),
        (f"?revision={OLD[:7]}", ["old", "older"]),
        (f"?revision={NEW}&answer=unit", ["RUB", "RUB"]),
    ],
)
def test_splits_and_revisions(cards: Path, options: str, answers: list[str]) -> None:
    for name in (ID, str(cards)):
        dataset = opened(name + options)
        rows = list(dataset)
        assert [row.reference for row in rows] == answers
        assert find_image(dataset, rows[0].images[0]).read_bytes() == png()


def test_the_layout_is_the_hubs_own(cards: Path) -> None:
    hub_tools = pytest.importorskip("huggingface_hub")
    for revision, commit in (("main", NEW), ("v1", OLD)):
        found = hub_tools.snapshot_download(
            ID, repo_type="dataset", revision=revision, cache_dir=cards.parent, local_files_only=True
        )
        assert Path(found) == cards / "snapshots" / commit


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("?revision=v9", rf"no revision 'v9' on this machine; it has main, v1, {OLD}, {NEW}"),
        ("?revision=", "no revision ''"),
        ("?split=dev", "no split 'dev'; it has test, train"),
        ("?page=1", "page"),
    ],
)
def test_what_is_not_there_is_named(cards: Path, options: str, reason: str) -> None:
    with pytest.raises(CellError, match=reason):
        opened(ID + options)


def test_a_dataset_that_was_not_downloaded(hub: Path) -> None:
    with pytest.raises(CellError, match=f"there is no dataset '{ID}'") as caught:
        opened()
    assert str(hub) in str(caught.value.hint)


def test_images_beside_json_lines_may_be_links_into_the_blobs_and_no_others(hub: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    names = ("images/a.png", "../secret.png", "images/out.png", "images/none.png")
    lines = [json.dumps({"image": name, "question": "?", "answer": "x"}) for name in names]
    download(hub, NEW, {"metadata.jsonl": "\n".join(lines).encode(), "images/a.png": png()}, "main")
    (hub / "snapshots" / NEW / "images" / "out.png").symlink_to(tmp_path / "secret.png")
    dataset = opened()
    first, *others = dataset
    assert find_image(dataset, first.images[0]).read_bytes() == png()
    for row in others:
        with pytest.raises(ImageError):
            find_image(dataset, row.images[0])
    with pytest.raises(CellError, match="jsonl, which has no split"):
        opened(f"{ID}?split=test")


def test_a_snapshot_without_rows_is_refused(hub: Path) -> None:
    download(hub, NEW, {"README.md": b"x"}, "main")
    with pytest.raises(CellError, match="holds no Parquet files"):
        opened()


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ({"HF_HOME": "h"}, "h/hub"),
        ({"XDG_CACHE_HOME": "x"}, "x/huggingface/hub"),
        ({"HF_HUB_CACHE": "c", "HF_HOME": "h"}, "c"),
    ],
)
def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], place: str) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in names.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    download(tmp_path / place / "datasets--people--cards", NEW, {"x.parquet": parquet(tmp_path, "1")}, "main")
    assert [row.reference for row in opened()] == ["1"]
