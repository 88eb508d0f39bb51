"""What one request may ask, and that a bad one costs nobody else anything. On the real engine."""

from __future__ import annotations

import io
import itertools
import json
import math

import pytest
from parity_requests import picture
from PIL import Image
from vlmhb import GenerationControl, GenerationRequest, ImageInput, SamplingParams

PAGE = picture(224, 224, 1)


def ask(id, question="What is the weather like?", images=(), system=None, **fields):
    sampling = {name: fields.pop(name) for name in list(fields) if name in SamplingParams.__struct_fields__}
    sampling.setdefault("max_tokens", 8)
    return GenerationRequest.ask(id, question, images, system=system, sampling=SamplingParams(**sampling), **fields)


def truncated():
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((400, 400)).convert("RGB").save(buffer, "JPEG")
    return ImageInput(data=buffer.getvalue()[:-2000], name="cut.jpg")


# --- faults of one request


def test_bad_requests_fail_alone(model, answers_of):
    good = [ask("good-1"), ask("good-2", "Describe.", [PAGE])]
    alone = answers_of(model, good)
    bad = {
        "no-room": (
            ask("no-room", "word " * 3000),
            "too_long",
            "prompt has 6024 tokens and the model's context holds 2048",
        ),
        "no-tokens": (ask("no-tokens", max_tokens=0), "invalid_request", "max_tokens must be at least 1, not 0"),
        "empty": (ask("empty", ""), "invalid_request", "prompt is empty"),
        "many": (ask("many", images=[PAGE] * 3), "invalid_request", "3 images and the limit is 2"),
        "cut": (ask("cut", images=[truncated()]), "image", "cut.jpg"),
        "missing": (ask("missing", images=[ImageInput(path="/nowhere/page.png")]), "image", "page.png"),
        "thin": (ask("thin", images=[picture(1000, 2, 1)]), "image", "RGB-1000x2-1"),
        "schema": (ask("schema", json_schema={"type": "objekt"}), "invalid_request", "objekt"),
        "multiple": (ask("multiple", json_schema={"type": "integer", "multipleOf": 3}), "unsupported", "not supported"),
    }
    mixed = [entry for pair in itertools.zip_longest((b[0] for b in bad.values()), good) for entry in pair if entry]
    answers = answers_of(model, mixed)
    for name, (_, kind, words) in bad.items():
        failure = answers[name].failure
        assert failure is not None, name
        assert failure.kind == kind, failure
        with pytest.raises(AssertionError, match=words):
            raise AssertionError(failure.message)
        assert answers[name].finish_reason == "error"
    for request in good:
        assert answers[request.id].token_ids == alone[request.id].token_ids


@pytest.mark.parametrize(
    "bad",
    [
        {"question": "word " * 3000},
        {"json_schema": {"type": "integer", "multipleOf": 3}},
        {"json_schema": {"type": "objekt"}},
    ],
    ids=["too long", "a schema that is not supported", "no schema"],
)
def test_a_refused_request_does_not_take_its_page_from_others(model, answers_of, bad):
    """vLLM sends a picture's data once; the engine must have it, whoever was the first to ask about it."""
    page = picture(230, 180, len(str(bad)))  # no other test's
    asked = [ask("bad", images=[page], **bad), ask("one", "Describe.", [page]), ask("two", "What is it?", [page, PAGE])]
    answers = answers_of(model, asked)
    assert answers["bad"].failure is not None
    assert [answers[name].failure for name in ("one", "two")] == [None, None]
    again = answers_of(model, [ask("bad", images=[page], **bad), asked[1]])
    assert again["one"].token_ids == answers["one"].token_ids


def test_too_long_by_its_images_says_the_expanded_length(load, tiny, model, answers_of):
    words = "word " * 975
    fits = answers_of(model, [ask("text", words, max_tokens=1)])["text"].prompt_tokens
    assert 1920 < fits < 2048
    failure = answers_of(model, [ask("pictured", words, [PAGE, PAGE])])["pictured"].failure
    assert failure.kind == "too_long"
    assert f"{fits + 2 * 66} tokens" in failure.message


def test_the_output_is_clipped_to_the_context_and_says_so(model, answers_of):
    result = answers_of(model, [ask("long", "word " * 980, max_tokens=500)])["long"]
    room = 2048 - result.prompt_tokens
    assert result.finish_reason == "length"
    assert len(result.token_ids) == room
    assert any(f"lowered from 500 to {room}" in note for note in result.notes)


# --- sampling


