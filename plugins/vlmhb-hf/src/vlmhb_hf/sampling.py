"""Choosing the next token of each row by that row's own parameters, in one pass over the batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor
from vlmhb import SamplingParams, TokenLogprob

Candidates = tuple[TokenLogprob, ...]


class RowSampling(LogitsProcessor):  # type: ignore[misc]
    """Turns the logits of a batch so that the greatest value of a row is the token to take.

    ``generate`` itself stays greedy. A sampled row gets Gumbel noise from a generator of its own (adding it to
    log-probabilities and taking the greatest is a draw from them: Gumbel, 1954; Maddison et al., 2014,
    arXiv:1411.0030), so its draws do not depend on the other rows. The order is: repetition penalty, temperature,
    top-k, top-p.

    Log-probabilities are those of the untouched logits.
    """

    def __init__(
        self,
        params: Sequence[SamplingParams],
        logprobs: Sequence[int],
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        vocabulary: int,
    ) -> None:
        """Args: one entry a row; the padded prompt ids with their mask, and the number of logits a row."""
        device = input_ids.device
        self._wanted = list(logprobs)
        self._steps: list[tuple[dict[int, int], torch.Tensor, torch.Tensor]] = []
        self._place = {row: row for row in range(len(params))}
        self._first = True
        self._penalty = self._seen = None
        if any(param.repetition_penalty != 1.0 for param in params):
            self._penalty = torch.tensor([param.repetition_penalty for param in params], device=device)[:, None]
            self._seen = _seen(input_ids, attention_mask, vocabulary)
        self._rows = [index for index, param in enumerate(params) if not param.greedy]
        self._where = torch.tensor(self._rows, dtype=torch.long, device=device)
        sampled = [params[index] for index in self._rows]
        self._generators = [torch.Generator(device).manual_seed(param.seed) for param in sampled]
        self._temperature = torch.tensor([param.temperature for param in sampled], device=device)[:, None]
        tops = [param.top_k or vocabulary for param in sampled]
        self._top_k = torch.tensor(tops, device=device)[:, None]
        self._top_p = torch.tensor([param.top_p for param in sampled], device=device)[:, None]
        self._filtered = any(param.top_k or param.top_p < 1.0 for param in sampled)

    @staticmethod
    def needed(params: Sequence[SamplingParams], logprobs: Sequence[int]) -> bool:
        """Whether plain greedy decoding is not all that the rows ask for."""
        return any(not param.greedy or param.repetition_penalty != 1.0 for param in params) or any(logprobs)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Args: ids so far (batch, tokens); logits (batch, vocabulary), float32."""
        if any(self._wanted):
            best = scores.log_softmax(-1).topk(max(self._wanted))
            self._steps.append((self._place, best.values, best.indices))
        if self._penalty is not None and self._seen is not None:
            if not self._first:
                self._seen.scatter_(1, input_ids[:, -1:], True)
            scores = torch.where(self._seen, _penalised(scores, self._penalty), scores)
        self._first = False
        if self._rows:
            scores = scores.index_copy(0, self._where, self._drawn(scores[self._where]))
        return scores

    def logprobs_of(self, row: int, steps: int) -> tuple[Candidates, ...]:
        """The candidates of a row for its first output tokens; empty when it asked for none."""
        wanted = self._wanted[row]
        if not wanted:
            return ()
        return tuple(
            tuple(
                TokenLogprob(token, value)
                for value, token in zip(
                    values[place[row], :wanted].tolist(), tokens[place[row], :wanted].tolist(), strict=True
                )
            )
            for place, values, tokens in self._steps[:steps]
        )

    def keep(self, places: Sequence[int]) -> None:
        """From now on the batch holds only these of its present rows, in this order."""
        index = torch.tensor(places, device=self._where.device)
        rows = {place: row for row, place in self._place.items()}
        self._place = {rows[place]: new for new, place in enumerate(places)}
        if self._penalty is not None and self._seen is not None:
            self._penalty, self._seen = self._penalty[index], self._seen[index]
        new_place = {place: new for new, place in enumerate(places)}
        sampled = [number for number, place in enumerate(self._rows) if place in new_place]
        self._rows = [new_place[self._rows[number]] for number in sampled]
        self._where = torch.tensor(self._rows, dtype=torch.long, device=index.device)
        self._generators = [self._generators[number] for number in sampled]
        chosen = torch.tensor(sampled, dtype=torch.long, device=index.device)
        self._temperature, self._top_k, self._top_p = (
            values[chosen] for values in (self._temperature, self._top_k, self._top_p)
        )

    def _drawn(self, logits: torch.Tensor) -> torch.Tensor:
        logits = logits / self._temperature
        if self._filtered:
            logits = _kept(logits, self._top_k, self._top_p)
        noise = torch.empty_like(logits)
        for row, generator in zip(noise, self._generators, strict=True):
            row.exponential_(generator=generator)
        return logits - noise.log()


def _seen(input_ids: torch.Tensor, attention_mask: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """Which tokens stand in each prompt, padding left out; shape (batch, vocabulary)."""
    # Padding is sent to one column more, which is cut off.
    ids = input_ids.masked_fill(attention_mask == 0, vocabulary)
    seen = torch.zeros(ids.shape[0], vocabulary + 1, dtype=torch.bool, device=ids.device)
    return seen.scatter_(1, ids, True)[:, :vocabulary].contiguous()


def _penalised(logits: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
    return torch.where(logits < 0, logits * penalty, logits / penalty)


def _kept(logits: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Minus infinity for what is beyond the k most probable tokens or the smallest set with probability p."""
    ordered, order = logits.sort(dim=-1, descending=True)
    rank = torch.arange(logits.shape[-1], device=logits.device)
    ordered = ordered.masked_fill(rank >= top_k, -torch.inf)
    chances = ordered.softmax(-1)
    before = chances.cumsum(-1) - chances
    ordered = ordered.masked_fill(before >= top_p, -torch.inf)
    return torch.empty_like(logits).scatter_(1, order, ordered)
