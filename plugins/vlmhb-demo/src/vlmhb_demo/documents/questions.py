"""How each kind of question is asked in each language."""

from __future__ import annotations

QUESTIONS = {
    "ru": {
        "surname": "Какая фамилия указана в документе?",
        "given name": "Какое имя (с отчеством) указано в документе?",
        "date of birth": "Какая дата рождения указана в документе?",
        "number": "Какой номер у документа?",
        "date": "Какая дата стоит на документе?",
        "total": "Какова итоговая сумма к оплате?",
        "seller": "Кто продавец?",
        "buyer": "Кто покупатель?",
        "address": "Какой адрес указан?",
        "phone": "Какой номер телефона указан?",
        "delivery": "Какой способ получения отмечен?",
        "full text": "Напиши весь текст документа построчно.",
    },
    "en": {
        "surname": "What surname does the document give?",
        "given name": "What given name does the document give?",
        "date of birth": "What is the date of birth?",
        "number": "What is the number of the document?",
        "date": "What date does the document bear?",
        "total": "What is the total to pay?",
        "seller": "Who is the seller?",
        "buyer": "Who is the buyer?",
        "address": "What address is given?",
        "phone": "What telephone number is given?",
        "delivery": "Which way of delivery is ticked?",
        "full text": "Write out all the text of the document, line by line.",
    },
}
