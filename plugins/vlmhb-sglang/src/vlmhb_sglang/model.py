"""A model on SGLang's engine."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from vlmhb import BackendInfo, GenerationControl, GenerationRequest, GenerationResult, ModelInterface, ModelSpec
from vlmhb.contract.hints import with_hints
from vlmhb.errors import ModelLoadError, VlmhbError

from vlmhb_sglang import checks, fallback, faults, info, settings
from vlmhb_sglang.hints import RULES

if TYPE_CHECKING:
    from vlmhb.prompting import ModelFolder, PromptBuilder

    from vlmhb_sglang.asking import Asking
    from vlmhb_sglang.engine import HostedEngine
    from vlmhb_sglang.pump import Pump
    from vlmhb_sglang.serving import Serving
    from vlmhb_sglang.spawning import ForkServer

LOOK_AHEAD = 32
"""Requests that are prepared while the engine is full; each may hold the pixels of a page."""
MOST_RUNNING = 256
"""More than SGLang computes together on one GPU for prompts with images."""


def import_engine(spec: ModelSpec) -> None:
    """Import SGLang as loading this model will; on a CPU its processes' server does, too.

    Raises:
        ModelLoadError: there is no such device here.
    """
    cpu = checks.on_cpu(spec, info.backend_info())
    settings.set_environment(cpu=cpu)
    if cpu:
        from vlmhb_sglang.spawning import ForkServer

        ForkServer.start_early()
    import vlmhb_sglang.engine  # noqa: F401


class SGLangModel(ModelInterface):
    """SGLang: continuous batching over the engine's asynchronous interface, so that answers come as they finish.

    Prompts are rendered, tokenized and their images prepared by the core; SGLang gets token ids with expanded
    placeholders, and ready pixels.
    """

    def __init__(self) -> None:
        self._forks: ForkServer | None = None
        self._engine: HostedEngine | None = None
        self._pump: Pump | None = None
        self._asking: Asking | None = None
        self._reader: PromptBuilder | None = None
        self._serving: Serving | None = None
        self._died: str | None = None
        self._facts: dict[str, Any] = {}
        self._limit = 0

    def backend_info(self) -> BackendInfo:
        """The backend ``sglang``."""
        return info.backend_info()

    def load_spec(self, spec: ModelSpec) -> None:
        """Load the model, in place of one loaded before. One model of this class at a time in a process."""
        self.close()
        if problem := self.backend_info().problem:
            raise ModelLoadError(problem)
        from vlmhb.prompting import PromptBuilder, context_length, open_model_folder

        folder = open_model_folder(spec)
        context = context_length(folder, spec)
        cpu = checks.on_cpu(spec, self.backend_info())
        settings.set_environment(cpu=cpu)
        faults.refuse_known_faults(spec, folder)
        arguments = settings.engine_arguments(spec, folder, cpu=cpu, context=context)
        if cpu:
            from vlmhb_sglang.spawning import ForkServer

            self._forks = ForkServer()
        try:
            builder = PromptBuilder(spec, folder)
            self._start(spec, folder, arguments, cpu)
        except BaseException:
            self.close()
            raise
        self._ready(builder, context, arguments)

    def _start(self, spec: ModelSpec, folder: ModelFolder, arguments: dict[str, Any], cpu: bool) -> None:
        from vlmhb_sglang.engine import ForkedEngine, HostedEngine, LaunchError
        from vlmhb_sglang.pump import Pump

        try:
            self._engine = (ForkedEngine if cpu else HostedEngine)(**arguments)
        except LaunchError as error:
            reason = fallback.reason_of_failure(spec, folder, str(error))
            raise ModelLoadError(f"SGLang cannot load {spec.model_path}: {reason}{checks.advice(spec)}") from error
        self._pump = Pump(self._engine.processes, self._on_end)

    def _ready(self, builder: PromptBuilder, context: int | None, arguments: dict[str, Any]) -> None:
        from vlmhb_sglang.asking import Asking

        assert self._engine is not None
        state = self._engine._scheduler_init_result.scheduler_infos[0]
        held = state["max_total_num_tokens"] - settings.SLACK
        context = held if context is None else min(context, held)
        seeded = bool(arguments["enable_deterministic_inference"])
        self._asking = Asking(builder, context=context, seeded=seeded)
        # A tokenizer must not be used by two threads at once: answers are read with a copy.
        self._reader = copy.copy(builder)
        self._reader.tokenizer = copy.deepcopy(builder.tokenizer)
        running = arguments.get("max_running_requests") or MOST_RUNNING
        self._limit = min(running, MOST_RUNNING) + LOOK_AHEAD
        self._facts = self._decided(arguments, context, state["max_total_num_tokens"])

    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        """Answer requests; see the base class. ``requests`` is read in the thread of the caller."""
        from vlmhb_sglang.serving import EngineDiedError, Serving

        if self._engine is None or self._pump is None or self._asking is None:
            raise VlmhbError("no model is loaded; call load first.")
        if self._died is not None:
            raise EngineDiedError(f"SGLang has ended: {self._died}")
        self._serving = Serving(
            self._engine, self._pump, self._asking, self._answer_text, control or GenerationControl(), self._limit
        )
        return self._serving.answer(requests)

    def facts(self) -> dict[str, Any]:
        """What was decided while loading."""
        return self._facts

    def _decided(self, arguments: dict[str, Any], context: int, cache_tokens: int) -> dict[str, Any]:
        assert self._engine is not None
        config = self._engine.tokenizer_manager.model_config
        facts = {
            "architecture": config.hf_config.architectures[0],
            "model_impl": arguments["model_impl"],
            "dtype": str(config.dtype).removeprefix("torch."),
            "device": arguments["device"],
            "context_length": context,
            "max_images": self._reader.max_images if self._reader else None,
            "kv_cache_tokens": cache_tokens,
            "max_running_requests": arguments.get("max_running_requests"),
            "attention_backend": arguments.get("attention_backend"),
            "prefix_caching": not arguments["disable_radix_cache"],
            "tensor_parallel_size": arguments["tp_size"],
            "deterministic": arguments["enable_deterministic_inference"],
            "cuda_graph": not arguments.get("disable_cuda_graph", False),
        }
        return with_hints(facts, RULES)

    def close(self) -> None:
        """Shut the engine down and give its memory back; nothing of it keeps running."""
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.stop()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()
        forks, self._forks = self._forks, None
        if forks is not None:
            forks.stop()
        self._asking = self._reader = self._serving = self._died = None

    def _answer_text(self, request: GenerationRequest, token_ids: list[int]) -> str:
        assert self._reader is not None
        return self._reader.answer_text(token_ids, request.sampling.stop)

    def _on_end(self) -> None:
        assert self._engine is not None
        self._died = self._engine.reason()
        if self._serving is not None:
            self._serving.engine_died(self._died)
