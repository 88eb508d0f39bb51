"""The hooks of vlmhb. A plugin implements those it needs, with any subset of each hook's arguments.

Mark an implementation with ``vlmhb.hookimpl``. A hook marked *first result* stops at the first implementation
that returns something else than None. Wrappers (``hookimpl(wrapper=True)``) are allowed for the hooks of engines.

A plugin is a module (or object) named by an entry point:

- group ``vlmhb.backends``: an engine; the entry point's name is the backend's name in configs. ``vlmhb`` is
  accepted as the group's short form.
- group ``vlmhb.plugins``: everything else (metrics, datasets, models, wrappers around engines).

The module may state ``vlmhb_contract = 1``, the version of the contract that it was written for; a plugin for
another version is reported and left out. Importing a plugin must be cheap: import the engine inside the hooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from vlmhb.contract.backend import BackendInfo, EnvironmentRecipe
    from vlmhb.contract.check import ModelCheck
    from vlmhb.contract.dataset import DatasetFormat, NamedDataset, NamedModel
    from vlmhb.contract.metric import Metric
    from vlmhb.contract.model import GenerationControl, ModelInterface, ModelSpec
    from vlmhb.contract.report import ReportSection
    from vlmhb.contract.request import GenerationRequest
    from vlmhb.contract.result import GenerationResult
    from vlmhb.contract.twin import Twin

hookspec = pluggy.HookspecMarker("vlmhb")
hookimpl = pluggy.HookimplMarker("vlmhb")

# ------------------------------------------------------------------------------------------------------------
# Engines
# ------------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def vlmhb_backend_info(backend: str) -> BackendInfo | None:
    """Describe a backend.

    Called by ``vlmhb backends``, by the planning of a run and before a model is loaded, in the process of the
    command line. Must not import the engine: read its version from package metadata. First result.

    :param backend: the name under which the plugin's entry point is registered.
    :returns: the record; ``problem`` set when the engine cannot be used here. Raise nothing.
    """


@hookspec(firstresult=True)
def vlmhb_environment(backend: str, device: str) -> EnvironmentRecipe | None:
    """Say what an environment for a backend must hold.

    Called by ``vlmhb env create`` in a child process inside the new environment, when vlmhb and the plugin are
    there already and the engine is not: import nothing but the standard library and vlmhb. First result.

    :param backend: the name under which the plugin's entry point is registered.
    :param device: ``cpu`` or ``cuda``.
    :returns: the recipe; None when the plugin's own dependencies are all it needs.
    :raises vlmhb.errors.ManagedEnvironmentError: the engine cannot run on this device or machine; say why.
    """


@hookspec(firstresult=True)
def vlmhb_check_model(backend: str, spec: ModelSpec) -> ModelCheck | None:
    """Say whether a model could be loaded, without reading its weights.

    Called by ``vlmhb doctor``, in a child process of its own inside the engine's environment: import the engine, ask
    its own registries, and let it read the folder's configs, tokenizer and processor. The folder may hold no weights.
    Code from the folder runs only when the spec allows it. First result.

    :param backend: the name under which the plugin's entry point is registered.
    :param spec: the model, a folder on disk; its ``options`` are not checked.
    :returns: a verdict for each implementation; None when the plugin cannot tell. A model that cannot be used is a
        verdict, not an exception; what is raised nevertheless is shown as ``unknown``, with the message.
    """


@hookspec(firstresult=True)
def vlmhb_make_twin(backend: str, spec: ModelSpec, out: str) -> Twin | None:
    """Write a tiny random model of a folder's architecture, the same each time.

    Called by ``vlmhb doctor --probe``, in a child process of its own inside the engine's environment. The folder's
    config is enough; its tokenizer and processor are kept where it has them. Code from it runs only when the spec
    allows it. First result.

    :param backend: the name under which the plugin's entry point is registered.
    :param spec: the model, a folder on disk.
    :param out: the twin's folder, which is not there yet.
    :returns: the twin; None when the plugin makes none.
    :raises vlmhb.errors.ModelLoadError: this architecture cannot be made small; the message says why.
    """


@hookspec(firstresult=True)
def vlmhb_prepare(backend: str, spec: ModelSpec) -> bool | None:
    """Import what loading a model will need, and no more.

    Called in a worker before ``vlmhb_load``, perhaps while another model answers on the same machine: set what the
    engine reads from the environment, import it, and leave weights, GPUs and the cores alone. First result.

    :param backend: the name under which the plugin's entry point is registered.
    :param spec: what will be loaded.
    :returns: True; None when there is nothing to prepare. What is raised is shown as if ``vlmhb_load`` had raised it.
    """


@hookspec(firstresult=True)
def vlmhb_load(backend: str, spec: ModelSpec) -> ModelInterface | None:
    """Load a model and return it ready to answer.

    Called once for each model of a run, by ``vlmhb.load`` and by the runner, in the process that will hold the
    engine. First result.

    :param backend: the name under which the plugin's entry point is registered.
    :param spec: what to load; its ``options`` are already checked against ``BackendInfo.options``.
    :raises vlmhb.errors.ModelLoadError: the model cannot be used; the message goes to the user as it is.
        Any other exception is shown as a fault of the plugin, with its traceback in the log.
    """


@hookspec(firstresult=True)
def vlmhb_generate(
    model: ModelInterface, requests: Iterable[GenerationRequest], control: GenerationControl
) -> Iterator[GenerationResult] | None:
    """Answer requests with a loaded model.

    Called by the runner and by ``vlmhb generate``, in the process that holds the engine. The core's own
    implementation, last in line, returns ``model.generate_requests(requests, control)``, which suits every engine;
    implement this hook to replace it, or wrap it to time, trace or cache requests. First result.

    :param model: what ``vlmhb_load`` returned.
    :param requests: read lazily; see :meth:`vlmhb.ModelInterface.generate_requests`.
    :param control: tells when to stop and takes streamed text.
    :returns: results as they finish. An exception means that the engine failed, not a request.
    """


# ------------------------------------------------------------------------------------------------------------
# Things chosen by name
# ------------------------------------------------------------------------------------------------------------


@hookspec
def vlmhb_metrics() -> Iterable[Metric]:  # type: ignore[empty-body]
    """Offer metrics.

    Called when a run is planned and when answers are scored, in the process of the command line. All results are
    used; a name that is already taken is reported and left out. Import heavy packages in ``Metric.score``, and
    raise :class:`vlmhb.errors.MissingPackageError` there when one is absent.
    """


@hookspec
def vlmhb_datasets() -> Iterable[DatasetFormat | NamedDataset]:  # type: ignore[empty-body]
    """Offer dataset formats, and datasets that the plugin ships.

    Called when a run is planned, in the process of the command line. All results are used. A format is asked
    whether it recognises a path; a named dataset is found by its name before folders are looked at.
    """


@hookspec
def vlmhb_models() -> Iterable[NamedModel]:  # type: ignore[empty-body]
    """Offer models that the plugin ships, to be used as ``model_name``.

    Called when a run is planned and by ``vlmhb generate``, in the process of the command line. All results are
    used; a row of ``vlm_base.csv`` with the same name goes before them. The folder must be there when the hook
    returns; a plugin that makes it on first use does so here, under the user's cache folder.
    """


# ------------------------------------------------------------------------------------------------------------
# Results
# ------------------------------------------------------------------------------------------------------------


@hookspec
def vlmhb_report_sections() -> Iterable[ReportSection]:  # type: ignore[empty-body]
    """Offer sections of the report.

    Called when a report is written (at the end of ``vlmhb run`` and ``vlmhb score``, and by ``vlmhb report``), in the
    process of the command line. All results are used, ordered by ``ReportSection.place``; a name that is already
    taken is reported and left out. A section reads the runs through the view it is given and returns a
    :class:`vlmhb.contract.report.Fragment`; its html is escaped unless it is a ``markupsafe.Markup``. What a section
    raises is shown in its place and as a note, and the report goes on. Import heavy packages in
    ``ReportSection.render``.
    """
