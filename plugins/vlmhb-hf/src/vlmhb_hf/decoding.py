"""The loop that makes tokens, in place of that of ``generate``: heads are computed once, ended rows leave."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import torch

from vlmhb_hf.sharing import Shared, padded_tails

_CACHES = ("cache", "past_key_values")
"""What the KV cache is called; the name changed within transformers 5."""

_TYPES = ("token_type_ids", "mm_token_type_ids")


class Progress(Protocol):
    """Who is told each step's tokens; see :class:`vlmhb_hf.rows.RowProgress`."""

    def take(self, tokens: Sequence[int]) -> list[int]:
        """Args: one token a row. Returns the places of the rows that go on."""

    def leave(self) -> None:
        """Rows that have ended are gone from now on."""


class Chooser(Protocol):
    """What turns logits so that the greatest is to be taken; see :class:`vlmhb_hf.sampling.RowSampling`."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Args: the last tokens (rows, 1); logits (rows, vocabulary), float32."""

    def keep(self, places: Sequence[int]) -> None:
        """Only these rows are left from now on."""


class Decoding:
    """Greedy decoding of a batch; given to ``generate`` as ``custom_generate``, which has then prepared everything.

    Each forward pass takes the inputs that the model's own ``prepare_inputs_for_generation`` makes of them, so a
    family's special needs are met as in transformers' loop. When half of the rows have ended, the KV cache is copied
    without them.
    """

    def __init__(
        self, progress: Progress, chooser: Chooser | None, shared: Shared | None, pad: int, once: Collection[str]
    ) -> None:
        """Set up for one batch.

        Args:
            progress: takes the tokens.
            chooser: changes the logits first; None is plain greedy decoding.
            shared: how rows follow from the heads; None where each row of the batch is a whole prompt.
            pad: any token's id.
            once: inputs that only the first pass takes.
        """
        self._progress = progress
        self._chooser = chooser
        self._shared = shared
        self._pad = pad
        self._once = frozenset(once) | {"mm_encoder_outputs"}

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        **inputs: Any,
    ) -> torch.Tensor:
        """Generate until every row has ended; what ``generate`` calls."""
        self._model, self._inputs, self._device = model, inputs, input_ids.device
        logits = self._pass(input_ids, first=True)
        self._inputs = {name: value for name, value in self._inputs.items() if name not in self._once}
        if self._shared is not None:
            del logits
            logits = self._pass(self._unfold(self._shared))
        tokens = input_ids
        while True:
            scores = self._chooser(tokens, logits) if self._chooser is not None else logits
            tokens = scores.argmax(-1, keepdim=True)
            going = self._progress.take(tokens[:, 0].tolist())
            if not going:
                return tokens
            if 2 * len(going) <= len(tokens):
                self._leave(going)
                tokens = tokens[going]
            logits = self._pass(tokens)

    def _pass(self, ids: torch.Tensor, *, first: bool = False) -> torch.Tensor:
        """One forward pass; returns the logits after the last token, shape (rows, vocabulary), float32."""
        prepared = self._model.prepare_inputs_for_generation(ids, is_first_iteration=first, **self._inputs)
        outputs = self._model(**prepared, return_dict=True)
        self._inputs = self._model._update_model_kwargs_for_generation(outputs, self._inputs)
        logits: torch.Tensor = outputs.logits[:, -1].to(copy=True, dtype=torch.float32)
        return logits

    def _unfold(self, shared: Shared) -> torch.Tensor:
        """Give each row a copy of its head's cache, mask and positions; returns the ids of the tails.

        All side arrays reach one token past the heads here, as ``generate`` keeps them. Padding comes to lie between
        head and tail; it is masked, and positions count only tokens.
        """
        ids, mask = padded_tails(shared.tails, self._pad, self._device)
        heads = next(self._inputs[name] for name in _CACHES if self._inputs.get(name) is not None).get_seq_length()
        self._select(shared.head)
        known = self._inputs.get("attention_mask")
        if known is not None or not bool(mask.all()):
            before = mask.new_ones(len(mask), heads) if known is None else known[:, :heads]
            self._inputs["attention_mask"] = torch.cat([before, mask], dim=-1)
        positions = self._inputs.get("position_ids")
        if positions is not None:
            self._inputs["position_ids"] = positions[..., -1:] + (mask.cumsum(-1) - 1).clamp(min=0)
        for name in _TYPES:
            if (types := self._inputs.get(name)) is not None:
                self._inputs[name] = types.new_zeros(ids.shape)  # text
        return ids

    def _leave(self, going: Sequence[int]) -> None:
        self._progress.leave()
        if self._chooser is not None:
            self._chooser.keep(going)
        self._select(going)

    def _select(self, places: Sequence[int]) -> None:
        """Make these rows the batch, each of them as often as it is named."""
        index = torch.tensor(places)  # on the CPU: the cache's layers may lie on several devices
        for name, value in self._inputs.items():
            if name in _CACHES and value is not None:
                value.batch_select_indices(index)
            elif name in ("attention_mask", *_TYPES) and value is not None:
                self._inputs[name] = value[index]
            elif name == "position_ids" and value is not None:
                self._inputs[name] = value[..., index, :]
