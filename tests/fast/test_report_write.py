"""Reports of runs of known content: what they say, what they leave out, and that they never harm a run."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup
from PIL import Image
from support.stored import Asked, CoreRegistry, store_run
from vlmhb.contract.report import Fragment, ReportSection, ReportView
from vlmhb.errors import RunError
from vlmhb.report.write import report_of_run, write_report
from vlmhb.run.export import export
from vlmhb.run.folder import RunFolder
from vlmhb.run.store import RunStore

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u2028\x01"
SECTIONS = [
    *("summary", "leaderboard", "tradeoff", "heatmap", "analysis", "samples"),
    *("speed", "failures", "manifest"),
]


class Page(HTMLParser):
    """A page read as a browser would: tags with their attributes, and the text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.parts: list[str] = []
        self._skip = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._skip += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.parts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())

    @property
    def sections(self) -> list[str | None]:
        return [attrs["id"] for tag, attrs in self.tags if tag == "section"]


class Given(ReportSection):
    """A third party's section that returns, or raises, what a test says."""

    name = "given"

    def __init__(self, result: Fragment | Exception | None) -> None:
        self._result = result

    def title(self, view: ReportView) -> str:
        return "Given"

    def render(self, view: ReportView) -> Fragment | None:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def report(*runs: Path, more: tuple[ReportSection, ...] = (), **options: Any) -> Path:
    """Write a report into the first run and give its folder."""
    folder = runs[0] / "report"
    write_report(runs, CoreRegistry(more), folder, **options)  # type: ignore[arg-type]
    return folder


def data(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The viewer's index, and the records of all chunks."""

    def read(path: Path) -> Any:
        text = path.read_text(encoding="utf-8")
        match = re.fullmatch(r"vlmhb(?:Index\(|Chunk\(\d+,)(.*)\);\n", text, re.DOTALL)
        assert match, text[:80]
        return json.loads(match[1])

    chunks = sorted((folder / "samples").glob("[0-9]*.js"), key=lambda path: int(path.stem))
    return read(folder / "samples" / "index.js"), [record for chunk in chunks for record in read(chunk)]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cards" / "images" / "a 'quoted\" <b>.png"
    path.parent.mkdir(parents=True)
    Image.new("RGB", (2400, 600), "white").save(path)
    return path


@pytest.fixture
def cards(picture: Path) -> list[Asked]:
    image = f"images/{picture.name}"
    return [
        Asked("1", "Surname?", "Иванов", image=image, file=picture, box="[100, 1200, 200, 2000]"),
        Asked("1", "Number?", "0042", question_type="number", image=image, file=picture),
        Asked("2", "Surname?", "Петров", image=image, file=picture),
        Asked("2", "Total?", "", doc_class="bill", question_type="total", image=image, file=picture),
    ]


def test_every_section_is_there_in_its_order(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["Иванов", "0042", "Петроv", ""]}, speeds={"m": 0.1})
    page = Page(report(run) / "index.html")
    assert page.sections == SECTIONS
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a" and attrs.get("href", "").startswith("#")]
    assert {f"#{name}" for name in SECTIONS} <= set(links)


def test_nothing_is_fetched_from_anywhere(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["a"] * 4})
    folder = report(run)
    page = Page(folder / "index.html")
    addresses = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href") and value]
    assert [one for one in addresses if not one.startswith(("#", "samples/", "tables/", "data:,"))] == []
    assert [one for one in addresses if one.startswith("tables/") and not (folder / one).is_file()] == []
    assert not re.search(r"https?://|url\(|@import", (folder / "index.html").read_text(encoding="utf-8"))


def test_the_summary_says_the_result_and_how_sure_it_is(tmp_path: Path) -> None:
    rows = [Asked(str(page), "?", "abcd") for page in range(40)]
    answers: list[str | None] = ["abcd" if page % 4 else "abxx" for page in range(40)]
    run = store_run(tmp_path / "run", rows, {"m": answers}, metrics=("exact_match", "cer"))
    text = Page(report(run) / "index.html").text
    found = re.search(
        r"m · hf on cards: Exact match 0\.750, 95 % interval (0\.\d+) … (0\.\d+), over 40 answered rows on 40 pages",
        text,
    )
    assert found, text[:600]
    low, high = map(float, found.groups())
    assert 0.55 < low < 0.68 < 0.82 < high < 0.92
    assert "All 40 rows have an answer." in text


