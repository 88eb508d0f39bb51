"""The report in a real browser, opened from its folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from support.browser import Browser, Page
from support.stored import Asked, CoreRegistry, store_run
from vlmhb.report.write import write_report

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
READY = "document.querySelectorAll('#sample .answer').length > 0"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two models on six rows, among them whatever may go wrong."""
    root = tmp_path_factory.mktemp("report with 'quotes' & spaces")
    picture = root / "cards" / "images" / "a 'b\" <i>.png"
    picture.parent.mkdir(parents=True)
    Image.new("RGB", (400, 200), "white").save(picture)
    image = {"image": f"images/{picture.name}", "file": picture}
    rows = [
        Asked("1", "Фамилия?", "Иванов", box="[40, 20, 200, 60]", question_type="surname", **image),
        Asked("1", "Number?", "0042", question_type="number", **image),
        Asked("2", "Total?", "1 234,50", doc_class="bill", question_type="total", **image),
        Asked("2", EVIL, EVIL, doc_class=EVIL, question_type="evil", **image),
        Asked("3", "Text?", "a\fb\x01c\nd\u202ee", doc_class="bill", question_type="text", **image),
        Asked(
            "4", "Lost?", "x", doc_class="bill", question_type="lost", image="none.png", error="none.png: no such file"
        ),
    ]
    good: list[str | None] = ["Иванов", "0042", "1 234,50", EVIL + "!", "a\fb\x01c\nd\u202ee", None]
    bad: list[str | None] = ["Ивaнов", "O042", None, "no", "abc", None]
    run = store_run(root / "run", rows, {"good": good, "bad": bad}, speeds={"good": 0.5, "bad": 0.1})
    write_report([run], CoreRegistry(), root / "report")  # type: ignore[arg-type]
    return root / "report"


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Open]:
    """Opens the report; at the end nothing may have been logged, asked of another place, or popped up."""
    pages: list[Page] = []

    def call(fragment: str = "", **window: int | bool) -> Page:
        page = browser.page(**window)  # type: ignore[arg-type]
        pages.append(page)
        page.open((folder / "index.html").as_uri() + fragment, READY)
        return page

    yield call
    for page in pages:
        page.settle()
        assert page.errors == []
        assert page.dialogs == []
        inside = (folder.as_uri(), "data:")
        assert [request for request in page.requests if not request.startswith(inside)] == []
        page.close()


def shown(page: Page) -> list[int]:
    """Row numbers in the list."""
    found: list[int] = page.value("[...document.querySelectorAll('.line')].map((line) => Number(line.dataset.row))")
    return found


def selected(page: Page) -> int:
    row: int = page.value("Number(document.querySelector('.line[aria-selected=true]').dataset.row)")
    return row


def choose(page: Page, menu: str, label: str) -> None:
    page.value(
        f"""(() => {{
          const menu = document.querySelector('#viewer form').elements['{menu}'];
          menu.value = [...menu.options].find((one) => one.label.startsWith({label!r})).value;
          menu.dispatchEvent(new Event('change', {{ bubbles: true }}));
        }})()"""
    )


def test_it_opens_with_everything_in_sight(opened: Open) -> None:
    page = opened()
    assert shown(page) == [1, 2, 3, 4, 5, 6]
    assert page.value("document.querySelectorAll('section').length") == 9
    assert page.value("document.querySelectorAll('#sample .answer').length") == 2
    page.value("document.getElementById('samples').scrollIntoView()")
    page.wait("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")


def test_answers_stand_beside_each_other_with_their_differences(opened: Open) -> None:
    page = opened("#row=cards/1")
    text = page.value("[...document.querySelectorAll('#sample .diff')].map((one) => one.innerHTML)")
    assert text == ["Иванов", "Ив<del>а</del><ins>a</ins>нов"]
    assert page.value("document.querySelector('#sample .state.wrong').textContent") == "wrong"


