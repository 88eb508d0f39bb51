"""What is done before anybody waits for it: the end of a run while its first model loads, the next model's worker."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable

from vlmhb.run.manifest import environment

_MODULES = (
    *("polars", "jinja2", "numpy.random", "rapidfuzz.process", "rapidfuzz.distance"),
    *("vlmhb.data.tables", "vlmhb.metrics.scoring", "vlmhb.metrics.stored", "vlmhb.images.decode"),
    *("vlmhb.report.plot", "vlmhb.report.viewer"),
)

LEAD_SECONDS = 30.0
"""How long before a model is likely to be done the next one's worker is started. Imports take 5 to 40 s of a core."""


class NearTheEnd:
    """Calls a function once, when what is left to answer takes less than :data:`LEAD_SECONDS` at the pace so far.

    Not before, since imports take a core for some seconds, and the present answers' times are measured.
    """

    def __init__(self, pending: int, act: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        """Args: how many answers are to come from now on; what to call; what tells seconds."""
        self._pending = pending
        self._act: Callable[[], None] | None = act
        self._clock = clock
        self._began = clock()
        self._answered = 0

    def answered(self) -> None:
        """One more answer is there."""
        self._answered += 1
        seconds_each = (self._clock() - self._began) / self._answered
        if self._act is not None and (self._pending - self._answered) * seconds_each <= LEAD_SECONDS:
            act, self._act = self._act, None
            act()


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