def test_the_summary_does_not_call_a_difference_real_that_is_not(tmp_path: Path) -> None:
    rows = [Asked(str(page), "?", "abcd") for page in range(60)]
    good: list[str | None] = ["abcd"] * 50 + ["x"] * 10
    hardly_better: list[str | None] = ["x"] * 9 + ["abcd"] * 51
    bad: list[str | None] = ["abcd"] * 5 + ["x"] * 55
    both = store_run(tmp_path / "a", rows, {"good": good, "better": hardly_better}, metrics=("exact_match",))
    text = Page(report(both) / "index.html").text
    assert "better · hf is first on cards" in text
    assert "these data do not tell the two apart" in text
    clear = store_run(tmp_path / "b", rows, {"bad": bad, "good": good}, metrics=("exact_match",))
    text = Page(report(clear) / "index.html").text
    assert "It is ahead of bad · hf by 0.750" in text
    assert "these data tell the two apart" in text


def test_the_summary_names_no_winner_where_entries_are_equal(tmp_path: Path) -> None:
    rows = [Asked(str(page), "?", "abcd") for page in range(20)]
    same: list[str | None] = ["abcd"] * 18 + ["abcx"] * 2
    run = store_run(tmp_path / "a", rows, {"one": same, "two": same, "three": same})
    text = Page(report(run) / "index.html").text
    assert (
        "3 of 3 entries are equal and share the first place on cards: one · hf, two · hf, three · hf, each with" in text
    )
    assert "is first on" not in text
    assert "apart" not in text.split("All 60 rows")[0]
    mirrored = same[::-1]
    run = store_run(tmp_path / "b", rows, {"bad": ["x"] * 20, "one": same, "two": mirrored})
    text = Page(report(run) / "index.html").text
    assert "2 of 3 entries are equal and share the first place on cards: one · hf, two · hf, each with" in text
    assert "one · hf is ahead of the next, bad · hf, by 0.975" in text


