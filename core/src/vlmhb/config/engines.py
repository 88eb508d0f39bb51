"""Which engine a row means, and whether it can be used here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmhb.config.cells import CellError, fit_option
from vlmhb.config.columns import MODEL
from vlmhb.config.job import Registry
from vlmhb.config.names import canonical_backend, nearest, suggestion
from vlmhb.config.sheet import Setting
from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.calls import option_problem
from vlmhb.discovery.origin import how_to_get
from vlmhb.discovery.registry import OFFICIAL_BACKENDS
from vlmhb.errors import Fault


class Engines:
    """The backends that are registered here, each asked at most once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.installed = tuple(registry.backend_names())
        self.known = tuple(dict.fromkeys([*self.installed, *OFFICIAL_BACKENDS]))
        self._problems: dict[str, str | None] = {}
        self._infos: dict[str, BackendInfo] = {}

    def canonical(self, written: str) -> str:
        """The backend's name for what a user wrote."""
        return canonical_backend(written, self.known)

    def info(self, name: str) -> BackendInfo:
        """What a backend says about itself.

        Raises:
            CellError: there is no such backend, it is not installed, or it cannot be used here.
        """
        if name not in self.installed:
            raise CellError(*self._absent(name))
        problem = self._problem(name)
        if problem:
            raise CellError(f"the backend {name} cannot be used here: {problem.rstrip('.')}.")
        if name not in self._infos:
            self._infos[name] = self._registry.backend_info(name)
        return self._infos[name]

    def only_one(self) -> str:
        """The backend to use when nobody named one.

        Raises:
            CellError: there is not exactly one that can be used.
        """
        usable = [name for name in self.installed if self._problem(name) is None]
        if len(usable) == 1:
            return usable[0]
        if usable:
            raise CellError("no backend is named, and there are several.", f"Write one of {', '.join(usable)}.")
        installs = " or ".join(how_to_get(name) for name in OFFICIAL_BACKENDS)
        raise CellError("no backend is named, and none can be used here.", f"Install one: {installs}.")

    def _problem(self, name: str) -> str | None:
        if name not in self._problems:
            self._problems[name] = self._registry.backend_problem(name)
        return self._problems[name]

    def _absent(self, name: str) -> tuple[str, str]:
        installed = f"Installed: {', '.join(self.installed) or 'none'}."
        if name in OFFICIAL_BACKENDS:
            return f"the backend {name} is not installed.", f"Install it: {how_to_get(name)}. {installed}"
        near = nearest(name, self.known)
        if near is None:
            return f"there is no backend {name!r}.", installed
        install = f" Install it: {how_to_get(near)}." if near not in self.installed else ""
        return f"there is no backend {name!r}.", f"Did you mean {near}?{install} {installed}"


def check_options(info: BackendInfo, settings: Mapping[str, Setting], faults: list[Fault]) -> dict[str, Any]:
    """Engine options with their types; every fault is added to the list, at the cell that it comes from."""
    options = {option.name: option for option in info.options}
    checked: dict[str, Any] = {}
    for name, setting in settings.items():
        if name not in options:
            hint = f"{name} has a column of its own." if name in MODEL else suggestion(name, options)
            faults.append(setting.fault(f"the backend {info.name} has no option {name!r}.", hint))
            continue
        try:
            checked[name] = fit_option(options[name], setting.value)
        except CellError as error:
            faults.append(setting.fault(str(error), error.hint))
            continue
        if problem := option_problem(options[name], checked[name]):
            faults.append(setting.fault(f"{problem}."))
    return checked