@pytest.mark.parametrize(
    ("language", "also", "compared", "near"),
    [
        ("en", "Also right", "as compared", "Compared with another right answer, the nearest"),
        ("ru", "Тоже верно", "при сравнении", "Сравнено с другим верным ответом, ближайшим"),
    ],
)
def test_every_accepted_answer_is_shown_and_answers_are_compared_with_the_nearest(
    browser: Browser, tmp_path: Path, language: str, also: str, compared: str, near: str
) -> None:
    rows = [Asked("1", "Сумма?", "12,50", others=("12.50", EVIL, "двенадцать  с половиной")), Asked("2", "Имя?", "Аня")]
    answers: dict[str, list[str | None]] = {
        "first": ["12,50", "Аня"],
        "other": ["двенадцать с половиной", "Аня"],
        "close": ["12.5O", "Яна"],
    }
    run = store_run(tmp_path / "run", rows, answers)
    written = write_report([run], CoreRegistry(), tmp_path / "report", language=language)  # type: ignore[arg-type]
    page = browser.page()
    page.open(written.index.as_uri(), READY)
    fields = page.value(
        "[...document.querySelectorAll('#sample .about .field')].slice(1).map((one) => "
        "[one.querySelector('small').textContent, one.querySelector('.text').textContent])"
    )
    assert fields[1:] == [
        [also, "12.50"],
        [also, EVIL],
        [also, "двенадцать  с половиной"],
        [f"{also} ({compared})", "двенадцать с половиной"],
    ]
    assert page.value("[...document.querySelectorAll('#sample .diff')].map((one) => one.innerHTML)") == [
        "12,50",
        "двенадцать с половиной",
        "12.5<del>0</del><ins>O</ins>",
    ]
    folded = "[...document.querySelectorAll('#sample .answer')].map((one) => one.querySelector('details')?.textContent)"
    assert page.value(folded) == [None, f"{near}двенадцать с половиной", f"{near}12.50"]
    assert page.value("[...document.querySelectorAll('#sample .state')].map((one) => one.className)") == [
        "state right",
        "state right",
        "state wrong",
    ]
    page.key("/")
    page.write("onerror")
    page.wait("document.querySelectorAll('.line').length === 1")
    assert shown(page) == [1]
    page.key("Escape")
    page.value("document.querySelector('#viewer [type=reset]').click()")
    page.wait("document.querySelectorAll('.line').length === 2")
    page.key("j")
    page.wait("document.querySelectorAll('#sample .about .field').length === 2")
    page.settle()
    assert (page.errors, page.dialogs) == ([], [])
    page.close()


def test_the_answers_place_is_marked_on_the_page(opened: Open) -> None:
    page = opened("#row=cards/1")
    page.wait("document.querySelector('.page img').naturalWidth > 0")
    box, image = page.value(
        """['.box', '.page img'].map((one) => {
          const place = document.querySelector(one).getBoundingClientRect();
          return [place.x, place.y, place.width, place.height];
        })"""
    )
    shares = [(box[n] - image[n]) / image[n + 2] for n in (0, 1)] + [box[n] / image[n] for n in (2, 3)]
    assert shares == pytest.approx([0.1, 0.1, 0.4, 0.2], abs=0.02)


def test_filters_narrow_the_list(opened: Open) -> None:
    page = opened()
    choose(page, "cls", "bill")
    assert shown(page) == [3, 5, 6]
    choose(page, "type", "total")
    assert shown(page) == [3]
    assert "1 of 6" in page.value("document.getElementById('shown').textContent")
    page.value("document.querySelector('#viewer [type=reset]').click()")
    page.wait("document.querySelectorAll('.line').length === 6")


def test_only_wrong_answers_of_one_model(opened: Open) -> None:
    page = opened()
    page.value("document.querySelector('[name=wrong]').click()")
    assert shown(page) == [1, 2, 3, 4, 5, 6]
    choose(page, "entry", "good")
    assert shown(page) == [4, 6]
    assert selected(page) == 4


def test_sorting_by_a_metric(opened: Open) -> None:
    page = opened()
    choose(page, "entry", "bad")
    choose(page, "sort", "worst first: CER")
    worst = shown(page)
    assert set(worst[-2:]) == {3, 6}, "rows without a value come last"
    choose(page, "sort", "best first: CER")
    assert shown(page)[:4] == worst[:4][::-1]
    choose(page, "sort", "worst first: Exact match")
    assert set(shown(page)[-2:]) == {3, 6}


@pytest.mark.parametrize(("text", "rows"), [("ФАМИЛИЯ", [1]), ("1 234", [3]), ("o042", [2]), ("<script>", [4])])
def test_search_looks_into_questions_references_and_answers(opened: Open, text: str, rows: list[int]) -> None:
    page = opened()
    page.key("/")
    page.write(text)
    page.wait(f"document.querySelectorAll('.line').length === {len(rows)}")
    assert shown(page) == rows
    page.key("Escape")
    assert page.value("document.activeElement === document.body")


def test_a_search_without_a_hit_says_so(opened: Open) -> None:
    page = opened()
    page.key("/")
    page.write("no such text")
    page.wait("document.querySelectorAll('.line').length === 0")
    assert page.value("document.getElementById('shown').textContent") == "No sample fits the filters."


def test_keys_move_through_the_samples(opened: Open) -> None:
    page = opened()
    for key in ("j", "j", "k"):
        page.key(key)
    assert selected(page) == 2
    page.value("document.getElementById('list').focus()")
    page.key("ArrowDown")
    assert selected(page) == 3
    page.key("End")
    assert selected(page) == 6
    page.key("Home")
    assert selected(page) == 1
    page.key("w")
    assert page.value("document.querySelector('[name=wrong]').checked")


