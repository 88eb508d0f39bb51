"""Qwen2-VL written for training: grey patches, whole batches of one page size, packed questions.

The parameters have the names of a published checkpoint, so :mod:`export` writes them nearly as they are. The
arithmetic is that of ``transformers``' Qwen2-VL (a test compares them); what differs is how it is laid out:

- The patch kernel works on one grey channel instead of three colours and two frames (:func:`export.colour_kernel`).
- All pages of a batch have the same size, so nothing is padded in the tower.
- A page is read once. Its questions are branches: each sees the page and itself, not the other branches. That gives
  the same numbers as one sequence a question, for a fraction of the work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.sizes import MERGE, PATCH, VISION_THETA, Sizes

Angles = tuple[Tensor, Tensor]
"""Cosines and sines, each (..., tokens, head width)."""
GUIDED_LAYERS = (1, 2)
"""The first is told to look at the letter just read, the second at the one to say."""
GUIDED = 2
"""Heads of such a layer that are told so."""


def rotate(x: Tensor, angles: Angles) -> Tensor:
    """Turn pairs (i, i + half) of the last dimension; ``x`` is (batch, tokens, heads, width)."""
    cos, sin = (part.unsqueeze(-2).to(x.dtype) for part in angles)
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


def attend(query: Tensor, key: Tensor, value: Tensor, causal_from: int | None) -> tuple[Tensor, Tensor]:
    """Plain attention of (batch, tokens, heads, width); bf16 matrix products, softmax in float32.

    Returns the states (batch, tokens, heads * width) and who looked where (batch, heads, tokens, keys).

    Args:
        causal_from: number of first keys that every query sees; of the rest, query ``i`` sees the first ``i + 1``.
            None: every query sees every key.
    """
    q, k, v = (part.transpose(1, 2) for part in (query, key, value))
    scores = (q @ k.transpose(-1, -2)).float() * (1.0 / math.sqrt(q.shape[-1]))
    if causal_from is not None:
        rows = torch.arange(q.shape[2])[:, None] + causal_from
        columns = torch.arange(k.shape[2])[None, :]
        scores = scores.masked_fill(columns > rows, -1e9)
    looks = scores.softmax(-1)
    return (looks.to(v.dtype) @ v).transpose(1, 2).flatten(2), looks


class VisionAttention(nn.Module):
    """Attention of the tower: every patch sees every patch of its page."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, angles: Angles) -> Tensor:
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        return self.proj(attend(rotate(query, angles), rotate(key, angles), value, None)[0])


class VisionMlp(nn.Module):
    """The feed-forward part of a block; quick GELU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        return self.fc2(x * torch.sigmoid(1.702 * x))


class VisionBlock(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.attn = VisionAttention(width, heads)
        self.mlp = VisionMlp(width)

    def forward(self, x: Tensor, angles: Angles) -> Tensor:
        x = x + self.attn(self.norm1(x), angles)
        return x + self.mlp(self.norm2(x))


class Merger(nn.Module):
    """Four neighbouring patches become one image token."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        merged = width * MERGE**2
        self.ln_q = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(merged, merged), nn.GELU(), nn.Linear(merged, out))

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(self.ln_q(x).unflatten(1, (-1, MERGE**2)).flatten(2))


class Tower(nn.Module):
    """The vision tower; takes (pages, patches, 196) grey values, gives (pages, patches / 4, hidden)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.patch = nn.Linear(PATCH**2, sizes.vision_width, bias=False)
        self.blocks = nn.ModuleList(
            VisionBlock(sizes.vision_width, sizes.vision_heads) for _ in range(sizes.vision_depth)
        )
        self.merger = Merger(sizes.vision_width, sizes.hidden)

    def forward(self, patches: Tensor, angles: Angles) -> Tensor:
        x = self.patch(patches).float()
        for block in self.blocks:
            x = block(x, angles)
        return self.merger(x)


class RmsNorm(nn.Module):
    """Root-mean-square norm (arXiv:1910.07467)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


@dataclass(frozen=True)
class Parts:
    """How a packed sequence is laid out: ``prefix`` tokens, of which those from ``start`` on are the page's, then the
    long branch, then ``branches`` short ones."""

    start: int
    prefix: int
    long: int
    branches: int
    short: int


class Attention(nn.Module):
    """Attention of the language model, over the parts of a packed sequence."""

    def __init__(self, sizes: Sizes, guided: bool) -> None:
        super().__init__()
        self.heads, self.guided = sizes.heads, guided
        self.q_proj = nn.Linear(sizes.hidden, sizes.hidden)
        self.k_proj = nn.Linear(sizes.hidden, sizes.hidden)
        self.v_proj = nn.Linear(sizes.hidden, sizes.hidden)
        self.o_proj = nn.Linear(sizes.hidden, sizes.hidden, bias=False)

    def forward(self, x: Tensor, angles: Angles, parts: Parts) -> tuple[Tensor, Tensor | None]:
        split = (self.heads, -1)
        query = rotate(self.q_proj(x).unflatten(-1, split), angles)
        key = rotate(self.k_proj(x).unflatten(-1, split), angles)
        value = self.v_proj(x).unflatten(-1, split)
        out, looks = _branched(query, key, value, parts, self.guided)
        return self.o_proj(out), looks


