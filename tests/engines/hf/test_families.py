"""Every family of the matrix on transformers: prompt ids are the processor's own, answers are the model's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import twins
from vlmhb import GenerationRequest, ModelSpec, SamplingParams, Twin
from vlmhb.doctor.families import Row, rows
from vlmhb.doctor.matrix import read_cells
from vlmhb.doctor.questions import picture, questions
from vlmhb.errors import ModelLoadError
from vlmhb.images import open_image
from vlmhb.prompting import PromptBuilder, prompt_ids

pytestmark = [pytest.mark.hf, pytest.mark.filterwarnings("ignore")]  # of processors, about each other

ROWS = {row.name: row for row in rows()}
QUICK = ("Qwen2-VL", "LLaVA-1.5", "Idefics3", "Florence-2", "LLaMA", "GPT-2")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ROWS]
MEASURED = Path(__file__).parents[3] / "docs" / "compatibility.json"


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    """A row's twin, made once."""
    made: dict[str, Twin] = {}

    def get(row: Row) -> Twin:
        if row.name not in made:
            made[row.name] = twins.twin_of(row, tmp_path_factory.mktemp("family") / "twin")
        return made[row.name]

    return get


def pictured(found: Twin) -> bool:
    return max(found.image_counts) > 0


@pytest.mark.slow
def test_fourteen_families_with_eyes_and_seven_without(twin):
    kinds = [pictured(twin(row)) for row in ROWS.values()]
    assert kinds.count(True) >= 14
    assert kinds.count(False) >= 7


@pytest.mark.parametrize("name", NAMES)
def test_prompt_ids_are_the_processors_own(name, twin):
    """What ``apply_chat_template`` and one call of the processor give, with nothing of ours in between."""
    from transformers import AutoProcessor, AutoTokenizer

    found = twin(ROWS[name])
    trust = {"trust_remote_code": ROWS[name].trust_remote_code}
    builder = PromptBuilder(ModelSpec(model_path=found.path, **trust))
    own = (AutoProcessor if pictured(found) else AutoTokenizer).from_pretrained(found.path, **trust)
    for request in questions(found.image_counts):
        prepared = builder.prepare(request)
        ours = prompt_ids(builder.encode([prepared]), 0)
        images = [open_image(image).image for image in request.images]
        assert ours == ASKED.get(name, processors_own)(own, builder, request, images), request.id


def trocr(own, builder, request, images):
    return own.tokenizer.convert_tokens_to_ids(["<|endoftext|>"])


def donut(own, builder, request, images):
    prompt = f"<s_docvqa><s_question>{request.text}</s_question><s_answer>"
    return own.tokenizer(prompt, add_special_tokens=False)["input_ids"]


def phi3_vision(own, builder, request, images):
    places = "".join(f"<|image_{number}|>\n" for number in range(1, len(images) + 1))
    turns = [{"role": "user", "content": places + request.text}]
    prompt = own.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    ids = own(prompt, images or None, return_tensors="pt")["input_ids"][0].tolist()
    picture = own.tokenizer.convert_tokens_to_ids("<|image|>")
    assert len({token for token in ids if token < 0}) == len(images)
    return [picture if token < 0 else token for token in ids]


def minicpm_v(own, builder, request, images):
    """As the documented ``chat`` does."""
    content = "\n".join([*["(<image>./</image>)"] * len(images), request.text])
    turns = [{"role": "user", "content": content}]
    prompt = own.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return own([prompt], [images], return_tensors="pt")["input_ids"][0].tolist()


ASKED = {"TrOCR": trocr, "Donut": donut, "Phi-3-Vision": phi3_vision, "MiniCPM-V 2.6": minicpm_v}
"""Families that are not asked as the others are, by what is documented about each."""


def processors_own(own, builder, request, images):
    """The ids of a prompt that only transformers has touched."""
    parts = [{"type": "image"} for _ in images] + [{"type": "text", "text": request.text}]
    turns = [{"role": "user", "content": parts if builder.takes_images else request.text}]
    owner = own if getattr(own, "chat_template", None) else getattr(own, "tokenizer", own)
    text = request.text
    if owner.chat_template:
        text = owner.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    if not builder.takes_images:
        return own(text, add_special_tokens=False)["input_ids"]
    pictures = None if not images else images if builder.family.max_images == 1 else [images]
    options = (
        {"add_special_tokens": False} if own.tokenizer.bos_token and text.startswith(own.tokenizer.bos_token) else {}
    )
    return own(text=[text], images=pictures, return_tensors="pt", **options)["input_ids"][0].tolist()


