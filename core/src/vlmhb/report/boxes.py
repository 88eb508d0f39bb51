"""Where on its page an answer stands: ``answer_bbox`` in the order that its author used.

Two orders are in use and the file does not say which: ``[x1, y1, x2, y2]`` and ``[y1, x1, y2, x2]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Quad = tuple[float, float, float, float]
Size = tuple[int, int]
ORDERS: dict[str, tuple[int, int, int, int]] = {"xyxy": (0, 1, 2, 3), "yxyx": (1, 0, 3, 2)}
"""For each order the places of x1, y1, x2, y2 among the four numbers."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_BOX = re.compile(r"[\[(]?\s*(?:-?\d+(?:\.\d+)?[\s,;]*){4}[\])]?")
_BEYOND = 1.01
"""How far over the page's edge a box may reach, for rounding."""


def parse_box(text: str) -> Quad | None:
    """The four numbers of a box; None for an empty text or anything else."""
    if not _BOX.fullmatch(text.strip()):
        return None
    numbers = [float(number) for number in _NUMBER.findall(text)]
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None


def box_order(boxes: Iterable[tuple[Quad, Size]]) -> str:
    """The order in which the boxes of one dataset are written.

    The one in which more boxes fit into their pages; where both fit alike, the one in which more boxes are wider
    than high, as lines of text are; ``xyxy`` where that does not tell either.
    """
    known = list(boxes)

    def votes(order: str) -> tuple[int, int]:
        found = [box for box in (box_on_page(quad, size, order) for quad, size in known) if box is not None]
        sizes = [size for quad, size in known if box_on_page(quad, size, order) is not None]
        return len(found), sum(box[2] * w > box[3] * h for box, (w, h) in zip(found, sizes, strict=True))

    return max(ORDERS, key=votes)


def box_on_page(quad: Quad, size: Size, order: str) -> list[float] | None:
    """Left, top, width and height as shares of the page; None when the box does not fit into it.

    Numbers of which none is above 1 are shares already; others are pixels.
    """
    x1, y1, x2, y2 = (quad[place] for place in ORDERS[order])
    width, height = (1, 1) if max(quad) <= 1 else size
    if not (0 <= x1 < x2 <= width * _BEYOND and 0 <= y1 < y2 <= height * _BEYOND):
        return None
    return [round(share, 5) for share in (x1 / width, y1 / height, (x2 - x1) / width, (y2 - y1) / height)]
