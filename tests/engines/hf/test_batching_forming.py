"""Which requests come into one batch, how large it may be, and how many threads compute it."""

import os
import subprocess
import sys
import textwrap

import pytest
from parity_requests import picture
from vlmhb import GenerationControl
from vlmhb_hf.batches import form_batches
from vlmhb_hf.threads import choose_threads, usable_cores

from .conftest import answers, ask

pytestmark = pytest.mark.hf

PAGES = [picture(60 + 20 * seed, 60, seed) for seed in range(12)]


def formed(requests, size=8, fits=lambda rows, tokens, pages: True, estimate=lambda request: len(request.text)):
    batches = list(form_batches(iter(requests), lambda: size, estimate, fits, GenerationControl()))
    ids = [taken.request.id for batch in batches for taken in batch]
    assert sorted(ids) == sorted(request.id for request in requests)
    return [[taken.request.id for taken in batch] for batch in batches]


def questions(page, count, **fields):
    return [ask(f"{page}-{index}", f"Question {index}?", PAGES[page], **fields) for index in range(count)]


def pages_of(batch):
    return {id.split("-")[0] for id in batch}


def test_a_page_is_not_cut_where_it_fits_whole():
    batches = formed([request for page in range(5) for request in questions(page, 3)])
    assert [len(batch) for batch in batches] == [6, 6, 3]
    assert sum(len(pages_of(batch)) for batch in batches) == 5


def test_questions_in_any_order_come_together():
    """Asked page by page for the first question, then for the second, and so on."""
    rows = [questions(page, 4) for page in range(8)]
    batches = formed([row[index] for index in range(4) for row in rows])
    assert sum(len(pages_of(batch)) for batch in batches) == 8


def test_a_page_at_the_edge_of_a_window_waits_for_the_next():
    batches = formed([request for page in range(12) for request in questions(page, 3)])  # a window is 32 requests
    assert sum(len(pages_of(batch)) for batch in batches) == 12


def test_a_page_larger_than_a_batch_is_cut():
    assert [len(batch) for batch in formed(questions(0, 20))] == [8, 8, 4]


def test_images_and_texts_are_apart_and_the_longest_come_first():
    texts = [ask(f"text-{length}", "x" * length) for length in (10, 300, 20)]
    batches = formed([*texts, *questions(0, 2), *questions(1, 2, max_tokens=50)])
    assert batches == [["1-0", "1-1", "0-0", "0-1"], ["text-300", "text-20", "text-10"]]


def test_memory_bounds_a_batch():
    def fits(rows, tokens, pages):
        return rows * tokens <= 600

    requests = [ask(str(length), "x" * length, max_tokens=1) for length in (1000, 290, 280, 100, 90, 80, 70, 60, 50)]
    batches = formed(requests, fits=fits)
    assert batches[0] == ["1000"]  # one always may try
    assert batches[1:3] == [["290", "280"], ["100", "90", "80", "70", "60"]]


def test_memory_cuts_a_page():
    assert [len(batch) for batch in formed(questions(0, 8), fits=lambda rows, tokens, pages: rows <= 3)] == [2, 3, 3]


