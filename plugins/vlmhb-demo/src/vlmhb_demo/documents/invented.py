"""Invented people, firms, places and goods, and how each language writes numbers and dates."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

NBSP = "\u00a0"


@dataclass(frozen=True)
class Person:
    """Somebody who does not exist. ``middle`` is the patronymic in Russian and empty in English."""

    surname: str
    given: str
    middle: str

    @property
    def full(self) -> str:
        """All names, the surname first in Russian and last in English."""
        return f"{self.surname} {self.given} {self.middle}" if self.middle else f"{self.given} {self.surname}"


@dataclass(frozen=True)
class Goods:
    """Something to buy; the price in hundredths."""

    name: str
    price: int


@dataclass(frozen=True)
class Language:
    """What differs between the languages of the pages."""

    code: str
    people: Sequence[Person]
    streets: Sequence[str]
    towns: Sequence[str]
    firms: Sequence[str]
    shops: Sequence[str]
    groceries: Sequence[Goods]
    services: Sequence[Goods]
    months: Sequence[str]
    thousands: str
    decimal: str
    currency: str

    def amount(self, hundredths: int) -> str:
        """An amount of money as text: ``1 234,50`` with a no-break space, or ``1,234.50``."""
        whole, rest = divmod(hundredths, 100)
        return f"{whole:,}".replace(",", self.thousands) + f"{self.decimal}{rest:02d}"

    def money(self, hundredths: int) -> str:
        """An amount with the sign of the currency where the language has it."""
        return self.currency.format(self.amount(hundredths))

    def short_date(self, rng: random.Random, first_year: int, last_year: int) -> str:
        """A day in figures: ``07.03.2024``, or ``07/03/2024`` with the day first."""
        day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(first_year, last_year)
        return f"{day:02d}.{month:02d}.{year}" if self.code == "ru" else f"{day:02d}/{month:02d}/{year}"

    def long_date(self, rng: random.Random, year: int) -> str:
        """A day with its month as a word: ``«12» мая 2024 г.``, or ``12 May 2024``."""
        day, month = rng.randint(1, 28), rng.choice(self.months)
        return f"«{day:02d}» {month} {year} г." if self.code == "ru" else f"{day} {month} {year}"


RUSSIAN = Language(
    code="ru",
    people=(
        Person("Королёв", "Семён", "Артёмович"),
        Person("Берёзкина", "Алёна", "Фёдоровна"),
        Person("Северцева-Лугова", "Майя", "Игоревна"),
        Person("Полынин", "Юрий", "Эдуардович"),
        Person("Жигулёнкова", "Ольга", "Яновна"),
        Person("Тёплый", "Пётр", "Львович"),
        Person("Ясенева", "Элла", "Глебовна"),
        Person("Дождев-Каменный", "Илья", "Савельевич"),
        Person("Объедков", "Марк", "Денисович"),
    ),
    streets=("ул. Яблоневая", "пер. Тёплый", "наб. Речная", "пр-т Счастья", "ул. Звёздная", "б-р Цветной"),
    towns=("г. Лесогорье", "г. Новоозёрск", "пос. Ясный Луг", "г. Верхние Ключи"),
    firms=("ООО «Ромашка-Сервис»", "АО «Северный ключ»", "ООО «Чёрный квадрат»", "ИП Щукин Ё. Ю.", "ООО «Мебель и Ко»"),
    shops=("МАГАЗИН «КОЛОСОК»", "ЛАВКА «СЪЕШЬ ЕЩЁ»", "УНИВЕРСАМ «РУЧЕЁК»"),
    groceries=(
        Goods("Молоко 3,2 %", 8990),
        Goods("Хлеб ржаной", 5450),
        Goods("Сыр «Луговой»", 64900),
        Goods("Мёд липовый", 42050),
        Goods("Чай чёрный", 18900),
        Goods("Яблоки, кг", 12940),
        Goods("Щётка зубная", 13500),
        Goods("Крем-суп", 32000),
    ),
    services=(
        Goods("Настройка сети", 1250000),
        Goods("Стол письменный", 1834050),
        Goods("Доставка и подъём", 245000),
        Goods("Кресло офисное", 987500),
        Goods("Бумага А4, пачка", 38990),
        Goods("Съёмка объекта", 3100000),
    ),
    months=("января", "марта", "мая", "июня", "сентября", "октября", "декабря"),
    thousands=NBSP,
    decimal=",",
    currency=f"{{}}{NBSP}₽",
)

ENGLISH = Language(
    code="en",
    people=(
        Person("Fernsby", "Ottilie", ""),
        Person("O'Marrow", "Declan", ""),
        Person("Hartwell-Jones", "Imogen", ""),
        Person("Quillfeather", "Basil", ""),
        Person("Vexley", "Zachary", ""),
        Person("Thistlewood", "Maud", ""),
        Person("Ashgrove", "Wilfred", ""),
        Person("Pemberlain", "Kit", ""),
        Person("Drywater", "Joan", ""),
    ),
    streets=("Larkspur Lane", "Old Mill Road", "Harbour Street", "Juniper Avenue", "St. Quentin's Walk"),
    towns=("Eastmere", "Port Wexley", "Little Haddon", "Brackenford"),
    firms=("Bramble & Finch Ltd", "Northlight Works", "Copperkettle Co.", "Halvorsen-Pike LLP", "Quiet River Supplies"),
    shops=("THE CORNER PANTRY", "BLUE DOOR STORES", "MARLOW'S & SONS"),
    groceries=(
        Goods("Whole milk 1 l", 149),
        Goods("Rye bread", 320),
        Goods("Cheddar 'Old Tom'", 785),
        Goods("Heather honey", 699),
        Goods("Black tea", 425),
        Goods("Apples, kg", 290),
        Goods("Toothbrush", 375),
        Goods("Garden twine", 1150),
    ),
    services=(
        Goods("Network set-up", 125000),
        Goods("Writing desk, oak", 83450),
        Goods("Delivery, 2nd floor", 9500),
        Goods("Office chair", 41250),
        Goods("Paper A4, box", 3899),
        Goods("Site survey", 310000),
    ),
    months=("January", "March", "May", "June", "August", "October", "December"),
    thousands=",",
    decimal=".",
    currency="£{}",
)

LANGUAGES = (RUSSIAN, ENGLISH)


def digits(rng: random.Random, count: int) -> str:
    """So many random digits; zeros may lead."""
    return "".join(rng.choice("0123456789") for _ in range(count))
