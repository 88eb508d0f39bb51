"""What the engine's exceptions mean for a request."""

from __future__ import annotations

import torch
from vlmhb.errors import RequestError

_CPU_OUT_OF_MEMORY = ("defaultcpuallocator", "not enough memory", "can't allocate memory", "cannot allocate memory")


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: torch says so by its own exception on a GPU, by a plain RuntimeError on a CPU."""
    if isinstance(error, RequestError):  # the processor's exception in words
        return error.__cause__ is not None and out_of_memory(error.__cause__)
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _CPU_OUT_OF_MEMORY)


def request_error(error: BaseException) -> RequestError:
    """The failure of one request that an exception stands for."""
    if isinstance(error, RequestError) and not out_of_memory(error):
        return error
    reason = " ".join(str(error).split())[:500]
    if out_of_memory(error):
        return RequestError(f"memory ran out with this request alone: {reason}", kind="out_of_memory")
    return RequestError(f"the engine failed on this request: {type(error).__name__}: {reason}", kind="engine")
