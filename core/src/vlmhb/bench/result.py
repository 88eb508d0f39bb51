"""What was measured, as it is kept in ``bench.json``: every request's times, and with what and on what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from vlmhb.bench.arrivals import Arrivals
from vlmhb.bench.memory import PeakMemory
from vlmhb.errors import ConfigError

FORMAT = 1


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """One request; times in seconds, None where they were not measured.

    Attributes:
        id: the same in every pass on every engine.
        due: when it came, since the pass began; see :class:`vlmhb.bench.arrivals.Feed`.
        ended: when its result was there.
        error: why there is no answer, or None.
        output: digest of the answer's token ids; empty without an answer.
        output_tokens, prompt_tokens, cached_tokens: as in :class:`vlmhb.GenerationResult`.
        queue_time, time_to_first_token, time_per_output_token, total_time: the engine's own, likewise.
    """

    id: str
    due: float
    ended: float
    error: str | None
    output: str
    output_tokens: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    queue_time: float | None
    time_to_first_token: float | None
    time_per_output_token: float | None
    total_time: float | None


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """The whole workload, once, on one engine.

    Attributes:
        arrivals: how the requests came.
        repeat: number of the repeat, from 1.
        seconds: from the first request's reading to the last result.
        requests: in the order of their results.
    """

    arrivals: Arrivals
    repeat: int
    seconds: float
    requests: tuple[Timing, ...]


class EngineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One engine.

    Attributes:
        name: as the user wrote it (``vllm:transformers``).
        engine, engine_version: the distribution.
        load_seconds: from starting the worker to a model that can be asked; None where it did not load.
        warmup_seconds: the pass before the first that counts.
        memory: the peak of its worker, from the start to the end.
        facts: what the engine said about the loaded model.
        passes: what was measured.
        problem: why it could not be measured, or not to the end; None when it was.
    """

    name: str
    engine: str
    engine_version: str | None
    load_seconds: float | None = None
    warmup_seconds: float | None = None
    memory: PeakMemory | None = None
    facts: dict[str, Any] = {}
    passes: tuple[Pass, ...] = ()
    problem: str | None = None


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """All that ``bench.json`` holds.

    Attributes:
        vlmhb: version; ``format``: of this file.
        made_at: when it began, UTC.
        machine: as in a run's manifest.
        model, fingerprint: the model as the user wrote it, and its contents' digest.
        options: model and engine options as given.
        workload, digest, requests, max_tokens: see :class:`vlmhb.bench.workload.Workload`.
        repeats: how often everything was measured.
        order: ``alternating`` or ``in turn``; ``order_reason``: why in turn.
        engines: in the order asked for; the first is what the others are compared with.
    """

    vlmhb: str
    made_at: str
    machine: dict[str, Any]
    model: str
    fingerprint: str
    options: tuple[str, ...]
    workload: str
    digest: str
    requests: int
    max_tokens: int
    repeats: int
    order: str
    order_reason: str
    engines: tuple[EngineRecord, ...]
    format: int = FORMAT

    def complete(self) -> bool:
        """Whether every request was answered on every engine."""
        return all(
            engine.problem is None and not any(timing.error for one in engine.passes for timing in one.requests)
            for engine in self.engines
        )


def read_bench(path: Path) -> Bench:
    """Read a ``bench.json``, or that of a folder.

    Raises:
        ConfigError: there is none, or it was written by another version.
    """
    file = path / "bench.json" if path.is_dir() else path
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Bench)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{file} is no result of vlmhb bench: {error}") from error
    if found.format != FORMAT:
        raise ConfigError(f"{file} was written by vlmhb {found.vlmhb}, in another format; measure again")
    return found
