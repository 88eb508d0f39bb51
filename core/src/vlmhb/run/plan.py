"""From checked jobs to rows that can be asked: filters, prompts, image files and their digests, content keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.data.images import find_image
from vlmhb.data.prompts import question_of
from vlmhb.data.schemas import read_schema
from vlmhb.errors import ImageError, ModelLoadError, RequestError
from vlmhb.run.keys import asker_key, digest_file, page_key, question_key
from vlmhb.run.store import PlannedRow, RunStore

if TYPE_CHECKING:
    from vlmhb.config.job import Job

_REMEMBERED = 4096
"""Images of a dataset whose files are not looked up again while it is planned."""


class ImageDigests:
    """Digests of image files; unchanged files are not read again, in this run or the next."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def of(self, path: Path) -> str:
        """The digest of a file.

        Raises:
            ImageError: the file cannot be read or is empty.
        """
        try:
            stat = path.stat()
            if stat.st_size == 0:
                raise ImageError(f"image {path.name} is empty (0 bytes)")
            name = str(path)
            digest = self._store.image_digest(name, stat.st_size, stat.st_mtime_ns)
            if digest is None:
                digest = digest_file(path)
                self._store.remember_image(name, stat.st_size, stat.st_mtime_ns, digest)
        except OSError as error:
            raise ImageError(f"image {path.name} cannot be read: {error.strerror}") from error
        return digest


def describe_job(job: Job, info: BackendInfo) -> dict[str, Any]:
    """What the run folder keeps about a job: enough to score and report without the config."""
    return {
        "config_row": job.config_row,
        "dataset": job.dataset_name,
        "dataset_path": str(job.dataset.root),
        "task": job.task,
        "backend": job.backend,
        "structured_output": info.capabilities.structured_output,
        "model_name": job.model_name,
        "model_family": job.model_family,
        "model": msgspec.to_builtins(job.spec),
        "sampling": msgspec.to_builtins(job.sampling),
        "ignored_model_defaults": _model_defaults(job),
        "system_prompt": job.system_prompt,
        "prompt_collection": str(job.prompts.path) if job.prompts else None,
        "prompts": job.prompts_name,
        "metrics": list(job.metrics),
        "aggregators": list(job.aggregators),
        "normalize": list(job.normalize),
        "only_evaluate_metrics": job.only_evaluate,
        "filter_doc_class": list(job.filter_doc_class),
        "filter_question_type": list(job.filter_question_type),
    }


def _model_defaults(job: Job) -> dict[str, Any]:
    """Sampling values of the model folder's own generation_config.json, which are not used."""
    from vlmhb.prompting.folder import sampling_defaults_of

    try:
        return sampling_defaults_of(job.spec.model_path)
    except ModelLoadError:
        return {}


def plan_rows(
    number: int, job: Job, info: BackendInfo, digests: ImageDigests, limit: int | None = None
) -> Iterator[PlannedRow]:
    """The rows of one job in dataset order.

    Args:
        number: the job's number in the run.
        job: what to ask.
        info: the backend, whose silent options do not count in the keys; rows' schemas count where it enforces them.
        digests: shared over the jobs of a run.
        limit: at most so many rows; None is all.
    """
    asker = asker_key(info, job.spec, job.sampling, job.system_prompt)
    pages = _pages_of(job.dataset, asker, digests)
    filtered = job.filter_doc_class or job.filter_question_type
    chosen = (sample for sample in job.dataset if _wanted(sample, job)) if filtered else job.dataset
    for sample in itertools.islice(chosen, limit):
        yield _plan_row(number, job, sample, pages, enforced=info.capabilities.structured_output)


def _wanted(sample: Sample, job: Job) -> bool:
    return (not job.filter_doc_class or sample.doc_class in job.filter_doc_class) and (
        not job.filter_question_type or sample.question_type in job.filter_question_type
    )


_Pages = Callable[[tuple[str, ...]], tuple[tuple[str, ...], bytes]]


def _pages_of(dataset: Dataset, asker: bytes, digests: ImageDigests) -> _Pages:
    """From images' paths as written in a dataset to those of their files and their page key; the last are remembered.

    Questions about a page follow each other, and to find a file costs more than all the rest of a row.
    """

    @lru_cache(maxsize=_REMEMBERED)
    def look(written: str) -> tuple[str, str]:
        path = find_image(dataset, written)
        return str(path.absolute()), digests.of(path)

    @lru_cache(maxsize=_REMEMBERED)
    def page(images: tuple[str, ...]) -> tuple[tuple[str, ...], bytes]:
        found = [look(written) for written in images]
        return tuple(path for path, _ in found), page_key(asker, [digest for _, digest in found])

    return page


def _plan_row(
    number: int,
    job: Job,
    sample: Sample,
    pages: _Pages,
    *,
    enforced: bool,
) -> PlannedRow:
    paths: tuple[str, ...] = ()
    key = error = note = None
    schema = sample.json_schema if enforced else ""
    question = sample.question
    try:
        if sample.problem:
            raise RequestError(sample.problem)
        question, note = question_of(sample, job.prompts)
        found, page = pages(sample.images)
        if schema:
            read_schema(schema)
        key = question_key(page, question, schema)
        paths = found
    except RequestError as problem:
        error = str(problem)
    notes = [note] if note else []
    if sample.json_schema and not enforced:
        notes.append(f"asked without its JSON schema: {job.backend} cannot hold an answer to one")
    return PlannedRow(
        job=number, sample=sample, key=key, images=paths, question=question, error=error, notes=tuple(notes)
    )
