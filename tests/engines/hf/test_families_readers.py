"""Models with a vision encoder and a text decoder: TrOCR takes no question, Donut is asked in tokens of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import twins
from parity_requests import picture
from vlmhb import GenerationRequest, ModelSpec
from vlmhb.doctor.families import rows
from vlmhb.errors import RequestError
from vlmhb.prompting import PromptBuilder, prompt_ids

from .conftest import answers, ask, one_by_one

pytestmark = [pytest.mark.hf, pytest.mark.filterwarnings("ignore")]  # of processors, about each other

LEFT_OUT = "this model reads a picture and takes no question; the question was left out."


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Both twins."""
    home = tmp_path_factory.mktemp("readers")
    return {row.name: Path(twins.twin_of(row, home / row.name).path) for row in rows(("TrOCR", "Donut"))}


def builder_of(folder):
    return PromptBuilder(ModelSpec(model_path=str(folder)))


@pytest.fixture(scope="module")
def trocr(folders):
    return builder_of(folders["TrOCR"])


@pytest.fixture(scope="module")
def donut(folders):
    return builder_of(folders["Donut"])


def page(seed=1):
    return picture(160, 120, seed)


def ids_of(builder, *words):
    return builder.tokenizer.convert_tokens_to_ids(list(words))


def changed(folder, out, replaced=(), **config):
    """A copy with other words in its tokenizer and other entries in its configs (None takes them out, at any depth)."""
    shutil.copytree(folder, out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        text = (out / name).read_text(encoding="utf-8")
        for old, new in replaced:
            text = text.replace(old, new)
        (out / name).write_text(text, encoding="utf-8")
    for name in ("config.json", "generation_config.json"):
        content = json.loads((out / name).read_text())
        for part in [content, *(value for value in content.values() if isinstance(value, dict))]:
            for entry, value in config.items():
                if value is None:
                    part.pop(entry, None)
        (out / name).write_text(json.dumps(content))
    return out


@pytest.fixture
def forms(folders, tmp_path):
    """A Donut that was trained for forms: it has no tokens for questions."""
    tokens = [("<s_docvqa>", "<s_cord-v2>"), ("<s_question>", "<s_menu>"), ("</s_question>", "</s_menu>")]
    return changed(folders["Donut"], tmp_path / "forms", tokens)


# --- TrOCR


def test_trocr_begins_with_its_start_token_whatever_is_asked(trocr):
    start = ids_of(trocr, "<|endoftext|>")
    for question in ("", "What is written here?", "<|im_end|> and <|endoftext|>"):
        prompt = trocr.prepare(ask("0", question, page(), system="Be brief."))
        assert prompt_ids(trocr.encode([prompt]), 0) == list(prompt.token_ids) == start


def test_trocr_says_that_a_question_was_left_out(trocr):
    assert trocr.prepare(ask("0", "What is written here?", page())).notes == (LEFT_OUT,)
    assert trocr.prepare(ask("0", " ", page())).notes == ()


def test_trocr_without_a_start_token_is_refused(folders, tmp_path):
    builder = builder_of(changed(folders["TrOCR"], tmp_path / "model", decoder_start_token_id=None))
    with pytest.raises(RequestError, match="do not say which token its decoder starts with"):
        builder.prepare(ask("0", "", page()))


@pytest.mark.parametrize(("images", "words"), [(0, "has no image"), (2, "2 images and the limit is 1")])
def test_a_reader_wants_one_picture(trocr, donut, images, words):
    for builder in (trocr, donut):
        with pytest.raises(RequestError, match=words):
            builder.prepare(ask("0", "What?", *[page()] * images))


def test_a_batch_of_trocr_answers_like_one_by_one(folders):
    from vlmhb_hf import HuggingFaceModel

    asked = [ask(str(n), "Read.", picture(90 + 30 * n, 60, n), max_tokens=12) for n in range(4)]
    asked.append(ask("penalised", "Read.", page(7), max_tokens=12, repetition_penalty=1.4, logprobs=2))
    with HuggingFaceModel().load(folders["TrOCR"], dtype="float32", device="cpu", batch_size=8) as model:
        together, apart = answers(model, asked), one_by_one(model, asked)
    assert {id: result.token_ids for id, result in together.items()} == {
        id: result.token_ids for id, result in apart.items()
    }
    assert len({result.token_ids for result in together.values()}) == len(asked)
    assert len(together["penalised"].logprobs) == len(together["penalised"].token_ids)
    assert all(LEFT_OUT in result.notes and result.failure is None for result in together.values())


# --- Donut


def test_a_question_to_donut_stands_in_its_tokens(donut):
    prompt = donut.prepare(ask("0", "Какой номер?", page()))
    wanted = donut.tokenizer("<s_docvqa><s_question>Какой номер?</s_question><s_answer>", add_special_tokens=False)
    assert list(prompt.token_ids) == wanted["input_ids"]
    assert prompt_ids(donut.encode([prompt]), 0) == wanted["input_ids"]
    assert prompt.notes == ()


def test_donuts_tokens_inside_of_a_question_stay_text(donut):
    prompt = donut.prepare(ask("0", "What is </s_question><s_answer>?", page()))
    ids = prompt_ids(donut.encode([prompt]), 0)
    assert ids == list(prompt.token_ids)
    end, answer = ids_of(donut, "</s_question>", "<s_answer>")
    assert ids.count(end) == ids.count(answer) == 1
    assert ids[-2:] == [end, answer]
    assert donut.tokenizer.decode(ids).count("</s_question><s_answer>") == 2


def test_a_task_prompt_is_taken_as_it_stands(donut, forms):
    for builder, text in (
        (donut, "<s_docvqa><s_question>Why?</s_question><s_answer>"),
        (builder_of(forms), "<s_cord-v2>"),
    ):
        prompt = builder.prepare(ask("0", text, page()))
        assert list(prompt.token_ids) == builder.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert not set(prompt.token_ids).isdisjoint(builder.tokenizer.all_special_ids)
        assert prompt.notes == ()


def test_a_donut_without_tokens_for_questions_says_that_it_takes_none(forms):
    builder = builder_of(forms)
    prompt = builder.prepare(ask("0", "What is the total?", page()))
    assert list(prompt.token_ids) == ids_of(builder, "<|endoftext|>")
    assert prompt.notes == (LEFT_OUT,)


def test_a_donut_whose_configs_name_no_start_lists_its_tasks(forms, tmp_path):
    builder = builder_of(changed(forms, tmp_path / "model", decoder_start_token_id=None))
    with pytest.raises(RequestError, match=r"Ask with one of its tokens: .*<s_cord-v2>"):
        builder.prepare(ask("0", "What is the total?", page()))
    assert builder.prepare(ask("0", "<s_cord-v2>", page())).notes == ()


def test_donuts_answers_keep_the_tokens_of_their_structure(donut, forms):
    builder = builder_of(forms)
    text = "<s_menu>Coffee</s_menu>"
    ids = builder.tokenizer(f"{text}<|im_end|>", add_special_tokens=False)["input_ids"]
    assert builder.answer_text(ids) == text
    ids = donut.tokenizer("14:30</s_answer>", add_special_tokens=False)["input_ids"]
    assert donut.answer_text(ids) == "14:30"
    assert ids[-1] in donut.stop_ids


def test_a_chat_template_in_the_folder_decides(folders, tmp_path):
    folder = shutil.copytree(folders["Donut"], tmp_path / "model")
    (folder / "chat_template.jinja").write_text(
        "<s_docvqa>{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}"
        "{% for p in m['content'] %}{{ p['text'] }}{% endfor %}{% endif %}{% endfor %}<s_answer>"
    )
    builder = builder_of(folder)
    prompt = builder.prepare(ask("0", "Why <s_answer>?", page()))
    first, *_, last = prompt.token_ids
    assert [first, last] == ids_of(builder, "<s_docvqa>", "<s_answer>")
    assert prompt.token_ids.count(last) == 1
    assert prompt.notes == ()


def test_doctor_knows_both(folders):
    from vlmhb_hf import vlmhb_check_model

    for folder in folders.values():
        check = vlmhb_check_model("hf", ModelSpec(model_path=str(folder), device="cpu", dtype="float32"))
        (support,) = check.supports
        assert support.verdict == "supported"
        assert check.facts.page_tokens == 0
        assert not any("cannot be asked" in note for note in support.notes)


def test_streamed_text_is_the_answers_text(folders):
    from vlmhb import GenerationControl
    from vlmhb_hf import HuggingFaceModel

    pieces = []
    control = GenerationControl(on_text=lambda id, text: pieces.append(text))
    request: GenerationRequest = ask("0", "What?", page(), max_tokens=10)
    with HuggingFaceModel().load(folders["Donut"], dtype="float32", device="cpu") as model:
        (result,) = model.generate_requests([request], control)
    assert "".join(pieces) == result.text
    assert result.text
