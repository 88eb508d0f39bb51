"""What vLLM's exceptions say, as one sentence for a person."""

from __future__ import annotations

from vlmhb.errors import ErrorKind, RequestError

ADVICE = (
    ("No available memory for the cache blocks", "Give the KV cache more memory with the option kv_cache_gib."),
    ("larger than the available KV cache memory", "Set a smaller max_model_len, or a larger kv_cache_gib."),
    ("is less than requested memory for kv", "Set a smaller kv_cache_gib."),
    ("Transformers implementation of", "Use model_impl native, where vLLM has its own code for the model."),
    (
        "were not initialized from checkpoint",
        "This implementation does not fit the checkpoint; try another model_impl.",
    ),
    ("Engine core initialization failed", "The reason is in the engine's log."),
    ("unexpected keyword argument", "Names in the option engine_args must be those of vLLM's EngineArgs."),
)
"""Words of vLLM's reasons -> what to do about them, in this plugin's terms."""


def load_reason(error: BaseException) -> str:
    """Why a model was not loaded, with advice where there is some."""
    text = reason(error).rstrip()
    advice = next((advice for words, advice in ADVICE if words in text), None)
    return text if advice is None else f"{text.rstrip('.')}. {advice}"


def reason(error: BaseException) -> str:
    """The engine's own reason, from an exception and what it was raised from.

    Wrapped exceptions hold the reason inside; pydantic's add headers, input dumps and links around it.
    """
    texts: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(texts) < 3:
        text = _own_words(seen)
        if text and not any(text in known for known in texts):
            texts.append(text)
        seen = seen.__cause__
    return ": ".join(texts) or type(error).__name__


def refused(error: Exception) -> RequestError:
    """The failure of one request that vLLM would not take."""
    from vllm.exceptions import VLLMValidationError

    kind: ErrorKind = "invalid_request" if isinstance(error, VLLMValidationError | ValueError) else "engine"
    text = reason(error)
    if "JSON schema" in text and "not supported" in text:
        kind = "unsupported"
    return RequestError(f"vLLM refused the request: {text}", kind)


def _own_words(error: BaseException) -> str:
    details = getattr(error, "errors", None)
    if callable(details):  # pydantic's ValidationError
        return "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in details())
    text = " ".join(str(error).split())
    if isinstance(error, AttributeError | KeyError | AssertionError | ImportError):
        return f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text
