"""Prompts that begin alike share their computation, and no token changes: every family, float32, against one by one.

A request that is asked alone shares nothing and goes through ``generate`` as it is, so it is the reference.
"""

import io

import msgspec
import pytest
import torch
from parity_requests import picture
from PIL import Image
from vlmhb import GenerationControl, ImageInput
from vlmhb.errors import ConfigError
from vlmhb_hf import HuggingFaceModel

from .conftest import answers, ask, one_by_one

pytestmark = pytest.mark.hf

PAGES = (picture(224, 224, 1), picture(640, 300, 2), picture(100, 150, 3))
QUESTIONS = ("What is it?", "Какая фамилия указана в документе?", "Which colour is the largest object?", "Hi")
COMMON = "A long text about the city and its weather. " * 3
SHARING = (
    *("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "idefics3", "smolvlm", "mistral3", "deepseek_vl"),
    *("llama", "gpt2", "bloom", "falcon"),
)
WINDOWED = ("gemma3", "mistral")
"""Their sliding windows (64 tokens) are shorter than the prompts, so that no beginning is shared."""
QUICK = ("qwen2_vl", "llava", "gemma3", "llama")
FAMILIES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in (*SHARING, *WINDOWED)]
TEXTUAL = ("llama", "gpt2", "bloom", "falcon", "mistral")


def page_requests(**fields):
    """Pages of several sizes, with two, three and four questions; two images; another system prompt; sizes mixed."""
    given = {"max_tokens": 10, "return_prompt_ids": True, **fields}
    requests = [
        ask(f"page{number}-{index}", question, page, **given)
        for index, question in enumerate(QUESTIONS)
        for number, page in enumerate(PAGES)
        if index <= number + 1
    ]
    for index, question in enumerate(QUESTIONS):
        requests.append(ask(f"system-{index}", question, PAGES[0], system="Ответь одним словом.", **given))
        requests.append(ask(f"two-{index}", question, PAGES[0], PAGES[2], **given))
    return requests


def text_requests(**fields):
    given = {"max_tokens": 10, "return_prompt_ids": True, **fields}
    return [ask(f"text-{index}", COMMON + question, **given) for index, question in enumerate(QUESTIONS)]


def said(results):
    return {id: (result.token_ids, result.prompt_token_ids, result.finish_reason) for id, result in results.items()}


