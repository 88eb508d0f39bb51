"""A model on vLLM's offline engine."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from vlmhb import BackendInfo, GenerationControl, GenerationRequest, GenerationResult, ModelInterface, ModelSpec
from vlmhb.contract.hints import with_hints
from vlmhb.errors import ModelLoadError, VlmhbError

from vlmhb_vllm import faults, info, settings
from vlmhb_vllm.hints import RULES
from vlmhb_vllm.refusals import load_reason
from vlmhb_vllm.sampling import sampling_params
from vlmhb_vllm.serving import Ready, Serving, forget_pictures

if TYPE_CHECKING:
    from vllm import LLM
    from vlmhb.prompting import PreparedPrompt, PromptBuilder


class VLLMModel(ModelInterface):
    """vLLM: continuous batching over the engine's own add-and-step loop, so that answers come as they finish.

    Prompts are rendered, tokenized and their images decoded and resized by the core; vLLM gets token ids with one
    placeholder an image, and the pixels. Greedy tokens are those of transformers in float32.
    """

    def __init__(self) -> None:
        self._llm: LLM | None = None
        self._builder: PromptBuilder | None = None
        self._context = 0
        self._news: list[str] = []
        self._ignored: dict[str, Any] = {}

    def backend_info(self) -> BackendInfo:
        """The backend ``vllm``."""
        return info.backend_info()

    def load_spec(self, spec: ModelSpec) -> None:
        """Load the model, in place of one loaded before; see the base class."""
        self.close()
        cpu = on_cpu(spec, self.backend_info())
        settings.set_environment(cpu=cpu, options=spec.options)
        from vlmhb.prompting import PromptBuilder, context_length, open_model_folder, sampling_defaults_of

        if spec.max_images is None:
            spec = msgspec.structs.replace(spec, max_images=info.DEFAULT_MAX_IMAGES)
        folder = open_model_folder(spec)
        context = context_length(folder, spec)
        builder = PromptBuilder(spec, folder)
        arguments = settings.engine_arguments(spec, builder, cpu=cpu)
        if cpu:
            faults.refuse_known_faults(folder, arguments)
            faults.put_cpu_right()
        self._llm = _start(arguments)
        self._builder = builder
        self._ignored = sampling_defaults_of(folder.path)
        self._news = [*builder.notes, *_ignored_note(self._ignored)]
        engine_context = self._llm.llm_engine.model_config.max_model_len
        self._context = engine_context if context is None else min(context, engine_context)

    def generate_requests(
        self, requests: Iterable[GenerationRequest], control: GenerationControl | None = None
    ) -> Iterator[GenerationResult]:
        """Answer requests; see the base class.

        Up to ``max_num_seqs`` are computed together, and as many again (64 at most) wait for a place, prepared.
        """
        if self._llm is None or self._builder is None:
            raise VlmhbError("no model is loaded; call load first.")
        return Serving(self._llm.llm_engine, self._builder, self._admit, control or GenerationControl()).answer(
            requests
        )

    def facts(self) -> dict[str, Any]:
        """What was decided while loading."""
        if self._llm is None or self._builder is None:
            return {}
        config = self._llm.llm_engine.vllm_config
        model = config.model_config
        cache = config.cache_config
        facts = {
            "architecture": model.architecture,
            "model_impl": str(model.model_impl),
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": config.device_config.device_type,
            "context_length": self._context,
            "max_images": self._builder.max_images,
            "max_num_seqs": config.scheduler_config.max_num_seqs,
            "block_size": cache.block_size,
            "kv_cache_blocks": cache.num_gpu_blocks,
            "kv_cache_tokens": cache.num_gpu_blocks * cache.block_size if cache.num_gpu_blocks else None,
            "prefix_caching": cache.enable_prefix_caching,
            "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
            "enforce_eager": model.enforce_eager,
            "engine_process": not settings.in_one_process(),
            "stop_token_ids": list(self._builder.stop_ids),
            "ignored_generation_config": self._ignored,
        }
        return with_hints(facts, RULES)

    def close(self) -> None:
        """Shut the engine down and give its memory back; nothing of it keeps running."""
        llm, self._llm, self._builder = self._llm, None, None
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
            del llm
            gc.collect()

    def _admit(self, prepared: PreparedPrompt, streaming: bool) -> Ready:
        """Render a prompt for the engine, and check it against the context now that placeholders are expanded.

        Raises:
            RequestError: it is too long. The engine's own exceptions, whatever they are, refuse it too.
        """
        from vllm.renderers.inputs.preprocess import parse_model_prompt
        from vlmhb.prompting import fit_to_context

        assert self._llm is not None
        assert self._builder is not None
        engine = self._llm.llm_engine
        prompt: dict[str, Any] = {"prompt_token_ids": list(prepared.token_ids)}
        if prepared.images:
            prompt["multi_modal_data"] = {"image": list(prepared.images)}
        renderer = engine.renderer
        unlimited = replace(renderer.default_cmpl_tok_params, max_total_tokens=None)
        (rendered,) = renderer.render_cmpl([parse_model_prompt(engine.model_config, prompt)], unlimited)
        try:
            room, clipped = fit_to_context(len(rendered["prompt_token_ids"]), prepared.request, self._context)
            params, changed = sampling_params(
                prepared.request, max_tokens=room, stop_token_ids=list(self._builder.stop_ids), streaming=streaming
            )
        except Exception:  # whatever it is, the engine will not get this request
            forget_pictures(engine, rendered)
            raise
        return Ready(rendered, params, (*prepared.notes, *clipped, *changed, *self._tell_news()))

    def _tell_news(self) -> list[str]:
        """What concerns every request; told once, with the first."""
        news, self._news = self._news, []
        return news


def on_cpu(spec: ModelSpec, backend: BackendInfo) -> bool:
    """Whether the model will run on a CPU.

    Raises:
        ModelLoadError: vLLM as it is installed cannot use the device that was asked for.
    """
    if backend.problem:
        raise ModelLoadError(backend.problem)
    kinds = {device.partition(":")[0] for device in backend.devices}
    wanted = spec.device.partition(":")[0]
    if wanted not in {"auto", *kinds}:
        raise ModelLoadError(
            f"device {spec.device!r} was asked for, and the installed {backend.engine} {backend.engine_version} "
            f"runs on: {', '.join(backend.devices)}."
        )
    return "cpu" in kinds


def _ignored_note(ignored: dict[str, Any]) -> list[str]:
    if not ignored:
        return []
    said = ", ".join(f"{name}={value}" for name, value in ignored.items())
    return [f"the model folder's generation_config.json would set {said}; the request decides instead."]


def import_engine(spec: ModelSpec) -> None:
    """Import vLLM as loading this model will.

    Raises:
        ModelLoadError: vLLM as it is installed cannot use the device that was asked for.
    """
    settings.set_environment(cpu=on_cpu(spec, info.backend_info()), options=spec.options)
    import vllm

    vllm.LLM  # noqa: B018 - vLLM imports its parts when they are first named
    import vlmhb.prompting  # noqa: F401


def _start(arguments: dict[str, Any]) -> LLM:
    import torch
    from vllm import LLM

    set_num_threads = torch.set_num_threads
    try:
        return LLM(**arguments)
    except Exception as error:  # the model's own code runs in there and may raise anything
        text = load_reason(error)
        # The traceback's frames hold the half-made engine and its weights.
        error.__traceback__ = None
        _forget_failed_engine()
        raise ModelLoadError(f"vLLM cannot load {arguments['model']}: {text}") from error
    finally:
        # On a CPU vLLM replaces it for good by a function that only warns, at every picture.
        torch.set_num_threads = set_num_threads


def _forget_failed_engine() -> None:
    """Let the next load in this process start clean: vLLM leaves its process group up when a model fails to load."""
    gc.collect()
    with contextlib.suppress(Exception):
        from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

        cleanup_dist_env_and_memory()
