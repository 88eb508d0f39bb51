"""Where the contents of a page come from: names from a list or made up, numbers and dates drawn at random."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable

NBSP = "\u00a0"


class Source(ABC):
    """Values for one page in one language; a subclass says where names and words come from.

    Attributes:
        code: ``ru`` or ``en``.
        rng: decides everything, so a source of the same seed gives the same page.
    """

    def __init__(self, code: str, rng: random.Random) -> None:
        self.code = code
        self.rng = rng
        self.russian = code == "ru"

    @abstractmethod
    def person(self) -> tuple[str, str, str]:
        """Surname, given name and, in Russian only, patronymic; all of one gender."""

    @abstractmethod
    def town(self) -> str:
        """A town."""

    @abstractmethod
    def street(self) -> str:
        """A street, without a number."""

    @abstractmethod
    def firm(self) -> str:
        """A firm with its legal form, at most 18 characters."""

    @abstractmethod
    def shop(self) -> str:
        """A shop, at most 20 characters."""

    @abstractmethod
    def goods(self) -> str:
        """Something to buy, at most 13 characters."""

    @abstractmethod
    def prose(self) -> str:
        """A sentence or two of a letter, about 80 characters."""

    def different(self, draw: Callable[[], str], count: int) -> list[str]:
        """So many different results of one of the methods above."""
        found: dict[str, None] = {}
        while len(found) < count:
            found[draw()] = None
        return list(found)

    def digits(self, count: int) -> str:
        """So many digits; zeros may lead."""
        return "".join(self.rng.choice("0123456789") for _ in range(count))

    def date(self, first_year: int, last_year: int) -> str:
        """A day in figures: ``07.03.2024``, or ``07/03/2024`` with the day first."""
        day, month, year = self.rng.randint(1, 28), self.rng.randint(1, 12), self.rng.randint(first_year, last_year)
        mark = "." if self.russian else "/"
        return f"{day:02d}{mark}{month:02d}{mark}{year}"

    def price(self, most: int) -> int:
        """An amount in hundredths, small ones as likely as large ones; most of them round."""
        value = int(most ** self.rng.uniform(0.55, 1.0)) * 100
        return value + self.rng.choice((0, 0, 50, 90, self.rng.randint(1, 99)))

    def amount(self, hundredths: int) -> str:
        """An amount as text: ``1 234,50`` with a no-break space, or ``1,234.50``."""
        whole, rest = divmod(hundredths, 100)
        thousands, decimal = (NBSP, ",") if self.russian else (",", ".")
        return f"{whole:,}".replace(",", thousands) + f"{decimal}{rest:02d}"

    def money(self, hundredths: int) -> str:
        """An amount with the sign of the currency."""
        return f"{self.amount(hundredths)}{NBSP}₽" if self.russian else f"£{self.amount(hundredths)}"

    def address(self) -> str:
        """A street and a house: ``ул. Речная, 5``, or ``5 Mill Road``."""
        house = self.rng.randint(1, 199)
        return f"{self.street()}, {house}" if self.russian else f"{house} {self.street()}"

    def phone(self) -> str:
        """A telephone number with its hyphens."""
        if self.russian:
            return f"8-{self.digits(3)}-{self.digits(3)}-{self.digits(2)}-{self.digits(2)}"
        return f"0{self.digits(4)} {self.digits(3)} {self.digits(3)}"