def test_letters_typed_into_a_field_are_no_commands(opened: Open) -> None:
    page = opened()
    page.value("document.querySelector('[name=search]').focus()")
    page.key("j")
    assert selected(page) == 1


def test_a_link_leads_to_its_sample(opened: Open) -> None:
    page = opened("#row=cards/5")
    assert selected(page) == 5
    assert page.value("document.getElementById('samples').getBoundingClientRect().top") < 400
    page.key("k")
    assert page.value("location.hash") == "#row=cards/4"
    page.value("location.hash = '#row=2'")
    page.wait("document.querySelector('.line[aria-selected=true]').dataset.row === '2'")


def test_a_link_goes_before_the_filters(opened: Open) -> None:
    page = opened()
    choose(page, "cls", "bill")
    page.value("location.hash = '#row=cards/1'")
    page.wait("document.querySelector('.line[aria-selected=true]').dataset.row === '1'")
    page.wait("document.querySelectorAll('.line').length === 6")


@pytest.mark.parametrize("fragment", ["#row=cards/99", "#row=nothing/1", "#row=%", "#nonsense"])
def test_a_link_to_nothing_shows_the_first_sample(opened: Open, fragment: str) -> None:
    assert selected(opened(fragment)) == 1


def test_what_models_and_users_wrote_is_shown_as_text(opened: Open) -> None:
    page = opened("#row=cards/4")
    assert page.value("document.querySelectorAll('main script, main img[src=x], i').length") == page.value(
        "document.querySelectorAll('.scale i').length"
    )
    assert EVIL in page.value("document.querySelector('#sample .field .text').textContent")
    assert page.value("document.querySelector('#sample .diff').textContent") == EVIL + "!"
    assert "<i>.png" in page.value("document.querySelector('.file').textContent")


def test_signs_that_cannot_be_seen_are_named(opened: Open) -> None:
    page = opened("#row=cards/5")
    reference = page.value("document.querySelectorAll('#sample .field .text')[1].textContent")
    assert reference == "a␌b␁c↵\ndU+202Ee"


def test_failed_rows_say_why(opened: Open) -> None:
    page = opened("#row=cards/6")
    assert page.value("document.querySelector('#sample .warning').textContent") == "none.png: no such file"
    assert "No image" in page.value("document.querySelector('.pages').textContent")
    page.value("location.hash = '#row=cards/3'")
    page.wait("document.querySelector('#sample .state.error')")


def test_tables_sort_by_their_numbers(opened: Open) -> None:
    page = opened()
    column = "[...document.querySelector('#leaderboard table').tBodies[0].rows].map((row) => row.cells[5].textContent)"
    page.value("[...document.querySelectorAll('#leaderboard table thead th')][5].querySelector('button').click()")
    rising = page.value(column)[:2]
    page.value("[...document.querySelectorAll('#leaderboard table thead th')][5].querySelector('button').click()")
    falling = page.value(column)[:2]
    assert rising == falling[::-1]
    assert rising[0] < rising[1]


def test_the_heat_map_follows_its_menus(opened: Open) -> None:
    page = opened()
    page.value(
        """(() => { const form = document.querySelector('.heatmaps form');
        form.elements.entry.value = '1'; form.elements.metric.value = 'wer';
        form.dispatchEvent(new Event('change')); })()"""
    )
    visible = "[...document.querySelectorAll('.heatmap')].filter((map) => !map.hidden).map((map) => map.innerText)"
    (text,) = page.value(visible)
    assert "WER of bad · hf" in text


def test_dark_and_light_follow_the_system_and_the_button(opened: Open) -> None:
    dark = opened(dark=True)
    back = "getComputedStyle(document.body).backgroundColor"
    assert dark.value(back) == "rgb(21, 23, 26)"
    dark.value("document.getElementById('theme').click()")
    assert dark.value(back) == "rgb(250, 250, 248)"
    dark.value("localStorage.clear()")
    assert opened().value(back) == "rgb(250, 250, 248)"


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_hangs_over_the_edge_of_a_narrow_window(opened: Open, width: int) -> None:
    page = opened(width=width, height=800)
    assert page.value("document.documentElement.scrollWidth") <= width


