"""MiniCPM-V 2.6: vLLM's own code for it against the code that the twin's folder brings."""

from __future__ import annotations

from pathlib import Path

import pytest
import twins
from vlmhb.doctor.questions import questions


@pytest.mark.slow
def test_minicpm_v_has_the_tokens_of_the_folders_code(tmp_path, hf_answers, load, answers_of):
    """vLLM's resampler asks CUDA whether a graph is captured, which fails without a GPU; the plugin says that none
    is. All else is vLLM's: slices, positions, resampler, language model."""
    twin = twins.twin_apart(twins.ROWS["minicpmv"], tmp_path / "twin")
    asked = questions(twin.image_counts)
    wanted = hf_answers(Path(twin.path), asked, trust_remote_code=True)
    with load(Path(twin.path), model_impl="native", max_images=2, trust_remote_code=True) as model:
        found = answers_of(model, asked)
    assert {id: result.failure for id, result in found.items() if result.failure} == {}
    assert {id: result.token_ids for id, result in found.items()} == {
        id: result.token_ids for id, result in wanted.items()
    }
