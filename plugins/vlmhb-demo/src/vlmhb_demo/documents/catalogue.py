"""The classes of pages, and drawing one of them."""

from __future__ import annotations

from collections.abc import Callable

from vlmhb_demo.documents import driving_licence, form, identity_card, invoice, letter, receipt, table
from vlmhb_demo.documents.page import Page, Style
from vlmhb_demo.documents.questions import KINDS
from vlmhb_demo.documents.source import Source

CLASSES: dict[str, Callable[[Source, Style], Page]] = {
    "identity card": identity_card.draw,
    "driving licence": driving_licence.draw,
    "invoice": invoice.draw,
    "receipt": receipt.draw,
    "form": form.draw,
    "table": table.draw,
    "letter": letter.draw,
}
LANGUAGES = ("ru", "en")


def draw(doc_class: str, source: Source, style: Style) -> Page:
    """A page with its questions: those of its class, what it is, and all of its text."""
    page = CLASSES[doc_class](source, style)
    page.choose("document", KINDS[source.code][doc_class], page.whole)
    page.ask_for_everything()
    return page
