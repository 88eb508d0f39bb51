"""The training of the reader: its model is Qwen2-VL's, and a short run goes from nothing to a folder that loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.hf, pytest.mark.slow]

TRAINING = Path(__file__).parents[3] / "plugins" / "vlmhb-demo"


@pytest.fixture(scope="module", autouse=True)
def importable():
    """The training code is in no distribution."""
    sys.path.insert(0, str(TRAINING))
    yield
    sys.path.remove(str(TRAINING))


@pytest.fixture(scope="module")
def sizes():
    from training.sizes import Sizes
    from training.words import tokenizer

    return Sizes(tokenizer().size, vision_depth=2, layers=2)


@pytest.fixture(scope="module")
def exported(sizes, tmp_path_factory):
    """A reader with random weights, and the folder it is written to in float32."""
    import torch
    from training import export
    from training.model import Reader

    torch.manual_seed(3)
    reader = Reader(sizes)
    for parameter in reader.parameters():  # biases and norms too must find their places
        parameter.data += 0.05 * torch.randn_like(parameter)
    return reader, export.write(tmp_path_factory.mktemp("reader") / "model", reader, torch.float32)


def test_every_weight_finds_its_place(exported):
    from transformers import AutoModelForImageTextToText

    model, report = AutoModelForImageTextToText.from_pretrained(exported[1], output_loading_info=True)
    assert type(model).__name__ == "Qwen2VLForConditionalGeneration"
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert sum(p.numel() for p in model.parameters()) > sum(p.numel() for p in exported[0].parameters())


@pytest.mark.parametrize("shape", [(7, 11), (11, 8)])
def test_packed_branches_are_what_transformers_makes_of_single_questions(exported, sizes, shape):
    """The logits of every answer's tokens, of coloured and of worn pages, in float32."""
    import torch
    from training.batches import START, pack
    from training.model import Parts, text_angles, vision_angles
    from training.pages import SHAPES, sample
    from transformers import AutoModelForImageTextToText, AutoProcessor

    reader, folder = exported
    samples = [sample(f"equal/{n}", SHAPES[shape][0], 2, worn_part=n) for n in (0, 1)]
    made = pack(samples, *shape)
    with torch.no_grad():
        patches = torch.from_numpy(made.patches).float()
        image = reader.visual(patches, vision_angles(sizes, *shape))
        parts = Parts(START, START + shape[0] * shape[1], made.long, 2, made.short)
        angles = text_angles(sizes, torch.from_numpy(made.places))
        states, looks = reader.model(torch.from_numpy(made.tokens), image, angles, parts)
        ours = reader.model.logits(states)
        assert {tuple(look.shape[2:]) for look in looks} == {(made.long + 2 * made.short, shape[0] * shape[1])}
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    processor = AutoProcessor.from_pretrained(folder)
    for number, page in enumerate(samples):
        starts = [0, made.long, made.long + made.short]
        for start, asked in zip(starts, (page.whole, *page.fields), strict=True):
            turn = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": asked.question}]}]
            text = processor.apply_chat_template(turn, tokenize=False, add_generation_prompt=True) + asked.answer
            inputs = processor(text=[text], images=[page.page.image], return_tensors="pt")
            with torch.no_grad():
                theirs = model(**inputs).logits[0]
            length = inputs["input_ids"].shape[1] - parts.prefix
            packed = made.tokens[number, parts.prefix + start :][:length]
            assert inputs["input_ids"][0, parts.prefix :].tolist() == packed.tolist()
            difference = (theirs[parts.prefix :] - ours[number, start : start + length]).abs().max()
            assert difference < 0.01 * theirs.abs().max()  # pages are packed as float16


def test_letters_of_a_page_stand_in_the_cells_they_are_drawn_in():
    """Each row of the page's text is found again, but for its gaps, by reading the cells from left to right."""
    from training.batches import OWN_SLOTS, SLOTS, blank, pack
    from training.pages import sample
    from training.words import encode

    made = sample("cells", "driving licence", 1, worn_part=0.0)
    letters = pack([made], 7, 11).letters[0].reshape(7, 11, SLOTS)
    lines = made.whole.answer.split("\n")
    for row, line in zip(letters, lines, strict=True):
        read = [token for cell in row for token in cell[1 : 1 + OWN_SLOTS] if token not in (blank(), *encode(" "))]
        assert read == encode(line.replace(" ", ""))
    beside = [(row[column, -1], row[column + 1, 1]) for row in letters for column in range(10)]
    assert all(right == first for right, first in beside)


