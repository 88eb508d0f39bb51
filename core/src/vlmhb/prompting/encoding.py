"""Work on the tensors of a batch: replace markers in the ids, and keep every row's side arrays in step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlmhb.prompting.literals import Literals

_PER_TOKEN = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "cross_attention_mask")
"""Arrays of shape (batch, tokens, ...) that a processor may return."""


def put_back_literals(
    batch: Any, words: Sequence[Sequence[str]], literals: Literals, pad_id: int, *, left: bool = True
) -> None:
    """Replace each marker by its word's plain ids in a padded batch, in place; rows are padded anew.

    Args:
        batch: the processor's tensors.
        words: per row the words that its markers stand for, in order.
        literals: whose markers they are.
        pad_id: the id to pad ``input_ids`` with; other arrays are padded with 0.
        left: the side that is padded.
    """
    import torch

    ids = batch["input_ids"]
    rows, sources = [], []
    for row in range(ids.shape[0]):
        kept = kept_positions(batch, row)
        new_ids: list[int] = []
        source: list[int] = []
        for position, (token, plain) in zip(kept, literals.pieces(ids[row, kept].tolist(), words[row]), strict=True):
            piece = (token,) if plain is None else plain
            new_ids.extend(piece)
            source.extend([position] * len(piece))
        rows.append(torch.tensor(new_ids, dtype=ids.dtype))
        sources.append(torch.tensor(source, dtype=torch.long))
    length = max(len(row) for row in rows)
    for name in _PER_TOKEN:
        if name not in batch:
            continue
        old = batch[name]
        new = old.new_full((old.shape[0], length, *old.shape[2:]), pad_id if name == "input_ids" else 0)
        for row, (row_ids, source_of) in enumerate(zip(rows, sources, strict=True)):
            place = slice(length - len(row_ids), None) if left else slice(len(row_ids))
            new[row, place] = row_ids if name == "input_ids" else old[row, source_of]
        batch[name] = new


def kept_positions(batch: Any, row: int) -> list[int]:
    """The positions of a row that are no padding."""
    if "attention_mask" not in batch:
        return list(range(batch["input_ids"].shape[1]))
    positions: list[int] = batch["attention_mask"][row].nonzero().flatten().tolist()
    return positions