def test_a_rate_above_one_is_not_cut(tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", [Asked("1", "?", "ab"), Asked("2", "?", "ab")], {"m": ["x" * 14, "ab"]})
    folder = report(run)
    text = Page(folder / "index.html").text
    assert "7.000" in text
    assert "3.500" in text
    index, _ = data(folder)
    assert index["entries"][0]["scores"][0] == [7.0, 0.0]


def test_a_group_without_a_scored_row_has_no_mean(tmp_path: Path) -> None:
    rows = [
        Asked("1", "?", "a"),
        Asked("2", "?", "b", doc_class="bill", error="image none.png: there is no such file"),
        Asked("3", "?", "c", doc_class="bill", error="image none.png: there is no such file"),
    ]
    run = store_run(tmp_path / "run", rows, {"m": ["a", None, None]})
    folder = report(run)
    page = Page(folder / "index.html")
    assert "n/a n=2, ✗2" in page.text
    assert "Of 3 rows in all, 2 failed" in page.text
    assert not re.search(r"\b(nan|NaN|Infinity|None)\b", page.text)
    assert "| bill | n/a |" in (folder / "report.md").read_text(encoding="utf-8")
    index, records = data(folder)
    assert index["entries"][0]["scores"][0] == [0.0, None, None]
    assert [record["answers"][0].get("e") for record in records] == [None, rows[1].error, rows[1].error]


def test_a_run_in_which_everything_failed_has_a_report(tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", [Asked("1", "?", "a")], {"m": [None]})
    page = Page(report(run) / "index.html")
    assert "No row of cards was scored" in page.text
    assert "Out of memory" in page.text
    assert "could not be made" not in page.text


def test_different_errors_are_said_and_the_common_rows_compared(tmp_path: Path) -> None:
    rows = [Asked(str(page), "?", "ab") for page in range(4)]
    run = store_run(tmp_path / "run", rows, {"all": ["ab", "ab", "xx", "xx"], "some": ["ab", "ab", "xx", None]})
    text = Page(report(run) / "index.html").text
    assert "Not every entry answered the same rows" in text
    assert "Means over the 3 rows of cards that all answered" in text
    common = text.split("Means over the 3 rows of cards")[1].split("Means go over")[0]
    assert common.count("0.333") >= 2


def test_several_runs_are_joined_row_by_row(tmp_path: Path, cards: list[Asked]) -> None:
    first = store_run(tmp_path / "first", cards, {"m": ["Иванов", "0042", "x", ""]})
    second = store_run(tmp_path / "second", cards[:3], {"m": ["Иванов", "0000", "Петров"]}, backend="vllm")
    index, records = data(report(first, second))
    assert [entry["label"] for entry in index["entries"]] == ["m · hf", "m · vllm"]
    assert index["row"] == [1, 2, 3, 4]
    assert [entry["status"] for entry in index["entries"]] == [[0, 0, 0, 0], [0, 0, 0, 3]]
    assert [answer and answer["a"] for answer in records[1]["answers"]] == ["0042", "0000"]
    assert records[3]["answers"][1] is None


def test_another_datasets_rows_are_not_beside_them(tmp_path: Path, cards: list[Asked]) -> None:
    first = store_run(tmp_path / "first", cards, {"m": ["a"] * 4})
    second = store_run(tmp_path / "second", cards, {"m": ["b"] * 4}, dataset=Path("other"))
    folder = report(first, second)
    index, _ = data(folder)
    assert index["datasets"] == ["cards", "other"]
    assert len(index["row"]) == 8
    assert "m · hf — other" in Page(folder / "index.html").text


def test_whatever_was_written_is_shown_as_text(tmp_path: Path, picture: Path) -> None:
    row = Asked(EVIL, EVIL, EVIL, EVIL, EVIL, f"images/{picture.name}", picture, EVIL)
    run = store_run(tmp_path / EVIL.replace("/", "").replace("\0", ""), [row], {EVIL: [EVIL + "x"]})
    folder = report(run)
    page = Page(folder / "index.html")
    assert [attrs for tag, attrs in page.tags if "onerror" in attrs or tag == "img"] == []
    assert sum(tag == "script" for tag, _ in page.tags) == 6
    assert "<script>alert(1)" in page.text
    index, (record,) = data(folder)
    assert (record["q"], record["ref"], record["answers"][0]["a"]) == (EVIL, EVIL, EVIL + "x")
    assert index["classes"] == [EVIL]
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert not re.search(r"<[a-z/]", markdown)
    for file in (folder / "samples").iterdir():
        assert "<" not in file.read_text(encoding="utf-8")


def test_every_text_comes_through_as_it_is(tmp_path: Path) -> None:
    texts = [
        "=1+1",
        "<script>alert(1)</script>",
        "a\fb\x01c",
        "строка\r\nстрока\tтаб",
        "-42",
        "@SUM(1)",
        "\u202eabc",
        "😀é",
    ]
    run = store_run(tmp_path / "run", [Asked(str(n), "?", text) for n, text in enumerate(texts)], {"m": texts})
    _, records = data(report(run))
    assert [record["answers"][0]["a"] for record in records] == texts
    assert [record["ref"] for record in records] == texts


def test_images_have_names_of_our_own_and_a_bounded_size(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})
    folder = report(run)
    names = sorted(path.name for path in (folder / "images").iterdir())
    assert len(names) == 2
    assert all(re.fullmatch(r"[0-9a-f]{20}(\.t)?\.jpg", name) for name in names)
    index, _ = data(folder)
    with Image.open(folder / "images" / f"{index['pages'][0]}.jpg") as page:
        assert page.size == (1600, 400)
    assert index["images"] == [[0]] * 4
    assert index["boxes"] == {"0": [0.5, 0.16667, 0.33333, 0.16667]}, "y1 x1 y2 x2: the other order leaves the page"


def test_a_report_is_built_again_without_the_dataset(tmp_path: Path, cards: list[Asked], picture: Path) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})
    before, _ = data(report(run))
    shutil.rmtree(picture.parents[1])
    moved = tmp_path / "elsewhere"
    run.rename(moved)
    index, records = data(report(moved))
    assert (index["pages"], index["images"], index["boxes"]) == (before["pages"], before["images"], before["boxes"])
    other = tmp_path / "alone"
    write_report([moved], CoreRegistry(), other)  # type: ignore[arg-type]
    assert data(other)[0]["pages"] == before["pages"]
    assert (other / "images" / f"{before['pages'][0]}.jpg").is_file()
    assert records[0]["q"] == "Surname?"


