"""SGLang's metrics, which its timings need: taken out of this process again, so that another engine can start."""

from __future__ import annotations

import os

FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class MetricsHome:
    """Make one before an engine starts and :meth:`clear` it after the engine has ended.

    SGLang registers its metrics in the process-wide registry, where a second engine's would be refused as
    duplicates, and names their temporary folder in an environment variable.
    """

    def __init__(self) -> None:
        self._users = os.environ.get(FOLDER)

    def clear(self) -> None:
        """Unregister the engine's metrics and remove their folder."""
        from prometheus_client import REGISTRY
        from sglang.srt.utils import common

        registered = dict(REGISTRY._names_to_collectors)
        for collector in {id(c): c for name, c in registered.items() if name.startswith("sglang")}.values():
            REGISTRY.unregister(collector)
        folder = getattr(common, "prometheus_multiproc_dir", None)
        if folder is not None:
            folder.cleanup()
        if self._users is None:
            os.environ.pop(FOLDER, None)
