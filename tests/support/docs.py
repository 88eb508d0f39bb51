"""Reading the documentation: its blocks, its tables, its links.

A comment on the line before a block or a table says what the tests do with it:

- ``<!-- file: NAME -->``: the block is written to this file of the page's scratch folder;
- ``<!-- tested -->``: a ``console`` block is run there and its output compared, ``...`` standing for any text;
  a ``python`` block is run, and the comment behind each ``print`` is what it must print;
- ``<!-- source: PATH -->``: the block is a part of this file of the repository;
- ``<!-- names: KEY -->``: the names in the first column of the table are compared with the program's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from support.envs import ROOT

DOCS = ROOT / "docs"
_MARKER = re.compile(r"<!-- (file|tested|names|source)(?:: (\S+))? -->")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")


@dataclass(frozen=True)
class Block:
    """A fenced block: the line it starts on, its language, its marker, and its text."""

    page: Path
    line: int
    language: str
    marker: str
    name: str
    text: str


@dataclass(frozen=True)
class Names:
    """A table of names: each name of the first column, with the row's other cells by the header."""

    page: Path
    line: int
    key: str
    rows: dict[str, dict[str, str]]


def pages() -> list[Path]:
    """Every page under ``docs/``."""
    return sorted(DOCS.rglob("*.md"))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    marker = ("", "")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("```"):
            end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith("```"))
            text = "\n".join(lines[at + 1 : end]) + "\n"
            found.append(Block(page, at + 1, line[3:].strip(), *marker, text))
            at = end
        if line.strip():
            match = _MARKER.fullmatch(line.strip())
            marker = (match[1], match[2] or "") if match else ("", "")
        at += 1
    return found


def name_tables() -> dict[str, Names]:
    """The tables of names of all pages, by key."""
    found: dict[str, Names] = {}
    for page in pages():
        lines = page.read_text(encoding="utf-8").splitlines()
        for at, line in enumerate(lines):
            match = _MARKER.fullmatch(line.strip())
            if match and match[1] == "names":
                assert match[2] not in found, f"{page.name}:{at + 1}: the key {match[2]} stands twice"
                found[match[2]] = Names(page, at + 1, match[2], _rows(lines[at + 1 :]))
    return found


def links(page: Path) -> list[tuple[int, str]]:
    """The targets of a page's links, with their lines; those in code are none."""
    found = []
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced:
            found += [(number, one or two) for one, two in _LINK.findall(_CODE.sub("", line))]
    return found


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            title = line.lstrip("#").strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return found


def _rows(lines: list[str]) -> dict[str, dict[str, str]]:
    table = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]])
        elif table or line.strip():
            break
    header, _, *rows = table
    return {name: dict(zip(header, row, strict=True)) for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
