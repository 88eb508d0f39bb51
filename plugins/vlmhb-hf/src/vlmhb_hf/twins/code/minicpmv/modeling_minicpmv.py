"""MiniCPM-V 2.6: SigLIP over slices of a picture, a resampler that makes a few tokens of each, Qwen2."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import Qwen2ForCausalLM, Qwen2PreTrainedModel
from transformers.models.siglip.modeling_siglip import SiglipEncoder

from .configuration_minicpm import MiniCPMVConfig

_TERMINATORS = ("<|im_end|>", "<|endoftext|>")


class VisionEmbeddings(nn.Module):
    """Patches with positions in a square that a slice of any shape is laid over."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        size, patch = config.hidden_size, config.patch_size
        self.side = config.image_size // patch
        self.patch_embedding = nn.Conv2d(config.num_channels, size, patch, patch)
        self.position_embedding = nn.Embedding(self.side**2, size)

    def forward(self, strip: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        """Args: (3, patch, patches * patch). Returns (1, patches, size)."""
        patches = self.patch_embedding(strip[None]).flatten(2).transpose(1, 2)
        bounds = torch.arange(1 / self.side, 1.0, 1 / self.side, device=strip.device)
        across, down = (
            torch.bucketize(torch.arange(count, device=strip.device) / count, bounds, right=True)
            for count in (columns, rows)
        )
        return patches + self.position_embedding((down[:, None] * self.side + across).flatten())


class VisionTransformer(nn.Module):
    """SigLIP without a head, one slice at a time."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.embeddings = VisionEmbeddings(config)
        self.encoder = SiglipEncoder(config)
        self.post_layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, strip: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        """Args: (3, patch, patches * patch). Returns (1, patches, size)."""
        seen = self.encoder(inputs_embeds=self.embeddings(strip, rows, columns)).last_hidden_state
        normed: torch.Tensor = self.post_layernorm(seen)
        return normed


class Resampler(nn.Module):
    """Learned questions look across at the patches, which know their places."""

    def __init__(self, queries: int, size: int, vision_size: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(queries, size))
        self.kv_proj = nn.Linear(vision_size, size, bias=False)
        self.attn = nn.MultiheadAttention(size, size // 128)
        self.ln_q, self.ln_kv, self.ln_post = (nn.LayerNorm(size, eps=1e-6) for _ in range(3))
        self.proj = nn.Parameter(torch.zeros(size, size))

    def forward(self, patches: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        """Args: (1, patches, vision size). Returns (queries, size)."""
        values = self.ln_kv(self.kv_proj(patches))[0]
        keys = values + _places(rows, columns, values.shape[-1]).to(values)
        out, _ = self.attn(self.ln_q(self.query), keys, values, need_weights=False)
        resampled: torch.Tensor = self.ln_post(out) @ self.proj
        return resampled


class MiniCPMV(Qwen2PreTrainedModel):
    """Generates by the language model, from embeddings in which slices are laid into their places."""

    config_class = MiniCPMVConfig

    def __init__(self, config: MiniCPMVConfig) -> None:
        super().__init__(config)
        config.vision_config._attn_implementation = config._attn_implementation
        self.llm = Qwen2ForCausalLM(config)
        self.vpm = VisionTransformer(config.vision_config)
        self.resampler = Resampler(config.query_num, config.hidden_size, config.vision_config.hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> Any:
        """The language model's."""
        return self.llm.get_input_embeddings()

    def get_output_embeddings(self) -> Any:
        """The language model's."""
        return self.llm.get_output_embeddings()

    def embed(self, input_ids: torch.Tensor, pixel_values: Any, tgt_sizes: Any, image_bound: Any) -> torch.Tensor:
        """Ids as embeddings, with each slice of a prompt's pictures in its place."""
        embeds = self.get_input_embeddings()(input_ids)
        for row, (strips, sizes, bounds) in enumerate(zip(pixel_values, tgt_sizes, image_bound, strict=True)):
            for strip, size, (start, end) in zip(strips, sizes.tolist(), bounds.tolist(), strict=True):
                patches = self.vpm(strip.to(embeds), *size)
                embeds[row, start:end] = self.resampler(patches, *size)
        return embeds

    @torch.no_grad()
    def generate(
        self,
        input_ids: torch.Tensor,
        pixel_values: Any = None,
        tgt_sizes: Any = None,
        image_bound: Any = None,
        attention_mask: torch.Tensor | None = None,
        tokenizer: Any = None,
        **kwargs: Any,
    ) -> torch.Tensor:
        """Args: as the processor returns them, and a tokenizer. Returns ids of answers alone, (batch, tokens)."""
        embeds = self.embed(input_ids, pixel_values, tgt_sizes, image_bound)
        ends = [tokenizer.convert_tokens_to_ids(word) for word in _TERMINATORS]
        options = {"pad_token_id": 0, "eos_token_id": ends, **kwargs}
        made: torch.Tensor = self.llm.generate(inputs_embeds=embeds, attention_mask=attention_mask, **options)
        return made


def _places(rows: int, columns: int, size: int) -> torch.Tensor:
    """Sines and cosines of column and row, in halves; (rows * columns, size)."""
    rates = 1.0 / 10000 ** (torch.arange(size // 4, dtype=torch.float32) / (size / 4))

    def waves(place: torch.Tensor) -> torch.Tensor:
        angles = place[:, None] * rates
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

    down, across = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    return torch.cat([waves(across.flatten().float()), waves(down.flatten().float())], dim=-1)


MiniCPMV.register_for_auto_class("AutoModelForCausalLM")
