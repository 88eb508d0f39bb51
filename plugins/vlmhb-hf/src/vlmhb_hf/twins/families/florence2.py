"""Florence-2: a vision part in stages, then BART's encoder and decoder; one picture and a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import Family
from vlmhb_hf.twins.shrink import HIDDEN
from vlmhb_hf.twins.tokens import END_OF_TEXT

_SIDE = 128


class Florence2(Family):
    """16 patches and the mean of all a picture."""

    chat = False
    embedding = 0.2
    gain = 0.7
    named: ClassVar[Mapping[str, str]] = {"image_token": "<image>"}
    ids: ClassVar[Mapping[str, str]] = {
        "image_token_id": "<image>",
        "text_config.decoder_start_token_id": END_OF_TEXT,  # with the end's id, an answer would end at once
        "decoder_start_token_id": END_OF_TEXT,
    }

    def shrink(self, config: dict[str, Any]) -> None:
        """Four stages of one layer each."""
        config["vision_config"].update(
            embed_dim=[16, 32, 64, 64],
            num_heads=[1, 2, 2, 2],
            num_groups=[1, 2, 2, 2],
            depths=[1, 1, 1, 1],
            window_size=4,
            projection_dim=HIDDEN,
        )
        text = config["text_config"]
        text.update(d_model=HIDDEN, encoder_layers=2, decoder_layers=2)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """Squares of 128 pixels."""
        from transformers import CLIPImageProcessor, Florence2Processor

        tokenizer.bos_token = END_OF_TEXT
        size = {"height": _SIDE, "width": _SIDE}
        image_processor = CLIPImageProcessor(size=size, crop_size=size, do_center_crop=False)
        image_processor.image_seq_length = 17
        return Florence2Processor(image_processor, tokenizer, num_additional_image_tokens=1)

    def finish(self, model: Any) -> None:
        """The picture is the same at every step; strong positions keep the decoder from saying one word for ever."""
        import torch

        source = torch.Generator().manual_seed(self.seed)
        for name, values in model.named_parameters():
            if name.endswith("decoder.embed_positions.weight"):
                values.normal_(0, 1.0, generator=source)


FAMILY = Florence2()
