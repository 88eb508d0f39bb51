"""A scatter plot as SVG: no script, no colour that alone tells points apart, axes for any range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from vlmhb.report.render import template

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 16, 52
NAMED = 8
"""Most points that are named in the plot; more are numbered."""
_LOGARITHMIC_FROM = 8.0
"""Ratio of the largest to the smallest x from which the axis is logarithmic."""


class Point(NamedTuple):
    """One point and the interval of its y; points of the same ``series``, if it is not empty, are joined in order."""

    label: str
    x: float
    y: float
    low: float
    high: float
    series: str = ""


class Axis(NamedTuple):
    """From values to pixels."""

    start: float
    end: float
    first: float
    last: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value."""
        value, start, end = (math.log(v) if self.logarithmic else v for v in (value, self.start, self.end))
        return round(self.first + (value - start) / (end - start) * (self.last - self.first), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and labels of round values."""
        values = _decades(self.start, self.end) if self.logarithmic else _steps(self.start, self.end)
        return [(self.at(value), f"{value:g}") for value in values]


def scatter(points: Sequence[Point], x_title: str, y_title: str, alternative: str) -> Markup:
    """Draw points with their intervals.

    Args:
        points: x above 0; at least one.
        x_title, y_title: what the axes show.
        alternative: the plot in words.
    """
    smallest, largest = min(p.x for p in points), max(p.x for p in points)
    logarithmic = largest / smallest >= _LOGARITHMIC_FROM
    ends = (smallest / 1.5, largest * 1.5) if logarithmic else (0.0, largest * 1.15)
    x = Axis(*ends, LEFT, WIDTH - RIGHT, logarithmic)
    low, high = min(p.low for p in points), max(p.high for p in points)
    room = max((high - low) * 0.15, abs(high) * 0.02, 0.01)
    y = Axis(max(low - room, 0.0) if low >= 0 else low - room, high + room, HEIGHT - BOTTOM, TOP)
    marks = [
        {
            "number": number,
            "label": p.label,
            "x": x.at(p.x),
            "y": y.at(p.y),
            "low": y.at(p.low),
            "high": y.at(p.high),
            "left": x.at(p.x) > WIDTH * 0.6,
        }
        for number, p in enumerate(points, 1)
    ]
    series = dict.fromkeys(p.series for p in points if p.series)
    lines = [" ".join(f"{x.at(p.x)},{y.at(p.y)}" for p in points if p.series == name) for name in series]
    return template(
        "plot.svg.j2",
        marks=marks,
        lines=lines,
        x_ticks=x.ticks(),
        y_ticks=y.ticks(),
        x_title=x_title,
        y_title=y_title,
        alternative=alternative,
        named=len(points) <= NAMED,
        box={"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM, "w": WIDTH, "h": HEIGHT},
    )


def _steps(start: float, end: float) -> list[float]:
    """About five round values."""
    rough = (end - start) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough)
    first = math.ceil(start / step)
    return [round(n * step, 10) for n in range(first, math.floor(end / step) + 1)]


def _decades(start: float, end: float) -> list[float]:
    """1, 2 and 5 of each power of ten."""
    powers = range(math.floor(math.log10(start)), math.ceil(math.log10(end)) + 1)
    values = [round(times * 10.0**power, 12) for power in powers for times in (1, 2, 5)]
    inside = [value for value in values if start <= value <= end]
    return inside if len(inside) <= 9 else [value for value in inside if f"{value:e}".startswith("1.")]