def test_the_estimate_grows_with_rows_and_length_and_is_bounded_by_what_is_free(model, monkeypatch):
    budget = model._budget
    one, two = budget.needed(1, 500), budget.needed(2, 500)
    assert two == 2 * one
    assert budget.needed(1, 1000) > 2 * one
    config = model._model.config.get_text_config()
    keys = (
        2 * config.num_hidden_layers * config.num_key_value_heads * (config.hidden_size // config.num_attention_heads)
    )
    assert one > 500 * keys * 4
    assert 0 < budget.free() < 2**50
    monkeypatch.setattr(type(budget), "free", lambda self: 2 * two)
    assert budget.fits(2, 500)
    assert not budget.fits(3, 500)
    assert budget.fits(1, 10**6)


def test_the_pixels_of_pages_count_once_they_are_known(model, monkeypatch):
    answers(model, [ask("0", "Hi", PAGES[0], max_tokens=1)])
    budget = model._budget
    patches = 4 * 14 * 14 * 3 * 2 * 4  # four patches of two frames in float32 become one token
    assert patches <= budget.pixels < 1.02 * patches  # and the grid
    assert budget.needed(4, 500, 2) - budget.needed(4, 500) == int(8 * 2 * 500 * budget.pixels)
    monkeypatch.setattr(type(budget), "free", lambda self: 2 * budget.needed(4, 500, 1))
    assert budget.fits(4, 500, 1)
    assert not budget.fits(4, 500, 4)


def test_a_limit_of_the_process_counts(model):
    import resource
    from pathlib import Path

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20, before[1]))
    try:
        assert 200 * 2**20 < model._budget.free() <= 300 * 2**20
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_threads(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert choose_threads(2) == (2, "asked for")
    assert choose_threads(None) == (None, "OMP_NUM_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS")
    cores = usable_cores()
    for load, wanted in ((0.1, cores), (cores - 1.0, 1), (cores + 9.0, 1)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert choose_threads(None) == (wanted, f"{cores} cores with a load of {load:.1f}")


@pytest.mark.parametrize(("text", "cores"), [("max 100000", None), ("100000 100000", 1), ("50000 100000", 1)])
def test_the_quota_of_a_control_group_counts(tmp_path, text, cores):
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert usable_cores(file) == (cores or usable_cores(tmp_path / "none"))


def test_the_facts_say_the_threads(model):
    assert model.facts()["threads"] == 1
    assert model.facts()["threads_because"] == "asked for"


@pytest.mark.slow
def test_pages_of_every_size_are_all_answered_under_a_memory_limit(tiny):
    """Pages from 100 to 5,000 pixels a side, short and long texts, and less memory than a full batch takes."""
    code = textwrap.dedent(
        """
        import io, resource, sys
        from pathlib import Path
        from PIL import Image
        from vlmhb import GenerationRequest, ImageInput, SamplingParams
        from vlmhb_hf import HuggingFaceModel

        def page(side, seed):
            buffer = io.BytesIO()
            Image.effect_noise((64, 64), 90 + seed).convert("RGB").resize((side, side // 2 + 50)).save(buffer, "JPEG")
            return ImageInput(data=buffer.getvalue(), name=f"{side}.jpg")

        sides = [100, 5000, 300, 2500, 700, 120, 1400, 250]
        pages = [page(side, seed) for seed, side in enumerate(sides * int(sys.argv[2]))]
        requests = [
            GenerationRequest.ask(f"{p}-{q}", f"Question {q}? " * (1 + 40 * (q == 2)), [picture],
                                  sampling=SamplingParams(max_tokens=4))
            for p, picture in enumerate(pages) for q in range(3)
        ]
        model = HuggingFaceModel().load(sys.argv[1], dtype="float32", threads=1, attn_implementation="eager")
        list(model.generate_requests(requests[:1]))
        full = model._budget.needed(32, 1500)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + full // 2, resource.RLIM_INFINITY))
        results = list(model.generate_requests(requests))
        assert len(results) == len(requests)
        failed = [result for result in results if not result.ok]
        assert not failed, failed[0]
        print(len(results), model._batch_size, full)
        """
    )
    done = subprocess.run([sys.executable, "-c", code, str(tiny), "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("48 ")


def test_the_limit_of_a_control_group_counts_without_kept_files(model, monkeypatch, tmp_path):
    from vlmhb_hf import memory

    free_memory = memory.free_memory
    monkeypatch.setattr(memory, "free_memory", lambda: free_memory(tmp_path))
    before = model._budget.free()
    for name, text in (
        ("max", "5000000\n"),
        ("current", "4500000\n"),
        ("stat", "anon 1\nactive_file 7\ninactive_file 9\n"),
    ):
        (tmp_path / f"memory.{name}").write_text(text)
    assert model._budget.free() == 500016
    (tmp_path / "memory.max").write_text("max\n")
    assert model._budget.free() > before // 2
    monkeypatch.setattr(memory, "free_memory", lambda: 2**62)
    monkeypatch.setattr(memory, "_PROCESS", tmp_path / "none")
    assert model._budget.fits(32, 5000)
