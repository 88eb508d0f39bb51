"""What an engine says about a model whose weights it has not read."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from vlmhb.contract.model import ModelSpec

Verdict = Literal["supported", "condition", "refused", "unknown"]
"""``supported``: it loads as asked. ``condition``: it does not, but would once what ``advice`` says is done.
``refused``: it does not. ``unknown``: nobody could be asked."""


class Support(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one implementation of an engine can serve a model.

    Attributes:
        implementation: ``native`` (the engine's own code for the model) or ``transformers``, as in ``model_impl``.
        verdict: the answer, for the spec as it was asked.
        reason: why it is not ``supported``; one or two sentences.
        advice: what to do about it; empty where nothing helps.
        notes: what holds although it loads, one sentence each.
    """

    implementation: Literal["native", "transformers"]
    verdict: Verdict
    reason: str = ""
    advice: str = ""
    notes: tuple[str, ...] = ()


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine's packages know about a model, beyond what stands in its folder.

    Attributes:
        text_config: the language model's config with every default filled in; folders often leave those out.
        page_tokens: tokens that a page of A4 scanned at 300 dpi (2480 x 3508 pixels) adds to a prompt, by the model's
            own preprocessing within the spec's bounds; None for a model without images.
        parameters: how many numbers the weights are, counted on a model without memory; None where nobody counted.
    """

    text_config: dict[str, Any] = {}
    page_tokens: int | None = None
    parameters: int | None = None


class ModelCheck(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's answer to ``vlmhb_check_model``.

    Attributes:
        supports: one entry for each implementation.
        auto: the implementation that ``model_impl`` auto takes.
        facts: what was learned on the way; None when nothing was.
    """

    supports: tuple[Support, ...]
    auto: Literal["native", "transformers"]
    facts: ModelFacts | None = None

    def chosen(self, spec: ModelSpec) -> Support:
        """The entry of the implementation that loading this spec would take; engines with one have no choice."""
        wanted = self.auto if spec.model_impl == "auto" else spec.model_impl
        return next((entry for entry in self.supports if entry.implementation == wanted), self.supports[0])
