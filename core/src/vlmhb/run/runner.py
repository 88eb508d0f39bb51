"""Running a plan: ask what has no answer yet, store each answer at once, then score and export."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from vlmhb.contract.backend import BackendInfo, Capabilities
from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
from vlmhb.contract.request import GenerationRequest, ImageInput
from vlmhb.contract.result import GenerationResult
from vlmhb.data.schemas import read_schema
from vlmhb.engines import Engines
from vlmhb.errors import BackendNotFoundError, PluginError, VlmhbError, WorkerError
from vlmhb.report.write import report_of_run
from vlmhb.run.ahead import NearTheEnd, prepare_the_end
from vlmhb.run.engine import Workers
from vlmhb.run.export import Summary, export
from vlmhb.run.folder import RunFolder
from vlmhb.run.manifest import Manifest
from vlmhb.run.plan import ImageDigests, describe_job, plan_rows
from vlmhb.run.retry import EngineGivenUpError, Retrier
from vlmhb.run.store import PendingQuestion, RunStore

if TYPE_CHECKING:
    from vlmhb.config.job import Job, Plan


class Listener(Protocol):
    """Hears how a run goes on. Called from the thread that called :func:`run`."""

    def note(self, text: str) -> None:
        """Something the user should know."""

    def planned(self, rows: int, pending: int, unaskable: int) -> None:
        """The plan is stored: rows in all, questions without an answer, rows that cannot be asked."""

    def loading(self, backend: str, model_name: str, pending: int) -> None:
        """A model is being loaded for so many questions."""

    def loaded(self, backend: str, model_name: str, facts: dict[str, Any]) -> None:
        """The model is there."""

    def begin(self, total: int) -> None:
        """So many answers of the loaded model are about to come."""

    def answered(self, result: GenerationResult) -> None:
        """A result is stored."""

    def stopping(self) -> None:
        """Ctrl-C was pressed: what is being answered is finished, nothing new is started."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        folder: the run's folder.
        generated: results stored by this call; ``reused`` is the rows that had their answer already.
        summary: tables and row counts of the whole run.
        interrupted: whether it was told to stop before everything was asked.
    """

    folder: Path
    generated: int
    reused: int
    summary: Summary
    interrupted: bool


class _Group(msgspec.Struct):
    """Jobs that one loaded model answers, and the log of its worker."""

    backend: BackendInfo
    spec: ModelSpec
    log: Path
    jobs: dict[int, Job]


def run(
    plan: Plan,
    engines: Engines,
    config: Path,
    folder: Path,
    listener: Listener,
    *,
    fresh: bool = False,
    limit: int | None = None,
    began: float | None = None,
) -> Outcome:
    """Run a plan in a folder, going on from whatever the folder already holds.

    Args:
        plan: checked jobs.
        engines: the plugins.
        config: the file the plan was read from, for the manifest.
        folder: the run's folder; made when it is not there.
        listener: hears the progress.
        fresh: forget the stored answers to this plan's questions first.
        limit: ask at most so many rows of each job.
        began: ``time.monotonic()`` before the plan was read; the start of this call when left out.

    Raises:
        RunError: the folder is in use, cannot be written, or the disk is full.
    """
    called = time.monotonic()
    began = called if began is None else began
    with (
        RunFolder(folder) as home,
        RunStore(home.database) as store,
        Workers(engines, listener.note) as workers,
    ):
        manifest = Manifest(home, config, plan.notes)
        jobs = dict(enumerate(plan.jobs, 1))
        infos = _infos(engines, jobs, store)
        groups = _groups(jobs, infos, home)
        before = store.jobs()
        if groups and (not before or store.pending_count(before)):  # a new run, or one that was stopped
            workers.prepare(groups[0].backend.name, groups[0].spec, groups[0].log)
        _store_plan(store, jobs, infos, limit)
        if fresh:
            store.forget_answers()
        asked = [number for number, job in jobs.items() if not job.only_evaluate]
        counts = store.counts()
        if counts["ok"]:
            for note in manifest.older_engines({info.name: info for info in infos.values()}.values()):
                listener.note(note)
        pending = store.pending_count(asked)
        manifest.took("config", called - began)
        manifest.took("plan", time.monotonic() - called)
        listener.planned(sum(counts.values()), pending, store.unaskable_count())
        control = GenerationControl()
        generated = 0
        if pending:
            prepare_the_end()
        with _stop_on_interrupt(control, listener):
            for place, group in enumerate(groups, 1):
                for result in _answer(group, groups[place:], workers, store, manifest, listener, control):
                    generated += 1
                    manifest.took("first_answer", time.monotonic() - began)
                    listener.answered(result)
        summary = export(store, engines, home)
        manifest.write(store, summary, interrupted=control.stop.is_set())
        for note in report_of_run(home.path, engines):
            listener.note(note)
        return Outcome(
            folder=folder,
            generated=generated,
            reused=counts["ok"],
            summary=summary,
            interrupted=control.stop.is_set() and summary.missing > 0,
        )


def _store_plan(store: RunStore, jobs: dict[int, Job], infos: dict[int, BackendInfo], limit: int | None) -> None:
    digests = ImageDigests(store)
    store.replace_plan(
        {number: describe_job(job, infos[number]) for number, job in jobs.items()},
        (row for number, job in jobs.items() for row in plan_rows(number, job, infos[number], digests, limit)),
    )


def _infos(engines: Engines, jobs: dict[int, Job], store: RunStore) -> dict[int, BackendInfo]:
    """The jobs' backends."""
    enforced = {job["backend"] for job in store.jobs().values() if job.get("structured_output")}
    return {number: _info(engines, job, job.backend in enforced) for number, job in jobs.items()}


