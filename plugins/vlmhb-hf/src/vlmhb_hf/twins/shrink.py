"""Rules by which any config of transformers is made small, width by width and layer by layer.

Sizes are the smallest that engines take: vLLM's attention on a CPU wants heads of 32 numbers. A part of a config is a
nested dictionary; what a part is shows in what it holds. What the rules cannot know about a family, the family's own
file mends after them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

HIDDEN = 128
LAYERS = 4
HEADS = 4
HEAD_SIZE = 32
INTERMEDIATE = 256
EXPERTS = 4
WINDOW = 64

Part = dict[str, Any]

_HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model", "dim")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth", "encoder_layers", "decoder_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads", "decoder_attention_heads",
          "attention_heads")  # fmt: skip
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_INTERMEDIATE = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "encoder_ffn_dim", "decoder_ffn_dim",
                 "mlp_dim")  # fmt: skip
_LANGUAGE = {
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "num_experts": EXPERTS,
    "num_local_experts": EXPERTS,
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 64,
    "kv_lora_rank": 64,
    "qk_rope_head_dim": HEAD_SIZE,
    "qk_nope_head_dim": HEAD_SIZE,
    "v_head_dim": HEAD_SIZE,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": HEADS,
    "linear_key_head_dim": HEAD_SIZE,
    "linear_value_head_dim": HEAD_SIZE,
    "sliding_window": WINDOW,
}
"""Other sizes of a language part, and the most that they may be in a twin."""


class Sizes(NamedTuple):
    """What a part is made to."""

    hidden: int
    layers: int
    heads: int
    intermediate: int


LANGUAGE = Sizes(HIDDEN, LAYERS, HEADS, INTERMEDIATE)
VISION = Sizes(64, 3, 2, 128)
_VISION_WORDS = ("vision", "visual", "vit", "image", "audio", "encoder")


def shrink(config: Part, name: str = "") -> None:
    """Make a config small in place, with all its parts.

    Args:
        config: the config with all defaults filled in, as ``PreTrainedConfig.to_dict`` gives it.
        name: under which it stands in the config around it.
    """
    parts = {key: part for key, part in config.items() if isinstance(part, dict) and _is_part(key, part)}
    if _is_language(config, name):
        _shrink_part(config, LANGUAGE)
        _shrink_language(config)
    elif any(word in name for word in _VISION_WORDS):
        _shrink_part(config, VISION)
        _tie_output(config)
    for key, part in parts.items():
        shrink(part, key)


def sections(old: list[int], total: int) -> list[int]:
    """Cut a total into parts in about the ratios of another cut, none empty: the sections of three-part rotation."""
    whole = sum(old)
    cut = [max(1, value * total // whole) for value in old]
    cut[-1] += total - sum(cut)
    return cut


def _is_part(key: str, part: Part) -> bool:
    return "model_type" in part or (key.endswith("_config") and key not in ("quantization_config", "auto_map"))


def _is_language(config: Part, name: str) -> bool:
    nested = any(isinstance(config.get(key), dict) for key in ("text_config", "llm_config", "language_config"))
    return "vocab_size" in config and not nested and not any(word in name for word in _VISION_WORDS)


def _shrink_part(config: Part, sizes: Sizes) -> None:
    layers, heads = _first(config, _LAYERS), _first(config, _HEADS)
    kv_heads = _first(config, _KV_HEADS)
    _cut_lists(config, layers, sizes.layers)
    wide = [("embed_dim",), ("hidden_size",)] if isinstance(config.get("embed_dim"), int) else [_HIDDEN]
    _set(config, wide[0], sizes.hidden)
    _set(config, _LAYERS, sizes.layers)
    _set(config, _HEADS, sizes.heads)
    _set(config, _INTERMEDIATE, sizes.intermediate)
    if kv_heads is not None:
        _set(config, _KV_HEADS, sizes.heads if kv_heads == heads else min(kv_heads, sizes.heads // 2))
    for key in ("head_dim", "attention_head_dim"):
        if isinstance(config.get(key), int):
            config[key] = HEAD_SIZE
    if isinstance(config.get("projection_dim"), int):
        config["projection_dim"] = HIDDEN


def _tie_output(config: Part) -> None:
    """A picture's features come out as wide as the language part; where a part has both widths, this is the other."""
    if isinstance(config.get("out_hidden_size"), int):
        config["out_hidden_size"] = HIDDEN
    if isinstance(config.get("embed_dim"), int) and isinstance(config.get("hidden_size"), int):
        config["hidden_size"] = HIDDEN


def _shrink_language(config: Part) -> None:
    for key, most in _LANGUAGE.items():
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            config[key] = min(value, most)
    for rope in (config.get("rope_parameters"), config.get("rope_scaling")):
        if isinstance(rope, dict):
            _shrink_rope(rope, config)


def _shrink_rope(rope: Part, config: Part) -> None:
    """The rotated half of a head has 16 numbers in a twin, or the share of them that is rotated at all."""
    share = rope.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    size = config.get("qk_rope_head_dim") or HEAD_SIZE
    rotated = int(size * share) // 2
    for key, value in rope.items():
        if isinstance(value, dict):
            _shrink_rope(value, config)
        elif key == "mrope_section" and isinstance(value, list):
            rope[key] = sections(value, rotated)
        elif key in ("short_factor", "long_factor") and isinstance(value, list):
            rope[key] = value[:rotated]


def _cut_lists(config: Part, layers: int | None, wanted: int) -> None:
    """Lists with an entry a layer, and lists of numbers of layers."""
    for key, value in config.items():
        if layers is None or not isinstance(value, list) or not value:
            continue
        if key.endswith(("_indexes", "_indices", "_layers")) and all(isinstance(item, int) for item in value):
            config[key] = _cut_indexes(value, layers, wanted)
        elif len(value) == layers:
            config[key] = _cut_kinds(value, wanted)


def _cut_indexes(old: list[int], layers: int, wanted: int) -> list[int]:
    """Fewer layers of the old ones: as large a share as before, from the middle of the list."""
    count = max(1, round(len(old) * wanted / layers))
    middle = (len(old) - count) // 2
    return sorted({min(index * wanted // layers, wanted - 1) for index in old[middle : middle + count]})


def _cut_kinds(old: list[Any], wanted: int) -> list[Any]:
    """The first entries, or, where those are not of all kinds, the kinds in turn."""
    kinds = [kind for place, kind in enumerate(old) if kind not in old[:place]]
    first = old[:wanted]
    return first if all(kind in first for kind in kinds) else [kinds[index % len(kinds)] for index in range(wanted)]


def _first(config: Part, names: tuple[str, ...]) -> int | None:
    values = (config.get(name) for name in names)
    return next((value for value in values if isinstance(value, int)), None)


def _set(config: Part, names: tuple[str, ...], value: int) -> None:
    for name in names:
        if isinstance(config.get(name), int):
            config[name] = value
