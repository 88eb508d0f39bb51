"""``ModelInterface.generate`` as people call it: what is wrong is an error of vlmhb that says what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from support.configs import backend
from vlmhb import (
    BackendInfo,
    GenerationControl,
    GenerationRequest,
    GenerationResult,
    ModelInterface,
    ModelSpec,
)
from vlmhb.discovery.hooked import HookedModel
from vlmhb.discovery.registry import Registry
from vlmhb.errors import ConfigError, VlmhbError


class Echo(ModelInterface):
    """Repeats the question."""

    spec: ModelSpec | None = None

    def backend_info(self) -> BackendInfo:
        return backend("echo")

    def load_spec(self, spec: ModelSpec) -> None:
        self.spec = spec

    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        for request in requests:
            yield GenerationResult(id=request.id, text=f"{request.text}+{len(request.images)}", finish_reason="stop")

    def close(self) -> None:
        self.spec = None


def test_what_can_be_asked() -> None:
    assert Echo().generate("a", b"page") == ["a+1"]
    assert Echo().generate(["a", "b"], [None, [b"1", b"2"]]) == ["a+0", "b+2"]
    assert Echo().generate(text for text in "ab") == ["a+0", "b+0"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((None, b"page"), "prompts must be one for each prompt in a list, not NoneType"),
        ((5,), "prompts must be .* not int"),
        ((b"text",), "prompts must be .* not bytes"),
        ((["a", None],), "a prompt must be text, not NoneType"),
        ((["a"], b"page"), "images must be one for each prompt in a list, not bytes"),
        ((["a"], 5), "images must be .* not int"),
        ((["a", "b"], [b"page"]), "2 prompts need 2 entries in images, not 1"),
        (("a", 5), "an image must be a path, bytes or a Pillow image, not int"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Echo().generate(*arguments)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"share": 2.0}, "share must be at most 1, not 2.0"),
        ({"device": "cuda:7"}, "echo cannot use the device 'cuda:7' here. It found: cpu."),
    ],
)
def test_options_out_of_range_are_refused_before_the_model_is_loaded(options: dict[str, Any], says: str) -> None:
    model = Echo()
    with pytest.raises(ConfigError, match=says):
        model.load("model", **options)
    assert model.spec is None
    assert model.load("model", batch_size=None, share=1, device="cpu").spec is not None


def test_a_closed_model_says_so() -> None:
    model = HookedModel(Registry(), "hf")
    model.close()
    with pytest.raises(VlmhbError, match="no model is loaded; call load first"):
        model.generate("a")
