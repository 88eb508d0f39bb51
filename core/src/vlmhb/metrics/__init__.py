"""Scoring: the metrics of the core, text normalisers, and the tables made of them.

Importing these modules is cheap; polars, numpy, rapidfuzz and sacrebleu are imported when texts are scored.
"""

from __future__ import annotations

from vlmhb.config.names import fold


def metric_key(name: str) -> str:
    """A metric's name as it is compared: case and the signs ``-_ `` do not count (``Exact Match``, ``exact_match``)."""
    return fold(name)
