"""Text-only families: the tokens of the hf plugin, or a refusal in words: a test for each cell in docs/engines.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.docs import name_tables
from twins import ROWS, twin_apart
from vlmhb import GenerationRequest, ImageInput, SamplingParams
from vlmhb.errors import ModelLoadError

SAME = "same tokens"
CELLS = {
    (family, implementation): cells[f"`{implementation}`"]
    for family, cells in name_tables()["text-families"].rows.items()
    for implementation in ("native", "transformers")
}
"""Family and implementation -> the same tokens, or why the model is not loaded."""

QUESTIONS = (
    "What is the weather like in the city?",
    "Hi",
    "Опиши это изображение одним словом.",
    "Which colour is the sky, and how many people are in the street? " * 3,
)


def requests():
    params = SamplingParams(max_tokens=20)
    return [
        GenerationRequest.ask(str(number), text, sampling=params, return_prompt_ids=True)
        for number, text in enumerate(QUESTIONS)
    ]


@pytest.fixture(scope="module")
def twins(tmp_path_factory, hf_answers):
    """Family -> its folder and what transformers answers; each made once."""
    made = {}

    def twin(family):
        if family not in made:
            folder = Path(twin_apart(ROWS[family], tmp_path_factory.mktemp(family) / "twin").path)
            made[family] = folder, hf_answers(folder, requests())
        return made[family]

    return twin


@pytest.mark.parametrize(("family", "implementation"), list(CELLS))
def test_cell(family, implementation, twins, load, answers_of):
    folder, reference = twins(family)
    expected = CELLS[family, implementation]
    if expected != SAME:
        with pytest.raises(ModelLoadError, match=re.escape(expected)):
            load(folder, model_impl=implementation)
        return
    with load(folder, model_impl=implementation) as model:
        answers = answers_of(model, requests())
    for name, want in reference.items():
        assert answers[name].prompt_token_ids == want.prompt_token_ids
        assert answers[name].token_ids == want.token_ids
        assert answers[name].text == want.text


def test_answers_vary(twins):
    """A twin that always says the same, or repeats one token, would hide faults."""
    for family in {family for family, _ in CELLS}:
        _, reference = twins(family)
        assert len({result.token_ids for result in reference.values()}) == len(QUESTIONS)
        assert all(len(set(result.token_ids)) > 4 for result in reference.values()), family


def test_an_image_for_a_text_model_is_that_requests_failure(twins, load, answers_of):
    folder, reference = twins("llama")
    asked = [*requests(), GenerationRequest.ask("pictured", "What is this?", [ImageInput(data=b"not even read")])]
    with load(folder) as model:
        answers = answers_of(model, asked)
    assert answers["pictured"].failure.kind == "unsupported"
    assert "text-only" in answers["pictured"].failure.message
    assert answers["0"].token_ids == reference["0"].token_ids
