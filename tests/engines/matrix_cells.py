"""Holding engines to the page: a cell of ``docs/compatibility.md`` may get better, not worse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import twins
from vlmhb import GenerationResult, Twin
from vlmhb.compare.engines import EngineAnswers, ask_engine
from vlmhb.doctor.cells import ORDER, Cell, cell_of
from vlmhb.doctor.families import Row, rows
from vlmhb.doctor.matrix import Measured, read_cells
from vlmhb.doctor.questions import questions

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.json"
ROWS = {row.name: row for row in rows()}


def measured(backend: str) -> list[Measured]:
    """The cells of a backend that say more than that nothing could be compared."""
    return [entry for entry in read_cells(PAGE) if entry.cell.backend == backend and entry.cell.outcome != "unknown"]


class Twins:
    """Twins with the reference's answers, each made once."""

    def __init__(self, home: Path, reference: Callable[..., dict[str, GenerationResult]]) -> None:
        """Args: where twins are made; what hf answers to requests about a folder."""
        self._home = home
        self._reference = reference
        self._made: dict[str, tuple[Twin, EngineAnswers]] = {}

    def get(self, row: Row) -> tuple[Twin, EngineAnswers]:
        """A row's twin and its answers."""
        if row.name not in self._made:
            twin = twins.twin_apart(row, self._home / f"twin{len(self._made)}")
            asked = [
                msgspec.structs.replace(request, return_prompt_ids=True, logprobs=5)
                for request in questions(twin.image_counts)
            ]
            trust = {"trust_remote_code": True} if row.trust_remote_code else {}
            self._made[row.name] = twin, EngineAnswers("hf", self._reference(Path(twin.path), asked, **trust))
        return self._made[row.name]

    def now(self, entry: Measured, load: Callable[..., Any]) -> Cell:
        """The same cell, measured here."""
        row = ROWS[entry.family]
        twin, reference = self.get(row)
        way = entry.cell.implementation
        images = max(1, *twin.image_counts)
        fields = {"model_impl": way, "max_images": images, "trust_remote_code": row.trust_remote_code}
        answers = ask_engine(
            entry.cell.backend,
            lambda: load(Path(twin.path), **fields),
            questions(twin.image_counts),
            lambda _: None,
        )
        return cell_of(entry.cell.backend, way, answers, reference)


def is_worse(now: Cell, before: Cell) -> bool:
    """Whether a cell's outcome is one further down the list."""
    return ORDER.index(now.outcome) > ORDER.index(before.outcome)
