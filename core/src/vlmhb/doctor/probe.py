"""Try a model's architecture on engines: a tiny random twin of it, a few requests, token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

import msgspec

from vlmhb.compare.engines import EngineAnswers, ask_model
from vlmhb.contract.model import ModelImpl, ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.twin import Twin
from vlmhb.doctor.cells import Cell, cell_of
from vlmhb.doctor.questions import questions
from vlmhb.engines import Engines
from vlmhb.environments import uv
from vlmhb.errors import ManagedEnvironmentError, ModelLoadError, PluginError, VlmhbError, WorkerStartError
from vlmhb.worker.launch import WorkerOptions
from vlmhb.worker.model import WorkerModel

REFERENCE = "hf"
"""The engine that makes twins, and whose tokens count."""
LOAD_SECONDS = 900.0
HANG_SECONDS = 300.0
"""How long a twin may load, and how long an engine may be silent about a request, before it counts as failed."""


class Way(NamedTuple):
    """One implementation of one engine."""

    backend: str
    implementation: str

    @property
    def is_reference(self) -> bool:
        """Whether its tokens count."""
        return self.backend == REFERENCE


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What ``vlmhb doctor --probe`` found.

    Attributes:
        twin: the tiny model.
        requests: ids of what it was asked.
        cells: one for each implementation, the reference first.
    """

    twin: Twin
    requests: tuple[str, ...]
    cells: tuple[Cell, ...]


def make_twin(engines: Engines, spec: ModelSpec, out: Path, say: Callable[[str], None]) -> Twin:
    """Let the reference engine write a model's twin, in a process of its own.

    Args:
        engines: knows where it is.
        spec: the model, a folder on disk.
        out: the twin's folder.
        say: told when an environment is made again.

    Raises:
        ModelLoadError: the architecture cannot be made small; the message says why.
        VlmhbError: the engine is not there.
    """
    launch = engines.launch(REFERENCE, say)
    asked = msgspec.json.encode(spec).decode()
    try:
        outcome = uv.ask_inside(Path(launch.python), "twin", REFERENCE, asked, str(out), env=launch.environ())
    except ManagedEnvironmentError as error:  # the child's own words, or the end of its output
        raise ModelLoadError(str(error)) from error
    if outcome.twin is None:
        raise PluginError(f"the plugin of {REFERENCE} makes no twins.")
    return outcome.twin


def probe(engines: Engines, spec: ModelSpec, ways: Iterable[Way], out: Path, say: Callable[[str], None]) -> Probe:
    """Make a model's twin and ask it on every implementation, in float32.

    Args:
        engines: knows where they are.
        spec: the model, a folder on disk; its device and whether its code may run hold for the twin too.
        ways: the implementations; the reference is asked whether it is among them or not.
        out: an empty folder, for the twin and the logs.
        say: told in a sentence what is being done.

    Raises:
        ModelLoadError: no twin could be made.
        VlmhbError: the reference is not there.
    """
    say("making a tiny random model of the same architecture")
    twin = make_twin(engines, spec, out / "twin", say)
    asked = questions(twin.image_counts)
    reference: EngineAnswers | None = None
    cells = []
    for way in in_order(ways):
        say(f"asking {way.backend} {way.implementation}")
        try:
            with TwinWorker(engines, way.backend, out / "logs", say) as worker:
                answers = worker.ask(twin_spec(spec, twin, way), asked)
        except WorkerStartError as error:  # the other engines may be in order
            answers = EngineAnswers(way.backend, {}, str(error), loaded=False)
        cells.append(cell_of(*way, answers, reference))
        reference = reference or answers
    return Probe(twin=twin, requests=tuple(request.id for request in asked), cells=tuple(cells))


def in_order(ways: Iterable[Way]) -> list[Way]:
    """The reference first, then the others as they are."""
    others = [way for way in ways if not way.is_reference]
    return [Way(REFERENCE, "transformers"), *others]


def twin_spec(spec: ModelSpec, twin: Twin, way: Way) -> ModelSpec:
    """What an engine is to load."""
    return ModelSpec(
        model_path=twin.path,
        dtype="float32",
        device=spec.device,
        max_images=max(1, *twin.image_counts),
        model_impl=cast("ModelImpl", way.implementation),
        trust_remote_code=spec.trust_remote_code,
    )


class TwinWorker:
    """A worker for one backend that loads one twin after another in the same process.

    A context manager that ends it. After a failure the next twin gets a new process.
    """

    def __init__(self, engines: Engines, backend: str, logs: Path, say: Callable[[str], None]) -> None:
        self._engines = engines
        self._backend = backend
        self._log = logs / f"{backend}.log"
        self._say = say
        self._model: WorkerModel | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_fresh(self) -> bool:
        """Whether the next twin gets a process of its own."""
        return self._model is None

    def close(self) -> None:
        """End the process; the next twin gets another."""
        model, self._model = self._model, None
        if model is not None:
            model.close()

    def ask(self, spec: ModelSpec, requests: Sequence[GenerationRequest]) -> EngineAnswers:
        """Load a twin and ask it.

        Raises:
            WorkerStartError: the engine's environment is of no use, which says nothing about the twin. What the engine
                itself does with the twin is never raised.
        """
        try:
            if self._model is None:
                options = WorkerOptions(
                    log_path=str(self._log),
                    load_timeout=LOAD_SECONDS,
                    hang_timeout=HANG_SECONDS,
                    same_process=True,
                )
                self._model = WorkerModel(self._backend, self._engines.launch(self._backend, self._say), options)
            self._model.load_spec(spec)
        except WorkerStartError:
            self.close()
            raise
        except VlmhbError as error:
            self.close()
            return EngineAnswers(self._backend, {}, _without_places(str(error), spec), loaded=False)
        answers = ask_model(self._backend, self._model, requests, lambda _: None)
        if answers.problem is None:
            return answers
        self.close()
        return EngineAnswers(self._backend, {}, _without_places(answers.problem, spec))


def _without_places(problem: str, spec: ModelSpec) -> str:
    """An engine's reason without the folders of the twin and of the log, which are temporary."""
    return problem.partition(" Its log is ")[0].replace(spec.model_path, "the twin")
