"""One request on its way through a batch, and the clock of the batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import StoppingCriteria
from vlmhb import GenerationControl, GenerationRequest, GenerationResult
from vlmhb.contract.result import FinishReason
from vlmhb.prompting import PreparedPrompt

from vlmhb_hf.text import Decode, GrowingText


class Row:
    """A request that is being answered.

    Attributes:
        prompt: what it asks.
        prompt_tokens: the prompt's length, placeholders expanded.
        limit: most output tokens.
        tokens: output ids so far.
        notes: what was changed for it.
        done: whether it has ended.
        finish: why it ended.
    """

    def __init__(
        self, prompt: PreparedPrompt, prompt_tokens: int, limit: int, notes: Sequence[str], arrived: float
    ) -> None:
        self.prompt = prompt
        self.prompt_tokens = prompt_tokens
        self.limit = limit
        self.notes = list(notes)
        self.arrived = arrived
        self.growing: GrowingText | None = None
        self.begin()

    @property
    def request(self) -> GenerationRequest:
        """What was asked."""
        return self.prompt.request

    def begin(self) -> None:
        """Start, or start again after a failed batch."""
        self.tokens: list[int] = []
        self.done = False
        self.finish: FinishReason = "length"
        self.started = self.first = self.last = time.perf_counter()

    def push(self, token: int, now: float, stop_ids: frozenset[int]) -> None:
        """Take one more output token."""
        if not self.tokens:
            self.first = now
        self.last = now
        self.tokens.append(token)
        if token in stop_ids or (self.growing is not None and self.growing.push(token)):
            self.done, self.finish = True, "stop"
        elif len(self.tokens) >= self.limit:
            self.done = True

    def result(self, text: str, **fields: Any) -> GenerationResult:
        """The finished row; ``fields`` are what only the batch knows."""
        count = len(self.tokens)
        return GenerationResult(
            id=self.request.id,
            text=text,
            token_ids=tuple(self.tokens),
            finish_reason=self.finish,
            prompt_tokens=self.prompt_tokens,
            queue_time=self.started - self.arrived,
            time_to_first_token=self.first - self.arrived,
            time_per_output_token=(self.last - self.first) / (count - 1) if count > 1 else None,
            total_time=self.last - self.arrived,
            notes=tuple(self.notes),
            **fields,
        )


class RowProgress(StoppingCriteria):  # type: ignore[misc]
    """Told of every step's tokens: hands each row its own, stops it, tells its text.

    Given to ``generate`` as a stopping criterion, or to :class:`vlmhb_hf.decoding.Decoding`. In the former, finished
    rows go on in the batch until the last one ends; their further tokens are dropped.
    """

    def __init__(
        self, rows: Sequence[Row], stop_ids: Sequence[int], decode: Decode, control: GenerationControl
    ) -> None:
        self._rows = list(rows)
        self._stop_ids = frozenset(stop_ids)
        self._control = control
        self._open = list(range(len(rows)))
        for row in rows:
            row.begin()
            stop = row.request.sampling.stop
            if stop or control.on_text is not None:
                row.growing = GrowingText(decode, stop, row.growing.told if row.growing else 0)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Args: ids so far, shape (batch, tokens). Returns which rows have ended, shape (batch,)."""
        going = self.take(input_ids[:, -1].tolist())  # waits for the device, so the rows' clock is true
        done = torch.ones(len(input_ids), dtype=torch.bool)
        done[going] = False
        return done.to(input_ids.device)

    def take(self, tokens: Sequence[int]) -> list[int]:
        """Args: one token for each row that has not left. Returns the places of those that have not ended."""
        now = time.perf_counter()
        for place in self._open:
            self._rows[place].push(tokens[place], now, self._stop_ids)
        if self._control.on_text is not None:
            self._tell(self._control.on_text)
        self._open = [place for place in self._open if not self._rows[place].done]
        self._control.step()
        return self._open

    def leave(self) -> None:
        """Rows that have ended are in no later step."""
        self._rows = [self._rows[place] for place in self._open]
        self._open = list(range(len(self._rows)))

    def _tell(self, on_text: Callable[[str, str], None]) -> None:
        for place in self._open:
            row = self._rows[place]
            if not row.done and row.growing is not None and (news := row.growing.news()):
                on_text(row.request.id, news)
