"""Byte-level byte-pair encoding: learning the merges (Sennrich et al., 2016, arXiv:1508.07909)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

Pair = tuple[str, str]


def byte_symbols() -> list[str]:
    """One printable character for each byte value, as GPT-2's vocabularies write them.

    Bytes that print as themselves in Latin-1 stand for themselves; the others take U+0100, U+0101, ... in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(value if value in printable else next(spare)) for value in range(256)]


def learn_merges(words: Iterable[str], limit: int) -> list[Pair]:
    """The most frequent pairs of neighbours, merged one after the other; ties go to the pair that sorts first.

    Args:
        words: the pieces of a text; a merge never reaches over the edge of a piece.
        limit: most merges to learn.
    """
    symbols = byte_symbols()
    counts = Counter(tuple(symbols[byte] for byte in word.encode("utf-8")) for word in words)
    merges: list[Pair] = []
    while len(merges) < limit:
        pairs: Counter[Pair] = Counter()
        for word, count in counts.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        merged: Counter[tuple[str, ...]] = Counter()
        for word, count in counts.items():
            merged[_merge(word, best)] += count
        counts = merged
    return merges


def _merge(word: tuple[str, ...], pair: Pair) -> tuple[str, ...]:
    if pair[0] not in word:
        return word
    out: list[str] = []
    for symbol in word:
        if out and (out[-1], symbol) == pair:
            out[-1] += symbol
        else:
            out.append(symbol)
    return tuple(out)
