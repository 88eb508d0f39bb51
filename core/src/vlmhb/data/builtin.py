"""The dataset formats of the core itself, offered through the same hook as everybody's."""

from __future__ import annotations

from vlmhb.contract.dataset import DatasetFormat
from vlmhb.contract.hookspecs import hookimpl


@hookimpl
def vlmhb_datasets() -> list[DatasetFormat]:
    """The formats that the core reads; the last one is asked first whether it recognises a path."""
    from vlmhb.data.folder import FolderFormat
    from vlmhb.data.huggingface import HuggingFaceFormat
    from vlmhb.data.jsonl import JsonLinesFormat
    from vlmhb.data.parquet import ParquetFormat
    from vlmhb.data.pdf import PdfFormat
    from vlmhb.data.vlmevalkit import VlmEvalKitFormat
    from vlmhb.data.vlmhyperbench import VlmHyperBenchFormat

    others = [FolderFormat(), PdfFormat(), HuggingFaceFormat(), ParquetFormat(), VlmEvalKitFormat(), JsonLinesFormat()]
    return [*others, VlmHyperBenchFormat()]
