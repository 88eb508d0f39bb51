"""The parts of the report that can be looked at one by one."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
import vlmhb.report
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.report.boxes import box_on_page, box_order, parse_box
from vlmhb.report.plot import Axis, Point, scatter
from vlmhb.report.render import Cell, Table, figure, heat, markdown_text, row_link
from vlmhb.report.sections.analysis import confusions
from vlmhb.report.sections.speed import throughput
from vlmhb.report.texts import LANGUAGES, Texts, catalogue
from vlmhb.report.view import _labels
from vlmhb.report.viewer import script_json

SOURCES = Path(vlmhb.report.__file__).parent
METRICS = {metric.name: metric for metric in vlmhb_metrics()}


# --- texts


@pytest.mark.parametrize("key", catalogue())
def test_a_text_has_every_language_and_the_same_places_in_each(key: str) -> None:
    languages = catalogue()[key]
    assert set(languages) == set(LANGUAGES)
    places = {language: sorted(re.findall(r"\{(\w+)\}", text)) for language, text in languages.items()}
    assert places["en"] == places["ru"]
    assert all(text.strip() for text in languages.values())


def test_every_text_is_used_and_every_text_used_is_there() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in SOURCES.rglob("*") if path.suffix in (".py", ".j2", ".js")
    )
    used = set(re.findall(r"""text\(f?["']([a-z_]+\.[a-z_]+)["']""", code)) | set(re.findall(r'"(summary\.\w+)"', code))
    used |= {f"js.{key}" for key in re.findall(r'say\("(\w+)"', code)}
    used -= {"summary.html"}
    assert used <= set(catalogue()), used - set(catalogue())
    prefixes = set(re.findall(r"""text\(f["']([a-z_]+\.[a-z_]*)\{""", code))
    states = {"js.right", "js.wrong", "js.error", "js.missing"}
    unused = {key for key in catalogue() if key not in used | states and not any(key.startswith(p) for p in prefixes)}
    assert unused == set()


def test_a_text_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        Texts("en")("no.such")


# --- numbers, tables, links


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0.000"), (0.12345, "0.123"), (7, "7.000"), (42.123, "42.12"), (12345.6, "12\u202f345.6"), (-0.02, "-0.020")],
)
def test_a_figure_is_short(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_the_colour_scale_tells_large_error_rates_apart() -> None:
    shades = [heat(METRICS["cer"], value, 7.0) for value in (0, 0.05, 0.3, 1, 2, 7)]
    assert shades == sorted(shades)
    assert shades[0] == 0
    assert shades[-1] < 1
    assert all(later - sooner > 0.05 for sooner, later in pairwise(shades))


def test_the_colour_scale_of_a_bounded_metric_ends_at_its_bound() -> None:
    assert heat(METRICS["exact_match"], 1.0, 0.4) == 0
    assert heat(METRICS["exact_match"], 0.0, 0.4) == 1
    assert heat(METRICS["bleu"], 50.0, 50.0) == 0.5


def test_what_stands_in_a_table_is_text() -> None:
    evil = '<img src=x onerror="alert(1)">'
    table = Table(evil, [evil, "n"], [[Cell(evil, href='#row="x"/1'), Cell(evil, hint=evil, sort=1.0)]], frozenset({1}))
    assert "<img" not in table.html()
    assert "<img" not in table.markdown()
    assert '#row="' not in table.html()


def test_markdown_marks_in_texts_are_no_marks() -> None:
    assert markdown_text("a|b\n*c* `d` [e](f) <g>") == r"a\|b \*c\* \`d\` \[e\](f) &lt;g&gt;"
    lines = Table("", ["a|b"], [[Cell("x\ny|z")]]).markdown().splitlines()
    assert len(lines) == 3
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 2 for line in lines)


def test_a_link_to_a_row_survives_any_dataset_name() -> None:
    assert row_link("a b/ё\"'", 7) == "#row=a%20b%2F%D1%91%22%27/7"


def test_json_in_a_script_cannot_end_it() -> None:
    texts = ["</script><!--<script>", "\u2028\u2029", "&amp;", "\x00\x01\x0c", '"\\', "😀", float("nan")]
    written = script_json(texts)
    assert not re.search("[<>&\u2028\u2029\n]", written)
    assert json.loads(written) == [*texts[:-1], None]


def test_labels_say_what_tells_entries_apart_and_no_more() -> None:
    one = {"model": "m", "backend": "hf", "prompts": "", "dataset": "d", "run": "r1", "row": "row 1"}
    assert _labels([one]) == ["m · hf"]
    assert _labels([one, {**one, "backend": "vllm"}]) == ["m · hf", "m · vllm"]
    assert _labels([one, {**one, "prompts": "short"}]) == ["m · hf", "m · hf · short"]
    assert _labels([one, {**one, "run": "r2"}]) == ["m · hf · r1", "m · hf · r2"]
    assert _labels([one, {**one, "row": "row 2"}]) == ["m · hf · row 1", "m · hf · row 2"]
    assert _labels([one, {**one, "dataset": "other"}]) == ["m · hf", "m · hf"], "never beside each other"


# --- boxes


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("[120, 40, 260, 70]", (120, 40, 260, 70)),
        ("120.5;40;260;70", (120.5, 40, 260, 70)),
        ("(0.1 0.2 0.3 0.4)", (0.1, 0.2, 0.3, 0.4)),
        ("", None),
        ("[1, 2, 3]", None),
        ("[1, 2, 3, 4, 5]", None),
        ("[[1,2,3,4],[5,6,7,8]]", None),
        ("top left", None),
    ],
)
def test_reading_a_box(text: str, box: tuple[float, ...] | None) -> None:
    assert parse_box(text) == box


