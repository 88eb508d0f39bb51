"""A page: an image, the texts drawn on it with their places, and the questions that can be asked about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from PIL import Image, ImageDraw

from vlmhb_demo.documents.fonts import font

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; the right and bottom edges are inside the image or touch its edge."""
Colour = tuple[int, int, int]

INK: Colour = (30, 30, 38)
FAINT: Colour = (92, 96, 108)
RULE: Colour = (176, 182, 192)
SANS, BOLD, MONO, SERIF = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif"
ROW = 28
"""Height of a line of text in pixels; pages are whole numbers of it wide and high."""
BASELINE = 20
"""From the upper edge of a row to the foot of its letters."""
LABEL, VALUE = 13, 17
"""Sizes in pixels of printed labels and of what is filled in."""


@dataclass(frozen=True)
class Style:
    """What differs between two prints of the same page.

    Attributes:
        right, down: how far everything is moved, in pixels.
        faces: fonts to use instead of others.
    """

    right: int = 0
    down: int = 0
    faces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Text:
    """A text on the page; ``baseline`` puts it into a row of the page, ``left`` is where its first letter starts."""

    content: str
    box: Box
    baseline: int
    left: float
    face: str
    size: int


@dataclass(frozen=True)
class Question:
    """What may be asked.

    Attributes:
        kind: of question, see :mod:`.questions`.
        answer: the right one.
        box: where it stands.
        about: a word of the page that the question names, if any.
    """

    kind: str
    answer: str
    box: Box
    about: str = ""


@dataclass
class Page:
    """A page being drawn; ``values`` are the texts on it that are not printed on every page of its kind."""

    image: Image.Image
    style: Style
    texts: list[Text] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = ImageDraw.Draw(self.image)

    @classmethod
    def blank(cls, columns: int, rows: int, paper: Colour, style: Style) -> Page:
        """An empty page of so many squares of ``ROW`` pixels."""
        return cls(Image.new("RGB", (columns * ROW, rows * ROW), paper), style)

    @property
    def width(self) -> int:
        """In pixels."""
        return self.image.width

    @property
    def whole(self) -> Box:
        """The box of the page itself."""
        return (0, 0, *self.image.size)

    def label(self, row: int, x: int, content: str, size: int = LABEL, face: str = SANS, align: str = "l") -> Text:
        """Print something that stands on every page of its kind."""
        return self._text(row, x, content, size, face, FAINT if face == SANS else INK, align)

    def value(
        self, row: int, x: int, content: str, face: str = SANS, size: int = VALUE, fill: Colour = INK, align: str = "l"
    ) -> Text:
        """Write what is the page's own; ``align`` says whether ``x`` is its (l)eft, (m)iddle or (r)ight."""
        self.values.append(content)
        return self._text(row, x, content, size, face, fill, align)

    def labelled(self, row: int, x: int, label: str, content: str, kind: str = "", fill: Colour = INK) -> Text:
        """A label and behind it a value, which the page can be asked for if ``kind`` is given."""
        after = self.label(row, x, label).box[2] - self.style.right + 8
        text = self.value(row, after, content, fill=fill)
        if kind:
            self.ask(kind, text)
        return text

    def band(self, row: int, fill: Colour) -> None:
        """Tint a row of the page."""
        self.draw.rectangle((0, row * ROW, self.width, (row + 1) * ROW - 1), fill=fill)

    def line(self, row: int, colour: Colour = RULE, left: int = 6, right: int = 6) -> None:
        """A rule at the foot of a row."""
        y = (row + 1) * ROW - 1 + self.style.down
        self.draw.line((left, y, self.width - right, y), fill=colour)

    def ask(self, kind: str, text: Text, about: str = "") -> None:
        """Let the page be asked for a text that stands on it."""
        self.questions.append(Question(kind, text.content, text.box, about))

    def choose(self, kind: str, answer: str, box: Box) -> None:
        """Let the page be asked something with a few possible answers."""
        self.questions.append(Question(kind, answer, box))

    def full_text(self) -> str:
        """All text of the page: row by row, from left to right, a line each."""
        rows: dict[int, list[Text]] = {}
        for text in self.texts:
            rows.setdefault(text.baseline, []).append(text)
        lines = (sorted(rows[y], key=lambda text: text.left) for y in sorted(rows))
        return "\n".join(" ".join(text.content for text in line) for line in lines)

    def ask_for_everything(self) -> None:
        """Let the page be asked for all of its text."""
        self.questions.append(Question("full text", self.full_text(), around(text.box for text in self.texts)))

    def fits(self) -> bool:
        """Whether no text leaves the page or runs into another."""
        rows: dict[int, list[Box]] = {}
        for text in self.texts:
            rows.setdefault(text.baseline, []).append(text.box)
        for boxes in rows.values():
            boxes.sort()
            if boxes[0][0] < 1 or max(box[2] for box in boxes) > self.width - 2:
                return False
            if any(right[0] - left[2] < 4 for left, right in pairwise(boxes)):
                return False
        return True

    def _text(self, row: int, x: int, content: str, size: int, face: str, fill: Colour, align: str) -> Text:
        face = self.style.faces.get(face, face)
        letters = font(face, size)
        y, x = row * ROW + BASELINE + self.style.down, x + self.style.right
        length = letters.getlength(content)
        start = int(x - {"l": 0.0, "m": length / 2, "r": length}[align])
        self.draw.text((start, y), content, fill=fill, font=letters, anchor="ls")
        left, top, right, bottom = letters.getbbox(content, anchor="ls")
        box = (int(start + left), int(y + top), int(start + right), int(y + bottom))
        text = Text(content, box, y, start, face, size)
        self.texts.append(text)
        return text


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box around all of the boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
