"""What training pages are filled with: words that are made up on the spot, so that nothing can be known by heart."""

from __future__ import annotations

import random

from vlmhb_demo.documents.source import Source


def _split(texts: dict[str, str]) -> dict[str, list[str]]:
    return {code: text.split() for code, text in texts.items()}


_ONSETS = _split(
    {
        "ru": "б в г д ж з к л м н п р с т ф х ц ч ш щ бр вл гр др кр пр ст тр сл зв",
        "en": "b c d f g h j k l m n p qu r s t v w x y z th sh ch br cl dr fl gr st tr wh",
    }
)
_VOWELS = _split({"ru": "а а о о и е е у ы ё ю я э ье ья", "en": "a e i o u a e o ee oo ai ou y"})
_CODAS = {
    "ru": [*"нрлсткмвдшй", "ст", "нь", "ль", "рь", "ъ", *[""] * 14],
    "en": [*"nrlstkmdxwpgz", "ck", "ll", "st", *[""] * 10],
}
_LETTERS = {"ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "en": "abcdefghijklmnopqrstuvwxyz"}
_MALE = ("ов", "ев", "ёв", "ин", "ын", "ский", "ой", "енко", "ых", "ый")
_FEMALE = ("ова", "ева", "ёва", "ина", "ына", "ская", "ая", "енко", "ых", "ук")
_GIVEN = {"m": ("", "ий", "ей", "ил", "ан", "ян", "ёр"), "f": ("а", "я", "ия", "на", "ла", "ья", "ма")}
_MIDDLE = {"m": ("ович", "евич", "ич"), "f": ("овна", "евна", "инична")}
_ENGLISH_ENDS = ("", "", "son", "ton", "ley", "wood", "field", "er", "ing", "well", "by", "ham", "ck", "s")
_TOWN = {
    "ru": ("ск", "ово", "ино", "град", "горье", "поль", "цк", "ка", "ы", "и"),
    "en": ("ton", "ford", "ham", "bury", "mouth", "wick", "dale", "", "by", "port"),
}
_FIRST = {
    "ru": ("Новый", "Старый", "Малый", "Усть", "Верх", "Нижний", "Большой"),
    "en": ("New", "Great", "North", "St."),
}
_STREET = {
    "ru": ("ул.", "ул.", "ул.", "пер.", "наб.", "пр.", "б-р", "ш."),
    "en": ("Lane", "Road", "St.", "Ave", "Walk", "Hill", "Row", "Way", "Drive"),
}
_SHOP = {"ru": ("КИОСК", "АПТЕКА", "ЛАРЁК", "КАФЕ", "ДОМ"), "en": ("THE", "CAFE", "SHOP", "NEW")}
_COMMON = _split(
    {
        "ru": """и в на с по из за от до для при без мы вы он она они это тот наш ваш не но или как что если уже ещё так
    все нет да будет было есть день год час дом лист стол окно дверь дорога вода лес рука рабочий новый старый первый
    второй один два три пять сто можно нужно надо хорошо завтра сегодня утром вечером здесь там где когда после
    перед через очень много мало снова пришлите примите сообщаем напишите ждём будем работа заказ товар оплата счёт
    книга город улица зима лето весна осень январь февраль апреля мая июня августа октября ноября вторник
    четверг субботу""",
        "en": """the a of and to in is it that for on with as at by from or an be this not are but we you he they our
    was have has will would can may one two three five ten new old first last day year hour house paper table window
    door road water forest hand work order goods money page book city summer winter spring autumn January February April
    May June August October November Wednesday Thursday Saturday when where there here after over into more most
    some other any each write know take make come see good great left right open long small large next""",
    }
)


class MadeUp(Source):
    """Draws from an endless supply of words that do not exist."""

    def person(self) -> tuple[str, str, str]:
        rng = self.rng
        if not self.russian:
            surname = self._name(1, 2, _ENGLISH_ENDS)
            surname = self._or_with(surname, ("O'", "Mc", "D'"))
            return self._or_double(surname), self._name(1, 2, ("", "a", "y", "e", "ie", "n")), ""
        gender = rng.choice("mf")
        surname = self._name(1, 2, _MALE if gender == "m" else _FEMALE)
        return (
            self._or_double(surname),
            self._name(1, 2, _GIVEN[gender]),
            self._name(1, 2, _MIDDLE[gender]),
        )

    def town(self) -> str:
        rng, name = self.rng, self._name(1, 2, _TOWN[self.code])
        chance = rng.random()
        if chance < 0.15:
            return f"{rng.choice(_FIRST[self.code])} {name}"
        return f"{self._name(1, 1)}-{name}" if chance < 0.3 else f"{name} {self._name(1, 1)}" if chance < 0.45 else name

    def street(self) -> str:
        kind = self.rng.choice(_STREET[self.code])
        if self.russian:
            return f"{kind} {self._name(1, 2, ('ая', 'ова', 'ный', 'ия', 'ого', ''))}"
        return f"{self._name(1, 2)} {self._name(1, 1) + ' ' if self.rng.random() < 0.2 else ''}{kind}"

    def firm(self) -> str:
        rng, name = self.rng, self._name(1, 2)
        if self.russian:
            if rng.random() < 0.15:
                letters = [rng.choice("АБВГДЕЁЖЗИКЛМНОПРСТУФХЦЧШЭЮЯ") for _ in range(2)]
                return f"ИП {self._name(1, 2, _MALE)} {letters[0]}. {letters[1]}."
            more = rng.choice(("", "", f"-{rng.randint(2, 99)}", f"-{self._name(1, 1)}", f" и {self._word(1, 1)}"))
            return f"{rng.choice(('ООО', 'АО', 'ПАО', 'ООО'))} «{name}{more}»"
        other = self._name(1, 2)
        forms = ("{} & {}", "{}-{}", "{} {}", "{} Ltd", "{} Co. Ltd", "{} & Sons", "{} plc", "{}, Inc.", "{} {} Ltd")
        return rng.choice(forms).format(name, other)

    def shop(self) -> str:
        rng, name = self.rng, self._word(1, 3).upper()
        if self.russian:
            forms = (
                f"{rng.choice(_SHOP['ru'])} «{name}»",
                f"«{name}»",
                f"{name} № {rng.randint(1, 99)}",
                f"{name} «{{}}»",
            )
            return rng.choice(forms).format(self._word(1, 2).upper())
        forms = (f"{rng.choice(_SHOP['en'])} {name}", f"{name} {{}}", f"{name} & {{}}", f"{name}'S & {{}}", name)
        return rng.choice(forms).format(self._word(1, 2).upper())

    def goods(self) -> str:
        rng, name = self.rng, self._name(1, 3)
        number = rng.randint(1, 99)
        if self.russian:
            more = (
                f" {number}",
                f" {rng.randint(1, 9)},{rng.randint(0, 9)} %",
                f" А{number % 10}",
                f" {number} мм",
                ", кг",
            )
        else:
            more = (
                f" {number}",
                f" x{number % 10}",
                f" A{number % 10}",
                f" {number} W",
                ", kg",
                f" '{self._name(1, 1)}'",
            )
        chance = rng.random()
        if chance < 0.35:
            return name + rng.choice(more)
        if chance < 0.4 and self.russian:
            return f"{self._name(1, 1)} «{self._name(1, 1)}»"
        if chance < 0.45:
            return f"{self._name(1, 1)}-{self._word(1, 1)}"
        return f"{self._name(1, 2)} {self._word(1, 2)}" if chance < 0.8 else name

    def prose(self) -> str:
        rng, words, start = self.rng, [], True
        size, wanted = 0, rng.randint(45, 90)
        while size < wanted:
            word = self._prose_word()
            if start:
                word = word[:1].upper() + word[1:]
            start = rng.random() < 0.12
            word += rng.choice(".!?.") if start else "," if rng.random() < 0.12 else ":" if rng.random() < 0.02 else ""
            words.append(word)
            size += len(word) + 1
        return " ".join(words).rstrip(",:.") + rng.choice(("." if start else "", ".", ".", "!"))

    def _prose_word(self) -> str:
        rng, chance = self.rng, self.rng.random()
        if chance < 0.5:
            return rng.choice(_COMMON[self.code])
        if chance < 0.56:
            return rng.choice(
                (str(rng.randint(1, 99)), f"№ {rng.randint(1, 99)}", f"{rng.randint(0, 23)}:{self.digits(2)}")
            )
        word = self._word(1, 3)
        if chance < 0.6:
            return f"«{word}»" if self.russian else f"'{word}'"
        if chance < 0.63:
            return f"{word}-{self._word(1, 1)}" if self.russian else f"{word}'s"
        return self._name(1, 2) if chance < 0.68 else word

    def _name(self, fewest: int, most: int, endings: tuple[str, ...] = ("",)) -> str:
        word = self._word(fewest, most) + self.rng.choice(endings)
        return word[:1].upper() + word[1:]

    def _word(self, fewest: int, most: int) -> str:
        """A made-up word of so many syllables; one in eight is a heap of letters."""
        rng, code = self.rng, self.code
        count = rng.randint(fewest, most)
        if rng.random() < 0.12:
            return "".join(rng.choice(_LETTERS[code]) for _ in range(rng.randint(2, 3 * count + 1)))
        word = "".join(
            rng.choice(_ONSETS[code]) + rng.choice(_VOWELS[code]) + rng.choice(_CODAS[code]) for _ in range(count)
        )
        return rng.choice(_VOWELS[code]) + word if rng.random() < 0.12 else word

    def _or_double(self, surname: str) -> str:
        return f"{surname}-{self._name(1, 1)}" if self.rng.random() < 0.06 and len(surname) < 9 else surname

    def _or_with(self, surname: str, starts: tuple[str, ...]) -> str:
        return self.rng.choice(starts) + surname if self.rng.random() < 0.06 and len(surname) < 11 else surname


def source(language: str, seed: str) -> MadeUp:
    """The values of one training page."""
    return MadeUp(language, random.Random(seed))
