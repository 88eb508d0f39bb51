"""The one place that knows which engines, metrics, datasets and models there are."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vlmhb.contract.backend import BackendInfo, EnvironmentRecipe
from vlmhb.contract.dataset import DatasetFormat, NamedDataset, NamedModel
from vlmhb.contract.metric import Metric
from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
from vlmhb.contract.report import ReportSection
from vlmhb.discovery.loader import import_plugin, new_manager
from vlmhb.discovery.origin import how_to_get
from vlmhb.discovery.scan import PluginProblem, PluginRef, scan
from vlmhb.errors import BackendNotFoundError, PluginError

if TYPE_CHECKING:
    import pluggy

    from vlmhb.contract.check import ModelCheck
    from vlmhb.contract.request import GenerationRequest
    from vlmhb.contract.result import GenerationResult
    from vlmhb.contract.twin import Twin

T = TypeVar("T")

OFFICIAL_BACKENDS = ("hf", "vllm", "sglang")
"""Backends of this project, each in the distribution ``vlmhb-<name>``; named when they are not installed."""


class Registry:
    """Plugins of this environment, each imported when it is first needed; a broken one is a problem, not an error."""

    def __init__(self) -> None:
        refs, taken = scan()
        self._backends = {ref.name: ref for ref in refs if ref.kind == "backend"}
        self._plugins = [ref for ref in refs if ref.kind == "plugin"]
        self._problems = {(p.plugin.kind, p.plugin.name, p.plugin.distribution): p for p in taken}
        self._managers: dict[str, pluggy.PluginManager] = {}

    # --- engines

    def backend_names(self) -> list[str]:
        """Names of all registered backends, broken ones included."""
        return list(self._backends)

    def backend_ref(self, name: str) -> PluginRef:
        """The distribution that offers a backend.

        Raises:
            BackendNotFoundError: no installed distribution does.
        """
        if name not in self._backends:
            raise BackendNotFoundError(self._not_found(name))
        return self._backends[name]

    def backend_problem(self, name: str) -> str | None:
        """Why a registered backend cannot be used, or None when it can."""
        try:
            return self.backend_info(name).problem
        except PluginError as error:
            return str(error)

    def backend_info(self, name: str) -> BackendInfo:
        """What a backend says about itself.

        Raises:
            BackendNotFoundError: no installed distribution offers it.
            PluginError: its plugin is broken; the message says how.
        """
        info = self._ask_engine(name, lambda hook: hook.vlmhb_backend_info(backend=name), "vlmhb_backend_info")
        if not isinstance(info, BackendInfo):
            raise PluginError(f"vlmhb_backend_info of {self._title(name)} returned {info!r}, not a BackendInfo")
        return info

    def environment_recipe(self, backend: str, device: str) -> EnvironmentRecipe | None:
        """What a backend's environment must hold, or None when the plugin's dependencies are enough.

        Raises:
            BackendNotFoundError, PluginError: as for :meth:`backend_info`.
            ManagedEnvironmentError: the engine cannot run on this device.
        """
        hook = self._manager(backend).hook
        recipe: EnvironmentRecipe | None = hook.vlmhb_environment(backend=backend, device=device)
        return recipe

    def check_model(self, backend: str, spec: ModelSpec) -> ModelCheck | None:
        """Ask a backend whether it could load a model; None when its plugin cannot tell.

        Raises:
            BackendNotFoundError, PluginError: as for :meth:`backend_info`.
        """
        check: ModelCheck | None = self._ask_engine(
            backend, lambda hook: hook.vlmhb_check_model(backend=backend, spec=spec), "vlmhb_check_model"
        )
        return check

    def make_twin(self, backend: str, spec: ModelSpec, out: str) -> Twin | None:
        """Let a backend write a tiny random model of a folder's architecture; None when its plugin makes none.

        Raises:
            BackendNotFoundError, PluginError: as for :meth:`backend_info`.
            ModelLoadError: the architecture cannot be made small.
        """
        twin: Twin | None = self._manager(backend).hook.vlmhb_make_twin(backend=backend, spec=spec, out=out)
        return twin

    def prepare(self, backend: str, spec: ModelSpec) -> None:
        """Import in this process what a backend needs to load a model; nothing for plugins that do not tell.

        Raises:
            BackendNotFoundError, PluginError: as for :meth:`backend_info`.
        """
        self._manager(backend).hook.vlmhb_prepare(backend=backend, spec=spec)

    def load_model(self, backend: str, spec: ModelSpec) -> ModelInterface:
        """Load a model in this process.

        Raises:
            BackendNotFoundError, PluginError: as for :meth:`backend_info`.
            ModelLoadError: the engine refused the model.
        """
        model = self._manager(backend).hook.vlmhb_load(backend=backend, spec=spec)
        if not isinstance(model, ModelInterface):
            raise PluginError(f"vlmhb_load of {self._title(backend)} returned {model!r}, not a ModelInterface")
        return model

    def generate(
        self, backend: str, model: ModelInterface, requests: Iterable[GenerationRequest], control: GenerationControl
    ) -> Iterator[GenerationResult]:
        """Answer requests through the hook, so that wrappers see them."""
        hook = self._manager(backend).hook
        results: Iterator[GenerationResult] = hook.vlmhb_generate(model=model, requests=requests, control=control)
        return results

    # --- things chosen by name

    @cached_property
    def _common(self) -> pluggy.PluginManager:
        return self._build(None)

    def metrics(self) -> dict[str, Metric]:
        """All metrics by name."""
        return self._collect("vlmhb_metrics", Metric, lambda metric: metric.name)

    def dataset_formats(self) -> list[DatasetFormat]:
        """All dataset formats, those of plugins before the core's own."""
        return list(self._collect("vlmhb_datasets", DatasetFormat, lambda item: item.name).values())[::-1]

    def named_datasets(self) -> dict[str, NamedDataset]:
        """Datasets that plugins ship, by name."""
        return self._collect("vlmhb_datasets", NamedDataset, lambda item: item.name)

    def named_models(self) -> dict[str, NamedModel]:
        """Models that plugins ship, by name."""
        return self._collect("vlmhb_models", NamedModel, lambda item: item.name)

    def model_path(self, model: str | Path) -> str:
        """What a model's folder, hub id or shipped name means: a folder at hand goes before a plugin's name."""
        named = None if Path(model).exists() else self.named_models().get(str(model))
        return named.path if named else str(model)

    def report_sections(self) -> list[ReportSection]:
        """All sections of the report, in their order."""
        sections = self._collect("vlmhb_report_sections", ReportSection, lambda section: section.name).values()
        return sorted(sections, key=lambda section: section.place)

    def plugins(self) -> list[PluginRef]:
        """All plugins that are no engine, broken ones included."""
        return list(self._plugins)

    def problems(self) -> list[PluginProblem]:
        """Every plugin that is left out, wholly or in part; imports all plugins to find out.

        Models are not asked for, since a plugin may make them when it is.
        """
        for name in self._backends:
            if reason := self._engine_fault(name):
                self._note(self._backends[name], reason)
        self.metrics()
        self.dataset_formats()
        self.named_datasets()
        self.report_sections()
        return sorted(self._problems.values(), key=lambda p: (p.plugin.kind, p.plugin.name, p.plugin.distribution))

    # --- inside

    def _engine_fault(self, name: str) -> str | None:
        try:
            self.backend_info(name)
        except PluginError as error:
            return str(error)
        return None

    def _ask_engine(self, name: str, call: Callable[[Any], T], what: str) -> T:
        hook = self._manager(name).hook
        try:
            return call(hook)
        except Exception as error:  # a third party's code may raise anything; it must not take the list down
            raise PluginError(f"{what} of {self._title(name)} failed: {type(error).__name__}: {error}") from error

    def _manager(self, backend: str) -> pluggy.PluginManager:
        if backend not in self._managers:
            self._managers[backend] = self._build(self.backend_ref(backend))
        return self._managers[backend]

    @cached_property
    def _healthy_plugins(self) -> dict[str, object]:
        healthy = {}
        for ref in self._plugins:
            try:
                healthy[f"plugin {ref.name}"] = import_plugin(ref)
            except PluginError as error:
                self._note(ref, str(error))
        return healthy

    def _build(self, backend: PluginRef | None) -> pluggy.PluginManager:
        """A manager with the core's own hooks, every healthy plugin and, when given, one engine."""
        from vlmhb.discovery import builtin

        manager = new_manager()
        for name, plugin in builtin.plugins().items():
            manager.register(plugin, name=name)
        for name, plugin in self._healthy_plugins.items():
            if not manager.is_registered(plugin):
                manager.register(plugin, name=name)
        if backend is not None:
            try:
                engine = import_plugin(backend)
            except PluginError as error:
                raise PluginError(f"{self._title(backend.name)} cannot be used: {error}") from error
            if not manager.is_registered(engine):  # one module may stand in both groups
                manager.register(engine, name=f"backend {backend.name}")
        return manager

    def _collect(self, hook: str, kind: Any, name_of: Callable[[Any], str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for impl in getattr(self._common.hook, hook).get_hookimpls():
            if impl.wrapper or impl.hookwrapper:
                continue
            try:
                items = [item for item in impl.function() if isinstance(item, kind)]
            except Exception as error:  # noqa: BLE001 - a third party's code may raise anything; the others go on
                self._note_named(impl.plugin_name, f"{hook} failed: {type(error).__name__}: {error}")
                continue
            for item in items:
                if name_of(item) in found:
                    self._note_named(impl.plugin_name, f"its {kind.__name__} {name_of(item)!r} is taken")
                else:
                    found[name_of(item)] = item
        return found

    def _note_named(self, plugin_name: str, reason: str) -> None:
        for ref in self._plugins:
            if f"plugin {ref.name}" == plugin_name:
                self._note(ref, reason)

    def _note(self, ref: PluginRef, reason: str) -> None:
        self._problems[(ref.kind, ref.name, ref.distribution)] = PluginProblem(plugin=ref, reason=reason)

    def _title(self, name: str) -> str:
        ref = self._backends[name]
        return f"backend {name} ({ref.distribution} {ref.version})"

    def _not_found(self, name: str) -> str:
        names = self.backend_names()
        near = difflib.get_close_matches(name, [*names, *OFFICIAL_BACKENDS], n=1)
        text = f"there is no backend {name!r}."
        if name in OFFICIAL_BACKENDS:
            text = f"the backend {name} is not installed; get it with: {how_to_get(name)}."
        elif near:
            text += f" Did you mean {near[0]}?"
        return f"{text} Installed: {', '.join(names) or 'none'}."
