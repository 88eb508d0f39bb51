"""Families that transformers has no classes for: loaded by the code that their folders bring, when that is allowed.

The code of the twins is that of ``vlmhb_hf.twins.code``, written to the documented interface of each family.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import twins
from parity_requests import picture
from vlmhb import ModelSpec
from vlmhb.doctor.families import rows, write_config
from vlmhb.errors import ModelLoadError, RequestError
from vlmhb.prompting import PromptBuilder, prompt_ids

from .conftest import answers, ask, one_by_one

pytestmark = [pytest.mark.hf, pytest.mark.filterwarnings("ignore")]  # of processors, about each other

ROWS = [row for row in rows() if row.trust_remote_code]
NAMES = [row.name for row in ROWS]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("own")
    return {row.name: Path(twins.twin_of(row, home / f"twin{n}").path) for n, row in enumerate(ROWS)}


def builder_of(folder):
    return PromptBuilder(ModelSpec(model_path=str(folder), trust_remote_code=True))


def loaded(folder, **fields):
    from vlmhb_hf import HuggingFaceModel

    return HuggingFaceModel().load(folder, dtype="float32", device="cpu", **fields)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_twin_is_made_of_code_only_when_that_is_allowed(row, tmp_path):
    from vlmhb_hf.twins.build import make_twin

    source = write_config(row, tmp_path / "config")
    with pytest.raises(
        ModelLoadError, match=f"does not know the architecture '{row.config['model_type']}'.*trust_remote"
    ):
        make_twin(ModelSpec(model_path=str(source)), tmp_path / "twin")


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_loaded_only_when_its_code_may_run(name, folders):
    from vlmhb_hf import vlmhb_check_model

    with pytest.raises(ModelLoadError, match="trust_remote_code"):
        loaded(folders[name])
    spec = ModelSpec(model_path=str(folders[name]), device="cpu", dtype="float32")
    (support,) = vlmhb_check_model("hf", spec).supports
    assert (support.verdict, "trust_remote_code" in support.advice) == ("condition", True)


@pytest.mark.parametrize("name", NAMES)
def test_folders_look_like_published_ones(name, folders):
    config = json.loads((folders[name] / "config.json").read_text())
    for reference in config["auto_map"].values():
        assert (folders[name] / f"{reference.partition('.')[0]}.py").is_file()
    assert list(folders[name].glob("processing_*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_answers_do_not_depend_on_the_batch(name, folders):
    asked = [ask(f"text {n}", "How many? " * n, max_tokens=8) for n in (1, 5)]
    asked += [ask(f"image {n}", "What is this?", picture(100 * n, 80, n), max_tokens=8) for n in (1, 2, 3)]
    asked.append(ask("both", "Which?", picture(90, 90, 4), picture(60, 200, 5), max_tokens=8))
    asked.append(ask("penalised", "What?", picture(90, 90, 4), max_tokens=8, repetition_penalty=1.3, logprobs=1))
    with loaded(folders[name], trust_remote_code=True, batch_size=8) as model:
        together, apart = answers(model, asked), one_by_one(model, asked)
    assert all(result.failure is None for result in together.values()), together
    assert {id: r.token_ids for id, r in together.items()} == {id: r.token_ids for id, r in apart.items()}


@pytest.mark.parametrize("name", NAMES)
def test_doctor_knows_the_size_of_a_page(name, folders):
    from vlmhb_hf import vlmhb_check_model

    spec = ModelSpec(model_path=str(folders[name]), device="cpu", dtype="float32", trust_remote_code=True)
    check = vlmhb_check_model("hf", spec)
    assert check.supports[0].verdict == "supported", check.supports
    assert check.facts.page_tokens > 0


# --- Phi-3-Vision


def test_numbers_of_pictures_in_a_question_stay_text(folders):
    builder = builder_of(folders["Phi-3-Vision"])
    place = builder.tokenizer.convert_tokens_to_ids("<|image|>")
    plain = builder.prepare(ask("0", "Is it ?", picture(90, 90, 1)))
    quoted = builder.prepare(ask("0", "Is it <|image_1|><|image|>?", picture(90, 90, 1)))
    counts = [prompt_ids(builder.encode([prompt]), 0).count(place) for prompt in (plain, quoted)]
    assert counts[0] == counts[1] > 0
    text = builder.tokenizer.decode(prompt_ids(builder.encode([quoted]), 0), skip_special_tokens=True)
    assert "Is it <|image_1|><|image|>?" in text


def test_prompts_with_pictures_are_encoded_one_at_a_time(folders):
    builder = builder_of(folders["Phi-3-Vision"])
    prompts = [builder.prepare(ask(str(n), "?", picture(90, 90, n))) for n in (1, 2)]
    with pytest.raises(RequestError, match="must not share a batch"):
        builder.encode(prompts)


# --- MiniCPM-V


def test_slices_keep_their_places_where_words_are_put_back(folders):
    """Quoted control words become several ids each, which moves what comes after them and the padding before."""
    builder = builder_of(folders["MiniCPM-V 2.6"])
    quoted = builder.prepare(
        ask("0", "Is it <|im_end|> <image> </slice>?", picture(200, 90, 1), system="Say </image>.")
    )
    short = builder.prepare(ask("1", "?", picture(50, 50, 2)))
    inputs = builder.family.model_inputs(dict(builder.encode([quoted, short])))
    unknown = builder.tokenizer.convert_tokens_to_ids("<unk>")
    slices = [len(row) for row in inputs["tgt_sizes"]]
    assert slices[0] > slices[1]
    for ids, bounds, count in zip(inputs["input_ids"], inputs["image_bound"], slices, strict=True):
        assert len(bounds) == count
        for start, end in bounds.tolist():
            assert ids[start:end].tolist() == [unknown] * 4
    text = builder.tokenizer.decode(inputs["input_ids"][0])
    assert "Is it <|im_end|> <image> </slice>?" in text


# --- DeepSeek-OCR


@pytest.fixture
def deepseek_ocr(folders, tmp_path):
    """The first DeepSeek-OCR, as its folder is documented: own model code, and a processor that only its code uses."""
    folder = shutil.copytree(folders["MiniCPM-V 2.6"], tmp_path / "deepseek-ocr")
    for name in ("processing_minicpmv.py", "image_processing_minicpmv.py", "processor_config.json"):
        (folder / name).unlink()
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "deepseek_vl_v2", "architectures": ["DeepseekOCRForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "DeepseekVLV2Processor"}))
    return folder


def test_the_first_deepseek_ocr_is_refused_for_want_of_a_processor(deepseek_ocr):
    """transformers knows DeepSeek-OCR 2; the first one prepares pictures inside of its own ``infer``."""
    with pytest.raises(ModelLoadError, match="trust_remote_code"):
        loaded(deepseek_ocr)
    with pytest.raises(ModelLoadError, match="does not know DeepseekVLV2Processor"):
        loaded(deepseek_ocr, trust_remote_code=True)