def test_a_seed_gives_the_same_tokens_alone_and_in_a_batch(model, answers_of):
    def sampled(id, seed):
        return ask(id, "Describe.", [PAGE], temperature=1.0, seed=seed, max_tokens=16)

    alone = answers_of(model, [sampled("a", 5)])["a"].token_ids
    together = answers_of(model, [sampled("x", 6), sampled("a", 5), sampled("b", 5), ask("g", images=[PAGE])])
    assert together["a"].token_ids == together["b"].token_ids == alone
    assert together["x"].token_ids != alone


def test_top_k_of_one_is_greedy(model, answers_of):
    greedy = answers_of(model, [ask("a", max_tokens=16)])["a"].token_ids
    assert answers_of(model, [ask("a", max_tokens=16, temperature=1.5, top_k=1)])["a"].token_ids == greedy


def test_a_repetition_penalty_changes_the_answer(model, answers_of):
    plain, penalised = ask("plain", max_tokens=40), ask("penalised", max_tokens=40, repetition_penalty=1.5)
    answers = answers_of(model, [plain, penalised])
    assert answers["plain"].token_ids != answers["penalised"].token_ids


def test_a_temperature_that_vllm_raises_is_noted(model, answers_of):
    result = answers_of(model, [ask("a", temperature=0.001)])["a"]
    assert any("temperature 0.001 was raised to 0.01" in note for note in result.notes)


def test_nothing_comes_from_the_model_folders_generation_config(load, tmp_path, tiny, model, answers_of):
    from vlmhb_demo import tiny_model

    expected = answers_of(model, [ask("a", max_tokens=24)])["a"].token_ids
    model.close()
    settings = {"do_sample": True, "temperature": 5.0, "top_k": 500, "repetition_penalty": 3.0, "max_new_tokens": 3}
    folder = tiny_model.make(tmp_path / "loud", generation_config=settings)
    with load(folder) as loud:
        first, second = (answers_of(loud, [ask("a", max_tokens=24)])["a"] for _ in range(2))
        assert loud.facts()["ignored_generation_config"]["temperature"] == 5.0
    assert first.token_ids == second.token_ids == expected
    assert any("repetition_penalty=3.0" in note for note in first.notes)
    assert not any("repetition_penalty" in note for note in second.notes)
    model.load(tiny, dtype="float32", model_impl="native", max_images=2, max_num_seqs=4, kv_cache_gib=0.5)


# --- stop


def test_a_stop_text_is_cut_off_and_its_tokens_stay(model, answers_of):
    whole = answers_of(model, [ask("whole", max_tokens=24)])["whole"]
    stop = whole.text[6:8]
    result = answers_of(model, [ask("stopped", max_tokens=24, stop=(stop,))])["stopped"]
    assert result.finish_reason == "stop"
    assert result.text == whole.text[: whole.text.find(stop)]
    assert whole.token_ids[: len(result.token_ids)] == result.token_ids
    assert len(result.token_ids) < len(whole.token_ids)


def test_an_answer_that_ends_inside_a_character_has_the_tokenizers_text(model, answers_of):
    results = answers_of(model, [ask(str(n), "Tell me about the animals here.", max_tokens=n) for n in range(1, 9)])
    tokenizer = model._builder.tokenizer
    for result in results.values():
        assert result.text == tokenizer.decode(result.token_ids, skip_special_tokens=True)
    assert any(result.text.endswith("\ufffd") for result in results.values())


# --- structured output


