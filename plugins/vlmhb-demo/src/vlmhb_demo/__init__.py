"""The demo plugin of vlmhb: pages to ask about and a model to ask, both offline.

It offers the dataset ``demo-documents`` and the models of :mod:`vlmhb_demo.models`. It is no engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vlmhb import hookimpl

if TYPE_CHECKING:
    from vlmhb import NamedDataset, NamedModel

vlmhb_contract = 1

DATASET = Path(__file__).parent / "demo-documents"
"""The folder of the dataset, in the VLMHyperBench layout: ``annotation.csv`` and ``images/``."""


@hookimpl
def vlmhb_datasets() -> Iterable[NamedDataset]:
    """Offer the rendered pages."""
    from vlmhb import NamedDataset

    description = "98 made-up pages of seven kinds, from identity cards to letters, in Russian and in English"
    return [NamedDataset(name="demo-documents", path=str(DATASET), description=description)]


@hookimpl
def vlmhb_models() -> Iterable[NamedModel]:
    """Offer the demo's models; the first call on a machine makes what is not there yet."""
    from vlmhb_demo import models

    return models.offered()
