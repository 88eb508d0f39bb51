"""The core's own metrics, offered through the same hook as anybody else's."""

from __future__ import annotations

from vlmhb.contract.hookspecs import hookimpl
from vlmhb.contract.metric import Metric
from vlmhb.metrics.anls import Anls, AnlsInclusive
from vlmhb.metrics.bleu import Bleu
from vlmhb.metrics.cer import Cer
from vlmhb.metrics.exact_match import ExactMatch
from vlmhb.metrics.wer import Wer


@hookimpl
def vlmhb_metrics() -> list[Metric]:
    """CER, WER, exact match, ANLS in its two readings, BLEU."""
    return [Cer(), Wer(), ExactMatch(), Anls(), AnlsInclusive(), Bleu()]
