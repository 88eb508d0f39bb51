"""Pictures that are prepared already, for the models that SGLang takes from transformers.

SGLang's own models take what a processor made of pictures. Its wrapper around a model of transformers has a processor
that takes pictures only, and for Qwen-VL one that writes ids into the prompt that the model has no embedding for.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.managers.schedule_batch import Modality, MultimodalDataItem
from sglang.srt.multimodal.processors import qwen_vl, transformers_auto


class ReadyImages(transformers_auto.TransformersAutoMultimodalProcessor):
    """Takes one dictionary of a processor's output, ``format`` "processor_output", and the prompt's expanded ids."""

    def _load_images(self, image_data: Any) -> list[Any]:
        return list(image_data or [])

    def _apply_hf_processor(self, text: Any, images: Any = None, videos: Any = None) -> dict[str, Any]:
        features = {key: value for key, value in images[0].items() if key != "format"}
        return {"input_ids": torch.tensor(text), **features}

    def _build_mm_items(self, processor_output: dict[str, Any], input_ids: torch.Tensor) -> list[MultimodalDataItem]:
        """Everything beside the ids belongs to the pictures; SGLang would leave out names that it does not know."""
        features = {key: value for key, value in processor_output.items() if key != "input_ids"}
        items = self.collect_mm_items_from_processor_output(features, Modality.IMAGE)
        for item in items:
            item.offsets = self.get_mm_items_offset(input_ids, self.mm_tokens.image_token_id)
        return list(items)


def take_ready_images() -> None:
    """From now on this process's tokenizer manager uses it for every model that runs by transformers' code."""
    transformers_auto.TransformersAutoMultimodalProcessor = ReadyImages
    qwen_vl.QwenVLImageProcessor.supports_transformers_backend = False
