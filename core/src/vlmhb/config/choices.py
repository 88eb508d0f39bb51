"""Lists of names on the command line: metrics and text normalisers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vlmhb.config.cells import CellError, parse_names
from vlmhb.config.job import Registry
from vlmhb.config.names import fold, suggestion
from vlmhb.errors import ConfigError, Fault


def metric_names(text: str | None, registry: Registry) -> tuple[str, ...]:
    """The metrics that a text such as ``CER,WER`` names; none for None.

    Raises:
        ConfigError: one of them is not installed.
    """
    known = {
        fold(written): name
        for name, metric in registry.metrics().items()
        for written in (name, metric.title, *metric.aliases)
    }
    return _chosen(text, "metric", known, [metric.title for metric in registry.metrics().values()])


def normalizer_names(text: str | None) -> tuple[str, ...]:
    """The text normalisers that a text such as ``nfc,whitespace`` names; none for None.

    Raises:
        ConfigError: there is no such normaliser.
    """
    from vlmhb.metrics.normalise import NORMALISERS

    return _chosen(text, "text normaliser", {fold(name): name for name in NORMALISERS}, NORMALISERS)


def _chosen(text: str | None, what: str, known: Mapping[str, str], shown: Iterable[str]) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        written = parse_names(text)
    except CellError as error:
        raise ConfigError(f"{error} {error.hint or ''}") from error
    faults = [
        Fault(message=f"there is no {what} {name!r}.", hint=suggestion(name, shown))
        for name in written
        if fold(name) not in known
    ]
    if faults:
        raise ConfigError(faults)
    return tuple(dict.fromkeys(known[fold(name)] for name in written))
