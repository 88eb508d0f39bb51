"""Every engine of this machine: those installed here, and those in environments of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from vlmhb.contract.backend import BackendInfo
from vlmhb.discovery.registry import Registry
from vlmhb.environments.manage import backends_elsewhere, find_environment
from vlmhb.errors import BackendNotFoundError, PluginError
from vlmhb.worker.launch import Launch


class Engines(Registry):
    """The registry of this environment, widened by the backends of managed and registered environments.

    A backend that is installed here and works is used from here; otherwise one elsewhere is.
    """

    @cached_property
    def _elsewhere(self) -> dict[str, BackendInfo]:
        return backends_elsewhere()

    def backend_names(self) -> list[str]:
        """Names of all backends, here and elsewhere."""
        return list(dict.fromkeys([*super().backend_names(), *self._elsewhere]))

    def is_here(self, name: str) -> bool:
        """Whether a backend is used from this environment."""
        if name not in super().backend_names():
            return False
        return name not in self._elsewhere or self._works_here(name)

    def _works_here(self, name: str) -> bool:
        try:
            return super().backend_info(name).problem is None
        except PluginError:
            return False

    def backend_info(self, name: str) -> BackendInfo:
        """What a backend says about itself, or said when its environment was made."""
        if name in self._elsewhere and not self.is_here(name):
            return self._elsewhere[name]
        return super().backend_info(name)

    def launch(self, name: str, say: Callable[[str], None] | None) -> Launch:
        """Where a worker for a backend is started; an outdated managed environment is made again first.

        Args:
            name: the backend.
            say: told in sentences when an environment is made again; without it that is not done, but an error.

        Raises:
            BackendNotFoundError: nothing holds it.
            ManagedEnvironmentError: its environment is of no use.
        """
        if self.is_here(name) and self.backend_problem(name) is None:
            return Launch.here()
        found = find_environment(name, rebuild=say)
        if found is None:
            raise BackendNotFoundError(self._not_found(name))
        return found