def test_the_order_of_boxes_is_the_one_that_fits_into_the_page() -> None:
    tall = (200, 1000)
    assert box_order([((10, 700, 150, 740), tall)]) == "xyxy"
    assert box_order([((700, 10, 740, 150), tall)]) == "yxyx"
    assert box_on_page((700, 10, 740, 150), tall, "yxyx") == [0.05, 0.7, 0.7, 0.04]


def test_where_both_orders_fit_lines_of_text_are_wider_than_high() -> None:
    page = (1000, 1000)
    assert box_order([((120, 40, 260, 70), page), ((120, 90, 260, 120), page)]) == "xyxy"
    assert box_order([((40, 120, 70, 260), page)] * 3 + [((1, 1, 50, 9), page)]) == "yxyx"
    assert box_order([]) == "xyxy"


def test_a_box_beyond_the_page_is_not_drawn() -> None:
    assert box_on_page((0, 0, 500, 10), (100, 100), "xyxy") is None
    assert box_on_page((50, 50, 20, 60), (100, 100), "xyxy") is None
    assert box_on_page((0.1, 0.2, 0.5, 0.25), (3000, 2000), "xyxy") == [0.1, 0.2, 0.4, 0.05]


# --- analysis, speed, plot


def test_mixed_up_letters_are_counted() -> None:
    counts, compared = confusions([("Иванов", "Иванoв"), ("007", "OO7"), ("1 234", "1234"), ("ab", "abc")])
    assert compared == 3, "of 007 more than half is wrong: something else was answered"
    assert counts == Counter({("о", "o"): 1, (" ", ""): 1, ("", "c"): 1})


def test_answers_that_are_something_else_are_no_mix_up() -> None:
    assert confusions([("Иванов", "I cannot read this field.")]) == (Counter(), 0)


def rows(*moments: float, tokens: int | None = 10, total: float | None = 1.0) -> pl.DataFrame:
    count = len(moments)
    return pl.DataFrame(
        {
            "status": ["ok"] * count,
            "answered_at": moments,
            "total_time": [total] * count,
            "output_tokens": [tokens] * count,
        },
        schema={"status": pl.String, "answered_at": pl.Float64, "total_time": pl.Float64, "output_tokens": pl.Int64},
    )


def test_throughput_goes_from_the_first_begin_to_the_last_stored_answer() -> None:
    assert throughput(rows(1.0, 1.5, 2.0, 2.5, 3.0)) == (5 / 3, 50 / 3, 0.0)
    assert throughput(rows(3.0, 1.0, 2.5, 1.5, 2.0)) == (5 / 3, 50 / 3, 0.0), "in whatever order they are"


