"""What vLLM's exceptions say, as one sentence for a person."""

from __future__ import annotations

from vlmhb.errors import ErrorKind, RequestError


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
    if "schema" in text and "not supported" in text:
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
