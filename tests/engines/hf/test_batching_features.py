"""Where prompts cannot share their beginning, a page is still seen by the vision encoder once, and no token changes."""

import functools

import pytest
import torch
from parity_requests import picture
from vlmhb_hf import HuggingFaceModel

from .conftest import answers, ask, one_by_one

pytestmark = [pytest.mark.hf, pytest.mark.filterwarnings("ignore")]  # of processors, about each other

PAGES = (picture(224, 224, 1), picture(300, 140, 2), picture(100, 150, 3))
QUESTIONS = ("Who?", "What is the date of the document?", "Кто подписал?")
SAME_LENGTH = ("Who?", "Who!", "Who.")
ENCODERS = {
    "gemma3": "vision_tower",
    "paligemma": "vision_tower",
    "idefics2": "vision_model",
    "minicpmv4_6": "vision_tower",
    "florence2": "vision_tower",
    "vision-encoder-decoder": "encoder",
}
"""By model type, the module that sees the pictures.

Gemma 3's prompts are longer than its window; of PaliGemma's all tokens see each other; Idefics2's processor changes
the text beside a picture; MiniCPM-V has layers of linear attention; the last two are encoders with a decoder.
"""
QUICK = ("gemma3", "florence2")
FAMILIES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ENCODERS]


class Pictures:
    """Counts the pixels, padding included, that a module of a loaded model is given."""

    def __init__(self, model, name):
        base = model._model.base_model
        module = getattr(base, name) if hasattr(base, name) else getattr(base.model, name)
        self.total = 0
        module.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, args, kwargs):
        pixels = kwargs["pixel_values"] if "pixel_values" in kwargs else args[0]
        self.total += pixels.numel()


def requests_for(family):
    questions = SAME_LENGTH if family == "vision-encoder-decoder" else QUESTIONS
    words = "word " * 60 if family == "gemma3" else ""  # so that the prompt outgrows the window
    return [
        ask(f"{number}-{index}", words + question, page, max_tokens=8, return_prompt_ids=True)
        for index, question in enumerate(questions)
        for number, page in enumerate(PAGES)
    ]


def said(results):
    return {id: (result.token_ids, result.prompt_token_ids, result.finish_reason) for id, result in results.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_page_is_seen_once_and_no_token_changes(family, folder_of):
    requests = requests_for(family)
    with HuggingFaceModel().load(folder_of(family), dtype="float32", threads=1) as model:
        together = answers(model, requests)  # the proof
        pictures = Pictures(model, ENCODERS[family])
        wanted = said(one_by_one(model, requests))
        alone, pictures.total = pictures.total, 0
        again = answers(model, requests)
        reuse = model.facts()["reuse"]
    assert said(together) == said(again) == wanted
    assert len({tokens for tokens, _, _ in wanted.values()}) > 1
    assert 0 < pictures.total < 0.5 * alone  # a third, and some padding
    assert reuse["batches"]["features"] == 2
    assert reuse["largest_difference"] < 1e-4


def test_questions_of_one_length_share_a_batch_where_others_must_not(folder_of):
    """A Donut's decoder counts positions from the beginning of its batch."""
    requests = [
        ask(f"{number}-{question}", question, page, max_tokens=8, return_prompt_ids=True)
        for number, page in enumerate(PAGES)
        for question in (*SAME_LENGTH, "What is the date of the document?", "What is the name of the document?")
    ]
    with HuggingFaceModel().load(folder_of("vision-encoder-decoder"), dtype="float32", threads=1) as model:
        together = answers(model, requests)
        batches = model.facts()["reuse"]["batches"]
        assert said(together) == said(one_by_one(model, requests))
    assert batches["features"] >= 1
    assert sum(batches.values()) <= 3  # of one length each
    assert not any(note for result in together.values() for note in result.notes if "one by one" in note)


def test_features_that_are_not_those_of_the_page_are_not_trusted(folder_of):
    """As if the rows' pages were mixed up."""
    requests = requests_for("gemma3")
    with HuggingFaceModel().load(folder_of("gemma3"), dtype="float32", threads=1) as model:
        wanted = said(one_by_one(model, requests))
        real = model._model.base_model.get_image_features

        def mixed(pixel_values, **kwargs):
            output = real(pixel_values, **kwargs)
            if 1 < len(pixel_values) == len(torch.unique(pixel_values, dim=0)):  # pages, not rows
                output.pooler_output = output.pooler_output.flip(0)
            return output

        model._model.base_model.get_image_features = mixed
        results = answers(model, requests)
        reuse = model.facts()["reuse"]
    assert said(results) == wanted
    assert reuse["largest_difference"] > 1e-3
    assert "features" not in reuse["batches"]
    assert all(result.ok for result in results.values())


def test_a_model_that_does_not_take_features_answers_without(folder_of):
    requests = requests_for("gemma3")
    with HuggingFaceModel().load(folder_of("gemma3"), dtype="float32", threads=1) as model:
        wanted = said(one_by_one(model, requests))
        real = model._model.forward

        @functools.wraps(real)
        def refuses(*args, mm_encoder_outputs=None, **kwargs):
            if mm_encoder_outputs and mm_encoder_outputs["image"].last_hidden_state is None:  # not its own
                raise TypeError("no features, please")
            return real(*args, mm_encoder_outputs=mm_encoder_outputs, **kwargs)

        model._model.forward = refuses
        results = answers(model, requests)
        reuse = model.facts()["reuse"]
    assert said(results) == wanted
    assert "features" not in reuse["batches"]
    assert not [result for result in results.values() if result.failure]