def decoded(inputs, tokenizer):
    return {"pixel_values": inputs["pixel_values"], "decoder_input_ids": inputs["input_ids"]}


def numbered(inputs, tokenizer):
    ids = inputs["input_ids"]
    return {**inputs, "input_ids": ids.masked_fill(ids == tokenizer.convert_tokens_to_ids("<|image|>"), -1)}


def with_tokenizer(inputs, tokenizer):
    return {**inputs, "tokenizer": tokenizer}


GIVEN = {"TrOCR": decoded, "Donut": decoded, "Phi-3-Vision": numbered, "MiniCPM-V 2.6": with_tokenizer}
"""What ``generate`` of a family is given, where that is not what the processor returns."""


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_generate_on_the_processors_tensors(name, twin):
    """In one batch through the plugin, one by one through transformers' own ``generate``."""
    import torch
    from vlmhb_hf import HuggingFaceModel

    found, trust = twin(ROWS[name]), {"trust_remote_code": ROWS[name].trust_remote_code}
    asked = questions(found.image_counts)
    with HuggingFaceModel().load(found.path, dtype="float32", device="cpu", batch_size=4, **trust) as model:
        ours = {result.id: result for result in model.generate_requests(asked)}
        for request in asked:
            inputs = model._builder.encode([model._builder.prepare(request)])
            inputs = GIVEN[name](inputs, model._builder.tokenizer) if name in GIVEN else inputs
            with torch.no_grad():
                out = model._model.generate(
                    **inputs, max_new_tokens=request.sampling.max_tokens, do_sample=False, pad_token_id=0,
                    eos_token_id=list(model._builder.stop_ids),
                )  # fmt: skip
            told = list(ours[request.id].token_ids)
            assert told == answer_in(out[0].tolist(), model._model, inputs), request.id
            assert ours[request.id].failure is None


def answer_in(made, model, inputs):
    """Behind the prompt, where ``generate`` returns that too."""
    if "tokenizer" in inputs:
        return made
    if model.config.is_encoder_decoder and "decoder_input_ids" not in inputs:
        return made[1:]
    return made[inputs.get("decoder_input_ids", inputs.get("input_ids")).shape[1] :]


@pytest.mark.parametrize("name", NAMES)
def test_a_twin_says_something_else_to_each_question(name, twin):
    """One that always says the same, or does not look at pictures, would hide every fault of an engine."""
    from vlmhb_hf import HuggingFaceModel

    found, trust = twin(ROWS[name]), {"trust_remote_code": ROWS[name].trust_remote_code}
    asked = questions(found.image_counts)
    with HuggingFaceModel().load(found.path, dtype="float32", device="cpu", **trust) as model:
        results = list(model.generate_requests(asked))
    assert len({result.token_ids for result in results}) >= len(asked) - 1
    assert sum(len(set(result.token_ids)) for result in results) > 5 * len(asked)


@pytest.mark.parametrize("name", NAMES)
def test_a_twin_looks_at_its_pictures(name, twin):
    """The same words about another picture of the same size."""
    from vlmhb_hf import HuggingFaceModel

    found, trust = twin(ROWS[name]), {"trust_remote_code": ROWS[name].trust_remote_code}
    if not pictured(found):
        assert found.image_counts == (0,)
        return
    params = SamplingParams(max_tokens=12)
    images = [[picture(160, 120, seed)] for seed in (1, 2)]
    asked = [GenerationRequest.ask(str(n), "What is this?", image, sampling=params) for n, image in enumerate(images)]
    with HuggingFaceModel().load(found.path, dtype="float32", device="cpu", **trust) as model:
        one, other = model.generate_requests(asked)
    assert one.prompt_tokens == other.prompt_tokens
    assert one.token_ids != other.token_ids


@pytest.mark.parametrize("name", ["Qwen2-VL", "LLaMA"])
def test_a_twin_is_the_same_each_time(name, twin, tmp_path):
    first, again = Path(twin(ROWS[name]).path), Path(twins.twin_of(ROWS[name], tmp_path / "twin").path)
    files = sorted(file.name for file in first.iterdir())
    assert files == sorted(file.name for file in again.iterdir())
    for file in files:
        assert (first / file).read_bytes() == (again / file).read_bytes(), file


