"""Sampling parameters of each row; seeds; log-probabilities."""

import pytest
from parity_requests import picture
from vlmhb import SamplingParams

from .conftest import answers, ask, one_by_one

pytestmark = pytest.mark.hf

PAGE = picture(200, 150, 3)
SAMPLED = [
    ask("hot", "What is it?", PAGE, temperature=1.5, seed=1),
    ask("hot-again", "What is it?", PAGE, temperature=1.5, seed=1),
    ask("hot-other-seed", "What is it?", PAGE, temperature=1.5, seed=2),
    ask("few", "What is it?", PAGE, temperature=1.0, top_k=3, seed=3),
    ask("nucleus", "What is it?", PAGE, temperature=0.7, top_p=0.5, seed=4),
    ask("both", "Где?", temperature=0.9, top_p=0.8, top_k=20, seed=5),
    ask("penalty", "What is it?", PAGE, repetition_penalty=1.8),
    ask("penalty-hot", "Которая по счёту страница? " * 4, temperature=1.0, repetition_penalty=1.3, seed=6),
    ask("greedy", "What is it?", PAGE),
    ask("one-candidate", "What is it?", PAGE, temperature=2.0, top_k=1, seed=7),
    ask("tiny-nucleus", "What is it?", PAGE, temperature=2.0, top_p=1e-9, seed=8),
]


@pytest.fixture(scope="module")
def mixed(model):
    return {id: result.token_ids for id, result in answers(model, SAMPLED).items()}


def test_the_same_request_gives_the_same_tokens_alone_and_in_any_batch(model, mixed):
    assert mixed == {id: result.token_ids for id, result in one_by_one(model, SAMPLED).items()}
    half = answers(model, SAMPLED[::-2])
    assert all(result.token_ids == mixed[id] for id, result in half.items())


def test_seeds_decide(mixed):
    assert mixed["hot"] == mixed["hot-again"] != mixed["hot-other-seed"]


def test_a_single_candidate_is_greedy_at_any_temperature(mixed):
    assert mixed["one-candidate"] == mixed["tiny-nucleus"] == mixed["greedy"]


def test_the_global_random_state_is_neither_used_nor_changed(model, mixed):
    import torch

    torch.manual_seed(99)
    before = torch.get_rng_state()
    assert answers(model, SAMPLED[:1])["hot"].token_ids == mixed["hot"]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("penalty", [1.1, 1.8, 0.9])
def test_the_repetition_penalty_is_that_of_transformers(tiny, model, penalty):
    """Also for the shorter row of a padded batch, whose padding token must not be punished."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    plain, tokenizer = AutoModelForImageTextToText.from_pretrained(tiny, dtype=torch.float32), None
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    questions = {"short": "Где?", "long": "Какая фамилия указана в документе? " * 4}
    batch = answers(model, [ask(id, text, repetition_penalty=penalty) for id, text in questions.items()])
    for id, text in questions.items():
        chat = [{"role": "user", "content": text}]
        rendered = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        inputs = tokenizer(rendered, return_tensors="pt")
        out = plain.generate(**inputs, max_new_tokens=16, do_sample=False, repetition_penalty=penalty)
        assert out[0, inputs["input_ids"].shape[1] :].tolist() == list(batch[id].token_ids)


def test_draws_follow_the_probabilities(model):
    """1,000 first tokens at temperature 1 against the model's own probabilities (chi-squared, 0.1 % level)."""
    import math

    import torch
    from vlmhb_hf.sampling import RowSampling

    logits = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0])
    rows = 1000
    params = [SamplingParams(temperature=2.0, top_k=4, seed=seed) for seed in range(rows)]
    ids = torch.zeros((rows, 1), dtype=torch.long)
    sampling = RowSampling(params, [0] * rows, ids, torch.ones_like(ids), 5)
    drawn = sampling(ids, logits.expand(rows, 5).clone()).argmax(-1).bincount(minlength=5)
    wanted = torch.cat([(logits[:4] / 2.0).softmax(0), torch.zeros(1)]) * rows
    assert drawn[4] == 0
    assert ((drawn[:4] - wanted[:4]) ** 2 / wanted[:4]).sum().item() < 16.27
    assert math.isclose(drawn.sum().item(), rows)


@pytest.mark.parametrize(("top_p", "kept"), [(0.6, 1), (0.61, 2), (0.95, 3), (1.0, 4)])
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p, kept):
    import torch
    from vlmhb_hf.sampling import RowSampling

    chances = torch.tensor([[0.05, 0.6, 0.25, 0.1]])
    ids = torch.zeros((1, 1), dtype=torch.long)
    seen = set()
    for seed in range(300):
        sampling = RowSampling([SamplingParams(temperature=1.0, top_p=top_p, seed=seed)], [0], ids, ids + 1, 4)
        seen.add(sampling(ids, chances.log()).argmax(-1).item())
    assert seen == set([1, 2, 3, 0][:kept])


def test_logprobs_are_the_models_own_before_temperature(model):
    requests = [
        ask("greedy", "What is it?", PAGE, logprobs=3),
        ask("hot", "What is it?", PAGE, logprobs=2, temperature=3.0, seed=5, repetition_penalty=1.5),
        ask("without", "What is it?", PAGE),
    ]
    results = answers(model, requests)
    greedy, hot = results["greedy"], results["hot"]
    assert results["without"].logprobs is None
    assert [len(step) for step in greedy.logprobs] == [3] * len(greedy.token_ids)
    assert [len(step) for step in hot.logprobs] == [2] * len(hot.token_ids)
    assert [step[0].token_id for step in greedy.logprobs] == list(greedy.token_ids)
    assert all(0 >= step[0].logprob >= step[1].logprob >= step[2].logprob for step in greedy.logprobs)
    # The first step sees the same prompt whatever is drawn later.
    assert hot.logprobs[0][0].token_id == greedy.logprobs[0][0].token_id
    assert hot.logprobs[0][0].logprob == pytest.approx(greedy.logprobs[0][0].logprob, abs=1e-5)


def test_logprobs_equal_those_of_a_forward_pass(tiny, model):
    import torch
    from transformers import AutoModelForImageTextToText

    result = answers(model, [ask("0", "Which number?", logprobs=1, return_prompt_ids=True)])["0"]
    plain = AutoModelForImageTextToText.from_pretrained(tiny, dtype=torch.float32).eval()
    ids = torch.tensor([[*result.prompt_token_ids, *result.token_ids]])
    with torch.no_grad():
        scores = plain(input_ids=ids).logits[0].log_softmax(-1)
    start = len(result.prompt_token_ids) - 1
    wanted = [scores[start + step, token].item() for step, token in enumerate(result.token_ids)]
    assert [step[0].logprob for step in result.logprobs] == pytest.approx(wanted, abs=1e-4)