def _branched(query: Tensor, key: Tensor, value: Tensor, parts: Parts, guided: bool) -> tuple[Tensor, Tensor | None]:
    """Attention in which a branch sees the page and its own past.

    Returns the states and, if ``guided``, where in the page the first heads of the branches' tokens look:
    (pages, GUIDED, tokens, image tokens).
    """
    cuts = [parts.prefix, parts.long, parts.branches * parts.short]
    q, k, v = (part.split(cuts, dim=1) for part in (query, key, value))

    def fold(x: Tensor) -> Tensor:
        return x.unflatten(1, (parts.branches, parts.short)).flatten(0, 1)

    def spread(x: Tensor) -> Tensor:
        return x.unsqueeze(1).expand(-1, parts.branches, -1, -1, -1).flatten(0, 1)

    first, _ = attend(q[0], k[0], v[0], 0)
    long, long_looks = attend(q[1], torch.cat((k[0], k[1]), 1), torch.cat((v[0], v[1]), 1), parts.prefix)
    keys, values = torch.cat((spread(k[0]), fold(k[2])), 1), torch.cat((spread(v[0]), fold(v[2])), 1)
    short, short_looks = attend(fold(q[2]), keys, values, parts.prefix)
    out = torch.cat((first, long, short.unflatten(0, (-1, parts.branches)).flatten(1, 2)), 1)
    if not guided:
        return out, None
    page = slice(parts.start, parts.prefix)
    short_page = short_looks[:, :GUIDED, :, page].unflatten(0, (-1, parts.branches)).transpose(1, 2).flatten(2, 3)
    return out, torch.cat((long_looks[:, :GUIDED, :, page], short_page), 2)


class Mlp(nn.Module):
    """SwiGLU (arXiv:2002.05202)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.intermediate, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.intermediate, bias=False)
        self.down_proj = nn.Linear(sizes.intermediate, sizes.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """A pre-norm transformer block; if ``guided``, it tells where it looks."""

    def __init__(self, sizes: Sizes, guided: bool) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(sizes.hidden)
        self.post_attention_layernorm = RmsNorm(sizes.hidden)
        self.self_attn = Attention(sizes, guided)
        self.mlp = Mlp(sizes)

    def forward(self, x: Tensor, angles: Angles, parts: Parts) -> tuple[Tensor, Tensor | None]:
        seen, looks = self.self_attn(self.input_layernorm(x), angles, parts)
        x = x + seen
        return x + self.mlp(self.post_attention_layernorm(x)), looks


class Language(nn.Module):
    """The language model; input and output embeddings are one matrix."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.layers = nn.ModuleList(Layer(sizes, number in GUIDED_LAYERS) for number in range(sizes.layers))
        self.norm = RmsNorm(sizes.hidden)

    def forward(self, tokens: Tensor, image: Tensor, angles: Angles, parts: Parts) -> tuple[Tensor, list[Tensor]]:
        """States after every token of the branches, (pages, tokens, hidden), and where the guided layers look."""
        text = self.embed_tokens(tokens)
        x = torch.cat((text[:, : parts.start], image.float(), text[:, parts.prefix :]), 1)
        looks = []
        for layer in self.layers:
            x, look = layer(x, angles, parts)
            if look is not None:
                looks.append(look)
        return self.norm(x[:, parts.prefix :]), looks

    def logits(self, states: Tensor) -> Tensor:
        """(..., vocabulary) from (..., hidden)."""
        return F.linear(states, self.embed_tokens.weight)


class Reader(nn.Module):
    """Tower and language model."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.visual = Tower(sizes)
        self.model = Language(sizes)
        self.apply(_initialise)
        depth = math.sqrt(2 * sizes.layers)
        for name, parameter in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight", "attn.proj.weight", "fc2.weight")):
                parameter.data /= depth

    def compile_blocks(self) -> None:
        """Compile what is repeated: it takes a minute, once, and doubles the speed."""
        for block in (*self.visual.blocks, self.visual.merger, *self.model.layers):
            block.compile(dynamic=True)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=1.0 / math.sqrt(module.in_features))
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.05)


def vision_angles(sizes: Sizes, rows: int, columns: int) -> Angles:
    """Angles of a page of ``rows`` x ``columns`` image tokens, its patches in the processor's order."""
    down, across = patch_places(rows, columns)
    width = sizes.vision_head_dim
    speeds = 1.0 / VISION_THETA ** (torch.arange(0, width // 2, 2).float() / (width // 2))
    turned = torch.cat((down[:, None] * speeds, across[:, None] * speeds), -1)
    turned = torch.cat((turned, turned), -1)
    return turned.cos(), turned.sin()


def patch_places(rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Row and column of every patch; the four patches of an image token follow one another."""
    down, across = torch.meshgrid(torch.arange(rows * MERGE), torch.arange(columns * MERGE), indexing="ij")

    def ordered(x: Tensor) -> Tensor:
        return x.reshape(rows, MERGE, columns, MERGE).permute(0, 2, 1, 3).flatten()

    return ordered(down), ordered(across)


def text_angles(sizes: Sizes, places: Tensor) -> Angles:
    """Angles of tokens at ``places`` (3, tokens): time, row, column, as in Qwen2-VL's multimodal rotary embedding."""
    width = sizes.head_dim
    speeds = 1.0 / sizes.rope_theta ** (torch.arange(0, width, 2).float() / width)
    turned = places[..., None].float() * speeds
    chosen = torch.cat(
        [part[axis] for axis, part in enumerate(turned.split(list(sizes.rope_sections), dim=-1))], dim=-1
    )
    chosen = torch.cat((chosen, chosen), -1)
    return chosen.cos(), chosen.sin()
