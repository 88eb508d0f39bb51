"""The names and words of the shipped pages. All are invented; training never uses them (:mod:`.reserved`)."""

from __future__ import annotations

from dataclasses import dataclass

from vlmhb_demo.documents.source import Source


@dataclass(frozen=True)
class Names:
    """What the shipped pages of one language are filled with."""

    people: tuple[tuple[str, str, str], ...]
    towns: tuple[str, ...]
    streets: tuple[str, ...]
    firms: tuple[str, ...]
    shops: tuple[str, ...]
    goods: tuple[str, ...]
    letters: tuple[str, ...]


RUSSIAN = Names(
    people=(
        ("Королёв", "Семён", "Артёмович"),
        ("Берёзкина", "Алёна", "Фёдоровна"),
        ("Лугова-Север", "Майя", "Игоревна"),
        ("Полынин", "Юрий", "Эдуардович"),
        ("Жигулёнкова", "Ольга", "Яновна"),
        ("Тёплый", "Пётр", "Львович"),
        ("Ясенева", "Элла", "Глебовна"),
        ("Объедков", "Марк", "Денисович"),
        ("Щукина", "Юлия", "Ильинична"),
        ("Дождев", "Илья", "Савельевич"),
        ("Цветкова", "Эмма", "Кирилловна"),
        ("Шмелёв", "Тимур", "Олегович"),
        ("Хвоина", "Злата", "Юрьевна"),
        ("Подъячев", "Гордей", "Ефимович"),
        ("Фонарёва", "Нина", "Павловна"),
        ("Зябликов", "Вадим", "Янович"),
    ),
    towns=("Лесогорье", "Новоозёрск", "Ясный Луг", "Верхние Ключи", "Усть-Рябинка", "Щедрино", "Эхово", "Белоцветск"),
    streets=("ул. Яблоневая", "пер. Тёплый", "наб. Речная", "пр. Счастья", "ул. Звёздная", "б-р Цветной", "ул. Южная"),
    firms=(
        "ООО «Ромашка»",
        "АО «Свет и ключ»",
        "ООО «Чёрный кот»",
        "ИП Щеглов Ё. Ю.",
        "ООО «Стол и Ко»",
        "АО «Объём-12»",
        "ООО «Маяк-Юг»",
        "ПАО «Эхо гор»",
    ),
    shops=("МАГАЗИН «КОЛОСОК»", "ЛАВКА «ЕЩЁ»", "БУЛОЧНАЯ № 7", "«РУЧЕЁК»", "РЫНОК «ЮЖНЫЙ»", "ЦВЕТЫ «ФЛОКС»"),
    goods=(
        "Молоко 3,2 %",
        "Хлеб ржаной",
        "Сыр «Луг»",
        "Мёд липовый",
        "Чай чёрный",
        "Щётка",
        "Крем-суп",
        "Яблоки",
        "Бумага А4",
        "Подъёмник",
        "Кресло",
        "Фонарь",
        "Гвозди 80 мм",
        "Эмаль белая",
        "Цемент",
        "Жёлуди",
    ),
    letters=(
        "Ваше письмо мы получили вчера. Ответ будет готов к пятнице, просим немного подождать.",
        "Просим прислать копию договора № 48 и два снимка крыши до конца этой недели.",
        "Спасибо за помощь с переездом! Все ящики целы, даже тот, что с надписью «хрупко».",
        "Собрание жильцов пройдёт в среду в 19:30, во дворе. Возьмите, пожалуйста, стулья.",
        "Ключ от сарая лежит под третьим камнем. Ёжика просьба не будить: он ещё спит.",
        "Объявляем, что с понедельника касса работает с 8 до 17 часов, без перерыва.",
    ),
)

ENGLISH = Names(
    people=(
        ("Fernsby", "Ottilie", ""),
        ("O'Marrow", "Declan", ""),
        ("Hart-Jones", "Imogen", ""),
        ("Quillfeather", "Basil", ""),
        ("Vexley", "Zachary", ""),
        ("Thistlewood", "Maud", ""),
        ("Ashgrove", "Wilfred", ""),
        ("Pemberlain", "Kit", ""),
        ("Drywater", "Joan", ""),
        ("Copperkettle", "Jasper", ""),
        ("Windlass", "Phoebe", ""),
        ("Marchbanks", "Quentin", ""),
        ("Goldsworthy", "Xenia", ""),
        ("Nightjar", "Ezra", ""),
        ("Underhill", "Beatrix", ""),
        ("Loxley-Fry", "Hugh", ""),
    ),
    towns=(
        "Eastmere",
        "Port Wexley",
        "Little Haddon",
        "Brackenford",
        "Quayside",
        "Upper Finch",
        "Zennock",
        "Hollow Oak",
    ),
    streets=("Larkspur Lane", "Old Mill Road", "Harbour St.", "Juniper Ave", "Quince Walk", "Fox Hill", "Abbey Row"),
    firms=(
        "Bramble & Finch",
        "Northlight Works",
        "Kettle Co. Ltd",
        "Halvorsen-Pike",
        "Quiet River plc",
        "O'Dell & Sons",
        "Blue Jay Ltd",
        "Vox Six, Inc.",
    ),
    shops=("THE CORNER PANTRY", "BLUE DOOR STORES", "MARLOW'S & SONS", "QUAY BAKERY", "FIG & OLIVE", "JUMBO MARKET"),
    goods=(
        "Whole milk",
        "Rye bread",
        "Cheddar 'Tom'",
        "Heather honey",
        "Black tea",
        "Apples, kg",
        "Toothbrush",
        "Garden twine",
        "Paper A4",
        "Oak desk",
        "Zinc bucket",
        "Lamp 60 W",
        "Vice, small",
        "Quilt",
        "Jam jars x6",
        "Wool socks",
    ),
    letters=(
        "Your letter came on Tuesday. We shall reply by Friday and ask for a little patience.",
        "Please send a copy of contract 48 and two pictures of the roof before next week.",
        "Thank you for helping us move! Every box is whole, even the one marked 'fragile'.",
        "The neighbours meet on Monday at 7:30 pm in the yard. Please bring your own chairs.",
        "The key of the shed is under the third stone. Do not wake the hedgehog, she's asleep.",
        "From March the ticket office opens at 8 and closes at 5, with no break for lunch.",
    ),
)


class Invented(Source):
    """Draws from the lists above."""

    @property
    def names(self) -> Names:
        """The lists of this source's language."""
        return RUSSIAN if self.russian else ENGLISH

    def person(self) -> tuple[str, str, str]:
        return self.rng.choice(self.names.people)

    def town(self) -> str:
        return self.rng.choice(self.names.towns)

    def street(self) -> str:
        return self.rng.choice(self.names.streets)

    def firm(self) -> str:
        return self.rng.choice(self.names.firms)

    def shop(self) -> str:
        return self.rng.choice(self.names.shops)

    def goods(self) -> str:
        return self.rng.choice(self.names.goods)

    def prose(self) -> str:
        return self.rng.choice(self.names.letters)
