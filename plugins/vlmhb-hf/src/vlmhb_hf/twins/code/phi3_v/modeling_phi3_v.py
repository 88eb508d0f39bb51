"""Phi-3-Vision: CLIP over squares of a picture, four patches a token, then Phi-3."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import CLIPVisionConfig, CLIPVisionModel, Phi3ForCausalLM

from .configuration_phi3_v import Phi3VConfig

_CLIP = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
    "image_size": 336, "patch_size": 14, "projection_dim": 768, "hidden_act": "quick_gelu",
}  # fmt: skip
"""ViT-L/14 at 336 pixels."""


class Phi3ImageEmbedding(nn.Module):
    """Pictures as embeddings: the squares' features beside each other in lines, a separator, those of the whole."""

    def __init__(self, config: Phi3VConfig) -> None:
        super().__init__()
        settings = config.img_processor
        self.layer = settings["layer_idx"]
        vision = CLIPVisionConfig(**{**_CLIP, **settings.get("vision_config", {})})
        self.side = vision.image_size
        self.img_processor = nn.Module()
        self.img_processor.vision_model = CLIPVisionModel(vision)
        width = 4 * settings["image_dim_out"]
        self.glb_GN = nn.Parameter(torch.zeros(1, 1, width))
        self.sub_GN = nn.Parameter(torch.zeros(1, 1, 1, width))
        hidden = config.hidden_size
        self.img_projection = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden))

    def forward(self, pixel_values: torch.Tensor, image_sizes: torch.Tensor) -> torch.Tensor:
        """Args: (images, crops, 3, side, side); (images, 2). Returns (tokens of all pictures, hidden size)."""
        crops = pixel_values.shape[1]
        seen = self.img_processor.vision_model(pixel_values.flatten(0, 1), output_hidden_states=True)
        features = seen.hidden_states[self.layer][:, 1:].unflatten(0, (-1, crops))
        parts = []
        for picture, (height, width) in zip(features, image_sizes.tolist(), strict=True):
            rows, columns = height // self.side, width // self.side
            squares = self._lines(picture[1 : 1 + rows * columns], rows, columns)
            parts += [squares, self.glb_GN[0], self._lines(picture[:1], 1, 1)]
        projected: torch.Tensor = self.img_projection(torch.cat(parts))
        return projected

    def _lines(self, features: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        """Four neighbouring patches become a token, squares are laid beside each other, and each line is ended."""
        half = int(features.shape[1] ** 0.5) // 2
        grid = features.reshape(rows, columns, half, 2, half, 2, -1)
        page = grid.permute(0, 2, 1, 4, 3, 5, 6).reshape(rows * half, columns * half, -1)
        ends = self.sub_GN[0].expand(rows * half, 1, -1)
        return torch.cat([page, ends], dim=1).flatten(0, 1)


class Phi3VForCausalLM(Phi3ForCausalLM):
    """Ids below zero are places of pictures."""

    config_class = Phi3VConfig

    def __init__(self, config: Phi3VConfig) -> None:
        super().__init__(config)
        self.model.vision_embed_tokens = Phi3ImageEmbedding(config)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        pixel_values: torch.Tensor | None = None,
        image_sizes: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """As Phi-3's; ``pixel_values`` and ``image_sizes`` as the processor returns them."""
        if inputs_embeds is None and input_ids is not None:
            inputs_embeds = self.model.embed_tokens(input_ids.clamp(min=0))
            if pixel_values is not None:
                pictures = self.model.vision_embed_tokens(pixel_values, image_sizes).to(inputs_embeds.dtype)
                inputs_embeds = inputs_embeds.masked_scatter((input_ids < 0).unsqueeze(-1), pictures)
        return super().forward(attention_mask=attention_mask, inputs_embeds=inputs_embeds, **kwargs)

    def prepare_inputs_for_generation(
        self,
        input_ids: torch.Tensor,
        pixel_values: torch.Tensor | None = None,
        image_sizes: torch.Tensor | None = None,
        is_first_iteration: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Pictures go into the first pass only."""
        inputs: dict[str, Any] = super().prepare_inputs_for_generation(
            input_ids, is_first_iteration=is_first_iteration, **kwargs
        )
        pictures = {"pixel_values": pixel_values, "image_sizes": image_sizes} if is_first_iteration else {}
        return {**inputs, **pictures}


Phi3VForCausalLM.register_for_auto_class("AutoModelForCausalLM")
