"""Links of the documentation lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.docs import DOCS, anchors, links, pages
from support.envs import ROOT

LINKED = [*pages(), *sorted((ROOT / "examples").rglob("README.md")), *sorted(ROOT.glob("*.md"))]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links(page: Path) -> None:
    for line, target in links(page):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        place = f"{page.relative_to(ROOT)}:{line}: {target}"
        assert path.exists(), place
        assert path.is_relative_to(ROOT), place
        if anchor:
            assert anchor in anchors(path), place


def test_every_page_is_in_the_index() -> None:
    linked = {(DOCS / target).resolve() for _, target in links(DOCS / "README.md")}
    assert linked == {page for page in pages() if page != DOCS / "README.md"}


def test_no_page_holds_a_place_of_one_machine() -> None:
    for page in LINKED:
        text = page.read_text(encoding="utf-8")
        assert str(ROOT) not in text
        assert "/root/" not in text
        assert "/tmp/" not in text, page
