"""What several sections, or a section and its tables, need of the same report is worked out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from vlmhb.contract.report import ReportEntry, ReportView

F = TypeVar("F", bound=Callable[..., object])


def once_per_report(work: F) -> F:
    """Let a function of a view, entries and plain values keep its results for as long as the view lives."""
    known: WeakKeyDictionary[ReportView, dict[tuple[object, ...], object]] = WeakKeyDictionary()

    @wraps(work)
    def kept(view: ReportView, *arguments: object) -> object:
        results = known.setdefault(view, {})
        key = tuple(one.number if isinstance(one, ReportEntry) else one for one in arguments)
        if key not in results:
            results[key] = work(view, *arguments)
        return results[key]

    return kept  # type: ignore[return-value]
