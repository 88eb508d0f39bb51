"""Settings that cost SGLang speed."""

from __future__ import annotations

from vlmhb.contract.hints import Hint

RULES = (
    Hint(
        lambda facts: facts["cuda_graph"] is False and facts["device"] == "cuda",
        "CUDA graphs are off, so every token takes longer; -o cuda_graph=true.",
    ),
    Hint(
        lambda facts: not facts["prefix_caching"],
        "the prefix cache is off: what questions about a page have in common is computed for each of them; "
        "-o enable_prefix_caching=true.",
    ),
    Hint(
        lambda facts: facts["kv_cache_tokens"] < 2 * facts["context_length"],
        "the KV cache holds {kv_cache_tokens} tokens, less than two requests of {context_length} tokens: few run "
        "together; raise max_total_tokens or mem_fraction_static, or set max_model_len.",
    ),
    Hint(
        lambda facts: facts["max_running_requests"] == 1,
        "one request at a time: raise max_running_requests.",
    ),
)
