"""The run's database: plans are replaced as a whole, answers only grow, nothing half-done is ever seen."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from vlmhb import GenerationResult
from vlmhb.contract.dataset import Sample
from vlmhb.errors import RequestError, RunError
from vlmhb.metrics.stored import read_frames
from vlmhb.run.store import ROWS_AND_ANSWERS, PlannedRow, RunStore, storable

USUAL: dict[str, Any] = {
    "doc_class": "form",
    "reference": "42",
    "other_references": (),
    "choices": (),
    "json_schema": "",
}


def row(
    number: int, *, job: int = 1, key: bytes | None = None, question: str | None = None, **fields: Any
) -> PlannedRow:
    sample = Sample(
        row=number,
        data_index="7",
        images=("images/a.png",),
        question=f"question {number}" if question is None else question,
        question_type="number",
        split="test",
        **{name: fields.pop(name, value) for name, value in USUAL.items()},
    )
    values = {"images": ("/data/a.png",), "question": sample.question, **fields}
    return PlannedRow(job=job, sample=sample, key=key or f"key {number}".encode(), **values)


def answer(text: str = "42") -> GenerationResult:
    return GenerationResult(id="x", text=text, token_ids=(4, 2), finish_reason="stop", notes=("a note",))


@pytest.fixture
def store(tmp_path: Path):
    with RunStore(tmp_path / "run.sqlite") as opened:
        yield opened


def plan(store: RunStore, *rows: PlannedRow) -> None:
    store.replace_plan({job: {"dataset_path": "/data"} for job in {r.job for r in rows}}, rows)


def test_pending_is_what_has_no_answer_each_question_once(store: RunStore) -> None:
    plan(store, row(1), row(2, key=b"same"), row(3, key=b"same"), row(4, error="image b.png: there is no such file"))
    assert store.pending_count([1]) == 2
    assert [question.key for question in store.pending([1])] == [b"key 1", b"same"]
    store.save(b"same", answer())
    assert [question.key for question in store.pending([1])] == [b"key 1"]
    assert store.counts() == {"ok": 2, "error": 1, "missing": 1}


def test_questions_about_one_page_come_together(store: RunStore) -> None:
    pages = ["/data/a.png", "/data/b.png", "/data/a.png", "/data/b.png"]
    plan(store, *(row(number, images=(page,)) for number, page in enumerate(pages, 1)))
    assert [question.images[0] for question in store.pending([1])] == sorted(pages)


def test_a_question_of_several_jobs_is_asked_for_the_first_of_them(store: RunStore) -> None:
    plan(store, row(5, key=b"same", images=("/data/b.png",)), row(1, job=2), row(3, job=2, key=b"same"))
    asked = [(question.job, question.question, question.images) for question in store.pending([1, 2])]
    assert asked == [(1, "question 5", ("/data/b.png",)), (2, "question 1", ("/data/a.png",))]
    assert [question.key for question in store.pending([2])] == [b"key 1", b"same"]


def test_a_pending_question_has_its_schema(store: RunStore) -> None:
    held = row(2, other_references=("43",), json_schema='{"type": "integer"}')
    plan(store, row(1), held, row(3, choices=("a", "b")))
    assert [question.json_schema for question in store.pending([1])] == ["", '{"type": "integer"}', ""]


def test_most_images_is_of_what_is_still_asked(store: RunStore) -> None:
    assert store.most_images([1]) == 0
    plan(store, row(1, images=("/a", "/b")), row(2, images=()), row(3, images=("/a",) * 5, error="no"), row(4, job=2))
    assert store.most_images([1]) == 2
    assert store.most_images([1, 2]) == 2
    assert store.most_images([2]) == 1
    store.save(b"key 1", answer())
    assert store.most_images([1]) == 0


def test_an_empty_answer_is_an_answer_and_a_failed_one_is_asked_again(store: RunStore) -> None:
    plan(store, row(1), row(2))
    store.save(b"key 1", answer(""))
    store.save(b"key 2", GenerationResult.failed("x", RequestError("out of memory", kind="out_of_memory")))
    assert store.counts() == {"ok": 1, "error": 1, "missing": 0}
    assert [question.key for question in store.pending([1])] == [b"key 2"]
    store.save(b"key 2", answer())
    assert store.counts() == {"ok": 2, "error": 0, "missing": 0}


def test_only_rows_that_were_refused_cannot_be_asked(store: RunStore) -> None:
    plan(store, row(1), row(2), row(3, error="image b.png: there is no such file"))
    assert store.unaskable_count() == 1
    store.save(b"key 1", GenerationResult.failed("x", RequestError("it is too long")))
    store.fail_jobs([1], "no memory")
    assert (store.unaskable_count(), store.pending_count([1]), store.counts()["error"]) == (1, 2, 3)


def test_answers_outlive_the_plan_they_were_made_for(store: RunStore) -> None:
    plan(store, row(1))
    store.save(b"key 1", answer())
    plan(store, row(1, key=b"another question"))
    assert store.counts()["missing"] == 1
    plan(store, row(5, key=b"key 1"))
    assert store.counts()["ok"] == 1


def stored_rows(store: RunStore) -> list[tuple[Any, ...]]:
    with sqlite3.connect(store.path) as reader:
        return reader.execute("SELECT * FROM rows ORDER BY job, row").fetchall()


ONE_PLAN = (row(1), row(2, error="image a.png: there is no such file"), row(5, notes=("a note",)), row(1, job=2))
OTHER_PLANS = {
    "the same": ONE_PLAN,
    "nothing": (),
    "a row more": (*ONE_PLAN, row(2, job=2)),
    "the last row less": ONE_PLAN[:-1],
    "the first row less": ONE_PLAN[1:],
    "another row between": (row(1), row(2), row(3), row(5), row(1, job=2)),
    "another question": (*ONE_PLAN[:2], row(5, question="Name?", key=b"other"), ONE_PLAN[3]),
    "another error": (row(1), row(2, error="the row has no question"), *ONE_PLAN[2:]),
    "an error less": (row(1), row(2), *ONE_PLAN[2:]),
    "another schema": (row(1, json_schema="{}"), *ONE_PLAN[1:]),
    "another order": (ONE_PLAN[0], ONE_PLAN[2], ONE_PLAN[1], ONE_PLAN[3]),
}


@pytest.mark.parametrize("name", OTHER_PLANS)
def test_a_plan_after_another_is_stored_as_if_it_were_the_first(store: RunStore, tmp_path: Path, name: str) -> None:
    plan(store, *ONE_PLAN)
    store.save(b"key 1", answer())
    plan(store, *OTHER_PLANS[name])
    with RunStore(tmp_path / "fresh.sqlite") as fresh:
        plan(fresh, *OTHER_PLANS[name])
        fresh.save(b"key 1", answer())
        assert stored_rows(store) == stored_rows(fresh)
        assert store.counts() == fresh.counts()
        assert list(store.pending([1, 2])) == list(fresh.pending([1, 2]))


def test_fresh_forgets_only_answers_to_the_present_plan(store: RunStore) -> None:
    plan(store, row(1))
    store.save(b"key 1", answer())
    store.save(b"other", answer())
    store.forget_answers()
    assert store.counts()["missing"] == 1
    plan(store, row(1, key=b"other"))
    assert store.counts()["ok"] == 1


def test_a_plan_that_breaks_off_leaves_the_one_before(store: RunStore) -> None:
    plan(store, row(1))

    def broken():
        yield row(1)
        raise ValueError("the dataset ends in the middle of a record")

    with pytest.raises(ValueError, match="in the middle"):
        store.replace_plan({1: {}}, broken())
    assert store.jobs()[1]["dataset_path"] == "/data"
    assert store.pending_count([1]) == 1


def test_a_failed_job_makes_its_rows_errors_until_the_next_plan(store: RunStore) -> None:
    plan(store, row(1))
    store.fail_jobs([1], "the model could not be loaded")
    assert store.counts() == {"ok": 0, "error": 1, "missing": 0}
    plan(store, row(1))
    assert store.counts() == {"ok": 0, "error": 0, "missing": 1}


def test_saving_while_reading_pending_does_not_disturb_either(store: RunStore) -> None:
    plan(store, *(row(number) for number in range(500)))
    seen = []
    for question in store.pending([1]):
        seen.append(question.key)
        store.save(question.key, answer())
    assert len(set(seen)) == len(seen) == 500
    assert store.pending_count([1]) == 0


def test_everything_saved_is_there_for_another_process_at_once(store: RunStore, tmp_path: Path) -> None:
    plan(store, row(1))
    store.save(b"key 1", answer("ёж"))
    other = sqlite3.connect(tmp_path / "run.sqlite")
    assert other.execute("SELECT text, token_ids, notes FROM answers").fetchall() == [("ёж", "[4,2]", '["a note"]')]
    other.close()


@pytest.mark.parametrize("text", ["a\0b", "\r\n\t\f", "\ufeff42", "😀", "=1+1", "'\"", ""])
def test_any_text_comes_back_as_it_was(store: RunStore, text: str) -> None:
    plan(store, row(1, reference=text, question=text, doc_class=text))
    store.save(b"key 1", answer(text))
    (frame,) = read_frames(
        store.path,
        f"SELECT r.row AS row, a.text AS text, reference, question, doc_class {ROWS_AND_ANSWERS}",
        {"row": pl.Int64, **dict.fromkeys(("text", "reference", "question", "doc_class"), pl.String)},
    )
    assert frame.rows() == [(1, *(text,) * 4)]


def test_unpaired_surrogates_become_the_replacement_character() -> None:
    assert storable("a\ud800b") == "a\ufffdb"
    assert storable("\ud83d\ude00") == "😀"


def test_a_file_that_is_no_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.write_text("this is not a database, but it is long enough to be taken for one" * 20)
    with pytest.raises(RunError, match="cannot be opened"):
        RunStore(path)
    newer = tmp_path / "newer.sqlite"
    RunStore(newer).close()
    with sqlite3.connect(newer) as db:
        db.execute("UPDATE meta SET value = '999'")
    db.close()
    with pytest.raises(RunError, match="another version"):
        RunStore(newer)


def test_dataset_digest_follows_what_was_asked(store: RunStore) -> None:
    def digest(*rows: PlannedRow) -> str:
        plan(store, *rows)
        return store.dataset_digests()["/data"]

    store.remember_image("/data/a.png", 1, 1, "d1")
    first = digest(row(1))
    assert digest(row(1)) == first
    assert digest(row(1, reference="43")) != first
    store.remember_image("/data/a.png", 1, 1, "d2")
    assert digest(row(1)) != first


def test_jobs_that_ask_the_same_leave_the_dataset_digest_as_it_is(store: RunStore) -> None:
    plan(store, row(1), row(2))
    first = store.dataset_digests()
    plan(store, row(1), row(2), row(1, job=2), row(2, job=2))
    assert store.dataset_digests() == first
    plan(store, row(1), row(2), row(1, job=2), row(2, job=2, question="another one?"))
    assert store.dataset_digests() != first
