"""What the twins of readers share: a vision encoder, a decoder, and no chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vlmhb_hf.twins.family import Family
from vlmhb_hf.twins.tokens import END_OF_TEXT


class Reader(Family):
    """The decoder starts with a token that does not end it.

    Attributes:
        picture: factor of what the decoder's layers see of the picture.
    """

    chat = False
    picture: ClassVar[float]
    ids: ClassVar[Mapping[str, str]] = {
        "decoder.decoder_start_token_id": END_OF_TEXT,
        "decoder_start_token_id": END_OF_TEXT,
    }

    def finish(self, model: Any) -> None:
        """A picture is the same at every step: words and their places must count too, or one word is said for ever."""
        import torch

        source = torch.Generator().manual_seed(self.seed)
        scale = model.get_input_embeddings().embed_scale
        for name, values in model.decoder.named_parameters():
            if name.endswith("embed_positions.weight"):
                values.normal_(0, 2.0 * scale, generator=source)
            elif "encoder_attn.out_proj" in name:
                values.mul_(self.picture)
