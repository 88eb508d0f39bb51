"""What a part of the report is: it reads the runs and returns a fragment of the page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    import polars

    from vlmhb.contract.metric import Metric


class ReportEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is compared: a model on an engine with its prompts, on one dataset, in one run.

    Attributes:
        number: place in the report, from 0.
        label: what people call it here: as much of model, backend, prompts and run as tells the entries apart.
        run: the run's folder; ``job``: its number there.
        dataset, model, backend, prompts: what was asked with; ``prompts`` is empty where the dataset's own questions
            were put.
        metrics: names of the metrics computed for it, the one that ranks first.
        normalize: names of the text normalisers applied before scoring.
        description: everything the run stores about the job (see ``manifest.json``).
    """

    number: int
    label: str
    run: Path
    job: int
    dataset: str
    model: str
    backend: str
    prompts: str
    metrics: tuple[str, ...]
    normalize: tuple[str, ...]
    description: dict[str, Any]


class ReportView(Protocol):
    """The runs of a report, to be read only.

    Attributes:
        language: ``en`` or ``ru``.
        entries: what is compared, in the order of the runs.
        metrics: every metric of the entries by name.
        manifests: the content of each run's ``manifest.json``; empty for a run without one.
        datasets: the entries of each dataset; only those can be compared with each other.
        notes: what a reader must know about the making of the report.
        folder: the report's folder; a section may write files of its own under ``folder / <its name>``.
    """

    language: str
    metrics: Mapping[str, Metric]
    manifests: Mapping[Path, Mapping[str, Any]]
    notes: Sequence[str]
    folder: Path

    @property
    def entries(self) -> Sequence[ReportEntry]:
        """See above."""
        ...

    @property
    def datasets(self) -> Mapping[str, Sequence[ReportEntry]]:
        """See above."""
        ...

    def rows(self, entry: ReportEntry) -> polars.DataFrame:
        """An entry's rows in dataset order, without their long texts.

        Columns: ``row``; ``sample`` (equal for the same row of the same dataset in every entry); ``data_index``,
        ``doc_class``, ``question_type``; ``page`` (a number for each ``data_index``); ``status`` (ok, error,
        missing); ``wrong`` (the compared texts differ, or there is no answer); ``reference_length`` in code points;
        ``error_kind``, ``finish_reason``, ``flags``; token counts and times as in ``answers.csv``; ``answered_at``
        in seconds; and one column a metric, null where the row was not scored.
        """
        ...

    def texts(self, entry: ReportEntry, rows: Sequence[int]) -> polars.DataFrame:
        """The long texts of some of an entry's rows, in row order.

        Columns: ``row``, ``question``, ``reference``, ``answer``, ``compared_reference`` and ``compared_answer``
        (normalised, as they were scored; null where there is no answer), ``other_references`` and
        ``compared_others`` (lists: further accepted answers, and the same normalised), ``nearest_reference`` (of all
        accepted answers, normalised, the one nearest to the answer), ``error``, ``notes``, ``image_path``, ``images``
        (JSON list of files), ``answer_bbox``.
        """
        ...

    def table(self, entry: ReportEntry, aggregator: str) -> polars.DataFrame:
        """A metrics table of an entry, as in ``metrics/<aggregator>.csv``."""
        ...

    def text(self, key: str, **values: object) -> str:
        """A text of the core's catalogue in the report's language."""
        ...


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    """What a section adds.

    Attributes:
        html: for ``index.html``. Plain text is escaped and shown as a paragraph; markup must be a
            ``markupsafe.Markup``, for which the section then answers: everything that users or models wrote has to be
            escaped in it (a jinja2 template with autoescape does).
        markdown: for ``report.md``; empty leaves the section out there.
    """

    html: str
    markdown: str = ""


class ReportSection(ABC):
    """One section of the report. Stateless.

    Attributes:
        name: key, lower case without spaces; the section's anchor and folder.
        place: sections are ordered by it; the core's own are at 10 (summary), 20, ... 90 (manifest).
    """

    name: str
    place: int = 85

    @abstractmethod
    def title(self, view: ReportView) -> str:
        """The heading, in the report's language where the section knows it."""

    @abstractmethod
    def render(self, view: ReportView) -> Fragment | None:
        """Make the section; None where the runs have nothing for it.

        Whatever is raised is shown in place of the section and does not harm the others.
        """

    def tables(self, view: ReportView) -> Mapping[str, polars.DataFrame]:
        """What the section shows as tables for programs, by name; asked only of sections that have been rendered.

        Each is written as ``tables/<name>.csv`` and ``tables/<name>.parquet`` and linked below the section. Names are
        file names without an extension, unique in the report; columns are texts, numbers or booleans.
        """
        return {}
