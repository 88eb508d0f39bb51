"""Settings that cost vLLM speed."""

from __future__ import annotations

from vlmhb.contract.hints import Hint

RULES = (
    Hint(
        lambda facts: facts["enforce_eager"] and facts["device"] == "cuda",
        "eager mode: without CUDA graphs every token takes longer; -o enforce_eager=false captures them.",
    ),
    Hint(
        lambda facts: not facts["prefix_caching"],
        "the prefix cache is off: what questions about a page have in common is computed for each of them; "
        "-o enable_prefix_caching=true.",
    ),
    Hint(
        lambda facts: (facts["kv_cache_tokens"] or 2 * facts["context_length"]) < 2 * facts["context_length"],
        "the KV cache holds {kv_cache_tokens} tokens, less than two requests of {context_length} tokens: few run "
        "together; raise kv_cache_gib or gpu_memory_utilization, or set max_model_len.",
    ),
    Hint(
        lambda facts: facts["max_num_seqs"] == 1,
        "one request at a time: raise max_num_seqs.",
    ),
)