def _info(engines: Engines, job: Job, enforced: bool) -> BackendInfo:
    """The job's backend.

    Where stored answers are scored and the engine is not there, a bare record: all it tells is whether the answers
    that the run has were held to their schemas, which is part of their keys.
    """
    try:
        return engines.backend_info(job.backend)
    except (BackendNotFoundError, PluginError):
        if not job.only_evaluate:
            raise
        can = Capabilities(structured_output=enforced)
        return BackendInfo(name=job.backend, engine="", engine_version=None, devices=(), capabilities=can)


def _groups(jobs: dict[int, Job], infos: dict[int, BackendInfo], home: RunFolder) -> list[_Group]:
    """Jobs grouped by the model they load, in order of first appearance."""
    groups: dict[bytes, _Group] = {}
    for number, job in jobs.items():
        if not job.only_evaluate:
            key = msgspec.json.encode((job.backend, job.spec), order="deterministic")
            if key not in groups:
                log = home.log(job.backend, job.model_name, taken={group.log for group in groups.values()})
                groups[key] = _Group(infos[number], job.spec, log, {})
            groups[key].jobs[number] = job
    return list(groups.values())


def _answer(
    group: _Group,
    later: list[_Group],
    workers: Workers,
    store: RunStore,
    manifest: Manifest,
    listener: Listener,
    control: GenerationControl,
) -> Iterator[GenerationResult]:
    """Load a group's model and answer its open questions, storing each result before it is yielded.

    Near the end of them the worker of the next of the later groups that has some is prepared.
    """
    pending = store.pending_count(group.jobs)
    if not pending or control.stop.is_set():
        return
    name = next(iter(group.jobs.values())).model_name
    backend = group.backend.name
    listener.loading(backend, name, pending)
    try:
        model, startup = workers.open(backend, group.spec, group.log, store.most_images(group.jobs))
    except VlmhbError as error:
        reason = f"{name} on {backend}: {error}"
        store.fail_jobs(group.jobs, reason)
        listener.note(reason)
        return
    with model:
        facts = model.facts()
        manifest.loaded(name, model.backend_info(), facts, startup, group.log)
        listener.loaded(backend, name, facts)
        listener.begin(pending)
        near_the_end = NearTheEnd(pending, lambda: _prepare_next(later, workers, store, control))
        loaded = time.monotonic()
        try:
            for result in _ask(model, group, store, control):
                startup.setdefault("first_answer", round(time.monotonic() - loaded, 3))
                near_the_end.answered()
                yield result
        except (EngineGivenUpError, WorkerError) as error:
            store.fail_jobs(group.jobs, str(error))
            listener.note(str(error))


def _prepare_next(later: list[_Group], workers: Workers, store: RunStore, control: GenerationControl) -> None:
    """Have the worker of the next group with open questions started."""
    for group in later:
        if not control.stop.is_set() and store.pending_count(group.jobs):
            workers.prepare(group.backend.name, group.spec, group.log)
            return


def _ask(
    model: ModelInterface, group: _Group, store: RunStore, control: GenerationControl
) -> Iterator[GenerationResult]:
    enforced = group.backend.capabilities.structured_output
    requests = (_request(question, group.jobs[question.job], enforced) for question in store.pending(group.jobs))
    retrier = Retrier(lambda some: model.generate_requests(some, control), control)
    for result in retrier(requests):
        if result.finish_reason != "skipped":
            store.save(bytes.fromhex(result.id), result)
            yield result


def _request(question: PendingQuestion, job: Job, enforced: bool) -> GenerationRequest:
    """The question for the engine; ``enforced`` says whether that can hold the answer to the row's schema."""
    return GenerationRequest.ask(
        question.key.hex(),
        question.question,
        [ImageInput(path=path) for path in question.images],
        system=job.system_prompt,
        sampling=job.sampling,
        json_schema=read_schema(question.json_schema) if enforced and question.json_schema else None,
    )


@contextmanager
def _stop_on_interrupt(control: GenerationControl, listener: Listener) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop; the second one raises KeyboardInterrupt as usual."""

    def handle(number: int, frame: FrameType | None) -> None:
        if control.stop.is_set():
            raise KeyboardInterrupt
        control.stop.set()
        listener.stopping()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
