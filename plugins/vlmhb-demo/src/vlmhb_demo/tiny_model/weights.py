"""Random weights under the names of a published checkpoint.

A draw is the sum of four 16-bit integers out of one output of PCG64, moved to mean 0 and scaled: near enough to
a normal distribution (Irwin-Hall with four terms), and, unlike ``numpy.random.Generator.standard_normal``, the
same to the last bit with every numpy and processor. Each tensor has a stream of its own, named by the seed and
the tensor's name.

The scales keep activations large enough for the prompt and the image to decide the next token; at the usual
initial scale of 0.02 every prompt gets nearly the same answer.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from vlmhb_demo.tiny_model import shape
from vlmhb_demo.tiny_model.tokenizer import END_OF_TURN, Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tensor = NDArray[np.float32]

GAIN = 1.5
LOGIT_SCALE = 2.0
END_SCALE = 3.0
"""Spread of the logits of ordinary tokens and of the token that ends an answer."""
BIAS = 0.1


def write(folder: Path, words: Tokenizer, seed: int) -> None:
    """Write ``model.safetensors`` in float32."""
    from safetensors.numpy import save_file

    save_file(tensors(words, seed), folder / "model.safetensors", metadata={"format": "pt"})


def tensors(words: Tokenizer, seed: int) -> dict[str, Tensor]:
    """Every tensor of the model by its published name."""
    bank = _Bank(seed)
    _vision(bank)
    _language(bank, words)
    return bank.tensors


class _Bank:
    """Collects tensors; the methods are the kinds of layers that there are."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.tensors: dict[str, Tensor] = {}

    def random(self, name: str, *size: int, std: float) -> Tensor:
        self.tensors[name] = _draw(self.seed, name, size, std)
        return self.tensors[name]

    def constant(self, name: str, size: int, value: float) -> None:
        import numpy as np

        self.tensors[name] = np.full(size, value, np.float32)

    def linear(self, name: str, outputs: int, inputs: int, *, gain: float = GAIN, bias: bool = True) -> None:
        self.random(f"{name}.weight", outputs, inputs, std=gain / math.sqrt(inputs))
        if bias:
            self.random(f"{name}.bias", outputs, std=BIAS)

    def rms_norm(self, name: str) -> None:
        self.constant(f"{name}.weight", shape.HIDDEN, 1.0)

    def layer_norm(self, name: str) -> None:
        self.constant(f"{name}.weight", shape.VISION_WIDTH, 1.0)
        self.constant(f"{name}.bias", shape.VISION_WIDTH, 0.0)


def _draw(seed: int, name: str, size: tuple[int, ...], std: float) -> Tensor:
    import numpy as np

    stream = np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(name.encode())]))
    raw = stream.random_raw(math.prod(size)).view(np.uint16).reshape(-1, 4)
    centred = raw.sum(axis=1, dtype=np.int64) - 2 * 0xFFFF
    spread = math.sqrt((2**32 - 1) / 3)  # of the sum of four numbers uniform on 0..65535
    drawn: Tensor = (centred * (std / spread)).astype(np.float32).reshape(size)
    return drawn


def _vision(bank: _Bank) -> None:
    width, merged = shape.VISION_WIDTH, shape.VISION_WIDTH * shape.MERGE**2
    patch = (shape.CHANNELS, shape.TEMPORAL_PATCH, shape.PATCH, shape.PATCH)
    bank.random("visual.patch_embed.proj.weight", width, *patch, std=GAIN / math.sqrt(math.prod(patch)))
    for layer in range(shape.VISION_DEPTH):
        block = f"visual.blocks.{layer}"
        bank.layer_norm(f"{block}.norm1")
        bank.linear(f"{block}.attn.qkv", 3 * width, width)
        bank.linear(f"{block}.attn.proj", width, width, gain=1.0)
        bank.layer_norm(f"{block}.norm2")
        bank.linear(f"{block}.mlp.fc1", shape.VISION_MLP_RATIO * width, width)
        bank.linear(f"{block}.mlp.fc2", width, shape.VISION_MLP_RATIO * width)
    bank.layer_norm("visual.merger.ln_q")
    bank.linear("visual.merger.mlp.0", merged, merged)
    bank.linear("visual.merger.mlp.2", shape.HIDDEN, merged)


def _language(bank: _Bank, words: Tokenizer) -> None:
    hidden = shape.HIDDEN
    bank.random("model.embed_tokens.weight", words.size, hidden, std=1.0)
    for layer in range(shape.LAYERS):
        block = f"model.layers.{layer}"
        bank.rms_norm(f"{block}.input_layernorm")
        bank.linear(f"{block}.self_attn.q_proj", shape.HEADS * shape.HEAD_DIM, hidden)
        bank.linear(f"{block}.self_attn.k_proj", shape.KV_HEADS * shape.HEAD_DIM, hidden)
        bank.linear(f"{block}.self_attn.v_proj", shape.KV_HEADS * shape.HEAD_DIM, hidden)
        bank.linear(f"{block}.self_attn.o_proj", hidden, shape.HEADS * shape.HEAD_DIM, bias=False)
        bank.rms_norm(f"{block}.post_attention_layernorm")
        bank.linear(f"{block}.mlp.gate_proj", shape.INTERMEDIATE, hidden, bias=False)
        bank.linear(f"{block}.mlp.up_proj", shape.INTERMEDIATE, hidden, bias=False)
        bank.linear(f"{block}.mlp.down_proj", hidden, shape.INTERMEDIATE, bias=False)
    bank.rms_norm("model.norm")
    _head(bank, words)


def _head(bank: _Bank, words: Tokenizer) -> None:
    """The output layer: rows of zeros for special tokens, which are so never the best, but for the end of a turn."""
    scale = math.sqrt(shape.HIDDEN)
    head = bank.random("lm_head.weight", words.size, shape.HIDDEN, std=LOGIT_SCALE / scale)
    head[len(words.vocabulary) :] = 0.0
    head[words.special[END_OF_TURN]] = _draw(bank.seed, END_OF_TURN, (shape.HIDDEN,), END_SCALE / scale)
