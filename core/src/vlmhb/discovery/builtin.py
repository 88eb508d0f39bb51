"""What the core itself offers through its own hooks, and the default way to generate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vlmhb.contract.hookspecs import hookimpl

if TYPE_CHECKING:
    from vlmhb.contract.model import GenerationControl, ModelInterface
    from vlmhb.contract.request import GenerationRequest
    from vlmhb.contract.result import GenerationResult


class DefaultGenerate:
    """The last implementation of ``vlmhb_generate``: the model answers by itself."""

    @staticmethod
    @hookimpl(trylast=True)
    def vlmhb_generate(
        model: ModelInterface, requests: Iterable[GenerationRequest], control: GenerationControl
    ) -> Iterator[GenerationResult]:
        """Let the model answer."""
        return model.generate_requests(requests, control)


def plugins() -> dict[str, object]:
    """The core's own plugins by name."""
    import vlmhb.data.builtin
    import vlmhb.metrics.builtin
    import vlmhb.report.builtin

    return {
        "core generate": DefaultGenerate(),
        "core metrics": vlmhb.metrics.builtin,
        "core datasets": vlmhb.data.builtin,
        "core report": vlmhb.report.builtin,
    }
