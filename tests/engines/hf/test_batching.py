"""A batch gives the tokens of single requests, and those the tokens of plain transformers."""

import pytest
from parity_requests import parity_requests, picture

from .conftest import answers, ask, one_by_one

pytestmark = pytest.mark.hf

VISUAL = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "idefics3", "gemma3")
FEW = (
    *("text", "text-one-character", "text-russian", "text-lines", "text-system", "text-special-words", "text-1-token"),
    *("image", "image-640x480", "image-wide", "image-one-pixel", "image-rgba", "image-special-words", "image-russian"),
    *("two-images", "two-images-swapped"),
)
TEXTUAL = ("llama", "gpt2", "mistral", "bloom", "falcon")


@pytest.fixture(scope="module", params=[*VISUAL, *TEXTUAL])
def loaded(request, folder_of):
    from vlmhb_hf import HuggingFaceModel

    with HuggingFaceModel().load(folder_of(request.param), dtype="float32", threads=1) as model:
        yield request.param, model


@pytest.fixture(scope="module")
def asked(loaded):
    """All parity requests for Qwen2-VL, a part of them for the others."""
    family, _ = loaded
    requests = [request for request in parity_requests() if family == "qwen2_vl" or request.id in FEW]
    return [request for request in requests if family in VISUAL or not request.images]


@pytest.fixture(scope="module")
def batched(loaded, asked):
    return answers(loaded[1], asked)


def test_a_batch_gives_the_tokens_of_single_requests(loaded, asked, batched):
    single = one_by_one(loaded[1], asked[::3])
    batched = {id: batched[id] for id in single}
    assert all(result.ok for result in single.values())
    assert {id: result.token_ids for id, result in batched.items()} == {
        id: result.token_ids for id, result in single.items()
    }
    assert {id: result.prompt_token_ids for id, result in batched.items()} == {
        id: result.prompt_token_ids for id, result in single.items()
    }


def test_the_answers_say_something(loaded, batched):
    """A model that always writes the same would pass every comparison."""
    different = len({result.token_ids for result in batched.values()})
    assert different >= (5 if loaded[0] == "gemma3" else 0.8 * len(batched))


def test_transformers_alone_gives_the_same_tokens(loaded, asked, batched, folder_of):
    family, _ = loaded
    plain = Plain(folder_of(family))
    for request in asked:
        if "special-words" in request.id or request.sampling.stop:
            continue
        result = batched[request.id]
        assert plain.answer(request) == (list(result.prompt_token_ids or ()), list(result.token_ids)), request.id


class Plain:
    """Processor and ``generate``, as the documentation of transformers shows them; one request at a time."""

    def __init__(self, folder):
        import torch
        from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

        self.visual = (folder / "preprocessor_config.json").exists() or (folder / "processor_config.json").exists()
        model_class = AutoModelForImageTextToText if self.visual else AutoModelForCausalLM
        self.model = model_class.from_pretrained(folder, dtype=torch.float32).eval()
        self.processor = (AutoProcessor if self.visual else AutoTokenizer).from_pretrained(folder)
        self.qwen = "qwen" in self.model.config.model_type

    def answer(self, request):
        from PIL import Image
        from vlmhb.images import open_image

        images = [open_image(image).image for image in request.images]
        assert all(isinstance(image, Image.Image) for image in images)
        if self.qwen:
            images = [self.resized(image) for image in images]
        chat = [self.turn(message) for message in request.messages]
        text = self.processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        if self.visual:
            inputs = self.processor(text=[text], images=[images] if images else None, return_tensors="pt")
        else:
            inputs = self.processor([text], return_tensors="pt", add_special_tokens=False)
            inputs.pop("token_type_ids", None)
        out = self.model.generate(**inputs, max_new_tokens=request.sampling.max_tokens, do_sample=False)[0].tolist()
        prompt = inputs["input_ids"][0].tolist()
        return prompt, out[len(prompt) :]

    def turn(self, message):
        if not self.visual:
            return {"role": message.role, "content": "".join(part.text for part in message.content)}
        parts = [
            {"type": "text", "text": part.text} if hasattr(part, "text") else {"type": "image"}
            for part in message.content
        ]
        return {"role": message.role, "content": parts}

    def resized(self, image):
        from qwen_vl_utils import process_vision_info

        settings = self.processor.image_processor
        limits = {"min_pixels": settings.size["shortest_edge"], "max_pixels": settings.size["longest_edge"]}
        chat = [{"role": "user", "content": [{"type": "image", "image": image, **limits}]}]
        return process_vision_info(chat, image_patch_size=settings.patch_size)[0][0]


def test_requests_of_every_kind_and_length_are_answered_once(model):
    requests = [
        ask(f"{kind}{index}", "Which number? " * (1 + index % 7), *images, max_tokens=1 + index % 5)
        for index in range(30)
        for kind, images in (("text", ()), ("image", (picture(40 + 30 * index, 500 - 15 * index, index),)))
    ]
    results = answers(model, iter(requests))
    assert set(results) == {request.id for request in requests}
    assert all(len(results[request.id].token_ids) <= request.sampling.max_tokens for request in requests)
    assert all(result.ok for result in results.values())


def test_a_batch_size_of_one_gives_the_same(tiny, model):
    from vlmhb_hf import HuggingFaceModel

    requests = [ask(str(index), "What is it?", picture(100 + 40 * index, 120, index)) for index in range(5)]
    with HuggingFaceModel().load(tiny, dtype="float32", batch_size=1) as other:
        assert other.facts()["batch_size"] == 1
        wanted = {id: result.token_ids for id, result in answers(model, requests).items()}
        assert {id: result.token_ids for id, result in answers(other, requests).items()} == wanted


def test_generate_returns_texts_in_the_order_asked(model):
    prompts = ["Which colour is the stamp?", "Как?", "What is the total to pay? " * 5]
    images = [picture(300, 200, 1), None, [picture(60, 60, 2), picture(90, 200, 3)]]
    together = model.generate(prompts, images, max_tokens=12)
    apart = [model.generate(prompt, image, max_tokens=12)[0] for prompt, image in zip(prompts, images, strict=True)]
    assert together == apart
    assert len(set(together)) == 3
