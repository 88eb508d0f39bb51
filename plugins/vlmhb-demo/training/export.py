"""Writing the reader as an ordinary Qwen2-VL folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from vlmhb_demo.tiny_model import jsonfile
from vlmhb_demo.tiny_model.config import CLIP_MEAN, CLIP_STD

from training import words
from training.model import Reader
from training.sizes import CELL, MERGE, PATCH, Sizes

CONTEXT = 1024
MOST_CELLS, FEWEST_CELLS = 100, 4
"""Image tokens of the largest and the smallest page."""
FRAMES = 2


def write(folder: Path, reader: Reader, dtype: torch.dtype = torch.bfloat16) -> Path:
    """Write weights, configs, tokenizer and processor files; return ``folder``."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: tensor.to(dtype).contiguous() for name, tensor in tensors(reader).items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    words.write(folder, CONTEXT)
    special = words.tokenizer().special
    end, nothing = special["<|im_end|>"], special["<|endoftext|>"]
    jsonfile.write(folder / "config.json", _config(reader.sizes, str(dtype).removeprefix("torch.")))
    jsonfile.write(folder / "preprocessor_config.json", _images())
    jsonfile.write(
        folder / "generation_config.json",
        {"bos_token_id": nothing, "do_sample": False, "eos_token_id": [end, nothing], "pad_token_id": nothing},
    )
    return folder


def tensors(reader: Reader) -> dict[str, Tensor]:
    """The weights by their published names; the output layer is the embedding and is not written."""
    state = {name.replace("._orig_mod", ""): tensor.detach().clone() for name, tensor in reader.state_dict().items()}
    state["visual.patch_embed.proj.weight"] = colour_kernel(state.pop("visual.patch.weight"))
    return state


def colour_kernel(grey: Tensor) -> Tensor:
    """The (width, 3, 2, 14, 14) kernel that does to an image what a (width, 196) kernel does to its mean channel.

    The processor gives channel c as (v - mean_c) / std_c, twice, as a still image is two equal frames. With the
    weights k std_c / 6 the six products add up to k times the mean over the channels of (v - mean_c).
    """
    spread = torch.tensor(CLIP_STD).view(1, 3, 1, 1, 1) / (3 * FRAMES)
    return grey.view(-1, 1, 1, PATCH, PATCH) * spread.expand(-1, -1, FRAMES, -1, -1)


def _config(sizes: Sizes, dtype: str) -> dict[str, Any]:
    special = words.tokenizer().special
    return {
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "attention_dropout": 0.0,
        "bos_token_id": special["<|endoftext|>"],
        "eos_token_id": special["<|im_end|>"],
        "hidden_act": "silu",
        "hidden_size": sizes.hidden,
        "image_token_id": special["<|image_pad|>"],
        "initializer_range": 0.02,
        "intermediate_size": sizes.intermediate,
        "max_position_embeddings": CONTEXT,
        "max_window_layers": sizes.layers,
        "model_type": "qwen2_vl",
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "num_key_value_heads": sizes.heads,
        "pad_token_id": special["<|endoftext|>"],
        "rms_norm_eps": 1e-06,
        "rope_scaling": {"type": "mrope", "mrope_section": list(sizes.rope_sections)},
        "rope_theta": sizes.rope_theta,
        "sliding_window": CONTEXT,
        "tie_word_embeddings": True,
        "torch_dtype": dtype,
        "use_cache": True,
        "use_sliding_window": False,
        "video_token_id": special["<|video_pad|>"],
        "vision_config": _vision(sizes),
        "vision_end_token_id": special["<|vision_end|>"],
        "vision_start_token_id": special["<|vision_start|>"],
        "vision_token_id": special["<|vision_pad|>"],
        "vocab_size": sizes.vocabulary,
    }


def _vision(sizes: Sizes) -> dict[str, Any]:
    # in_chans is the published name; newer engines read in_channels. hidden_size is the language model's.
    return {
        "depth": sizes.vision_depth,
        "embed_dim": sizes.vision_width,
        "hidden_act": "quick_gelu",
        "hidden_size": sizes.hidden,
        "in_channels": 3,
        "in_chans": 3,
        "mlp_ratio": 4,
        "num_heads": sizes.vision_heads,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "spatial_patch_size": PATCH,
        "temporal_patch_size": FRAMES,
    }


def _images() -> dict[str, Any]:
    most, fewest = MOST_CELLS * CELL**2, FEWEST_CELLS * CELL**2
    return {
        "image_mean": CLIP_MEAN,
        "image_processor_type": "Qwen2VLImageProcessor",
        "image_std": CLIP_STD,
        "max_pixels": most,
        "merge_size": MERGE,
        "min_pixels": fewest,
        "patch_size": PATCH,
        "processor_class": "Qwen2VLProcessor",
        "size": {"longest_edge": most, "shortest_edge": fewest},
        "temporal_patch_size": FRAMES,
    }
