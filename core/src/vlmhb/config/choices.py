"""Lists of names from a fixed set, in config cells and on the command line: metrics, tables, text normalisers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from vlmhb.config.cells import CellError, parse_names
from vlmhb.config.job import Registry
from vlmhb.config.names import fold, suggestion
from vlmhb.contract.metric import Metric
from vlmhb.errors import ConfigError, Fault

_MISSPELT = 0.8
"""Likeness from which a name is taken for a misspelt one: ``accuracy`` is not a misspelt ``Relaxed accuracy``."""


class Choices(msgspec.Struct, frozen=True):
    """Names that may be chosen.

    Attributes:
        what: how messages call such a thing.
        names: the program's name by every folded name that people write.
        shown: the names to suggest.
        unusable: why some of them cannot be chosen here, by the program's name.
        others: the program's name of what can be chosen beside the names; None for what cannot.
    """

    what: str
    names: Mapping[str, str]
    shown: tuple[str, ...]
    unusable: Mapping[str, CellError] = {}
    others: Callable[[str], str | None] = lambda text: None

    @classmethod
    def of(cls, what: str, names: Iterable[str]) -> Choices:
        """Choices that people write as the program does."""
        shown = tuple(names)
        return cls(what, {fold(name): name for name in shown}, shown)

    def read(self, text: str) -> tuple[tuple[str, ...], list[CellError]]:
        """The names in a list, each once and in the order written, and an error for each that is not known.

        Raises:
            CellError: the text cannot be read as a list.
        """
        found = {name: self.names.get(fold(name)) or self.others(name) for name in parse_names(text)}
        unknown = [name for name, meant in found.items() if meant is None]
        chosen = dict.fromkeys(meant for meant in found.values() if meant is not None)
        errors = [
            CellError(f"there is no {self.what} {name!r}.", suggestion(name, self.shown, _MISSPELT)) for name in unknown
        ]
        errors += [self.unusable[name] for name in chosen if name in self.unusable]
        return tuple(chosen), errors


def metric_choices(registry: Registry) -> Choices:
    """All installed metrics, by name, title and alias."""
    metrics = registry.metrics()
    names: dict[str, str] = {}
    for key, metric in metrics.items():
        for written in (key, metric.title, *metric.aliases):
            names.setdefault(fold(written), key)
    unusable = {key: error for key, metric in metrics.items() if (error := _missing_package(metric))}
    return Choices("metric", names, tuple(metric.title for metric in metrics.values()), unusable)


def _missing_package(metric: Metric) -> CellError | None:
    """What a metric needs and does not find here."""
    absent = [name for name in metric.packages if not _is_installed(name)]
    if not absent:
        return None
    message = f"the metric {metric.name} needs {', '.join(absent)}, which is not installed."
    return CellError(message, f"Install it: pip install '{metric.install or ' '.join(absent)}'")


def _is_installed(distribution: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def aggregator_choices() -> Choices:
    """The tables that scores are summed up in."""
    from vlmhb.metrics.grouping import AGGREGATORS, BY, columns_of, table_by

    def others(text: str) -> str | None:
        table = text.casefold()
        return table_by(table.removeprefix(BY)) if table.startswith(BY) and columns_of(table) else None

    return msgspec.structs.replace(Choices.of("aggregator", AGGREGATORS), others=others)


def normalizer_choices() -> Choices:
    """The text normalisers."""
    from vlmhb.metrics.normalise import NORMALISERS

    return Choices.of("text normaliser", NORMALISERS)


def metric_names(text: str | None, registry: Registry) -> tuple[str, ...]:
    """The metrics that a text such as ``CER,WER`` of the command line names; none for None.

    Raises:
        ConfigError: one of them is not installed.
    """
    return _chosen(text, metric_choices(registry))


def normalizer_names(text: str | None) -> tuple[str, ...]:
    """The text normalisers that a text such as ``nfc,whitespace`` of the command line names; none for None.

    Raises:
        ConfigError: there is no such normaliser.
    """
    return _chosen(text, normalizer_choices())


def _chosen(text: str | None, choices: Choices) -> tuple[str, ...]:
    try:
        chosen, errors = choices.read(text or "")
    except CellError as error:
        errors = [error]
    if errors:
        raise ConfigError([Fault(message=str(error), value=text, hint=error.hint) for error in errors])
    return chosen