def test_text_stands_out_from_what_is_behind_it(opened: Open) -> None:
    """Every text of the page against its nearest opaque background, by WCAG's formula: 4.5 to 1."""
    low = """(() => {
      const channel = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255);
      };
      const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
      const behind = (node) => {
        for (; node; node = node.parentElement) {
          const colour = rgba(getComputedStyle(node).backgroundColor);
          if (colour[3] > 0.99) return colour;
        }
        return [1, 1, 1, 1];
      };
      const found = [];
      for (const node of document.querySelectorAll('main *, header *, footer')) {
        const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
        if (!own || !node.getClientRects().length || node.closest('svg, noscript')) continue;
        const [a, b] = [light(rgba(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push([node.tagName, node.className, ratio.toFixed(2), node.textContent.slice(0, 30)]);
      }
      return found;
    })()"""
    assert opened().value(low) == []
    assert opened(dark=True).value(low) == []


def test_every_control_has_a_name(opened: Open) -> None:
    page = opened()
    unnamed = """[...document.querySelectorAll('button, select, input, a, [role=listbox], svg')].filter((node) =>
      !(node.getAttribute('aria-label') || node.labels?.length || node.textContent.trim() || node.querySelector('img')))
      .map((node) => node.outerHTML.slice(0, 80))"""
    assert page.value(unnamed) == []
    assert page.value("new Set([...document.querySelectorAll('[id]')].map((node) => node.id)).size") == page.value(
        "document.querySelectorAll('[id]').length"
    )


def test_on_paper_everything_is_unfolded_and_the_controls_are_gone(opened: Open) -> None:
    page = opened()
    page.call("Emulation.setEmulatedMedia", media="print")
    page.value("dispatchEvent(new Event('beforeprint'))")
    assert page.value("document.querySelectorAll('details:not([open])').length") == 0
    assert page.value("document.querySelector('nav').getClientRects().length") == 0
    assert page.value("document.getElementById('list').getClientRects().length") == 0
    page.value("dispatchEvent(new Event('afterprint'))")
    assert page.value("document.querySelectorAll('details:not([open])').length") > 0


def test_a_chunk_that_is_gone_is_said(browser: Browser, tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", [Asked("1", "?", "a")], {"m": ["a"]})
    written = write_report([run], CoreRegistry(), run / "report")  # type: ignore[arg-type]
    (run / "report" / "samples" / "0.js").unlink()
    page = browser.page()
    page.open(written.index.as_uri(), "document.querySelector('#sample .warning')")
    assert "A file of the report is missing" in page.value("document.getElementById('sample').textContent")
    page.close()


# --- size


def large(folder: Path, count: int) -> Path:
    rows = [
        Asked(str(n // 4), f"Question {n}?", f"Reference {n} ключ", f"class {n % 7}", f"type {n % 20}")
        for n in range(count)
    ]
    models: dict[str, list[str | None]] = {
        f"model-{m}": [row.reference if (n + m) % 3 else f"Answer {n}" for n, row in enumerate(rows)] for m in range(3)
    }
    run = store_run(folder, rows, models)  # type: ignore[arg-type]
    return write_report([run], CoreRegistry(), folder / "report").index  # type: ignore[arg-type]


def opening_time(browser: Browser, index: Path) -> float:
    """Seconds until the first sample is drawn; the best of five, since other work disturbs single ones."""
    times = []
    for _ in range(5):
        page = browser.page()
        started = time.perf_counter()
        page.open(index.as_uri(), READY)
        times.append(time.perf_counter() - started)
        page.close()
    return min(times)


@pytest.mark.slow
def test_ten_thousand_samples_open_about_as_fast_as_a_hundred(browser: Browser, tmp_path: Path) -> None:
    few, many = large(tmp_path / "few", 100), large(tmp_path / "many", 10_000)
    opening_time(browser, few)
    few_seconds, many_seconds = opening_time(browser, few), opening_time(browser, many)
    assert many_seconds < 3 * few_seconds, f"{few_seconds:.2f} s and {many_seconds:.2f} s"
    page = browser.page()
    page.open(many.as_uri(), READY)
    assert page.value("document.querySelectorAll('.line').length") < 40, "only lines in sight exist"
    page.value("document.getElementById('list').focus()")
    page.key("End")
    page.wait("document.querySelector('#sample a').textContent === '#10000'")
    page.key("/")
    page.write("answer 9999")
    page.wait("document.querySelectorAll('.line').length === 1", seconds=30)
    assert shown(page) == [10_000]
    page.settle()
    assert page.errors == []
    page.close()


def test_times_are_in_the_reports_language(browser: Browser, tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", [Asked("1", "?", "a")], {"m": ["a"]}, speeds={"m": 0.2})
    for language, unit in (("en", "ms"), ("ru", "мс")):
        written = write_report([run], CoreRegistry(), tmp_path / language, language=language)  # type: ignore[arg-type]
        page = browser.page()
        page.open(written.index.as_uri(), READY)
        page.wait(f"document.querySelector('#sample .answer')?.textContent.match(/\\d\\u00a0{unit}/)")
        page.close()