def test_images_that_changed_are_made_again_and_old_ones_go(tmp_path: Path, cards: list[Asked], picture: Path) -> None:
    import os

    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})
    folder = report(run)
    Image.new("RGB", (300, 300), "white").save(picture)
    later = (folder / "images" / f"{data(folder)[0]['pages'][0]}.jpg").stat().st_mtime + 10
    os.utime(picture, (later, later))
    (folder / "images" / "00000000000000000000.jpg").write_bytes(b"old")
    index, _ = data(report(run))
    with Image.open(folder / "images" / f"{index['pages'][0]}.jpg") as page:
        assert page.size == (300, 300)
    assert len(list((folder / "images").iterdir())) == 2


def test_an_image_that_cannot_be_read_is_left_out_and_said(tmp_path: Path, cards: list[Asked], picture: Path) -> None:
    picture.write_bytes(b"no picture")
    folder = report(store_run(tmp_path / "run", cards, {"m": ["x"] * 4}))
    assert data(folder)[0]["images"] == [[]] * 4
    assert "Page images that cannot be shown" in Page(folder / "index.html").text


def test_limits_keep_what_went_wrong(tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.png" for n in range(6)]
    for file in files:
        Image.new("RGB", (30, 40), "white").save(file)
    rows = [Asked(str(n), "?", "a", image=file.name, file=file) for n, file in enumerate(files)]
    run = store_run(tmp_path / "run", rows, {"m": ["a", "a", "a", "a", "x", "x"]})
    folder = report(run, most_samples=3, most_pages=1)
    index, records = data(folder)
    assert index["row"] == [1, 5, 6]
    assert index["images"] == [[], [0], []]
    assert len(records) == 3
    text = Page(folder / "index.html").text
    assert "3 of 6 samples" in text
    assert "1 of 3 page images" in text
    assert "6 answered rows" in text or "over 6" in text, "the figures go over all rows"


def test_samples_come_in_chunks(tmp_path: Path) -> None:
    rows = [Asked(str(n), f"q{n}", f"r{n}") for n in range(450)]
    folder = report(store_run(tmp_path / "run", rows, {"m": [f"a{n}" for n in range(450)]}))
    index, records = data(folder)
    assert sorted(path.name for path in (folder / "samples").iterdir()) == ["0.js", "1.js", "2.js", "index.js"]
    assert [record["q"] for record in records] == [f"q{n}" for n in range(450)]
    assert len(index["ref"]) == len(index["row"]) == len(index["images"]) == 450


def test_a_report_in_russian(tmp_path: Path, cards: list[Asked]) -> None:
    folder = report(store_run(tmp_path / "run", cards, {"m": ["x"] * 4}), language="ru")
    page = Page(folder / "index.html")
    assert dict(page.tags[0][1]) == {"lang": "ru"}
    assert "Итог" in page.text
    assert "95 % интервал" in page.text
    assert "Summary" not in page.text
    assert "## Итог" in (folder / "report.md").read_text(encoding="utf-8")


def test_the_summary_for_a_pull_request_has_the_tables(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m|1": ["Иванов", "0042", None, ""], "n": ["x", "x", "x", "x"]})
    text = (report(run) / "report.md").read_text(encoding="utf-8")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert any(re.match(r"\| m\\\|1 · hf \| 4 \| 3 \| 1 \| 0 \| 0\.000", line) for line in tables)
    for before, line in pairwise(tables):
        if before.startswith("| ---") or line.startswith("| ---"):
            count = [len(re.findall(r"(?<!\\)\|", one)) for one in (before, line)]
            assert count[0] == count[1]


def test_metrics_chosen_later_are_those_of_the_report(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["ИВАНОВ", "0042", "Петров", ""]})
    with RunFolder(run) as home, RunStore(home.database) as store:
        export(store, CoreRegistry(), home, metrics=("anls",), normalize=("nfc", "case"))  # type: ignore[arg-type]
    index, _ = data(report(run))
    assert [metric["name"] for metric in index["entries"][0]["metrics"]] == ["anls"]
    assert index["entries"][0]["wrong"] == [0, 0, 0, 0]


def test_a_metric_that_is_gone_is_left_out_and_said(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})

    class Fewer(CoreRegistry):
        def metrics(self) -> dict[str, Any]:
            return {name: metric for name, metric in super().metrics().items() if name != "wer"}

    written = write_report([run], Fewer(), run / "report")  # type: ignore[arg-type]
    assert any("wer" in note for note in written.notes)
    text = Page(written.index).text
    assert "The metric wer of the run is not installed here" in text
    assert "Exact match" in text


# --- third parties' sections