@pytest.mark.slow
def test_the_hf_column_of_the_page_is_no_worse_than_it_says():
    """Every family that it says to answer does so in the tests above."""
    column = {entry.family: entry.cell for entry in read_cells(MEASURED) if entry.cell.backend == "hf"}
    assert {name for name, cell in column.items() if cell.outcome == "same tokens"} == set(ROWS)


def test_a_folders_own_tokenizer_and_processor_are_kept(twin, tmp_path):
    """The twin of a twin, whose folder is as whole as a published one."""
    source = Path(twin(ROWS["Qwen2.5-VL"]).path)
    from vlmhb_hf.twins.build import make_twin

    found = make_twin(ModelSpec(model_path=str(source)), tmp_path / "twin")
    assert found.notes == ()
    for name in ("tokenizer.json", "processor_config.json", "chat_template.jinja"):
        assert (tmp_path / "twin" / name).read_bytes() == (source / name).read_bytes()
    before, after = (json.loads((folder / "config.json").read_text()) for folder in (source, tmp_path / "twin"))
    for config in (before, after):
        config.pop("transformers_version")
    assert before == after


def test_what_cannot_be_made_small_says_why(tmp_path):
    from vlmhb_hf.twins.build import make_twin

    (tmp_path / "config.json").write_text(json.dumps({"model_type": "blip", "architectures": ["BlipModel"]}))
    with pytest.raises(ModelLoadError, match="no processor for images, and none is known that could be made for blip"):
        make_twin(ModelSpec(model_path=str(tmp_path)), tmp_path / "twin")


OWN = """
from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor


class OwnConfig(LlavaConfig):
    model_type = "own_vl"


class OwnForConditionalGeneration(LlavaForConditionalGeneration):
    config_class = OwnConfig


class OwnProcessor(LlavaProcessor):
    pass
"""


@pytest.fixture
def own_vl(twin, tmp_path):
    """A folder whose config, model and processor are made by its own code, as a remote-code checkpoint has it."""
    from safetensors.torch import save_file
    from transformers import LlavaForConditionalGeneration

    folder = shutil.copytree(twin(ROWS["LLaVA-1.5"]).path, tmp_path / "own")
    (folder / "own.py").write_text(OWN)
    weights = LlavaForConditionalGeneration.from_pretrained(folder).state_dict()  # by the names that the class has
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    model = {"AutoConfig": "own.OwnConfig", "AutoModelForImageTextToText": "own.OwnForConditionalGeneration"}
    change(folder / "config.json", model_type="own_vl", architectures=["OwnForConditionalGeneration"], auto_map=model)
    processor = {"AutoProcessor": "own.OwnProcessor"}
    change(folder / "processor_config.json", processor_class="OwnProcessor", auto_map=processor)
    return folder


def change(file, **entries):
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def test_a_vision_model_by_the_folders_own_code(own_vl, twin):
    from vlmhb_hf import HuggingFaceModel

    asked = questions((0, 1, 2))
    with pytest.raises(ModelLoadError, match="trust_remote_code"):
        HuggingFaceModel().load(own_vl, device="cpu")
    found = []
    for folder, fields in ((own_vl, {"trust_remote_code": True}), (twin(ROWS["LLaVA-1.5"]).path, {})):
        with HuggingFaceModel().load(folder, dtype="float32", device="cpu", **fields) as model:
            found.append({result.id: result.token_ids for result in model.generate_requests(asked)})
    assert found[0] == found[1]


def test_the_twin_of_a_folder_with_own_code_runs_it_only_when_told(own_vl, tmp_path):
    from vlmhb_hf.twins.build import make_twin

    with pytest.raises(ModelLoadError, match="trust_remote_code"):
        make_twin(ModelSpec(model_path=str(own_vl)), tmp_path / "refused")
    found = make_twin(ModelSpec(model_path=str(own_vl), trust_remote_code=True), tmp_path / "twin")
    assert found.image_counts == (0, 1, 2)
    assert (tmp_path / "twin" / "own.py").read_text() == OWN
    assert json.loads((tmp_path / "twin" / "config.json").read_text())["model_type"] == "own_vl"
