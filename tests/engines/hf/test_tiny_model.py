"""The demo's tiny model in transformers, as a published checkpoint would be loaded."""

import pytest
from PIL import Image
from vlmhb_demo import DATASET, tiny_model

pytestmark = pytest.mark.hf

QUESTIONS = ("Какая фамилия указана в документе?", "What is the total to pay?", "Write the full text.")
PAGES = ("images/01_identity_card_ru.jpg", "images/36_receipt_en.jpg", "images/46_form_en.jpg")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def loaded(folder):
    import torch
    from transformers import AutoModelForImageTextToText

    model, report = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    return model.eval(), report


@pytest.fixture(scope="module")
def processor(folder):
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(folder)


@pytest.fixture(scope="module")
def pages():
    return [Image.open(DATASET / path).convert("RGB") for path in PAGES]


@pytest.fixture(scope="module")
def ask(loaded, processor):
    """Greedy answers, as token ids without padding, to one batch of (question, image or None)."""

    def answer(*asked, tokens=32):
        chats = [
            [{"role": "user", "content": [*([{"type": "image"}] if image else []), {"type": "text", "text": question}]}]
            for question, image in asked
        ]
        texts = [processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
        images = [image for _, image in asked if image is not None] or None
        inputs = processor(text=texts, images=images, return_tensors="pt", padding=True, padding_side="left")
        out = loaded[0].generate(**inputs, max_new_tokens=tokens, do_sample=False)
        pad = processor.tokenizer.pad_token_id
        return [[token for token in row if token != pad] for row in out[:, inputs["input_ids"].shape[1] :].tolist()]

    return answer


def test_every_weight_finds_its_place(loaded):
    import torch

    model, report = loaded
    assert type(model).__name__ == "Qwen2VLForConditionalGeneration"
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_answers_differ_by_prompt_and_by_image(ask, pages):
    answers = [tuple(ask((question, page))[0]) for question in QUESTIONS for page in (None, *pages)]
    assert len(set(answers)) == len(answers) == 12


def test_some_answers_end_by_themselves_and_others_are_cut(ask, pages, processor):
    end = processor.tokenizer.eos_token_id
    ended = [ask((question, page), tokens=64)[0][-1] == end for question in QUESTIONS for page in (None, *pages)]
    assert 0 < sum(ended) < len(ended)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 2), (2, None)])
def test_a_left_padded_batch_gives_the_tokens_of_single_requests(ask, pages, first, second):
    pair = [(QUESTIONS[0], pages[first]), (QUESTIONS[2], None if second is None else pages[second])]
    assert ask(*pair) == [ask(pair[0])[0], ask(pair[1])[0]]


def test_an_image_takes_at_most_64_tokens(processor, pages):
    grids = processor.image_processor(images=pages, return_tensors="pt")["image_grid_thw"]
    assert all(16 < grid.prod().item() // 4 <= 64 for grid in grids)


@pytest.mark.parametrize("text", ["Ёлка «№ 1»\u00a0— 1\u00a0234,50 ₽\n\tO'Marrow", "日本 🙂", "", " a  b "])
def test_texts_survive_the_tokenizer(processor, text):
    tokenizer = processor.tokenizer
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert all(token < min(tokenizer.added_tokens_decoder) for token in ids)


def test_special_tokens_are_single_tokens_and_padding_is_left(processor):
    tokenizer = processor.tokenizer
    assert tokenizer("<|im_start|><|image_pad|><|im_end|>")["input_ids"] == tokenizer.convert_tokens_to_ids(
        ["<|im_start|>", "<|image_pad|>", "<|im_end|>"]
    )
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.padding_side) == ("<|im_end|>", "<|endoftext|>", "left")


def test_a_short_context_and_a_hostile_generation_config_reach_transformers(tmp_path):
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    folder = tiny_model.make(tmp_path, context_length=256, generation_config={"do_sample": True, "top_k": 1})
    assert AutoConfig.from_pretrained(folder).get_text_config().max_position_embeddings == 256
    assert AutoTokenizer.from_pretrained(folder).model_max_length == 256
    generation = GenerationConfig.from_pretrained(folder)
    assert (generation.do_sample, generation.top_k) == (True, 1)
