"""How much memory the keys and values of a prompt take."""

from __future__ import annotations

from typing import Any

from vlmhb.doctor.weights import BYTES

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "decoder_attention_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_WIDTHS = ("hidden_size", "n_embd", "d_model", "dim")
_WINDOWED = ("sliding_attention", "chunked_attention")
_FULL = ("full_attention", "attention")


def kv_cache_bytes(config: dict[str, Any], tokens: int, dtype: str) -> int | None:
    """Bytes that the keys and values of one sequence take.

    A layer keeps ``2 * key-value heads * head size`` numbers a token (Kwon et al. 2023, arXiv:2309.06180, section 3;
    grouped heads: Ainslie et al. 2023, arXiv:2305.13245), and those of at most ``sliding_window`` tokens where it looks
    at a window only. Latent attention keeps ``kv_lora_rank + qk_rope_head_dim`` numbers a token (DeepSeek-V2,
    arXiv:2405.04434, section 2.1); that is what vLLM and SGLang keep, transformers keeps the heads made of them. Layers
    without such a cache (linear attention, state spaces, cross attention to an image) count nothing here, and what
    engines add by rounding up to blocks is left out.

    Args:
        config: of the language model, with the defaults filled in as far as they are known.
        tokens: of prompt and answer together.
        dtype: of the cache: that of the model.

    Returns:
        None when the config does not say the sizes.
    """
    layers = _first(config, _LAYERS)
    per_token = _numbers_per_token(config)
    if layers is None or per_token is None:
        return None
    kept = sum(tokens if window is None else min(tokens, window) for window in _windows(config, layers))
    return kept * per_token * BYTES[dtype]


def _numbers_per_token(config: dict[str, Any]) -> int | None:
    """Numbers that one layer keeps for one token."""
    if config.get("kv_lora_rank"):
        return int(config["kv_lora_rank"]) + int(config.get("qk_rope_head_dim") or 0)
    heads, width = _first(config, _HEADS), _first(config, _WIDTHS)
    size = config.get("head_dim") or (width // heads if heads and width else None)
    if heads is None or size is None:
        return None
    return 2 * _kv_heads(config, heads) * int(size)


def _kv_heads(config: dict[str, Any], heads: int) -> int:
    if config.get("multi_query") and not config.get("new_decoder_architecture"):  # Falcon, GPT-BigCode
        return 1
    return _first(config, _KV_HEADS) or heads


def _windows(config: dict[str, Any], layers: int) -> list[int | None]:
    """For each layer that keeps a cache of its own: how many tokens it keeps at most, None for all."""
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    layers -= int(config.get("num_kv_shared_layers") or 0)
    kinds = config.get("layer_types")
    if kinds is None:
        kinds = [_FULL[0]] * layers if window is None else _by_pattern(config, layers)
    crossed = set(config.get("cross_attention_layers") or ())
    kept = [kind for index, kind in enumerate(kinds[:layers]) if index not in crossed]
    limits: dict[str, int | None] = {
        **dict.fromkeys(_FULL),
        **dict.fromkeys(_WINDOWED, window or config.get("attention_chunk_size")),
    }
    return [limits[kind] for kind in kept if kind in limits]


def _by_pattern(config: dict[str, Any], layers: int) -> list[str]:
    """A config from before ``layer_types``: every n-th layer looks at everything, or all look at the window."""
    pattern = config.get("sliding_window_pattern") or config.get("_sliding_window_pattern")
    return [_FULL[0] if pattern and (index + 1) % pattern == 0 else _WINDOWED[0] for index in range(layers)]


def _first(config: dict[str, Any], names: tuple[str, ...]) -> int | None:
    values = (config.get(name) for name in names)
    return next((int(value) for value in values if isinstance(value, int) and value), None)