def test_a_batch_stored_at_one_moment_took_its_own_time() -> None:
    burst = [100 + number / 1000 for number in range(20)]
    answers, tokens, paused = throughput(rows(*burst, total=1.981))
    assert answers == pytest.approx(20 / 2.0)
    assert tokens == pytest.approx(200 / 2.0)
    assert paused == 0
    again = [moment + 2 for moment in burst]
    assert throughput(rows(*burst, *again, total=1.981)).answers == pytest.approx(40 / 4.0)


def test_of_a_batch_the_longest_answer_says_when_it_began() -> None:
    batch = rows(10.0, 10.0, 10.0).with_columns(total_time=pl.Series([0.5, 3.0, 1.0]))
    assert throughput(batch).answers == 1.0


def test_time_between_answers_counts_and_a_pause_does_not() -> None:
    assert throughput(rows(1.0, 5.0, 9.0)) == (3 / 9, 30 / 9, 0.0), "3 s each without one, not a pause"
    assert throughput(rows(1.0, 2.0, 3.0, 5000.0, 5001.0)) == (5 / 5, 50 / 5, 4996.0)


def test_a_run_resumed_soon_has_the_speed_of_both_parts() -> None:
    parts = [10.0] * 8 + [12.0] * 8 + [42.0] * 8
    assert throughput(rows(*parts, total=2.0)) == (24 / 6, 240 / 6, 28.0)


def test_an_answer_that_takes_minutes_is_no_pause() -> None:
    assert throughput(rows(200.0, 400.0, total=200.0)) == (2 / 400, 20 / 400, 0.0)


def test_what_was_not_measured_has_no_throughput() -> None:
    assert throughput(rows(0.0, 1.0, total=None))[:2] == (None, None)
    assert throughput(rows())[:2] == (None, None)
    assert throughput(rows(3.0, total=0.0))[:2] == (None, None)
    assert throughput(rows(1.0, 2.0, tokens=None))[:2] == (1.0, None)


def test_axes_have_round_ticks_inside_them() -> None:
    ticks = Axis(0.0, 7.3, 0, 100).ticks()
    assert [label for _, label in ticks] == ["0", "2", "4", "6"]
    ticks = Axis(0.02, 30.0, 0, 100, logarithmic=True).ticks()
    assert [label for _, label in ticks] == ["0.1", "1", "10"]
    assert all(0 <= at <= 100 for at, _ in ticks)


def test_a_plot_says_in_words_what_it_shows_and_escapes_its_labels() -> None:
    drawn = scatter([Point("<b>m</b>", 2.0, 7.0, 5.0, 9.0), Point("n", 200.0, 0.1, 0.1, 0.1)], "x", "y", 'two "points"')
    assert 'role="img"' in drawn
    assert 'aria-label="two &#34;points&#34;"' in drawn
    assert "<b>" not in drawn
    assert drawn.count("<circle") == 2
    numbers = [float(number) for number in re.findall(r'c[xy]="(-?[\d.]+)"', drawn)]
    assert all(0 <= number <= 720 for number in numbers)


def test_the_core_offers_its_sections_through_the_hook() -> None:
    from vlmhb.discovery.registry import Registry

    places = [(section.name, section.place) for section in Registry().report_sections()]
    assert [name for name, _ in places[:3]] == ["summary", "leaderboard", "prompts"]
    assert [place for _, place in places] == sorted(place for _, place in places)


def test_numbered_points_are_named_in_the_table(tmp_path: Path) -> None:
    from support.stored import Asked, CoreRegistry, store_run
    from vlmhb.report.write import write_report

    rows = [Asked(str(page), "?", "ab") for page in range(4)]
    models = {f"m{number}": ["ab", "ab", "ab", "ab" if number % 2 else "x"] for number in range(9)}
    run = store_run(tmp_path / "run", rows, models, speeds=dict.fromkeys(list(models)[1:], 0.1))  # type: ignore[arg-type]
    write_report([run], CoreRegistry(), tmp_path / "few")  # type: ignore[arg-type]
    assert "<bdi>1. m" not in (tmp_path / "few" / "index.html").read_text(encoding="utf-8")
    more = store_run(tmp_path / "more", rows, models, speeds=dict.fromkeys(models, 0.1))  # type: ignore[arg-type]
    write_report([more], CoreRegistry(), tmp_path / "many")  # type: ignore[arg-type]
    page = (tmp_path / "many" / "index.html").read_text(encoding="utf-8")
    assert all(f"<bdi>{number}. m" in page for number in range(1, 10))
