"""How each kind of question is asked in each language."""

from __future__ import annotations

CHOICES = ("document", "payment", "delivery")
"""Kinds of questions that have one of a few answers."""

QUESTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "ru": {
        "surname": ("Какая фамилия?", "Фамилия?"),
        "given name": ("Какое имя?", "Имя?"),
        "middle name": ("Какое отчество?", "Отчество?"),
        "date of birth": ("Какая дата рождения?", "Дата рождения?"),
        "number": ("Какой номер документа?", "Номер?", "Какой номер?"),
        "expiry": ("До какого числа действует?", "Действительно до?"),
        "issued": ("Когда выдано?", "Дата выдачи?"),
        "categories": ("Какие категории?", "Категории?"),
        "date": ("Какая дата документа?", "Дата?", "Какая дата?"),
        "due": ("Оплатить до какого числа?", "Срок оплаты?"),
        "total": ("Какая итоговая сумма?", "Итого?", "Сколько всего?"),
        "seller": ("Кто продавец?", "Продавец?"),
        "buyer": ("Кто покупатель?", "Покупатель?"),
        "town": ("Какой город?", "Город?"),
        "address": ("Какой адрес?", "Адрес?"),
        "phone": ("Какой телефон?", "Телефон?"),
        "store": ("Какой номер склада?", "Склад?"),
        "price": ("Какая цена: {about}?", "Цена: {about}?"),
        "quantity": ("Какое количество: {about}?", "Количество: {about}?"),
        "addressee": ("Кому письмо?", "Кому?"),
        "sender": ("От кого письмо?", "От кого?"),
        "payment": ("Оплата картой или наличными?",),
        "delivery": ("Нужна доставка, да или нет?", "Доставка?"),
        "document": ("Какой это документ?", "Что это за документ?"),
        "full text": ("Прочитай весь текст.", "Весь текст?"),
    },
    "en": {
        "surname": ("What is the surname?", "Surname?"),
        "given name": ("What is the given name?", "Given name?"),
        "place of birth": ("What is the place of birth?", "Place of birth?"),
        "date of birth": ("What is the date of birth?", "Date of birth?"),
        "number": ("What is the document number?", "Number?"),
        "expiry": ("Until when is it valid?", "Valid until?"),
        "issued": ("When was it issued?", "Date of issue?"),
        "categories": ("Which categories?", "Categories?"),
        "date": ("What is the date?", "Date?"),
        "due": ("By when must it be paid?", "Pay by?"),
        "total": ("What is the total?", "Total?"),
        "seller": ("Who is the seller?", "Seller?"),
        "buyer": ("Who is the buyer?", "Buyer?"),
        "town": ("What is the town?", "Town?"),
        "address": ("What is the address?", "Address?"),
        "phone": ("What is the telephone number?", "Telephone?"),
        "store": ("What is the list number?", "List number?"),
        "price": ("What is the price: {about}?", "Price: {about}?"),
        "quantity": ("What is the quantity: {about}?", "Quantity: {about}?"),
        "addressee": ("Who is the letter to?", "To whom?"),
        "sender": ("Who is the letter from?", "From whom?"),
        "payment": ("Paid by card or cash?",),
        "delivery": ("Is delivery wanted, yes or no?", "Delivery?"),
        "document": ("What document is this?", "Which document?"),
        "full text": ("Read all the text.", "All the text?"),
    },
}
"""By language and kind; the first wording is the one that the shipped pages are asked with."""

_CLASSES = ("identity card", "driving licence", "invoice", "receipt", "form", "table", "letter")
KINDS = {
    "ru": {
        "identity card": "удостоверение личности",
        "driving licence": "водительское удостоверение",
        "invoice": "счёт",
        "receipt": "чек",
        "form": "заявление",
        "table": "таблица",
        "letter": "письмо",
    },
    "en": {name: name for name in _CLASSES},
}
"""What the classes of documents are called when a page is asked what it is."""
