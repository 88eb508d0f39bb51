"""Why an answer ends, what it is made of, how long it took, and what one bad request does to the others."""

import msgspec
import pytest
from parity_requests import picture
from vlmhb import GenerationRequest, ImageInput, Message, SamplingParams
from vlmhb_hf import HuggingFaceModel

from .conftest import answers, ask

pytestmark = pytest.mark.hf

PAGE = picture(200, 150, 3)


@pytest.fixture(scope="module")
def short(tiny):
    """The same model with a context of 96 tokens."""
    with HuggingFaceModel().load(tiny, dtype="float32", max_model_len=96, max_images=2) as loaded:
        yield loaded


def test_length_and_stop_by_the_end_token(model):
    results = answers(
        model, [ask(str(index), "What?", picture(90, 90 + index, index), max_tokens=80) for index in range(8)]
    )
    ends = {result.finish_reason for result in results.values()}
    assert ends == {"stop", "length"}
    for result in results.values():
        ended = result.token_ids[-1] in model.facts()["stop_token_ids"]
        assert ended == (result.finish_reason == "stop")
        assert ended or len(result.token_ids) == 80
        assert "<|im_end|>" not in result.text


def test_max_tokens_belongs_to_the_row(model):
    results = answers(model, [ask(str(count), "What?", max_tokens=count) for count in (1, 2, 3, 9)])
    assert all(len(results[str(count)].token_ids) <= count for count in (1, 2, 3, 9))
    longest = results["9"].token_ids
    assert all(result.token_ids == longest[: len(result.token_ids)] for result in results.values())


@pytest.fixture(scope="module")
def wordy(model):
    """A request with a long answer, and the answer."""
    requests = [ask(str(seed), "Tell me.", picture(200, 150, seed), max_tokens=40) for seed in range(12)]
    results = answers(model, requests)
    best = max(requests, key=lambda request: sum(char.isalpha() for char in results[request.id].text[8:]))
    assert sum(char.isalpha() for char in results[best.id].text[8:]) > 5
    return best, results[best.id]


def stopping_at(request, *texts):
    return msgspec.structs.replace(request, sampling=msgspec.structs.replace(request.sampling, stop=texts))


def test_a_stop_text_cuts_the_text_and_keeps_the_ids_that_completed_it(model, wordy):
    request, whole = wordy
    place = next(index for index in range(8, len(whole.text)) if whole.text[index].isalpha())
    stop = whole.text[place : place + 3]
    cut = answers(model, [stopping_at(request, stop, "nowhere to be found")])[request.id]
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason == "stop"
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    decode = model._builder.decode
    assert stop in decode(cut.token_ids)
    assert stop not in decode(cut.token_ids[:-1])


def test_a_stop_text_at_the_very_end(model, wordy):
    request, whole = wordy
    tail = whole.text[-4:]
    cut = answers(model, [stopping_at(request, tail)])[request.id]
    assert cut.finish_reason == "stop"
    assert cut.text == whole.text[: whole.text.index(tail)]


def test_token_counts_and_prompt_ids(model):
    result = answers(model, [ask("0", "What?", PAGE, return_prompt_ids=True)])["0"]
    pad = model._builder.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    assert result.prompt_tokens == len(result.prompt_token_ids)
    assert result.prompt_token_ids.count(pad) == 200 // 28 * (150 // 28)
    assert answers(model, [ask("0", "What?", PAGE)])["0"].prompt_token_ids is None


def test_times_are_measured_and_in_order(model):
    import time

    start = time.perf_counter()
    results = answers(model, [ask(str(index), "What?", PAGE, max_tokens=20) for index in range(20)])
    spent = time.perf_counter() - start
    for result in results.values():
        assert 0 <= result.queue_time < result.time_to_first_token < result.total_time < spent
        rest = result.time_per_output_token * (len(result.token_ids) - 1)
        assert result.time_to_first_token + rest == pytest.approx(result.total_time)
    assert answers(model, [ask("0", "What?", max_tokens=1)])["0"].time_per_output_token is None


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(short):
    failure = answers(short, [ask("0", "What is it? " * 60)])["0"].failure
    assert failure.kind == "too_long"
    assert "context holds 96" in failure.message
    assert "the prompt has" in failure.message


