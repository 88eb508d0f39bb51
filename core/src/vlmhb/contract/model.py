"""The plain Python face of every engine: ``ModelInterface`` and the spec a model is loaded from."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.request import GenerationRequest, ImageInput
from vlmhb.contract.result import GenerationResult
from vlmhb.errors import ConfigError, GenerationError, ModelLoadError

if TYPE_CHECKING:
    from PIL import Image

    ImageLike = str | Path | bytes | ImageInput | Image.Image

ModelImpl = Literal["auto", "native", "transformers"]


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides which model is loaded, and how.

    Attributes:
        model_path: a model folder, or a hub id.
        revision: hub revision (branch, tag or commit).
        dtype: ``auto`` (the dtype in the model's config), ``float32``, ``bfloat16`` or ``float16``.
        device: ``auto`` (the best there is), ``cpu``, ``cuda``, ``cuda:1``, ...
        max_model_len: longest prompt plus output in tokens; None is the model's own limit.
        max_images: most images in one prompt; None is no limit of ours.
        min_pixels, max_pixels: bounds on width * height after the model family's resizing, for families that
            resize to any size (Qwen-VL); None is the model folder's own value.
        model_impl: whose code runs the model: the engine's own (``native``), ``transformers``, or the engine's choice.
        trust_remote_code: run Python code from the model folder. Off unless the user asks for it.
        options: engine options, checked against ``BackendInfo.options``.
    """

    model_path: str
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = "auto"
    max_model_len: int | None = None
    max_images: int | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    model_impl: ModelImpl = "auto"
    trust_remote_code: bool = False
    options: dict[str, Any] = {}


class GenerationControl:
    """What a caller can say and hear while requests are being answered.

    Attributes:
        stop: once set, the engine starts no further request, finishes those it has started, yields them, and ends.
        on_text: called with a request's id and each new piece of its answer, by engines that stream.
        ready: whether reading the next request (or the end) would not wait; set by callers whose requests come over
            time. An engine of :attr:`Capabilities.continuous` asks it before each read while it has work. None: reading
            never waits for long.
        steps: how often the engine has said that it got on; see :meth:`step`.
    """

    def __init__(self, on_text: Callable[[str, str], None] | None = None) -> None:
        self.stop = threading.Event()
        self.on_text = on_text
        self.ready: Callable[[], bool] | None = None
        self.steps = 0

    def may_read(self, *, busy: bool) -> bool:
        """Whether an engine should read a further request now.

        Args:
            busy: whether it has requests that it could work on instead.
        """
        return not busy or self.ready is None or self.ready()

    def step(self) -> None:
        """Say that the engine got on (a token, a batch), so that long work without results is not taken for a hang.

        Cheap enough to be called at every token.
        """
        self.steps += 1


class ModelInterface(ABC):
    """One loaded model on one engine. Engines subclass it; a context manager that closes the model.

    A subclass implements :meth:`backend_info`, :meth:`load_spec`, :meth:`generate_requests` and :meth:`close`;
    everything else is the same on every engine. Not safe for use from several threads at once.
    """

    @abstractmethod
    def backend_info(self) -> BackendInfo:
        """The backend this model class belongs to."""

    @abstractmethod
    def load_spec(self, spec: ModelSpec) -> None:
        """Load the model.

        Raises:
            ModelLoadError: the model's folder or the model itself cannot be used; the message says why.
        """

    @abstractmethod
    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        """Answer requests, yielding each result when it is finished, in any order.

        The iterable is read as the engine needs more work, so it may be endless or slow. A request that cannot
        be served yields a result with ``failure`` set. An exception means that the engine itself failed: the
        requests it had taken and not answered may then be asked again.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the model's memory back; does nothing on a closed model."""

    def facts(self) -> dict[str, Any]:
        """What was decided while loading and belongs in the run's manifest (dtype, device, attention, ...)."""
        return {}

    def load(self, model_path: str | Path, **kwargs: Any) -> Self:
        """Load a model folder or hub id.

        Args:
            model_path: a model folder, or a hub id.
            **kwargs: fields of :class:`ModelSpec`; any other name is an engine option of this backend.

        Returns:
            The model itself.

        Raises:
            ConfigError: an option that this backend does not know, or a value of the wrong type.
            ModelLoadError: the model cannot be loaded.
        """
        self.load_spec(make_spec(self.backend_info(), model_path, **kwargs))
        return self

    def generate(
        self,
        prompts: str | Sequence[str],
        images: ImageLike | Sequence[ImageLike | Sequence[ImageLike] | None] | None = None,
        *,
        system: str | None = None,
        **sampling: Any,
    ) -> list[str]:
        """Answer prompts and return the texts in the order asked.

        Args:
            prompts: one question, or several.
            images: nothing; one image for a single prompt; or one entry a prompt, each None, an image, or a
                sequence of images. An image is a path, encoded bytes, a ``PIL.Image.Image`` or an ``ImageInput``.
            system: system prompt of every request; None leaves it to the model's chat template.
            **sampling: fields of :class:`SamplingParams` (``max_tokens``, ``temperature``, ``seed``, ...).

        Raises:
            ConfigError: the arguments do not fit together, or a sampling value is out of range.
            GenerationError: some prompts could not be answered; it says which and why.
        """
        from vlmhb.contract.calls import requests_from_call

        requests = requests_from_call(prompts, images, system, sampling)
        results = {result.id: result for result in self.generate_requests(requests)}
        errors: dict[int, str] = {}
        for index, request in enumerate(requests):
            result = results.get(request.id)
            if result is None or not result.ok:
                reason = result.failure.message if result and result.failure else "the engine gave no answer"
                errors[index] = reason
        if errors:
            raise GenerationError(errors)
        return [results[request.id].text for request in requests]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make_spec(info: BackendInfo, model_path: str | Path, **kwargs: Any) -> ModelSpec:
    """Build a checked :class:`ModelSpec` from keyword arguments, as ``load`` takes them.

    Names that are no field of the spec are engine options, checked against ``info.options``.

    Raises:
        ConfigError: unknown names or values of the wrong type, all of them at once.
    """
    from vlmhb.contract.calls import split_options

    fields, options = split_options(info, kwargs)
    try:
        return msgspec.convert({**fields, "model_path": str(model_path), "options": options}, ModelSpec)
    except msgspec.ValidationError as error:
        raise ConfigError(f"cannot load {model_path}: {error}") from error


def missing_model(path: str) -> ModelLoadError:
    """The error for a model folder that is not there."""
    return ModelLoadError(f"there is no model folder {path}, and it is not a hub id (organisation/name) either.")
