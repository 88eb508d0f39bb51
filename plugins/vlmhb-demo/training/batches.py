"""Arrays of pages: grey patches, packed questions, the letters of every image token; made in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
from dataclasses import dataclass
from functools import cache

import numpy as np
from vlmhb_demo.tiny_model.config import CLIP_MEAN

from training.gaze import NOWHERE, cell, centres
from training.pages import SHAPES, Asked, Sample, sample
from training.sizes import CELL, MERGE, PATCH
from training.words import encode, tokenizer

IGNORED = -100
"""Target of a token that is not learnt."""
OWN_SLOTS = 5
"""Most letters whose middle lies in one cell."""
SLOTS = OWN_SLOTS + 2
"""Before these the last letter of the cell to the left, behind them the first one of the cell to the right."""
START = 4
"""Tokens before the image."""


@dataclass(frozen=True)
class Batch:
    """Pages of one size.

    Attributes:
        rows, columns: of image tokens.
        patches: (pages, patches, 196) grey values in the processor's order, float16.
        letters: (pages, image tokens, SLOTS) tokens of the letters in each cell, from left to right, and of those
            beside it; ``blank()`` for none; ``IGNORED`` where they are not known.
        tokens: (pages, prefix + long + branches * short) token ids; the prefix holds zeros for the image.
        targets: (pages, long + branches * short) next tokens, ``IGNORED`` where nothing is learnt.
        looks: (2, pages, long + branches * short) the image tokens that show the letter of the token itself, if it is
            one of an answer, and the letter of the next token; ``IGNORED`` for none.
        places: (3, tokens) of every token in time, row and column.
        long, short: padded lengths of the branches.
    """

    rows: int
    columns: int
    patches: np.ndarray
    letters: np.ndarray
    tokens: np.ndarray
    targets: np.ndarray
    looks: np.ndarray
    places: np.ndarray
    long: int
    short: int


def batch(seed: str, pages: int, fields: int, **drawn: float) -> Batch:
    """One batch; its page size is drawn with the number of classes that have it, ``drawn`` is for its samples."""
    rng = random.Random(f"batch/{seed}")
    (rows, columns), classes = rng.choices(list(SHAPES.items()), [len(names) for names in SHAPES.values()])[0]
    samples = [sample(f"{seed}/{n}", rng.choice(classes), fields, **drawn) for n in range(pages)]
    return pack(samples, rows, columns)


def pack(samples: list[Sample], rows: int, columns: int) -> Batch:
    """Arrays of pages of one size with equally many questions each."""
    long = _padded([_branch(s.whole, s.worn) for s in samples], 16)
    short = _padded([_branch(asked, s.worn) for s in samples for asked in s.fields], 8)
    count, fields = len(samples), len(samples[0].fields)
    prefix = np.zeros((count, START + rows * columns), np.int64)
    prefix[:, :START] = _opening()
    return Batch(
        rows=rows,
        columns=columns,
        patches=np.stack([patches(np.asarray(s.page.image)) for s in samples]).astype(np.float16),
        letters=np.stack([_letters(s, rows, columns) for s in samples]),
        tokens=np.concatenate((prefix, long[0], short[0].reshape(count, -1)), 1),
        targets=np.concatenate((long[1], short[1].reshape(count, -1)), 1),
        looks=np.stack([np.concatenate((long[n], short[n].reshape(count, -1)), 1) for n in (2, 3)]),
        places=_places(rows, columns, long.shape[2], short.shape[2], fields),
        long=long.shape[2],
        short=short.shape[2],
    )


def patches(pixels: np.ndarray) -> np.ndarray:
    """(patches, 196) grey values of an RGB page about the processor's mean, four patches of a token in a row."""
    grey = pixels.mean(axis=2, dtype=np.float32) / 255.0 - np.float32(np.mean(CLIP_MEAN))
    rows, columns = grey.shape[0] // CELL, grey.shape[1] // CELL
    cut = grey.reshape(rows, MERGE, PATCH, columns, MERGE, PATCH)
    return cut.transpose(0, 3, 1, 4, 2, 5).reshape(-1, PATCH**2)


@cache
def _opening() -> list[int]:
    special, roles = tokenizer().special, tokenizer().roles
    return [special["<|im_start|>"], roles["user"], *encode("\n"), special["<|vision_start|>"]]