def test_an_answer_is_clipped_to_the_context_and_says_so(short):
    result = answers(short, [ask("0", "Which number? " * 8, max_tokens=500)])["0"]
    assert result.prompt_tokens + len(result.token_ids) <= 96
    assert any(f"max_tokens was lowered from 500 to {96 - result.prompt_tokens}" in note for note in result.notes)


def bad_requests(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(PAGE.data[: len(PAGE.data) // 2])
    return {
        "cut": (ask("cut", "What?", ImageInput(path=str(broken))), "image", r"broken\.png"),
        "gone": (ask("gone", "What?", ImageInput(path=str(tmp_path / "no.png"))), "image", r"no\.png does not exist"),
        "long": (ask("long", "What is it? " * 60), "too_long", "96"),
        "zero": (ask("zero", "What?", PAGE, max_tokens=0), "invalid_request", "max_tokens must be at least 1"),
        "cold": (ask("cold", "What?", temperature=-1.0), "invalid_request", "temperature"),
        "empty": (ask("empty", "  "), "invalid_request", "the prompt is empty"),
        "none": (GenerationRequest(id="none", messages=()), "invalid_request", "no messages"),
        "blank": (GenerationRequest(id="blank", messages=(Message("user", ()),)), "invalid_request", "empty"),
        "many": (ask("many", "What?", PAGE, PAGE, PAGE), "invalid_request", "3 images and the limit is 2"),
        "thin": (ask("thin", "What?", picture(603, 2, 1)), "image", "603 x 2"),
        "schema": (ask("schema", "What?", json_schema={"type": "object"}), "unsupported", "JSON schema"),
    }


def test_bad_requests_fail_alone(short, tmp_path):
    bad = bad_requests(tmp_path)
    good = [ask(f"good{index}", "What?", picture(60 + index, 60, index), max_tokens=4) for index in range(6)]
    mixed = [
        request for pair in zip([b[0] for b in bad.values()], [*good, *[None] * 9], strict=False) for request in pair
    ]
    results = answers(short, [request for request in mixed if request is not None])
    for id, (_, kind, message) in bad.items():
        failure = results[id].failure
        assert (results[id].finish_reason, failure.kind) == ("error", kind)
        with pytest.raises(AssertionError, match=message):
            raise AssertionError(failure.message)
    wanted = answers(short, good)
    assert {id: results[id].token_ids for id in wanted} == {id: result.token_ids for id, result in wanted.items()}
    assert all(result.ok for result in wanted.values())


def test_images_for_a_text_only_model_are_refused(folder_of):
    with HuggingFaceModel().load(folder_of("llama"), dtype="float32") as llama:
        results = answers(llama, [ask("image", "What?", PAGE), ask("text", "What?")])
    assert results["text"].ok
    assert (results["image"].failure.kind, "text-only model" in results["image"].failure.message) == (
        "unsupported",
        True,
    )


def test_a_model_that_nobody_loaded_says_so():
    from vlmhb.errors import VlmhbError

    with pytest.raises(VlmhbError, match="no model is loaded"):
        list(HuggingFaceModel().generate_requests([ask("0", "What?")]))


def test_the_first_frame_of_a_document_is_said_in_the_notes(model, tmp_path):
    from PIL import Image

    path = tmp_path / "pages.tif"
    Image.new("RGB", (60, 60), "red").save(path, save_all=True, append_images=[Image.new("RGB", (60, 60))])
    result = answers(model, [ask("0", "What?", ImageInput(path=str(path)))])["0"]
    assert any("pages.tif: the file has several frames" in note for note in result.notes)


def test_no_system_prompt_no_image_and_several_turns(model):
    from vlmhb import TextPart

    turns = tuple(
        Message(role, (TextPart(text),)) for role, text in (("user", "A?"), ("assistant", "B."), ("user", "C?"))
    )
    request = GenerationRequest(id="0", messages=turns, sampling=SamplingParams(max_tokens=4), return_prompt_ids=True)
    result = answers(model, [request])["0"]
    text = model._builder.tokenizer.decode(result.prompt_token_ids)
    assert text.endswith(
        "A?<|im_end|>\n<|im_start|>assistant\nB.<|im_end|>\n<|im_start|>user\nC?<|im_end|>\n<|im_start|>assistant\n"
    )
