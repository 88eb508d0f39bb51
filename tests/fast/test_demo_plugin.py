"""The demo plugin: what it registers, its dataset, its model's files, and making that model once."""

import csv
import hashlib
import importlib.metadata
import json
import math
import os
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import jinja2.sandbox
import numpy as np
import pluggy
import pytest
import vlmhb
import vlmhb_demo
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file
from vlmhb.contract import hookspecs
from vlmhb.errors import PluginError
from vlmhb_demo import models, render, tiny_model
from vlmhb_demo.cache import made_once
from vlmhb_demo.documents import dataset, scan
from vlmhb_demo.documents.catalogue import CLASSES, LANGUAGES
from vlmhb_demo.documents.page import Page, Style
from vlmhb_demo.documents.questions import CHOICES
from vlmhb_demo.tiny_model import bpe, chat, tokenizer

COLUMNS = ["data_index", "split", "image_path", "question", "answer", "doc_class", "question_type", "answer_bbox"]


def read_rows(folder):
    with (folder / "annotation.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


@pytest.fixture(scope="module")
def rows():
    return read_rows(vlmhb_demo.DATASET)


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("redrawn")
    render.main([str(folder)])
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model.make(tmp_path_factory.mktemp("model") / "tiny")


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


# ------------------------------------------------------------------------------------------------------------
# The plugin
# ------------------------------------------------------------------------------------------------------------


def test_it_is_registered_as_a_plugin_of_this_contract():
    (entry,) = importlib.metadata.entry_points(group="vlmhb.plugins", name="demo")
    assert entry.dist.name == "vlmhb-demo"
    assert entry.load() is vlmhb_demo
    assert vlmhb_demo.vlmhb_contract == vlmhb.CONTRACT_VERSION


def test_its_hooks_are_hooks_of_the_contract():
    manager = pluggy.PluginManager("vlmhb")
    manager.add_hookspecs(hookspecs)
    manager.register(vlmhb_demo)
    manager.check_pending()
    names = {hook.name for hook in manager.get_hookcallers(vlmhb_demo)}
    assert names == {"vlmhb_datasets", "vlmhb_models"}


def test_importing_it_and_naming_its_dataset_imports_nothing_heavy():
    code = (
        "import sys, vlmhb_demo; vlmhb_demo.vlmhb_datasets()\n"
        "print([name for name in ('numpy', 'PIL', 'safetensors', 'platformdirs', 'torch') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_dataset_is_offered_by_name():
    (named,) = vlmhb_demo.vlmhb_datasets()
    assert named.name == "demo-documents"
    assert (Path(named.path) / "annotation.csv").is_file()


# ------------------------------------------------------------------------------------------------------------
# The dataset
# ------------------------------------------------------------------------------------------------------------


def test_the_annotation_is_in_the_older_layout(rows):
    raw = (vlmhb_demo.DATASET / "annotation.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf" + ";".join(COLUMNS).encode())
    assert all(list(row) == COLUMNS and None not in row.values() for row in rows)


def test_there_are_enough_pages_and_questions_of_every_kind(rows):
    pages = {row["image_path"]: row for row in rows}
    per_page = Counter(row["image_path"] for row in rows)
    assert len(pages) == 98
    assert min(per_page.values()) >= 5
    groups = Counter((row["doc_class"], row["split"], path[-6:-4]) for path, row in pages.items())
    each = {"test_clean": 5, "test_worn": 2}
    assert groups == {(c, split, lang): each[split] for c in CLASSES for split in each for lang in LANGUAGES}
    assert len({(row["image_path"], row["question"]) for row in rows}) == len(rows)
    assert {kind for row in rows if (kind := row["question_type"]) in CHOICES} == set(CHOICES)


def test_every_text_of_every_page_has_its_place():
    assert all(document.page.fits() for document in dataset.documents())


def test_a_page_whose_texts_collide_or_leave_it_does_not_fit():
    def fits(*placed):
        page = Page.blank(11, 2, (255, 255, 255), Style())
        for x, content in placed:
            page.value(0, x, content)
        return page.fits()

    assert fits((8, "left"), (200, "right"))
    assert not fits((8, "a long text on the left"), (150, "right"))
    assert not fits((280, "right"))


def test_the_images_are_those_that_the_annotation_names(rows):
    named = {row["image_path"] for row in rows}
    there = {f"images/{path.name}" for path in (vlmhb_demo.DATASET / "images").iterdir()}
    assert named == there


def test_data_index_names_the_page(rows):
    assert len({(row["data_index"], row["image_path"]) for row in rows}) == len({row["data_index"] for row in rows})


def test_every_image_opens_and_has_a_sensible_size(rows):
    for path in {row["image_path"] for row in rows}:
        with Image.open(vlmhb_demo.DATASET / path) as image:
            image.load()
            assert image.mode == "RGB"
            assert image.size in {(308, 196), (308, 224), (224, 308)}, path


def test_the_dataset_is_small():
    assert sum(path.stat().st_size for path in vlmhb_demo.DATASET.rglob("*") if path.is_file()) < 3_000_000


def test_questions_and_answers_have_text_in_the_language_of_the_page(rows):
    for row in rows:
        assert row["answer"].strip() == row["answer"] != ""
        assert bool(re.search("[а-яё]", row["question"])) == row["image_path"].endswith("_ru.jpg")


def test_boxes_lie_on_the_page_and_hold_ink(rows):
    for row in rows:
        left, top, right, bottom = json.loads(row["answer_bbox"])
        page = pixels(vlmhb_demo.DATASET / row["image_path"])
        height, width = page.shape[:2]
        assert 0 <= left < right <= width, row
        assert 0 <= top < bottom <= height, row
        inside = page[top:bottom, left:right].mean(axis=2)
        assert inside.max() - inside.min() > (90 if row["split"] == "test_clean" else 40), row


def test_boxes_of_short_answers_are_tight(rows):
    """Beyond the box there is paper, a ruled line or the mark behind a name, so no letter is cut: few dark pixels."""
    for row in rows:
        if row["question_type"] in ("full text", *CHOICES) or row["split"] == "test_worn":
            continue
        left, top, right, bottom = json.loads(row["answer_bbox"])
        grey = pixels(vlmhb_demo.DATASET / row["image_path"]).mean(axis=2)
        beside = [
            grey[top:bottom, left - 3],
            grey[top:bottom, min(right + 2, grey.shape[1] - 1)],
            grey[top - 3, left:right],
        ]
        assert all((edge < 110).mean() < 0.2 for edge in beside), row


def test_the_texts_hold_what_makes_scoring_hard(rows):
    text = "\n".join(row["answer"] for row in rows)
    assert re.search("\\d\u00a0\\d{3},\\d{2}", text)
    assert re.search("\\d,\\d{3}\\.\\d{2}", text)
    assert all(sign in text for sign in "ёЁ«»-'№₽£")
    assert any(row["answer"].startswith("0") for row in rows)
    assert {"да", "нет", "yes", "no"} <= {row["answer"] for row in rows}


def test_the_full_text_holds_the_other_answers_of_its_page(rows):
    full = {row["image_path"]: row["answer"] for row in rows if row["question_type"] == "full text"}
    assert len(full) == 98
    for row in rows:
        if row["question_type"] not in CHOICES:
            assert row["answer"] in full[row["image_path"]]


def test_receipts_and_invoices_add_up(rows):
    by_page = defaultdict(dict)
    for row in rows:
        if row["doc_class"] in ("receipt", "invoice"):
            by_page[row["image_path"]][row["question_type"]] = row["answer"]
    assert len(by_page) == 28
    for answers in by_page.values():
        amounts = re.findall(r"(?<!\S)[\d,\u00a0]+[.,]\d\d(?!\S)", answers["full text"])
        items = [hundredths(amount) for amount in amounts if hundredths(amount) != hundredths(answers["total"])]
        assert sum(items) == hundredths(answers["total"]), answers


def hundredths(amount):
    return int(re.sub(r"\D", "", amount))


# ------------------------------------------------------------------------------------------------------------
# Drawing it anew
# ------------------------------------------------------------------------------------------------------------


def test_drawing_anew_gives_the_shipped_annotation(rows, redrawn):
    anew = read_rows(redrawn)
    assert len(anew) == len(rows)
    for old, new in zip(rows, anew, strict=True):
        boxes = [json.loads(row.pop("answer_bbox")) for row in (dict(old), dict(new))]
        assert np.abs(np.subtract(*boxes)).max() <= 1  # FreeType's versions may round a glyph's edge differently
        assert {**old, "answer_bbox": ""} == {**new, "answer_bbox": ""}


def test_drawing_anew_gives_the_shipped_pixels(rows, redrawn):
    """Equal on the Pillow they were drawn with; JPEG and FreeType of other versions differ by a few grey levels."""
    for path in {row["image_path"] for row in rows}:
        shipped, anew = pixels(vlmhb_demo.DATASET / path), pixels(redrawn / path)
        assert shipped.shape == anew.shape
        difference = np.abs(shipped - anew)
        assert difference.mean() < 0.05, path
        assert difference.max() < 64, path


def test_drawing_twice_gives_the_same_bytes(redrawn, tmp_path):
    render.main([str(tmp_path)])
    for path in sorted(redrawn.rglob("*.*")):
        assert path.read_bytes() == (tmp_path / path.relative_to(redrawn)).read_bytes()


def test_another_seed_gives_other_documents(rows, tmp_path, capsys):
    render.main([str(tmp_path), "--seed", "5"])
    assert "annotation.csv" in capsys.readouterr().out
    other = [row["answer"] for row in read_rows(tmp_path) if row["question_type"] == "total"]
    assert other != [row["answer"] for row in rows if row["question_type"] == "total"]


@pytest.mark.parametrize("seed", range(4))
def test_boxes_turn_with_a_page_that_lies_askew(seed):
    page = Page.blank(20, 21, (250, 250, 250), Style())
    box = (430, 40, 530, 60)
    page.draw.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=(0, 0, 0))
    page.choose("delivery", "7", box)
    turned = scan.worn(page, random.Random(seed))
    rows, columns = np.nonzero(np.asarray(turned.image).mean(axis=2) < 150)
    seen = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert np.abs(np.subtract(seen, turned.questions[0].box)).max() <= 2
    assert np.abs(np.subtract(seen, box)).max() >= 2


# ------------------------------------------------------------------------------------------------------------
# The tiny model's files
# ------------------------------------------------------------------------------------------------------------


def digest(folder):
    """Of the contents; safetensors may lay the file itself out differently from version to version."""
    total = hashlib.sha256()
    for name in tiny_model.FILES:
        if name != "model.safetensors":
            total.update((folder / name).read_bytes())
    for name, tensor in sorted(load_file(folder / "model.safetensors").items()):
        total.update(f"{name} {tensor.shape} {tensor.dtype}".encode() + tensor.tobytes())
    return total.hexdigest()


def test_the_model_of_this_version_has_these_bytes(model):
    """When this fails on purpose, raise ``tiny_model.VERSION`` too: users have the old bytes in their caches."""
    known = {"1": "adb6bb40d1080dfd658798a881bbfd9e36e2ab4682778e90106d8f986f7365d8"}
    assert digest(model) == known[tiny_model.VERSION]


def test_making_it_writes_the_files_it_says(model):
    assert sorted(path.name for path in model.iterdir()) == sorted(tiny_model.FILES)


def test_the_same_seed_gives_the_same_files_and_another_seed_other_weights(model, tmp_path):
    same, other = tiny_model.make(tmp_path / "same"), tiny_model.make(tmp_path / "other", seed=1)
    for name in tiny_model.FILES:
        assert (same / name).read_bytes() == (model / name).read_bytes()
        assert ((other / name).read_bytes() == (model / name).read_bytes()) == (name != "model.safetensors")


def test_weights_are_spread_as_wanted_and_special_tokens_are_never_best(model):
    tensors = load_file(model / "model.safetensors")
    embedding = tensors["model.embed_tokens.weight"]
    assert abs(float(embedding.std()) - 1.0) < 0.01
    assert abs(float(embedding.mean())) < 0.02
    special = tokenizer.build().special
    head = tensors["lm_head.weight"]
    silent = {int(row) for row in np.flatnonzero(~head.any(axis=1))}
    assert silent == set(range(min(special.values()), len(head))) - {special["<|im_end|>"]}
    assert {tensor.dtype.name for tensor in tensors.values()} == {"float32"}


def test_context_length_is_written_where_engines_look(tmp_path):
    folder = tiny_model.make(tmp_path, context_length=300)
    assert json.loads((folder / "config.json").read_text())["max_position_embeddings"] == 300
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 300


def test_a_generation_config_can_be_made_hostile(model, tmp_path):
    hostile = {"do_sample": True, "temperature": 0.01, "repetition_penalty": 1.05, "eos_token_id": [3]}
    folder = tiny_model.make(tmp_path, generation_config=hostile)
    usual = json.loads((model / "generation_config.json").read_text())
    assert usual["do_sample"] is False
    assert json.loads((folder / "generation_config.json").read_text()) == {**usual, **hostile}


def test_token_ids_in_the_configs_are_those_of_the_tokenizer(model):
    added = {
        token["content"]: token["id"] for token in json.loads((model / "tokenizer.json").read_text())["added_tokens"]
    }
    config = json.loads((model / "config.json").read_text())
    assert config["image_token_id"] == added["<|image_pad|>"]
    assert config["eos_token_id"] == added["<|im_end|>"]
    assert config["pad_token_id"] == added["<|endoftext|>"]
    assert config["vocab_size"] > max(added.values())


def test_byte_symbols_are_those_of_published_vocabularies():
    symbols = bpe.byte_symbols()
    assert len(set(symbols)) == 256
    assert (symbols[ord("A")], symbols[ord(" ")], symbols[ord("\n")], symbols[0]) == ("A", "Ġ", "Ċ", "Ā")


def test_merges_are_learnt_most_frequent_first_with_ties_by_order():
    words = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    assert bpe.learn_merges(words, 4) == [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w")]
    assert bpe.learn_merges(["aaaa"], 9) == [("a", "a"), ("aa", "aa")]
    assert bpe.learn_merges([], 9) == []


def rendered(messages, **options):
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(chat.TEMPLATE).render(messages=messages, **options)


def test_a_chat_without_a_system_turn_gets_the_usual_one():
    assert rendered([{"role": "user", "content": " Hi\n"}], add_generation_prompt=True) == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\n Hi\n<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_chat_with_images_and_a_system_turn():
    content = [{"type": "image"}, {"type": "image_url", "image_url": "x"}, {"type": "text", "text": "Compare."}]
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": content},
        {"role": "assistant", "content": "Same."},
    ]
    picture = "<|vision_start|><|image_pad|><|vision_end|>"
    start = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n"
    end = "Compare.<|im_end|>\n<|im_start|>assistant\nSame.<|im_end|>\n"
    assert rendered(messages) == f"{start}{picture}{picture}{end}"
    assert rendered(messages, add_vision_id=True) == f"{start}Picture 1: {picture}Picture 2: {picture}{end}"


# ------------------------------------------------------------------------------------------------------------
# Made once
# ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache_home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    return home


def test_the_model_is_made_in_the_cache_on_first_use_and_then_kept(cache_home):
    _, named = models.offered()
    folder = Path(named.path)
    assert folder.is_relative_to(cache_home)
    assert (named.name, named.family) == ("tiny-qwen2-vl", "Qwen2-VL")
    assert "noise" in named.description
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert vlmhb_demo.vlmhb_models()[1] == named
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_models_have_as_many_parameters_as_their_descriptions_say(cache_home):
    for named in models.offered():
        with safe_open(Path(named.path) / "model.safetensors", "np") as file:
            count = sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
        assert f"{count / 1e6:.1f} million" in named.description


def test_the_reader_is_a_plain_small_model_folder_in_16_bits(cache_home):
    folder = Path(models.offered()[0].path)
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "tokenizer.json", "preprocessor_config.json", "chat_template.json", "MODEL_CARD.md"} <= names
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 10_000_000
    with safe_open(folder / "model.safetensors", "np") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"BF16"}  # noqa: SIM118