def _branch(asked: Asked, worn: bool) -> tuple[list[int], ...]:
    """Tokens from the end of the image on; for each the next one where that is learnt, and where to look."""
    special, roles = tokenizer().special, tokenizer().roles
    end = special["<|im_end|>"]
    words = [special["<|vision_end|>"], *encode(asked.question), end, *encode("\n"), special["<|im_start|>"]]
    words += [roles["assistant"], *encode("\n")]
    said = [*encode(asked.answer), end]
    silent = [IGNORED] * (len(words) - 1)
    looks = [IGNORED if worn or place == NOWHERE else place for place in (*asked.path, asked.path[-1])]
    return words + said[:-1], silent + said, [*silent, IGNORED, *looks[:-1]], silent + looks


def _padded(branches: list[tuple[list[int], ...]], step: int) -> np.ndarray:
    """(4, branches, size): what :func:`_branch` gives, all of one length."""
    longest = max(len(tokens) for tokens, *_ in branches)
    size = -(-longest // step) * step
    padded = np.full((4, len(branches), size), IGNORED, np.int64)
    padded[0] = 0
    for row, lists in enumerate(branches):
        for part, numbers in enumerate(lists):
            padded[part, row, : len(numbers)] = numbers
    return padded


def _places(rows: int, columns: int, long: int, short: int, branches: int) -> np.ndarray:
    """As Qwen2-VL counts: text goes on in all three, an image takes its rows and columns, text goes on after both."""
    opening = np.tile(np.arange(START), (3, 1))
    down, across = np.divmod(np.arange(rows * columns), columns)
    image = np.stack((np.zeros_like(down), down, across)) + START
    after = START + max(rows, columns)
    branch = np.concatenate((np.arange(long), np.tile(np.arange(short), branches))) + after
    return np.concatenate((opening, image, np.tile(branch, (3, 1))), 1)


@cache
def blank() -> int:
    """The token that stands for no letter; it means nothing in a text."""
    return tokenizer().special["<|vision_pad|>"]


def _letters(sample: Sample, rows: int, columns: int) -> np.ndarray:
    found = np.full((rows, columns, SLOTS), blank(), np.int64)
    if sample.worn:  # turned, so the places of its letters are not known well enough
        return np.full((rows * columns, SLOTS), IGNORED, np.int64)
    cells: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for text in sample.page.texts:
        for letter, x, y in centres(text):
            place = divmod(cell(sample.page, x, y), columns)
            cells.setdefault(place, []).append((x, encode(letter.replace("\u00a0", " "))[0]))
    for (row, column), placed in cells.items():
        letters = [letter for _, letter in sorted(placed)]
        kept = letters[:OWN_SLOTS]
        found[row, column, 1 : 1 + len(kept)] = kept
        if column + 1 < columns:
            found[row, column + 1, 0] = letters[-1]
        if column > 0:
            found[row, column - 1, -1] = letters[0]
    return found.reshape(rows * columns, SLOTS)


class Supply:
    """Batches made ahead in other processes, in order; close it when done."""

    def __init__(self, seed: str, pages: int, fields: int, often: float, first: int = 0, workers: int = 1) -> None:
        context = multiprocessing.get_context("spawn")
        self._queues = [context.Queue(6) for _ in range(workers)]
        self._number = first
        self._processes = [
            context.Process(
                target=_fill, args=(target, (seed, pages, fields, often), first + offset, workers), daemon=True
            )
            for offset, target in enumerate(self._queues)
        ]
        for process in self._processes:
            process.start()
        self._first = first

    def next(self) -> Batch:
        """The next batch; waits for it."""
        source = self._queues[(self._number - self._first) % len(self._queues)]
        self._number += 1
        made: Batch = source.get(timeout=300)
        return made

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.terminate()
            process.join()


def _fill(target: multiprocessing.Queue[Batch], wanted: tuple[str, int, int, float], number: int, step: int) -> None:
    """Make batches until the process that wants them is gone, however it ended."""
    parent = os.getppid()
    seed, pages, fields, often = wanted
    while True:
        made = batch(f"{seed}/{number}", pages, fields, often=often)
        number += step
        while os.getppid() == parent:
            try:
                target.put(made, timeout=5)
                break
            except queue.Full:
                continue
        else:
            return
