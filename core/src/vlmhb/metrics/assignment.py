"""The best pairing of two lists: the Hungarian algorithm."""

from __future__ import annotations

import math
from collections.abc import Sequence


def best_pairs(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pair rows with columns, each at most once, so that the sum of their scores is greatest.

    Args:
        scores: one line a row, all of one length; may be empty.

    Returns:
        As many pairs of row and column as the shorter side has, ordered by row. Takes time n * n * m for the shorter
        side n and the longer side m (Kuhn, 1955; the form with shortest augmenting paths).
    """
    if not scores or not scores[0]:
        return []
    if len(scores) > len(scores[0]):
        turned = best_pairs(list(zip(*scores, strict=True)))
        return sorted((row, column) for column, row in turned)
    rows, columns = len(scores), len(scores[0])
    row_price, column_price = [0.0] * (rows + 1), [0.0] * (columns + 1)
    row_of = [0] * (columns + 1)  # 1-based; column 0 holds the row that is being placed
    for row in range(1, rows + 1):
        row_of[0] = row
        before = _shortest_path(scores, row_price, column_price, row_of)
        _augment(before, row_of)
    return sorted((row_of[column] - 1, column - 1) for column in range(1, columns + 1) if row_of[column])


def _shortest_path(
    scores: Sequence[Sequence[float]], row_price: list[float], column_price: list[float], row_of: list[int]
) -> tuple[int, list[int]]:
    """The free column that is reached most cheaply from the row in column 0, and the column before each one."""
    columns = len(column_price) - 1
    reach = [math.inf] * (columns + 1)
    previous, done = [0] * (columns + 1), [False] * (columns + 1)
    column = 0
    while row_of[column]:
        done[column] = True
        row, nearest, step = row_of[column], 0, math.inf
        for other in range(1, columns + 1):
            if done[other]:
                continue
            cost = -scores[row - 1][other - 1] - row_price[row] - column_price[other]
            if cost < reach[other]:
                reach[other], previous[other] = cost, column
            if reach[other] < step:
                nearest, step = other, reach[other]
        for other in range(columns + 1):
            if done[other]:
                row_price[row_of[other]] += step
                column_price[other] -= step
            else:
                reach[other] -= step
        column = nearest
    return column, previous


def _augment(found: tuple[int, list[int]], row_of: list[int]) -> None:
    """Move every row of the path one column on, so that the row in column 0 gets its place."""
    column, previous = found
    while column:
        row_of[column] = row_of[previous[column]]
        column = previous[column]