def test_several_processes_make_it_at_once(cache_home, model, tmp_path):
    gate = tmp_path / "gate"
    code = (
        "import pathlib, sys, time\n"
        "from vlmhb_demo import models, tiny_model\n"
        "print('ready', flush=True)\n"
        f"while not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.001)\n"
        "print(models.offered()[1].path)"
    )
    command = [sys.executable, "-c", code]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy()) for _ in range(4)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 4
    gate.touch()
    outputs = {racer.communicate(timeout=60)[0].strip() for racer in racers}
    assert [racer.returncode for racer in racers] == [0] * 4
    (path,) = outputs
    assert list(Path(path).parent.iterdir()) == [Path(path)]
    assert digest(Path(path)) == digest(model)


def test_a_folder_that_lost_a_file_is_made_again(tmp_path):
    folder = tmp_path / "thing"
    folder.mkdir()
    (folder / "old").write_text("left over")
    made_once(folder, lambda fresh: (fresh / "a").write_text("new"), ["a"])
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_call_that_fails_midway_leaves_nothing(tmp_path):
    def breaks(fresh):
        (fresh / "a").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_once(tmp_path / "thing", breaks, ["a"])
    assert list(tmp_path.iterdir()) == []


def test_one_that_finishes_second_keeps_the_first_ones_folder(tmp_path):
    folder = tmp_path / "thing"

    def overtaken(fresh):
        (fresh / "a").write_text("second")
        folder.mkdir()
        (folder / "a").write_text("first")

    made_once(folder, overtaken, ["a"])
    assert (folder / "a").read_text() == "first"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_cannot_be_put_in_place_is_said(tmp_path, monkeypatch):
    def refused(self, target):
        raise PermissionError(13, "in use by another program")

    monkeypatch.setattr(Path, "rename", refused)  # as Windows does when a file in the folder is open
    with pytest.raises(PluginError, match="in use by another program"):
        made_once(tmp_path / "thing", lambda fresh: (fresh / "a").write_text("new"), ["a"])


def test_a_cache_that_cannot_be_written_is_said_in_a_sentence(cache_home):
    cache_home.write_text("a file where the folder should be")
    with pytest.raises(PluginError, match=r"cannot make .*tiny-qwen2-vl-1: .*must be writable"):
        models.offered()
