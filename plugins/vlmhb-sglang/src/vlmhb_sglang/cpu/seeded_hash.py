"""MurmurHash3 (x86, 32 bit) of seed, position and vocabulary column, in torch operators.

SGLang draws a token as argmax(log p + Gumbel noise), with noise from this hash, so that a draw depends on the
request's seed and position only. Algorithm: Austin Appleby's MurmurHash3, public domain, over the 16 bytes
``seed (8, little-endian) | position (4) | column (4)`` with hash seed 0.
"""

from __future__ import annotations

import torch

_WORD = 0xFFFFFFFF
_BYTES = 16


def seeded_hash(seed: torch.Tensor, positions: torch.Tensor, col_indices: torch.Tensor) -> torch.Tensor:
    """Hash every (row, column) pair.

    Args:
        seed: shape ``[rows]``, 64-bit integers of either signedness.
        positions: shape ``[rows]``, position of the token to draw.
        col_indices: shape ``[columns]``, token ids.

    Returns:
        Shape ``[rows, columns]``, int64 with values in ``[0, 2**32)``.
    """
    # int64 holds every product of two 32-bit words modulo 2**64, which leaves the low 32 bits right.
    rows = seed.view(torch.int64).unsqueeze(1)
    words = (
        rows & _WORD,
        (rows >> 32) & _WORD,
        positions.to(torch.int64).unsqueeze(1) & _WORD,
        col_indices.to(torch.int64).unsqueeze(0) & _WORD,
    )
    state = torch.zeros_like(rows)
    for word in words:
        word = _rotate(word * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
        state = _rotate(state ^ word, 13) * 5 + 0xE6546B64 & _WORD
    return _avalanche(state ^ _BYTES)


def _rotate(word: torch.Tensor, bits: int) -> torch.Tensor:
    return (word << bits | word >> 32 - bits) & _WORD


def _avalanche(state: torch.Tensor) -> torch.Tensor:
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    return state ^ state >> 16
