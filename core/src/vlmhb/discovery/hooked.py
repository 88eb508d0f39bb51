"""A model in this process, asked through the hooks, so that every plugin's wrappers see its requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
from vlmhb.contract.request import GenerationRequest
from vlmhb.contract.result import GenerationResult
from vlmhb.discovery.registry import Registry
from vlmhb.errors import VlmhbError


class HookedModel(ModelInterface):
    """Loads through ``vlmhb_load`` and answers through ``vlmhb_generate``.

    Attributes:
        model: the engine's own model object, None while nothing is loaded.
    """

    def __init__(self, registry: Registry, backend: str) -> None:
        self._registry = registry
        self._backend = backend
        self.model: ModelInterface | None = None

    def backend_info(self) -> BackendInfo:
        """The backend's record."""
        return self._registry.backend_info(self._backend)

    def load_spec(self, spec: ModelSpec) -> None:
        """Load the model in this process, in place of one loaded before."""
        self.close()
        self.model = self._registry.load_model(self._backend, spec)

    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        """Answer requests through the hook."""
        if self.model is None:
            raise VlmhbError("no model is loaded; call load first.")
        return self._registry.generate(self._backend, self.model, requests, control or GenerationControl())

    def facts(self) -> dict[str, Any]:
        """The engine's facts."""
        return self.model.facts() if self.model else {}

    def close(self) -> None:
        """Close the engine's model."""
        if self.model is not None:
            self.model.close()
            self.model = None