def test_a_json_schema_is_followed_without_spaces(model, answers_of):
    properties = {
        "kind": {"enum": ["card", "receipt"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "pages": {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 2, "maxItems": 2},
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    asked = [ask(f"{n}", f"Question {n}?", [PAGE][: n % 2], json_schema=schema, max_tokens=64) for n in range(6)]
    for result in answers_of(model, asked).values():
        assert result.finish_reason == "stop", result
        value = json.loads(result.text)
        assert value["kind"] in ("card", "receipt")
        assert 0 <= value["count"] <= 99
        assert result.text == json.dumps(value, separators=(",", ":"))


# --- numbers


def test_log_probabilities_are_the_models_own(model, answers_of):
    cold, warm = (ask(f"{t}", temperature=t, seed=3, logprobs=5, max_tokens=6) for t in (0.0, 0.7))
    answers = answers_of(model, [cold, warm])
    greedy = answers["0.0"]
    assert len(greedy.logprobs) == len(greedy.token_ids)
    for candidates, token in zip(greedy.logprobs, greedy.token_ids, strict=True):
        assert len(candidates) == 5
        assert candidates[0].token_id == token
        assert [c.logprob for c in candidates] == sorted((c.logprob for c in candidates), reverse=True)
        assert sum(math.exp(c.logprob) for c in candidates) <= 1.0001
    # The first position has seen nothing but the prompt: the same values at any temperature.
    for one, other in zip(answers["0.0"].logprobs[0], answers["0.7"].logprobs[0], strict=True):
        assert one.token_id == other.token_id
        assert one.logprob == pytest.approx(other.logprob, abs=1e-5)


def test_many_candidates(model, answers_of):
    result = answers_of(model, [ask("a", logprobs=200, max_tokens=1)])["a"]
    assert len(result.logprobs[0]) == 200


def test_counts_and_times(model, answers_of):
    result = answers_of(model, [ask("a", "Describe.", [PAGE], max_tokens=12, return_prompt_ids=True)])["a"]
    assert result.prompt_tokens == len(result.prompt_token_ids)
    placeholder = model._builder.processor.image_token_id
    assert result.prompt_token_ids.count(placeholder) == 64
    assert 0 <= result.queue_time <= result.time_to_first_token <= result.total_time
    decoding = result.time_per_output_token * (len(result.token_ids) - 1)
    assert result.time_to_first_token + decoding == pytest.approx(result.total_time)


def test_one_token_has_no_time_per_token(model, answers_of):
    result = answers_of(model, [ask("a", max_tokens=1)])["a"]
    assert result.time_per_output_token is None
    assert result.total_time == pytest.approx(result.time_to_first_token)


def test_questions_about_one_page_share_its_tokens(model, answers_of):
    """Asked mixed up; put next to each other, all but the first of a page find it in the cache."""
    model._llm.reset_prefix_cache()
    pages = [picture(224, 224, seed) for seed in (31, 32, 33)]
    asked = [ask(f"{q}-{p}", f"Question {q}?", [page], max_tokens=2) for q in range(4) for p, page in enumerate(pages)]
    order = [result.id for result in model.generate_requests(asked)]
    model._llm.reset_prefix_cache()
    answers = answers_of(model, asked)
    hits = [answers[request.id].cached_tokens for request in asked]
    assert sum(1 for hit in hits if hit >= 64) == len(asked) - len(pages), hits
    assert [name[-1] for name in order].count("0") == 4


# --- the stream of requests


def test_text_comes_in_pieces_that_make_the_answer(model):
    pieces = {}
    control = GenerationControl(lambda id, piece: pieces.setdefault(id, []).append(piece))
    asked = [ask("a", max_tokens=24), ask("b", "Опиши.", [PAGE], max_tokens=24), ask("c", max_tokens=24, stop=("e",))]
    results = {result.id: result for result in model.generate_requests(asked, control)}
    for name, result in results.items():
        assert "".join(pieces[name]) == result.text
    assert len(pieces["a"]) > 5
    assert control.steps >= 24


def test_short_answers_come_before_long_ones(model):
    asked = [ask("long", max_tokens=200, question="word"), ask("short", max_tokens=2)]
    order = [result.id for result in model.generate_requests(asked)]
    assert order == ["short", "long"]


def test_requests_are_read_as_they_are_needed(model):
    read = []

    def endless():
        for number in itertools.count():
            read.append(number)
            yield ask(str(number), f"Question {number}?", max_tokens=4)

    answers = model.generate_requests(endless())
    seen = [next(answers).id for _ in range(20)]
    answers.close()
    assert len(set(seen)) == 20
    assert len(read) < 20 + 4 * 4  # four are computed together, four wait in the engine, four are prepared
    assert [r.id for r in model.generate_requests([ask("after")])] == ["after"]


def test_stop_finishes_what_was_started_and_nothing_else(model):
    control = GenerationControl()
    asked = [ask(str(n), f"Question {n}?", max_tokens=2 if n == 0 else 30) for n in range(40)]
    results = []
    for result in model.generate_requests(asked, control):
        results.append(result)
        control.stop.set()
    assert 1 <= len(results) <= 8
    assert all(result.ok for result in results)
    assert model._llm.llm_engine.get_num_unfinished_requests() == 0


def test_nothing_is_answered_when_stopped_before(model):
    control = GenerationControl()
    control.stop.set()
    assert list(model.generate_requests([ask("a")], control)) == []


def test_two_requests_of_one_name_are_two_requests(model):
    results = list(model.generate_requests([ask("same", "Hi"), ask("same", "Bye")]))
    assert [result.id for result in results] == ["same", "same"]


def test_generate_returns_texts_in_order(model, answers_of):
    texts = model.generate(["Hi", "Bye"], max_tokens=4)
    answers = answers_of(model, [ask("0", "Hi", max_tokens=4), ask("1", "Bye", max_tokens=4)])
    assert texts == [answers["0"].text, answers["1"].text]
