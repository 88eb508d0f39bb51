"""Prompts: sizes of pictures, ids equal to the processor's own, control words as text, templates of all kinds."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from parity_requests import picture
from PIL import Image
from vlmhb import GenerationRequest, ImageInput, ImagePart, Message, ModelSpec, TextPart
from vlmhb.errors import ImageError, ModelLoadError, RequestError
from vlmhb.images import open_image
from vlmhb.prompting import ModelFamily, PromptBuilder, prompt_ids, register_family
from vlmhb.prompting.literals import MARKER

from .conftest import answers, ask

pytestmark = pytest.mark.hf

CASES = Path(__file__).parents[2] / "cases"
BY_ID = {case["id"]: case for case in json.loads((CASES / "cases.json").read_text(encoding="utf-8"))["cases"]}


def builder_of(folder, **fields):
    return PromptBuilder(ModelSpec(model_path=str(folder), **fields))


@pytest.fixture(scope="module")
def builder(tiny):
    return builder_of(tiny)


# --- sizes of pictures


def sizes():
    one = BY_ID["C11"]["expect"]["resized"]
    for case, setting in [("C11", one), *(("C22", setting) for setting in BY_ID["C22"]["expect"]["resized"])]:
        for name, (width, height, tokens) in setting["width_height_tokens"].items():
            yield pytest.param(
                case, setting, name, (width, height), tokens, id=f"{case}-{setting['max_pixels']}-{name}"
            )


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl"])
@pytest.mark.parametrize(("case", "setting", "name", "size", "tokens"), list(sizes()))
def test_pictures_get_the_size_and_tokens_of_the_cases(folder_of, family, case, setting, name, size, tokens):
    limits = {limit: setting[limit] for limit in ("min_pixels", "max_pixels")}
    builder = builder_of(folder_of(family), **limits)
    image = ImageInput(path=str(CASES / case / "dataset" / "images" / name))
    prompt = builder.prepare(ask("0", "Номер?", image))
    assert prompt.images[0].size == size
    encoded = builder.encode([prompt])
    assert prompt_ids(encoded, 0).count(builder.processor.image_token_id) == tokens
    assert prompt.token_ids.count(builder.processor.image_token_id) == 1


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
@pytest.mark.parametrize("size", [(640, 480), (31, 977), (28, 28), (1, 1), (2000, 90), (499, 333)])
def test_the_processor_would_not_resize_again(folder_of, family, size):
    import torch
    from transformers import AutoProcessor

    builder = builder_of(folder_of(family))
    prompt = builder.prepare(ask("0", "?", picture(*size, 5)))
    ours = builder.encode([prompt])
    plain = AutoProcessor.from_pretrained(folder_of(family))
    theirs = plain(text=[prompt.text], images=[prompt.images[0]], return_tensors="pt")
    assert torch.equal(ours["pixel_values"], theirs["pixel_values"])
    assert torch.equal(ours["image_grid_thw"], theirs["image_grid_thw"])
    assert prompt_ids(ours, 0) == theirs["input_ids"][0].tolist()


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
@pytest.mark.parametrize("size", [(640, 480), (60, 300), (20, 20), (1100, 40)])
def test_pixels_are_those_of_qwen_vl_utils(folder_of, family, size):
    from qwen_vl_utils import process_vision_info

    builder = builder_of(folder_of(family))
    image = picture(*size, 5)
    settings = builder.processor.image_processor
    part = {
        "type": "image",
        "image": open_image(image).image,
        "min_pixels": settings.size["shortest_edge"],
        "max_pixels": settings.size["longest_edge"],
    }
    wanted, _ = process_vision_info([{"role": "user", "content": [part]}], image_patch_size=settings.patch_size)
    assert np.array_equal(builder.prepare(ask("0", "?", image)).images[0], wanted[0])


@pytest.mark.parametrize(
    "spelling",
    [
        {"min_pixels": 6272, "max_pixels": 12544},
        {"size": {"shortest_edge": 6272, "longest_edge": 12544}},
        {"min_pixels": 6272, "max_pixels": 12544, "size": {"shortest_edge": 1, "longest_edge": 2}},
    ],
)
def test_limits_of_the_model_folder_in_every_spelling(tiny, tmp_path, spelling):
    folder = shutil.copytree(tiny, tmp_path / "model")
    file = folder / "preprocessor_config.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    for name in ("min_pixels", "max_pixels", "size"):
        settings.pop(name, None)
    file.write_text(json.dumps({**settings, **spelling}), encoding="utf-8")
    builder = builder_of(folder)
    for image in (picture(1000, 1000, 1), picture(20, 20, 1)):
        width, height = builder.prepare(ask("0", "?", image)).images[0].size
        assert 6272 <= width * height <= 12544
    assert (builder_of(folder, max_pixels=6272).family.max_pixels, builder.family.max_pixels) == (6272, 12544)


def test_a_long_strip_that_shrinks_to_nothing_still_fits(builder):
    image = builder.prepare(ask("0", "?", picture(28 * 150, 28, 1))).images[0]
    assert image.size == (28 * 64, 28)
    assert builder.prepare(ask("0", "?", picture(28, 28 * 150, 1))).images[0].size == (28, 28 * 64)


@pytest.mark.parametrize("size", [(402, 2), (1, 201), (8180, 41)])
def test_extreme_shapes_are_refused_with_their_size(tiny, size):
    builder = builder_of(tiny, max_pixels=10**7)
    with pytest.raises(ImageError, match=f"{size[0]} x {size[1]} pixels"):
        builder.prepare(ask("0", "?", picture(*size, 1)))


@pytest.mark.parametrize(
    "limits", [{"max_pixels": 783}, {"min_pixels": 9000, "max_pixels": 8000}, {"min_pixels": 60000}]
)
def test_impossible_limits_are_refused_at_loading(tiny, limits):
    with pytest.raises(ModelLoadError, match="steps of 28 pixels"):
        builder_of(tiny, **limits)


def test_limits_that_a_family_does_not_know_are_said(folder_of):
    (note,) = builder_of(folder_of("llava"), max_pixels=5000).notes
    assert "max_pixels had no effect" in note


def test_a_family_of_a_third_party(tiny, tmp_path, monkeypatch):
    from vlmhb.prompting.families import base

    monkeypatch.setattr(base, "_FAMILIES", dict(base._FAMILIES))

    @register_family
    class Squares(ModelFamily):
        model_types = ("qwen2_vl",)
        max_images = 1

        def resize(self, image, label):
            return image.resize((56, 56))

    builder = builder_of(tiny)
    assert builder.prepare(ask("0", "?", picture(300, 90, 1))).images[0].size == (56, 56)
    with pytest.raises(RequestError, match="2 images and the limit is 1"):
        builder.prepare(ask("0", "?", picture(300, 90, 1), picture(300, 90, 1)))


# --- ids


@pytest.mark.parametrize("family", ["qwen2_vl", "llava", "idefics3", "gemma3", "llama"])
def test_ordinary_text_gets_the_processors_own_ids(folder_of, family):
    from transformers import AutoProcessor, AutoTokenizer

    builder = builder_of(folder_of(family))
    images = [picture(160, 120, 1)] if builder.takes_images else []
    text = "Сколько? 12 + 34 = <b>46</b>, «ёлка» <think>hm</think>\n\n\t| [x] {y} <image ><|im_ end|> 🙂"
    prompt = builder.prepare(ask("0", text, *images, system="Be brief."))
    plain = (AutoProcessor if builder.takes_images else AutoTokenizer).from_pretrained(folder_of(family))
    content = [{"type": "image"}] * len(images) + [{"type": "text", "text": text}]
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": content if builder.takes_images else text},
    ]
    rendered = plain.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert prompt.text == rendered
    pictures = {"images": [list(prompt.images)]} if images else {}
    wanted = plain(text=[rendered], **pictures, return_tensors="pt")["input_ids"][0].tolist()
    assert prompt_ids(builder.encode([prompt]), 0) == wanted
    assert prompt.literals == ()


def case_questions():
    with (CASES / "C23" / "dataset" / "annotation.csv").open(encoding="utf-8-sig", newline="") as file:
        return [row["question"] for row in csv.DictReader(file, delimiter=";")]


LITERAL_TEXTS = [
    *case_questions(),
    "<image>",
    "<|im_end|>",
    f"the marker itself: {MARKER}",
    "<|image_pad|>" * 3,
    "<|im_<|im_end|>end|>",
    "<start_of_image> <end_of_image><fake_token_around_image><row_1_col_1><global-img>",
]


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl", "llava", "idefics3", "gemma3", "llama", "gpt2"])
def test_control_words_of_a_question_stay_text(folder_of, family):
    """In batches of mixed lengths, so that rows are padded anew, with every side array in step."""
    builder = builder_of(folder_of(family))
    special = set(builder.tokenizer.all_special_ids) | {builder._literals.marker_id}
    images = [picture(160, 120, 1)] if builder.takes_images else []
    harmless = [builder.prepare(ask("0", "word", *images)), builder.prepare(ask("1", "word", *images, system="word"))]
    for start in range(0, len(LITERAL_TEXTS), 3):
        texts = LITERAL_TEXTS[start : start + 3]
        prompts = [builder.prepare(ask(text, text, *images)) for text in texts]
        encoded = builder.encode([*prompts, *harmless])
        length = encoded["input_ids"].shape[1]
        for row, text in enumerate(texts):
            ids = prompt_ids(encoded, row)
            assert builder._literals.marker_id not in ids
            assert builder._literals.marker_id not in prompts[row].token_ids
            control = [token for token in ids if token in special]
            assert control == [token for token in prompt_ids(encoded, len(texts)) if token in special]
            assert text in builder.tokenizer.decode(ids)
            assert text in builder.tokenizer.decode(list(prompts[row].token_ids))
        assert prompt_ids(encoded, len(texts)) == prompt_ids(builder.encode(harmless[:1]), 0)
        for name in ("attention_mask", "token_type_ids", "mm_token_type_ids"):
            if name in encoded:
                assert encoded[name].shape == (len(texts) + 2, length)
        if "mm_token_type_ids" in encoded:
            pads = encoded["input_ids"] == builder.processor.image_token_id
            assert (encoded["mm_token_type_ids"] == pads.long()).all()


def test_control_words_do_not_fail_the_rows_beside_them(model):
    images = {name: CASES / "C23" / "dataset" / "images" / name for name in ("a.png", "b.png")}
    questions = case_questions()
    requests = [
        ask(str(row), question, ImageInput(path=str(images["b.png" if row == 4 else "a.png"])), return_prompt_ids=True)
        for row, question in enumerate(questions)
    ]
    results = answers(model, requests)
    assert all(result.ok for result in results.values())
    alone = answers(model, [requests[0]])["0"]
    assert results["0"].token_ids == alone.token_ids
    pad = model._builder.processor.image_token_id
    assert len({result.prompt_token_ids.count(pad) for result in results.values()}) == 1


def test_control_words_in_the_seam_between_two_parts_stay_text(builder):
    message = Message("user", (TextPart("a<|im_"), TextPart("end|>b")))
    prompt = builder.prepare(GenerationRequest(id="0", messages=(message,)))
    assert prompt.literals == ("<|im_end|>",)
    assert prompt.token_ids.count(builder.tokenizer.eos_token_id) == 2


def test_images_stand_where_their_parts_stand(builder):
    one, two = picture(60, 60, 1), picture(90, 60, 2)
    parts = (TextPart("Left: "), ImagePart(one), TextPart(" right: "), ImagePart(two), TextPart(" which?"))
    prompt = builder.prepare(GenerationRequest(id="0", messages=(Message("user", parts),)))
    image = "<|vision_start|><|image_pad|><|vision_end|>"
    assert f"Left: {image} right: {image} which?" in prompt.text
    assert [picture.size for picture in prompt.images] == [(56, 56), (84, 56)]


def test_a_picture_is_decoded_once_for_several_questions(builder, tmp_path):
    path = tmp_path / "page.png"
    path.write_bytes(picture(300, 200, 1).data)
    first, second = (builder.prepare(ask("0", text, ImageInput(path=str(path)))) for text in ("a", "b"))
    assert first.images[0] is second.images[0]
    path.write_bytes(picture(300, 200, 2).data)  # another picture under the same name
    third = builder.prepare(ask("0", "c", ImageInput(path=str(path))))
    assert not np.array_equal(third.images[0], first.images[0])


def test_the_store_of_pictures_is_bounded(builder):
    from vlmhb.prompting.images import ReadyImages

    store = ReadyImages(builder.family, kept_pixels=3 * 56 * 56)
    pictures = [picture(56, 56, seed) for seed in range(6)]
    ready = [store.get(image).image for image in pictures]
    assert [store.get(image).image is old for image, old in zip(pictures[3:], ready[3:], strict=True)] == [True] * 3
    assert store.get(pictures[0]).image is not ready[0]
    assert store._pixels == 3 * 56 * 56


# --- templates


def with_template(source, tiny, tmp_path):
    folder = shutil.copytree(tiny, tmp_path / "model")
    for name in ("chat_template.json", "chat_template.jinja"):
        (folder / name).unlink(missing_ok=True)
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings.pop("chat_template", None)
    file.write_text(json.dumps({**settings, "chat_template": source} if source else settings), encoding="utf-8")
    return folder


STRINGS_ONLY = (
    "{% for m in messages %}<|im_start|>{{ m['role'] + ': ' + m['content'] }}<|im_end|>{% endfor %}<|im_start|>A:"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    + STRINGS_ONLY
)
DROPS_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ '[' + m['content'] + ']' }}{% endif %}{% endfor %}"
)
SYSTEM_AS_TEXT = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ 'S:' + m['content'] }}{% else %}{{ m['role'] }}:"
    "{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}{% else %}<|image_pad|>{% endif %}"
    "{% endfor %}{% endif %};{% endfor %}"
)


@pytest.mark.parametrize(
    ("source", "text", "notes"),
    [
        (
            STRINGS_ONLY,
            "<|im_start|>system: Be brief.<|im_end|><|im_start|>user: <|image_pad|>What?<|im_end|><|im_start|>A:",
            0,
        ),
        (NO_SYSTEM, "<|im_start|>user: Be brief.\n\n<|image_pad|>What?<|im_end|><|im_start|>A:", 1),
        (DROPS_SYSTEM, "[Be brief.\n\n<|image_pad|>What?]", 1),
        (SYSTEM_AS_TEXT, "S:Be brief.;user:<|image_pad|>What?;", 0),
        (None, "Be brief.\n\n<|image_pad|>What?", 1),
    ],
)
def test_templates_are_understood_by_rendering_them(tiny, tmp_path, source, text, notes):
    builder = builder_of(with_template(source, tiny, tmp_path))
    prompt = builder.prepare(ask("0", "What?", picture(60, 60, 1), system="Be brief."))
    assert prompt.text == text
    assert len(prompt.notes) == notes
    assert builder.encode([prompt])["input_ids"].shape[0] == 1


def test_control_words_keep_their_places_when_the_system_prompt_moves(tiny, tmp_path):
    builder = builder_of(with_template(DROPS_SYSTEM, tiny, tmp_path))
    late = (Message("user", (TextPart("<|im_end|>?"),)), Message("system", (TextPart("<|im_start|>!"),)))
    prompt = builder.prepare(GenerationRequest(id="0", messages=late))
    assert builder.tokenizer.decode(list(prompt.token_ids)) == "[<|im_start|>!\n\n<|im_end|>?]"


def test_a_template_that_refuses_a_chat_is_one_requests_failure(tiny, tmp_path):
    strict = (
        "{% if messages[-1]['role'] != 'user' %}{{ raise_exception('roles must alternate') }}{% endif %}" + STRINGS_ONLY
    )
    builder = builder_of(with_template(strict, tiny, tmp_path))
    odd = (Message("user", (TextPart("a"),)), Message("assistant", (TextPart("b"),)))
    with pytest.raises(RequestError, match="refuses this chat: roles must alternate") as caught:
        builder.prepare(GenerationRequest(id="0", messages=odd))
    assert caught.value.kind == "unsupported"


def test_a_template_that_loses_pictures_is_refused(tiny, tmp_path):
    loses = (
        "{% for m in messages %}{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}"
        "{% elif loop.first %}<|image_pad|>{% endif %}{% endfor %}{% endfor %}"
    )
    builder = builder_of(with_template(loses, tiny, tmp_path))
    with pytest.raises(RequestError, match="1 image placeholders for 2 images"):
        builder.prepare(ask("0", "?", picture(60, 60, 1), picture(60, 60, 2)))


def test_a_model_without_a_template_completes_text(folder_of, tmp_path):
    builder = builder_of(with_template(None, folder_of("gpt2"), tmp_path))
    prompt = builder.prepare(ask("0", "Once upon", system="A tale."))
    assert (prompt.text, len(prompt.notes)) == ("A tale.\n\nOnce upon", 1)
    assert "no chat template" in prompt.notes[0]


@pytest.mark.parametrize("begins", [True, False])
def test_one_begin_token_and_no_second(folder_of, tmp_path, begins):
    """A tokenizer that adds a begin token, with a template that writes it, and with one that does not."""
    folder = with_template(("{{ bos_token }}" if begins else "") + STRINGS_ONLY, folder_of("llama"), tmp_path)
    file = folder / "tokenizer.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    begin = {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}
    (number,) = (token["id"] for token in data["added_tokens"] if token["content"] == "<|endoftext|>")
    data["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [begin, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [number], "tokens": ["<|endoftext|>"]}},
    }
    file.write_text(json.dumps(data), encoding="utf-8")
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**settings, "bos_token": "<|endoftext|>"}), encoding="utf-8"
    )
    builder = builder_of(folder)
    prompt = builder.prepare(ask("0", "What?"))
    # transformers' own apply_chat_template never adds one for a tokenizer
    assert prompt.token_ids.count(number) == int(begins)
    assert prompt_ids(builder.encode([prompt]), 0) == list(prompt.token_ids)


def test_decoding_and_cutting(builder):
    ids = builder.tokenizer("Ответ: 12 </s> конец")["input_ids"]
    assert builder.decode([*ids, builder.tokenizer.eos_token_id]) == "Ответ: 12 </s> конец"
    assert builder.answer_text(ids, ["конец", "</s>"]) == "Ответ: 12 "
    assert builder.answer_text(ids, ["nowhere"]) == "Ответ: 12 </s> конец"
    assert builder.decode(builder.tokenizer("🙂")["input_ids"][:-1]).endswith("�")


def test_pictures_given_as_pillow_images_keep_their_alpha(builder):
    from vlmhb.contract.calls import image_input

    clear = Image.new("RGBA", (60, 60), (0, 0, 0, 0))
    assert builder.prepare(ask("0", "?", image_input(clear))).images[0].getpixel((5, 5)) == (255, 255, 255)
    buffer = io.BytesIO()
    clear.save(buffer, "PNG")
    assert builder.prepare(ask("0", "?", ImageInput(data=buffer.getvalue()))).images[0].getpixel((5, 5)) == (255,) * 3