def test_a_sections_text_is_escaped_and_its_markup_is_not(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})
    plain = report(run, more=(Given(Fragment(html="<b id=mine>1</b>", markdown="*mine*")),))
    page = Page(plain / "index.html")
    assert "given" in page.sections
    assert "<b id=mine>1</b>" in page.text
    assert "*mine*" in (plain / "report.md").read_text(encoding="utf-8")
    marked = Page(report(run, more=(Given(Fragment(html=Markup("<b id=mine>1</b>"))),)) / "index.html")
    assert ("b", {"id": "mine"}) in marked.tags


def test_a_section_may_have_nothing_to_show(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})
    assert "given" not in Page(report(run, more=(Given(None),)) / "index.html").sections


@pytest.mark.parametrize("error", [ValueError("<b>broken</b>"), OSError(2, "no such thing")])
def test_a_section_that_fails_harms_no_other(tmp_path: Path, cards: list[Asked], error: Exception) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})
    written = write_report([run], CoreRegistry((Given(error),)), run / "report")  # type: ignore[arg-type]
    page = Page(written.index)
    assert f"The section given could not be made: {type(error).__name__}" in page.text
    assert "summary" in page.sections
    assert "manifest" in page.sections
    assert ("b", {}) not in page.tags
    assert any("given" in note for note in written.notes)
    assert "given" in (run / "report" / "report.md").read_text(encoding="utf-8")


def test_further_accepted_answers_are_beside_the_first(tmp_path: Path) -> None:
    rows = [Asked("1", "?", "a", others=("b  c", "</script>")), Asked("2", "?", "d")]
    run = store_run(tmp_path / "run", rows, {"m": ["b c", "d"]})
    folder = report(run)
    _, (first, second) = data(folder)
    assert (first["ref"], first["refs"], first["crefs"]) == ("a", ["b  c", "</script>"], ["b c", "</script>"])
    assert second.keys() & {"refs", "crefs"} == set()
    assert "</script>" not in (folder / "samples" / "0.js").read_text(encoding="utf-8")


def test_a_section_reads_rows_texts_and_tables(tmp_path: Path, cards: list[Asked]) -> None:
    seen: dict[str, Any] = {}

    class Looks(Given):
        def render(self, view: ReportView) -> Fragment | None:
            (entry,) = view.entries
            seen["rows"] = view.rows(entry)
            seen["texts"] = view.texts(entry, [1, 3])
            seen["table"] = view.table(entry, "by_doc_type")
            return None

    report(store_run(tmp_path / "run", cards, {"m": ["Иванов ", "0042", None, ""]}), more=(Looks(None),))
    rows = seen["rows"]
    assert rows["status"].to_list() == ["ok", "ok", "error", "ok"]
    assert rows["wrong"].to_list() == [False, False, True, False]
    assert rows["error_kind"].to_list() == [None, None, "out_of_memory", None]
    assert rows["page"].to_list() == [0, 0, 1, 1]
    assert rows["cer"].to_list() == [0.0, 0.0, None, 0.0]
    texts = seen["texts"].to_dicts()
    assert [text["row"] for text in texts] == [1, 3]
    assert (texts[0]["answer"], texts[0]["compared_answer"]) == ("Иванов ", "Иванов")
    assert texts[1]["compared_answer"] is None
    assert texts[0]["other_references"] == texts[0]["compared_others"] == []
    assert "not enough memory" in texts[1]["error"]
    assert seen["table"]["doc_class"].to_list() == ["card", "bill"]


# --- refusals


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        report(tmp_path)


def test_a_damaged_database_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").write_bytes(b"not a database, not at all" * 100)
    with pytest.raises(RunError, match="run's database"):
        report(tmp_path)


def test_a_finished_run_is_never_harmed_by_its_report(tmp_path: Path, cards: list[Asked]) -> None:
    run = store_run(tmp_path / "run", cards, {"m": ["x"] * 4})
    (run / "report").write_text("a file where the folder should be")
    (note,) = report_of_run(run, CoreRegistry())  # type: ignore[arg-type]
    assert "the report could not be written" in note
    assert f"vlmhb report {run}" in note
    assert (run / "answers.csv").is_file()

    class Broken(CoreRegistry):
        def report_sections(self) -> list[ReportSection]:
            raise AttributeError("a plugin's fault")

    (run / "report").unlink()
    (note,) = report_of_run(run, Broken())  # type: ignore[arg-type]
    assert "AttributeError: a plugin's fault" in note
