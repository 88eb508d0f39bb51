"""The runs as sections see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlmhb.contract.report import ReportEntry
from vlmhb.report.load import LoadedJob, LoadedRun
from vlmhb.report.texts import Texts

if TYPE_CHECKING:
    import polars

    from vlmhb.contract.metric import Metric


class RunsView:
    """The implementation of :class:`vlmhb.contract.report.ReportView`.

    Attributes:
        most_samples, most_pages: how many samples the viewer takes, and how many page images (None: all).
        notes: what a reader of the report must know about its making.
    """

    def __init__(
        self,
        runs: Sequence[LoadedRun],
        metrics: Mapping[str, Metric],
        folder: Path,
        language: str,
        most_samples: int | None = None,
        most_pages: int | None = None,
    ) -> None:
        self.language = language
        self.folder = folder
        self.most_samples = most_samples
        self.most_pages = most_pages
        self.texts_of = Texts(language)
        self.manifests: Mapping[Path, Mapping[str, Any]] = {run.folder: run.manifest for run in runs}
        jobs = [(run, job) for run in runs for job in run.jobs]
        self._jobs = [job for _, job in jobs]
        self._tables: dict[tuple[int, str], polars.DataFrame] = {}
        self.entries: Sequence[ReportEntry] = _entries(jobs)
        names = dict.fromkeys(name for job in self._jobs for name in job.metrics)
        self.metrics: Mapping[str, Metric] = {name: metrics[name] for name in names}
        absent = dict.fromkeys(name for job in self._jobs for name in job.absent)
        self.notes: Sequence[str] = [self.text("note.absent_metric", name=name) for name in absent]

    def rows(self, entry: ReportEntry) -> polars.DataFrame:
        """See the protocol."""
        return self._jobs[entry.number].rows

    def texts(self, entry: ReportEntry, rows: Sequence[int]) -> polars.DataFrame:
        """See the protocol."""
        return self._jobs[entry.number].texts(rows)

    def table(self, entry: ReportEntry, aggregator: str) -> polars.DataFrame:
        """See the protocol."""
        if (entry.number, aggregator) not in self._tables:
            self._tables[entry.number, aggregator] = self._jobs[entry.number].scorer.table(aggregator)
        return self._tables[entry.number, aggregator]

    @cached_property
    def samples(self) -> tuple[polars.DataFrame, int]:
        """Every sample that the viewer takes, once, in dataset order, those answered wrong first where not all fit.

        Columns: ``sample``, ``row``, ``data_index``, ``doc_class``, ``question_type``, ``dataset`` (its place),
        ``wrong`` (in any entry); and how many samples are left out.
        """
        import polars as pl

        names = list(self.datasets)
        parts = [
            self.rows(entry)
            .select("sample", "row", "data_index", "doc_class", "question_type", "wrong")
            .with_columns(pl.lit(names.index(entry.dataset)).alias("dataset"))
            for entry in self.entries
        ]
        others = ("row", "data_index", "doc_class", "question_type", "dataset")
        every = pl.concat(parts).group_by("sample").agg(*(pl.col(o).first() for o in others), pl.col("wrong").any())
        every = every.sort("dataset", "row", "sample")
        if self.most_samples is None or len(every) <= self.most_samples:
            return every, 0
        kept = every.sort("wrong", descending=True, maintain_order=True).head(self.most_samples)
        return kept.sort("dataset", "row", "sample"), len(every) - len(kept)

    def image_digests(self, entry: ReportEntry) -> dict[str, str]:
        """Digests of the image files of the entry's run, by path."""
        return self._jobs[entry.number].image_digests

    def text(self, key: str, **values: object) -> str:
        """See the protocol."""
        return self.texts_of(key, **values)

    @property
    def datasets(self) -> Mapping[str, Sequence[ReportEntry]]:
        """The entries of each dataset: only those can be compared with each other."""
        found: dict[str, list[ReportEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.dataset, []).append(entry)
        return found


def _entries(jobs: Sequence[tuple[LoadedRun, LoadedJob]]) -> tuple[ReportEntry, ...]:
    parts = [_parts(run, job) for run, job in jobs]
    return tuple(
        ReportEntry(
            number=number,
            label=label,
            run=run.folder,
            job=job.job,
            dataset=job.dataset,
            model=parts[number]["model"],
            backend=parts[number]["backend"],
            prompts=parts[number]["prompts"],
            metrics=job.metrics,
            normalize=job.normalize,
            description=job.description,
        )
        for number, ((run, job), label) in enumerate(zip(jobs, _labels(parts), strict=True))
    )


def _parts(run: LoadedRun, job: LoadedJob) -> dict[str, str]:
    said = job.description
    return {
        "model": said["model_name"],
        "backend": said["backend"],
        "prompts": said.get("prompts") or _prompts_of(said),
        "dataset": job.dataset,
        "run": run.folder.resolve().name,
        "row": f"row {said['config_row']}",
    }


def _prompts_of(said: Mapping[str, Any]) -> str:
    """What the prompts of a run are called that was made before prompts had names."""
    names = [Path(said["prompt_collection"]).stem] if said.get("prompt_collection") else []
    return " + ".join([*names, "system prompt"] if said.get("system_prompt") else names)


def _labels(parts: Sequence[dict[str, str]]) -> list[str]:
    """Model and backend, and as many further parts as it takes to tell the entries of a dataset apart."""
    names = ["model", "backend"]
    for extra in ("prompts", "run", "row"):
        keys = [(part["dataset"], *(part[name] for name in names)) for part in parts]
        if len(set(keys)) == len(keys):
            break
        if len({part[extra] for part in parts}) > 1:
            names.append(extra)
    return [" · ".join(part[name] for name in names if part[name]) for part in parts]
