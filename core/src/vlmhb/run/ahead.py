"""What the end of a run needs, fetched while its first model loads: nobody waits for it then."""

from __future__ import annotations

import importlib
import threading

from vlmhb.run.manifest import environment

_MODULES = (
    *("polars", "jinja2", "numpy.random", "rapidfuzz.process", "rapidfuzz.distance"),
    *("vlmhb.data.tables", "vlmhb.metrics.scoring", "vlmhb.metrics.stored", "vlmhb.images.decode"),
    *("vlmhb.report.plot", "vlmhb.report.viewer"),
)


def prepare_the_end() -> threading.Thread:
    """Import what scoring and reporting need and list what is installed.

    A failure is left to the code that needs the thing: it knows what to say about it.

    Returns:
        The thread that does it, started; nobody has to wait for it.
    """
    thread = threading.Thread(target=_prepare, name="vlmhb-prepare-the-end", daemon=True)
    thread.start()
    return thread


def _prepare() -> None:
    try:
        from PIL import Image

        from vlmhb.report import builtin

        for name in _MODULES:
            importlib.import_module(name)
        builtin.vlmhb_report_sections()
        Image.init()
        environment()
    except Exception:  # noqa: BLE001 - see above
        return
