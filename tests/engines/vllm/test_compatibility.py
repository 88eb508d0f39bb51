"""The columns of vLLM in ``docs/compatibility.md``: no cell is worse than the page says."""

from __future__ import annotations

import pytest
from matrix_cells import Twins, is_worse, measured

CELLS = measured("vllm")


@pytest.fixture(scope="module")
def twins(tmp_path_factory, hf_answers):
    """Twins and the reference's answers."""
    return Twins(tmp_path_factory.mktemp("twins"), hf_answers)


@pytest.mark.matrix
@pytest.mark.parametrize("entry", CELLS, ids=lambda entry: f"{entry.family}, {entry.cell.implementation}")
def test_a_cell_is_no_worse(entry, twins, load):
    now = twins.now(entry, load)
    assert not is_worse(now, entry.cell), f"{now.words()}; the page: {entry.cell.words()}"
