"""The dataset formats of the core itself, offered through the same hook as everybody's."""

from __future__ import annotations

from vlmhb.contract.dataset import DatasetFormat
from vlmhb.contract.hookspecs import hookimpl


@hookimpl
def vlmhb_datasets() -> list[DatasetFormat]:
    """The formats that the core reads."""
    from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat

    return [VlmHyperBenchFormat()]
