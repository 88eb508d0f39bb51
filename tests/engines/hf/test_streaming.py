"""Text as it is made: the pieces together are the answer, whatever is cut and wherever characters are split."""

import pytest
from parity_requests import picture
from vlmhb import GenerationControl
from vlmhb_hf.text import GrowingText

from .conftest import answers, ask

pytestmark = pytest.mark.hf


def streamed(model, requests):
    told = {request.id: [] for request in requests}
    results = answers(model, requests, GenerationControl(lambda id, text: told[id].append(text)))
    return results, told


def test_the_pieces_of_one_answer_are_its_text(model):
    results, told = streamed(model, [ask("0", "Tell me about the page.", picture(200, 100, 1), max_tokens=40)])
    assert "".join(told["0"]) == results["0"].text
    assert len(told["0"]) > 5


def test_rows_of_a_batch_stream_too(model):
    requests = [ask(str(index), "Расскажи. " * (index + 1), picture(100, 60 + index, index)) for index in range(9)]
    results, told = streamed(model, requests)
    assert {id: "".join(pieces) for id, pieces in told.items()} == {id: result.text for id, result in results.items()}
    plain = answers(model, requests)
    assert {id: result.text for id, result in plain.items()} == {id: result.text for id, result in results.items()}


def test_nothing_of_a_stop_text_is_told(model):
    plain = answers(model, [ask(str(seed), "Tell me.", picture(150, 150, seed), max_tokens=40) for seed in range(8)])
    id, whole = max(plain.items(), key=lambda pair: len(pair[1].text))
    stop = whole.text[10:14]
    results, told = streamed(model, [ask("0", "Tell me.", picture(150, 150, int(id)), max_tokens=40, stop=(stop,))])
    assert "".join(told["0"]) == results["0"].text == whole.text[: whole.text.index(stop)]


def test_a_batch_that_is_tried_again_tells_its_text_once(model):
    import torch

    class Breaks:
        """Lets a batch of several rows run for four tokens, then fails."""

        def __init__(self, torch_model):
            self.torch_model, self.real = torch_model, torch_model.generate

        def __call__(self, **inputs):
            if len(inputs["input_ids"]) > 1:
                inputs["generation_config"].max_new_tokens = 4
                self.real(**inputs)
                raise torch.OutOfMemoryError("CUDA out of memory")
            return self.real(**inputs)

    model._model.generate = Breaks(model._model)
    try:
        requests = [ask(str(index), "Tell me.", picture(90, 90, index)) for index in range(2)]
        results, told = streamed(model, requests)
    finally:
        del model._model.generate
        model._batch_size = 16
    assert {id: "".join(pieces) for id, pieces in told.items()} == {id: result.text for id, result in results.items()}
    assert all(result.ok for result in results.values())


@pytest.fixture(scope="module")
def tokenizer(tiny):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny)


TEXTS = ["Hello, world", "Ёлка «№ 1» — 1 234,50 ₽", "日本語 🙂🙂", "a\n\n b\t", "x�y", " leading", "🙂"]


@pytest.mark.parametrize("text", TEXTS)
def test_text_grows_by_complete_characters(tokenizer, text):
    growing = GrowingText(lambda ids: tokenizer.decode(list(ids)))
    told = []
    for token in tokenizer(text)["input_ids"]:
        assert not growing.push(token)
        told.append(growing.news())
        assert text.startswith(growing.text)
    told.append(growing.rest(text))
    assert "".join(told) == text


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_stop_text_is_seen_with_the_token_that_completes_it(tokenizer, text, length):
    ids = tokenizer(text)["input_ids"]

    def decode(some):
        return tokenizer.decode(list(some))

    for start in range(len(text) - length + 1):
        stop = text[start : start + length]
        if "�" in stop:  # also the sign of an unfinished character
            continue
        wanted = next(count for count in range(len(ids) + 1) if stop in decode(ids[:count]))
        growing = GrowingText(decode, [stop])
        seen = next(count for count, token in enumerate(ids, start=1) if growing.push(token))
        assert seen == wanted, (text, stop)
