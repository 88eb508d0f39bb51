"""Batches in, results out: sampling, progress and the model's forward passes brought together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from transformers import CompileConfig, GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from vlmhb import GenerationControl, GenerationResult
from vlmhb.errors import ModelLoadError
from vlmhb.prompting import PromptBuilder

from vlmhb_hf.batches import Batch
from vlmhb_hf.decoding import Decoding
from vlmhb_hf.features import encode_once
from vlmhb_hf.reuse import Proof, Reuse
from vlmhb_hf.rows import Row, RowProgress
from vlmhb_hf.sampling import RowSampling
from vlmhb_hf.sharing import PER_TOKEN, padded_tails


class Generation:
    """Answers batches with one loaded model."""

    def __init__(
        self, model: Any, builder: PromptBuilder, reuse: Reuse, settings: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Set up for one loaded model.

        Args:
            model: the torch model.
            builder: what makes its prompts.
            reuse: what it may share.
            settings: more values of transformers' ``GenerationConfig``; see :func:`cache_settings`.
        """
        self._model = model
        self._builder = builder
        self._reuse = reuse
        self._settings = settings
        self._pad: int = builder.tokenizer.pad_token_id

    def answer(self, batch: Batch, control: GenerationControl) -> list[GenerationResult]:
        """Answer a batch; what the engine raises is the caller's to handle."""
        rows = batch.rows
        inputs = self._inputs(batch)
        progress = RowProgress(rows, self._builder.stop_ids, self._builder.decode, control)
        sampling = self._row_sampling(batch, inputs)
        config = GenerationConfig(
            max_new_tokens=max(row.limit for row in rows),
            do_sample=False,
            pad_token_id=self._pad,
            bos_token_id=self._model.generation_config.bos_token_id,
            decoder_start_token_id=self._model.generation_config.decoder_start_token_id,
            **self._settings,
        )
        own_loop = self._reuse.own_loop and len(rows) > 1 and batch.plain is None
        if batch.level == "prefix" or own_loop:
            heads = batch.shared if batch.level == "prefix" else None
            loop = Decoding(progress, sampling, heads, self._pad, _once(inputs))
            self._model.generate(**inputs, generation_config=config, custom_generate=loop)
        else:
            self._model.generate(
                **self._builder.family.model_inputs(inputs),
                generation_config=config,
                logits_processor=LogitsProcessorList([sampling] if sampling else []),
                stopping_criteria=StoppingCriteriaList([progress]),
            )
        return [self._result(row, place, batch, sampling, control) for place, row in enumerate(rows)]

    def difference(self, plain: Batch, shared: Batch) -> float:
        """How far the logits of the same rows differ between both ways; see :class:`vlmhb_hf.reuse.Proof`."""
        proof = Proof(self._model, self._builder.family.model_inputs(self._inputs(plain)), self._pad)
        inputs = self._inputs(shared)
        if shared.level == "prefix":
            assert shared.shared is not None
            return proof.of_prefix(inputs, shared.shared, _once(inputs))
        return proof.of_inputs(self._builder.family.model_inputs(inputs))

    def _inputs(self, batch: Batch) -> dict[str, Any]:
        """What ``generate`` takes: tensors on the model's device, floating-point ones in its dtype."""
        device, dtype = self._model.device, self._model.dtype
        inputs = {
            name: value.to(device, dtype if value.is_floating_point() else None)
            if isinstance(value, torch.Tensor)
            else value
            for name, value in batch.encoded.items()
        }
        if batch.level == "features" and batch.shared is not None:
            return encode_once(self._model, inputs, batch.shared.head, batch.images_of_heads())
        return inputs

    def _row_sampling(self, batch: Batch, inputs: dict[str, Any]) -> RowSampling | None:
        params = [row.request.sampling for row in batch.rows]
        logprobs = [row.request.logprobs for row in batch.rows]
        if not RowSampling.needed(params, logprobs):
            return None
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        if batch.shared is not None and batch.level == "prefix":
            tails, tail_mask = padded_tails(batch.shared.tails, self._pad, ids.device)
            ids = torch.cat([ids[batch.shared.head], tails], dim=-1)
            mask = torch.cat([mask[batch.shared.head], tail_mask], dim=-1)
        vocabulary = self._model.get_output_embeddings().weight.shape[0]
        return RowSampling(params, logprobs, ids, mask, vocabulary)

    def _result(
        self, row: Row, place: int, batch: Batch, sampling: RowSampling | None, control: GenerationControl
    ) -> GenerationResult:
        text = self._builder.answer_text(row.tokens, row.request.sampling.stop)
        if control.on_text is not None and row.growing is not None and (rest := row.growing.rest(text)):
            control.on_text(row.request.id, rest)
        asked_ids, asked_logprobs = row.request.return_prompt_ids, row.request.logprobs > 0
        return row.result(
            text,
            prompt_token_ids=tuple(batch.prompt_ids(place)) if asked_ids else None,
            logprobs=sampling.logprobs_of(place, len(row.tokens)) if sampling and asked_logprobs else None,
        )


def cache_settings(cache: str, *, compiled: bool) -> dict[str, Any]:
    """What ``GenerationConfig`` is to say about the KV cache, by the options ``cache`` and ``compile``.

    Raises:
        ModelLoadError: they contradict each other.
    """
    if cache != "static":
        if compiled:
            raise ModelLoadError("compile needs a KV cache of fixed length: add cache=static, or leave compile out.")
        return {}
    if not compiled:
        return {"cache_implementation": "static", "disable_compile": True}
    config = CompileConfig()
    config._compile_all_devices = True  # transformers would compile on GPUs alone
    return {"cache_implementation": "static", "compile_config": config}


def _once(inputs: dict[str, Any]) -> list[str]:
    return [name for name in inputs if name not in PER_TOKEN]