def test_training_pages_share_nothing_with_the_shipped_ones():
    """Neither values nor names, by the plugin's own list and by the annotation that is shipped."""
    import csv

    from training.pages import sample
    from vlmhb_demo import DATASET
    from vlmhb_demo.documents.catalogue import CLASSES
    from vlmhb_demo.documents.invented import ENGLISH, RUSSIAN
    from vlmhb_demo.documents.questions import CHOICES

    with (DATASET / "annotation.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    shipped = {row["answer"] for row in rows if row["question_type"] not in CHOICES and len(row["answer"]) >= 5}
    names = {part for language in (RUSSIAN, ENGLISH) for person in language.people for part in person if len(part) >= 5}
    names |= {name for language in (RUSSIAN, ENGLISH) for name in (*language.towns, *language.firms, *language.goods)}
    pages = [sample(f"{n}/{n}", doc_class, 3) for doc_class in CLASSES for n in range(40)]
    values = {value for page in pages for value in page.page.values}
    texts = "\n".join(value for page in pages for value in page.page.values)
    assert len(values) > 1500
    assert not values & shipped
    assert not {page.whole.answer for page in pages} & shipped
    assert not [name for name in names if name in texts]


def test_what_is_reserved_covers_what_is_shipped(tmp_path):
    """A training page that showed a shipped value would be refused: the list knows every one of them."""
    from vlmhb_demo.documents import dataset
    from vlmhb_demo.documents.reserved import SHORTEST, reserved

    for document in dataset.documents():
        long = [value for value in document.page.values if len(value) >= SHORTEST]
        assert set(long) <= set(reserved().met_on(document.page))


def test_seeds_of_training_and_of_the_shipped_pages_are_apart():
    """Seeds are texts; the shipped ones begin with a number, those of training with a word."""
    from training import pages
    from vlmhb_demo.documents import dataset

    class Seeds:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def __call__(self, seed: str):
            self.seen.append(seed)
            raise StopIteration

    seen = Seeds()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("random.Random", seen)
        for make in (
            lambda: pages.sample("2026/test_clean/letter/ru/0", "letter", 1),
            lambda: next(dataset.documents()),
        ):
            with pytest.raises((StopIteration, RuntimeError)):
                make()
    assert seen.seen == ["train/2026/test_clean/letter/ru/0", "2026/test_clean/identity card/ru/0"]


def test_answers_are_looked_for_where_they_are_drawn():
    """The letters of the cells that an answer's path goes through spell the answer."""
    from training.batches import IGNORED, START, pack
    from training.pages import SHAPES, sample
    from training.words import encode

    gaps, checked = encode(" \n"), 0
    for shape, doc_classes in SHAPES.items():
        samples = [sample(f"path/{n}", name, 3, worn_part=0.0) for n, name in enumerate(doc_classes)]
        made = pack(samples, *shape)
        prefix = START + shape[0] * shape[1]
        for number, page in enumerate(samples):
            starts = [0, *(made.long + n * made.short for n in range(3))]
            for start, asked in zip(starts, (page.whole, *page.fields), strict=True):
                if asked.answer not in page.whole.answer or "\u00a0" in asked.answer:
                    continue  # an answer that is not written on the page in these letters
                first = start + next(n for n, target in enumerate(made.targets[number, start:]) if target != IGNORED)
                here = slice(first, first + len(asked.answer))
                assert made.targets[number, here].tolist() == encode(asked.answer)
                shown = made.letters[number, made.looks[1, number, here]]
                assert all(
                    token in cell or token in gaps for token, cell in zip(encode(asked.answer), shown, strict=True)
                )
                after = slice(first + 1, first + 1 + len(asked.answer))
                assert made.tokens[number, prefix:][after].tolist()[:-1] == encode(asked.answer)[:-1]
                assert (made.looks[0, number, after][:-1] == made.looks[1, number, here][:-1]).all()
                checked += 1
    assert checked > 12


def test_in_each_stage_the_rate_falls_to_nothing_once():
    from training.stages import WARM_UP, stages

    first, last = stages(60_000, 12_000)
    assert (first.pages, last.pages) == (60_000, 12_000)
    assert first.rate_at(0, 0.0) == pytest.approx(first.rate / WARM_UP)
    for stage in (first, last):
        falling = [stage.rate_at(WARM_UP, done / 100) for done in range(101)]
        assert falling == sorted(falling, reverse=True)
        assert (falling[0], falling[-1]) == (stage.rate, pytest.approx(0.0))
    assert first.rate_at(WARM_UP, first.constant) == first.rate > last.rate
    assert last.often > first.often


def test_a_short_run_from_nothing_learns_goes_on_and_exports(tmp_path):
    from transformers import AutoModelForImageTextToText, AutoProcessor

    out = tmp_path / "out"
    short = ["--batch", "4", "--eager", "--skip-evaluation"]
    first = _train(out, "--pages", "40", "--polish", "0", *short)
    assert "40 pages" in first.stderr
    _train(out, "--pages", "40", "--polish", "40", *short)
    curve = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    assert [row["step"] for row in curve] == [10, 20]
    assert curve[1]["loss"] < curve[0]["loss"]
    assert curve[1]["minutes"] > curve[0]["minutes"]
    folder = out / "vlmhb-reader"
    assert (folder / "model.safetensors").stat().st_size < 10_000_000
    AutoProcessor.from_pretrained(folder)
    AutoModelForImageTextToText.from_pretrained(folder)


def _train(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "training", str(out), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=TRAINING, env=environment, capture_output=True, text=True, check=True, timeout=300
    )
