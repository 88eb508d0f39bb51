"""The core's own metrics, offered through the same hook as anybody else's."""

from __future__ import annotations

from vlmhb.contract.hookspecs import hookimpl
from vlmhb.contract.metric import Metric
from vlmhb.metrics.amount_match import AmountMatch
from vlmhb.metrics.anls import Anls, AnlsInclusive
from vlmhb.metrics.anls_star import AnlsStar, AnlsStarInclusive
from vlmhb.metrics.bleu import Bleu
from vlmhb.metrics.cer import Cer
from vlmhb.metrics.chrf import Chrf
from vlmhb.metrics.date_match import DateMatch, DateMatchMonthFirst
from vlmhb.metrics.exact_match import ExactMatch
from vlmhb.metrics.json_fields import JsonF1, JsonPrecision, JsonRecall
from vlmhb.metrics.json_valid import JsonParses, JsonValid
from vlmhb.metrics.multiple_choice import MultipleChoice
from vlmhb.metrics.refusal import Refusal
from vlmhb.metrics.relaxed_accuracy import RelaxedAccuracy
from vlmhb.metrics.repetition import RepetitionLoop
from vlmhb.metrics.truncation import Truncation
from vlmhb.metrics.wer import Wer


@hookimpl
def vlmhb_metrics() -> list[Metric]:
    """Distances, equality of dates, amounts and choices, structure of JSON, and how answers go wrong."""
    return [
        *(Cer(), Wer(), ExactMatch(), Anls(), AnlsInclusive(), Bleu(), Chrf()),
        *(RelaxedAccuracy(), AmountMatch(), DateMatch(), DateMatchMonthFirst(), MultipleChoice()),
        *(AnlsStar(), AnlsStarInclusive(), JsonParses(), JsonValid(), JsonF1(), JsonPrecision(), JsonRecall()),
        *(Refusal(), RepetitionLoop(), Truncation()),
    ]
