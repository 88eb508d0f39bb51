"""A page: an image, the texts drawn on it with their places, and the questions that can be asked about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from PIL import Image, ImageDraw

from vlmhb_demo.documents.fonts import font

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; the right and bottom edges are inside the image or touch its edge."""
Colour = tuple[int, int, int]

INK: Colour = (34, 34, 40)
FAINT: Colour = (112, 112, 120)
SANS, BOLD, MONO, MONO_BOLD = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold"
SERIF, SERIF_BOLD, ITALIC = "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic"


@dataclass(frozen=True)
class Text:
    """A text on the page; ``baseline`` puts it into a row of the page."""

    content: str
    box: Box
    baseline: int


@dataclass(frozen=True)
class Question:
    """What may be asked: the kind of question, the right answer, and where it stands."""

    kind: str
    answer: str
    box: Box


@dataclass
class Page:
    """A page being drawn."""

    image: Image.Image
    texts: list[Text] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    @classmethod
    def blank(cls, width: int, height: int, paper: Colour) -> Page:
        """An empty page."""
        return cls(Image.new("RGB", (width, height), paper))

    @property
    def draw(self) -> ImageDraw.ImageDraw:
        """For everything that is not text."""
        return ImageDraw.Draw(self.image)

    def text(
        self, x: int, y: int, content: str, size: int = 14, face: str = SANS, fill: Colour = INK, align: str = "l"
    ) -> Text:
        """Write a text with its baseline at ``y``; ``align`` says whether ``x`` is its (l)eft, (m)iddle or (r)ight."""
        letters = font(face, size)
        self.draw.text((x, y), content, fill=fill, font=letters, anchor=f"{align}s")
        left, top, right, bottom = letters.getbbox(content, anchor=f"{align}s")
        return self._record(content, (int(x + left), int(y + top), int(x + right), int(y + bottom)), y)

    def lettered(self, x: int, y: int, content: str, pitch: int, height: int, cells: int, size: int = 15) -> Text:
        """Write a text letter by letter into a row of ruled cells, ``y`` being the cells' upper edge."""
        baseline = y + (height + size * 3 // 4) // 2
        for cell in range(cells):
            left = x + cell * pitch
            self.draw.rectangle((left, y, left + pitch, y + height), outline=(150, 160, 175))
        for cell, letter in enumerate(content[:cells]):
            place = (x + cell * pitch + pitch // 2, baseline)
            self.draw.text(place, letter, fill=(30, 45, 110), font=font(SANS, size), anchor="ms")
        return self._record(content, (x, y, x + pitch * len(content), y + height), baseline)

    def ask(self, kind: str, text: Text) -> None:
        """Let the page be asked for a text that stands on it."""
        self.questions.append(Question(kind, text.content, text.box))

    def ask_for_everything(self) -> None:
        """Let the page be asked for all of its text: row by row, from left to right, a line each."""
        rows: dict[int, list[Text]] = {}
        for text in self.texts:
            rows.setdefault(text.baseline, []).append(text)
        lines = [" ".join(t.content for t in sorted(rows[y], key=lambda t: t.box[0])) for y in sorted(rows)]
        self.questions.append(Question("full text", "\n".join(lines), around(t.box for t in self.texts)))

    def _record(self, content: str, box: Box, baseline: int) -> Text:
        text = Text(content, box, baseline)
        self.texts.append(text)
        return text


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box around all of the boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