class Heads:
    """Counts the prompts that ``generate`` of a loaded model was given, call by call."""

    def __init__(self, model):
        self.torch_model, self.real, self.counts = model._model, model._model.generate, []

    def __enter__(self):
        self.torch_model.generate = self
        return self.counts

    def __exit__(self, *error):
        del self.torch_model.generate

    def __call__(self, **inputs):
        self.counts.append(len(inputs["input_ids"]))
        return self.real(**inputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_shared_beginnings_change_no_token(family, folder_of):
    requests = text_requests() if family in TEXTUAL else [*page_requests(), *text_requests()]
    with HuggingFaceModel().load(folder_of(family), dtype="float32", threads=1) as model:
        together = answers(model, requests)
        reuse = model.facts()["reuse"]
        assert said(together) == said(one_by_one(model, requests))
    assert all(result.ok for result in together.values())
    assert reuse["level"] == "prefix"
    assert set(reuse["batches"]) == {"prefix"} if family in SHARING else "prefix" not in reuse["batches"]
    if family in SHARING:
        assert 0 < reuse["largest_difference"] < 1e-4


def test_each_page_is_computed_once(model):
    answers(model, page_requests()[:4])  # the proof
    requests = [ask(f"{number}-{index}", question, page, max_tokens=3)
                for number, page in enumerate(PAGES) for index, question in enumerate(QUESTIONS)]  # fmt: skip
    with Heads(model) as counts:
        answers(model, requests)
    assert counts == [3]


def test_the_same_pixels_under_other_names_are_one_page(model, tmp_path):
    buffer = io.BytesIO()
    Image.open(io.BytesIO(PAGES[0].data)).save(buffer, "BMP")
    paths = [tmp_path / name for name in ("a.png", "b.png", "c.bmp")]
    for path, data in zip(paths, (PAGES[0].data, PAGES[0].data, buffer.getvalue()), strict=True):
        path.write_bytes(data)
    requests = [ask(path.name, question, ImageInput(path=str(path)), max_tokens=6)
                for path, question in zip(paths, QUESTIONS, strict=False)]  # fmt: skip
    with Heads(model) as counts:
        together = answers(model, requests)
    assert counts[-1] == 1
    assert said(together) == said(one_by_one(model, requests))


def test_pictures_of_one_size_are_told_apart(model):
    requests = [ask(f"{seed}-{index}", question, picture(120, 120, seed), max_tokens=6)
                for seed in (1, 2) for index, question in enumerate(QUESTIONS[:2])]  # fmt: skip
    assert said(answers(model, requests)) == said(one_by_one(model, requests))


def test_the_same_question_twice_differs_by_its_sampling_alone(model):
    requests = [
        ask("greedy", "What is it?", PAGES[0]),
        ask("again", "What is it?", PAGES[0]),
        ask("hot", "What is it?", PAGES[0], temperature=1.5, seed=1),
        ask("hot-again", "What is it?", PAGES[0], temperature=1.5, seed=1),
        ask("other", "What is it?", PAGES[0], temperature=1.5, seed=2),
        ask("nucleus", "Hi", PAGES[0], temperature=0.9, top_p=0.6, top_k=30, seed=3, max_tokens=30),
        ask("penalty", "Hi", PAGES[0], repetition_penalty=1.7, max_tokens=3),
        ask("penalty-hot", "Hi", PAGES[1], repetition_penalty=1.3, temperature=1.0, seed=5, max_tokens=40),
    ]
    together = answers(model, requests)
    assert said(together) == said(one_by_one(model, requests))
    tokens = {id: result.token_ids for id, result in together.items()}
    assert tokens["greedy"] == tokens["again"]
    assert tokens["hot"] == tokens["hot-again"] != tokens["other"]


def test_log_probabilities_are_those_of_a_request_alone(model):
    requests = [msgspec.structs.replace(request, logprobs=1 + index % 3)
                for index, request in enumerate(page_requests()) if index % 3]  # fmt: skip
    together, single = answers(model, requests), one_by_one(model, requests)
    for request in requests:
        one, other = together[request.id].logprobs, single[request.id].logprobs
        assert len(one) == len(together[request.id].token_ids)
        assert [[entry.token_id for entry in step] for step in one] == [
            [entry.token_id for entry in step] for step in other
        ]
        for step, reference in zip(one, other, strict=True):
            assert [entry.logprob for entry in step] == pytest.approx([e.logprob for e in reference], abs=1e-4)


def test_stop_texts_limits_and_streaming_while_rows_leave(model):
    """Rows of very different length: most leave the batch before the last one ends."""
    requests = [
        ask(
            f"{number}-{limit}",
            question,
            page,
            max_tokens=limit,
            logprobs=limit % 2,
            stop=("е",) if limit == 33 else (),
        )
        for number, page in enumerate(PAGES)
        for question, limit in zip(QUESTIONS, (1, 5, 33, 60), strict=True)
    ]
    told = {request.id: "" for request in requests}

    def on_text(id, text):
        told[id] += text

    together = answers(model, requests, GenerationControl(on_text))
    single = one_by_one(model, requests)
    assert said(together) == said(single)
    assert told == {id: result.text for id, result in single.items()}


def test_rows_that_have_ended_cost_nothing_more(model):
    widths = []
    hook = model._model.register_forward_pre_hook(
        lambda module, args, kwargs: widths.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    try:
        answers(model, [ask(str(i), "Hi", picture(90, 90, i), max_tokens=2 if i < 6 else 12) for i in range(8)])
    finally:
        hook.remove()
    assert max(widths) == 8
    assert widths[-1] <= 2


def test_memory_that_runs_out_in_the_middle(model):
    """The third forward pass of a batch fails while more than four rows are in it."""
    requests = page_requests()
    wanted = said(one_by_one(model, requests))
    passes = []

    def breaks(module, args, kwargs):
        passes.append(len(kwargs["input_ids"]))
        if len(passes) > 3 and passes[-1] > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")

    size = model._batch_size
    hook = model._model.register_forward_pre_hook(breaks, with_kwargs=True)
    try:
        results = answers(model, requests)
    finally:
        hook.remove()
        model._batch_size = size
    assert said(results) == wanted
    assert any("memory ran out with" in note for result in results.values() for note in result.notes)


def test_one_bad_image_among_good(model, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(PAGES[0].data[:100])
    good = page_requests()
    results = answers(model, [*good[:3], ask("bad", "What?", ImageInput(path=str(broken))), *good[3:]])
    assert results.pop("bad").failure.kind == "image"
    assert said(results) == said(one_by_one(model, good))


def test_a_model_whose_logits_differ_is_not_trusted(tiny):
    """As if its earlier tokens saw the later ones: whatever follows a shared head comes out otherwise."""
    with HuggingFaceModel().load(tiny, dtype="float32", threads=1) as model:
        wanted = said(one_by_one(model, page_requests()))

        def spoil(module, args, kwargs, out):
            if kwargs["cache"].get_seq_length() > kwargs["input_ids"].shape[1] > 1:  # the pass over the tails
                out.logits = out.logits + torch.linspace(0, 1, out.logits.shape[-1])

        model._model.register_forward_hook(spoil, with_kwargs=True)
        results = answers(model, page_requests())
        reuse = model.facts()["reuse"]
    assert said(results) == wanted
    assert reuse["level"] == "features"
    assert "logits differ" in reuse["reason"]
    notes = [note for result in results.values() for note in result.notes]
    told = "questions about one page share only its vision features on this model: logits differ"
    assert sum(told in note for note in notes) == 1


def test_a_loop_that_fails_is_given_up_for_the_models_own(tiny):
    with HuggingFaceModel().load(tiny, dtype="float32", threads=1) as model:
        wanted = said(one_by_one(model, page_requests()))
        real = model._model.prepare_inputs_for_generation

        def prepare(ids, **kwargs):
            if "next_sequence_length" not in kwargs:
                raise TypeError("this model wants to know the length")
            return real(ids, **kwargs)

        model._model.prepare_inputs_for_generation = prepare
        results = answers(model, page_requests())
        assert said(results) == wanted
        assert "wants to know the length" in model.facts()["reuse"]["reason"]


def test_it_can_be_turned_off(tiny, model):
    requests = page_requests()
    with HuggingFaceModel().load(tiny, dtype="float32", threads=1, reuse="off") as other:
        with Heads(other) as counts:
            results = answers(other, requests)
        assert sum(counts) == len(requests)
        assert other.facts()["reuse"]["level"] == "off"
        assert not any("share" in note for result in results.values() for note in result.notes)
    assert said(results) == said(answers(model, requests))
    with pytest.raises(ConfigError, match="reuse must be one of auto, off, not 'sometimes'"):
        HuggingFaceModel().load(tiny, reuse="sometimes")


def test_positions_that_depend_on_the_length_are_not_shared(tiny):
    from vlmhb_hf.reuse import prefix_obstacle

    with HuggingFaceModel().load(tiny, dtype="float32", threads=1) as model:
        assert prefix_obstacle(model._model) == ""
        model._model.config.get_text_config().rope_parameters["rope_type"] = "dynamic"
        assert "rope_type dynamic" in prefix_obstacle(model._model)
