"""Dates, amounts, numbers and choices, as documents and models write them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vlmhb.contract.metric import Pairs
from vlmhb.metrics.builtin import vlmhb_metrics
from vlmhb.metrics.calendar_dates import read_date
from vlmhb.metrics.multiple_choice import chosen_letter
from vlmhb.metrics.numerals import read_amount

METRICS = {metric.name: metric for metric in vlmhb_metrics()}
MONTHS = "января февраля марта апреля мая июня июля августа сентября октября ноября декабря".split()  # noqa: SIM905
texts = st.text("абвё АБ xyz XYZ 0123456789 .,%-−$₽()", max_size=30).map(str.strip)
days = st.dates(date(1969, 1, 1), date(2068, 12, 31))


def value(name: str, reference: str, answer: str, options: Sequence[str] = ()) -> float:
    return float(METRICS[name].score(Pairs([reference], [answer], choices=[options]))["value"][0])


# --- dates


@settings(max_examples=300, deadline=None)
@given(days)
@example(date(2024, 2, 29))
def test_every_day_is_read_in_every_form(day: date) -> None:
    for form in ("%d.%m.%Y", "%d/%m/%y", "%Y-%m-%d", "%d %m %Y", "%d - %m - %Y", "%Y.%m.%d", "%d %B %Y", "%B %d, %Y"):
        assert read_date(day.strftime(form)) == day, form
    for form in ("%m/%d/%Y", "%m-%d-%y", "%Y-%m-%d", "%d %b %Y"):
        assert read_date(day.strftime(form), day_first=False) == day, form
    assert read_date(f"«{day.day}» {MONTHS[day.month - 1]} {day.year} г.") == day
    assert read_date(f"{day.day:02} {MONTHS[day.month - 1][:3].upper()} {day.year} года") == day


@settings(max_examples=250, deadline=None)
@given(days, days)
def test_two_dates_match_when_they_are_the_same_day(one: date, other: date) -> None:
    right, written = one.strftime("%d.%m.%Y"), other.strftime("%Y-%m-%d")
    assert value("date_match", right, written) == float(one == other)
    assert value("date_match", right, one.strftime("%d %B %Y")) == 1
    assert value("date_match", right, (one + timedelta(days=1)).strftime("%d.%m.%Y")) == 0
    assert value("date_match_month_first", one.strftime("%m/%d/%Y"), one.isoformat()) == 1


@settings(max_examples=300, deadline=None)
@given(texts)
def test_a_date_is_never_read_where_there_is_none(text: str) -> None:
    found = read_date(text)
    assert found is None or sum(char.isdecimal() for char in text) >= 4
    assert value("date_match", text, text) == 1


@pytest.mark.parametrize(
    ("reference", "answer", "day_first", "month_first"),
    [
        ("05.03.2024", "2024-03-05", 1, 0),
        ("05/03/2024", "2024-05-03", 0, 1),
        ("03/25/2024", "25.03.2024", 1, 1),
        ("5 марта 2024 г.", "05.03.24", 1, 0),
        ("March 5th, 2024", "5 мар 2024", 1, 1),
        ("2024-03-05", "The date is 05.03.2024", 0, 0),
        ("31.02.2024", "2024-02-31", 0, 0),
        ("без даты", "без даты", 1, 1),
        ("без даты", "05.03.2024", 0, 0),
        ("05.03.2024", "", 0, 0),
    ],
)
def test_date_match(reference: str, answer: str, day_first: float, month_first: float) -> None:
    assert value("date_match", reference, answer) == day_first
    assert value("date_match_month_first", reference, answer) == month_first


@pytest.mark.parametrize(
    "text", ["5 ма 2024", "1.2.3", "12.2024", "2024-03-05-01", "32.01.2024", "05.03/2024", "5 5 5"]
)
def test_no_dates(text: str) -> None:
    assert read_date(text) is None


# --- amounts


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**12), st.booleans())
@example(123450, False)
def test_every_amount_is_read_in_every_form(cents: int, negative: bool) -> None:
    number = Decimal(cents) / 100 * (-1 if negative else 1)
    plain = f"{number:.2f}"
    grouped = f"{number:,.2f}"
    forms = [plain, plain.replace(".", ","), grouped, grouped.replace(",", " "), grouped.replace(",", "\u00a0")]
    forms += [grouped.replace(",", " ").replace(".", ","), grouped.replace(",", "'"), plain.replace("-", "−")]
    forms.append(grouped.translate({ord(","): ".", ord("."): ","}))
    for form in forms:
        for written in (form, f"{form} ₽", f"{form} руб.", f"$ {form}", f"{form} EUR"):
            found = read_amount(written)
            assert found is not None, written
            assert found.value == number, written
        assert value("amount_match", plain, form) == 1


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_two_amounts_match_when_they_are_equal(one: int, other: int) -> None:
    right, answer = f"{one / 100:.2f}", f"{other / 100:,.2f}".replace(",", " ").replace(".", ",")
    assert value("amount_match", right, answer) == float(one == other)


@settings(max_examples=300, deadline=None)
@given(texts, texts)
def test_amounts_are_never_read_where_there_is_no_number(reference: str, answer: str) -> None:
    if not any(char.isdecimal() for char in reference):
        assert value("amount_match", reference, answer) == float(reference == answer)
    assert value("amount_match", reference, reference) == 1


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("1 234,50", "1234.50", 1),
        ("1 234,50", "1,234.5 руб.", 1),
        ("1.234.567", "1234567,00", 1),
        ("1.234", "1234", 1),
        ("0.234", "0,234", 1),
        ("1234.567", "1234,567", 1),
        ("(1 234,50)", "-1234.50", 1),
        ("$ -5", "−5 USD", 1),
        ("100 руб.", "100", 1),
        ("100 руб.", "100 $", 0),
        ("1 234,50", "1 234,51", 0),
        ("12 34", "1234", 0),
        ("1,2,3", "123", 0),
        ("5", "5 кг", 0),
        ("5", "Итого 5", 0),
        (".5", "0,50", 1),
        ("нет", "0", 0),
        ("5", "", 0),
    ],
)
def test_amount_match(reference: str, answer: str, expected: float) -> None:
    assert value("amount_match", reference, answer) == expected


def test_a_long_run_of_digits_and_signs_takes_no_time() -> None:
    assert read_amount("1 " * 50_000 + "x") is None
    assert read_amount("$" * 50_000) is None
    assert read_date("1 " * 50_000) is None


# --- relaxed accuracy


def published(target: str, prediction: str) -> bool:
    """Relaxed correctness as published: numbers within 5 %, else texts without case."""

    def to_float(text: str) -> float | None:
        try:
            return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
        except ValueError:
            return None

    number, wanted = to_float(prediction), to_float(target)
    if number is not None and wanted:
        return abs(number - wanted) / abs(wanted) <= 0.05
    return prediction.lower() == target.lower()


numbers = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.decimals(-100, 100, places=3).map(str),
    st.integers(1, 100).map(lambda n: f"{n}%"),
    st.text("абв XYZ", max_size=8).map(str.strip),
)


@settings(max_examples=500, deadline=None)
@given(numbers, numbers, st.floats(0.9, 1.1))
def test_relaxed_accuracy_is_the_published_one(target: str, prediction: str, factor: float) -> None:
    near = repr(float(target) * factor) if target.replace("-", "").replace(".", "").isdecimal() else prediction
    for answer in (prediction, near):
        try:
            is_zero = float(target.rstrip("%")) == 0
        except ValueError:
            is_zero = False
        if not is_zero:
            assert value("relaxed_accuracy", target, answer) == float(published(target, answer)), (target, answer)


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("100", "105", 1),
        ("100", "105.01", 0),
        ("1 234,5", "1200", 1),
        ("50%", "0.51", 1),
        ("0", "0.0", 1),
        ("0", "0.01", 0),
        ("Да", "да", 1),
        ("nan", "NaN", 1),
        ("10", "ten", 0),
        ("10", "inf", 0),
    ],
)
def test_relaxed_accuracy(reference: str, answer: str, expected: float) -> None:
    assert value("relaxed_accuracy", reference, answer) == expected


# --- multiple choice

ANIMALS = ("a cat", "a dog", "a black cat", "нет верного ответа")


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"),
        ("(b)", "B"),
        ("(B)", "B"),
        ("В", "B"),
        ("B.", "B"),
        ("**B**", "B"),
        ("B) a dog", "B"),
        ("B. It is not A.", "B"),
        ("The answer is B", "B"),
        ("The answer is (b).", "B"),
        ("First I thought the answer is A. But the answer is C", "C"),
        ("Ответ: С", "C"),
        ("Правильный вариант - B", "B"),
        ("a dog", "B"),
        ("A Dog.", "B"),
        ("It shows a dog on grass", "B"),
        ("a dog or a cat", None),
        ("нет верного ответа", "D"),
        ("E", None),
        ("The answer is a cat", "A"),
        ("The answer is a dog", "B"),
        ("catalogue of a doghouse", None),
        ("", None),
    ],
)
def test_the_chosen_option(answer: str, letter: str | None) -> None:
    assert chosen_letter(answer, ANIMALS) == letter


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [("B", "The answer is B.", 1), ("B", "a dog", 1), ("a dog", "B", 1), ("B", "C", 0), ("B", "", 0), ("X", "Y", 0)],
)
def test_multiple_choice(reference: str, answer: str, expected: float) -> None:
    assert value("multiple_choice", reference, answer, ANIMALS) == expected


@settings(max_examples=300, deadline=None)
@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"), st.sampled_from(["{}", "({})", "{}.", "{}: да", "Ответ: {}"]))
def test_letters_without_options(right: str, chosen: str, form: str) -> None:
    assert value("multiple_choice", right, form.format(chosen)) == float(right == chosen)


@settings(max_examples=250, deadline=None)
@given(texts, texts)
def test_texts_that_are_no_choice_must_be_equal(reference: str, answer: str) -> None:
    if len(reference.strip(" ()[].:,%")) != 1:
        assert value("multiple_choice", reference, answer) == float(reference == answer)
