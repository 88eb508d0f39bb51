"""Numbers for pages, few enough that sums over them stay small however many pages there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmhb.stats.interval import MOST_UNITS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars

_SEED = 0


class PageUnits:
    """Gives each page a number below :data:`vlmhb.stats.interval.MOST_UNITS`.

    The first so many pages have a number of their own; of any further ones some share a number, which their names alone
    decide. Sums over all rows with one number are as independent of each other as pages are.
    """

    def __init__(self) -> None:
        import numpy as np

        self._known = np.zeros(0, dtype=np.uint64)  # sorted, with the number of each beside it
        self._numbers = np.zeros(0, dtype=np.int64)

    def of(self, pages: polars.Series) -> npt.NDArray[np.int64]:
        """The numbers of pages, given by their names."""
        import numpy as np

        names = pages.hash(_SEED).to_numpy()
        if len(self._known) < MOST_UNITS:
            self._learn(names)
        if not len(self._known):
            return np.zeros(len(names), dtype=np.int64)
        place = np.minimum(np.searchsorted(self._known, names), len(self._known) - 1)
        shared = (names % np.uint64(MOST_UNITS)).astype(np.int64)
        return np.where(self._known[place] == names, self._numbers[place], shared)

    def _learn(self, names: npt.NDArray[np.uint64]) -> None:
        import numpy as np

        distinct, first = np.unique(names, return_index=True)
        new = distinct[np.argsort(first)]
        new = new[~np.isin(new, self._known)][: MOST_UNITS - len(self._known)]
        numbers = np.concatenate([self._numbers, np.arange(len(new)) + len(self._numbers)])
        known = np.concatenate([self._known, new])
        order = np.argsort(known)
        self._known, self._numbers = known[order], numbers[order]
