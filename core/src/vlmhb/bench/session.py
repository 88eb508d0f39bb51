"""Measuring engines in a fair order: side by side where memory allows, else one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from vlmhb.bench.arrivals import Arrivals
from vlmhb.bench.engine import Answered, Candidate, Subject
from vlmhb.bench.memory import cpu_seconds
from vlmhb.bench.workload import Workload
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.memory import free_memory

WARM_UP = 32
"""Most questions that are asked before anything counts."""
IDLE_SHARE = 0.05
"""Share of one core that an engine with nothing to do may use beside the one that is measured."""
_IDLE_SECONDS = 1.0


class Listener(Protocol):
    """Hears what goes on."""

    def loading(self, backend: str, model_name: str, pending: int) -> None:
        """A model is about to be loaded."""

    def note(self, text: str) -> None:
        """A sentence for the user."""

    def begin(self, total: int) -> None:
        """So many requests follow."""

    def answered(self, result: GenerationResult) -> None:
        """One of them is answered."""

    def close(self) -> None:
        """They are."""


class Round(NamedTuple):
    """One pass that each engine makes; ``number`` chooses the variation of the pages."""

    number: int
    arrivals: Arrivals
    repeat: int


class Measured(NamedTuple):
    """The engines with what they did; ``in_turn`` says why they were not measured side by side, or is empty."""

    subjects: list[Subject]
    in_turn: str


def measure(
    candidates: Sequence[Candidate],
    workload: Workload,
    loads: Sequence[Arrivals],
    repeats: int,
    folder: Path,
    listener: Listener,
    *,
    in_turn: bool = False,
) -> Measured:
    """Measure engines on a workload.

    Side by side, all models stay loaded and every round is made by each engine before the next begins, in an order that
    turns round each time. What slows the machine down for a while then slows all of them.

    Args:
        candidates: the engines.
        workload: what to ask.
        loads: the ways for requests to come.
        repeats: how often each of them.
        folder: for the pages.
        listener: hears what goes on.
        in_turn: one engine after another even where they fit together.
    """
    session = _Session([Subject(candidate) for candidate in candidates], workload, folder, listener)
    repeated = [(arrivals, repeat) for repeat in range(1, repeats + 1) for arrivals in loads]
    rounds = [Round(number, *one) for number, one in enumerate(repeated, 1)]
    reason = "asked for by --in-turn" if in_turn else ""
    with ExitStack() as stack:
        for subject in session.subjects:
            stack.callback(subject.close)
        if not reason and len(candidates) > 1:
            reason = session.load_all()
        if reason:
            session.one_after_another(rounds)
        else:
            session.side_by_side(rounds)
    return Measured(session.subjects, reason if len(candidates) > 1 else "")


class _Session:
    def __init__(self, subjects: list[Subject], workload: Workload, folder: Path, listener: Listener) -> None:
        self.subjects = subjects
        self._workload = workload
        self._folder = folder
        self._listener = listener

    def load_all(self) -> str:
        """Load and warm up every engine; when they cannot stay together, close them and say why."""
        for number, subject in enumerate(self.subjects, 1):
            self._prepare(subject)
            reason = self._on_gpu() or (self._too_large() if number < len(self.subjects) else "")
            if reason:
                break
        else:
            reason = self._busy()
        if reason:
            self._listener.note(f"one engine after another: {reason}")
            for subject in self.subjects:
                subject.close()
        return reason

    def side_by_side(self, rounds: Sequence[Round]) -> None:
        """Every engine makes a round before the next one begins; who begins changes."""
        for subject in self.subjects:
            if not subject.loaded and subject.problem is None:
                self._prepare(subject)
        for one in rounds:
            requests = self._requests(one.number)
            for subject in self.subjects if one.repeat % 2 else reversed(self.subjects):
                self._make(subject, one, requests)

    def one_after_another(self, rounds: Sequence[Round]) -> None:
        """Every engine is loaded, makes all its rounds, and is closed."""
        for subject in self.subjects:
            if subject.problem is None:
                self._prepare(subject)
            for one in rounds if subject.loaded else ():
                self._make(subject, one, self._requests(one.number))
            subject.close()

    def _prepare(self, subject: Subject) -> None:
        name = subject.candidate.name
        self._listener.loading(name, subject.candidate.spec.model_path, len(self._workload.questions))
        subject.load()
        if subject.loaded:
            requests = self._requests(0, WARM_UP)
            self._count(f"{name}: warming up", requests, lambda heard: subject.warm_up(requests, heard))
        if subject.problem:
            self._listener.note(f"{name} is not measured: {subject.problem}")

    def _make(self, subject: Subject, one: Round, requests: Sequence[GenerationRequest]) -> None:
        if not subject.loaded:
            return
        title = f"{subject.candidate.name}: {one.arrivals}, repeat {one.repeat}"
        self._count(title, requests, lambda heard: subject.measure(requests, one.arrivals, one.repeat, heard))
        if subject.problem:
            self._listener.note(f"{subject.candidate.name} gave up: {subject.problem}")

    def _count(self, title: str, requests: Sequence[GenerationRequest], work: Callable[[Answered], None]) -> None:
        self._listener.note(title)
        self._listener.begin(len(requests))
        try:
            work(self._listener.answered)
        finally:
            self._listener.close()

    def _requests(self, number: int, most: int | None = None) -> list[GenerationRequest]:
        return self._workload.requests(number, self._folder, most)

    def _on_gpu(self) -> str:
        on_gpu = [s.candidate.name for s in self.subjects if str(s.facts.get("device", "")).startswith("cuda")]
        return f"{on_gpu[0]} takes the GPU's memory for itself" if on_gpu else ""

    def _too_large(self) -> str:
        """Whether another engine as large as the largest so far would not fit."""
        needed, free = max(subject.peak() for subject in self.subjects), free_memory()
        return f"{free >> 20:,} MiB of memory are free, and one held {needed >> 20:,} MiB" if free < needed else ""

    def _busy(self) -> str:
        """Whether an engine that waits would take time from the one that is measured."""
        pids = {subject.candidate.name: subject.pid for subject in self.subjects}
        before = {name: cpu_seconds(pid) for name, pid in pids.items() if pid is not None}
        time.sleep(_IDLE_SECONDS)
        for name, used in before.items():
            share = (cpu_seconds(pids[name] or 0) - used) / _IDLE_SECONDS
            if share > IDLE_SHARE:
                return f"{name} uses {share:.0%} of a core while it has nothing to do"
        return ""
