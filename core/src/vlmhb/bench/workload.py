"""What every engine is asked: a dataset's questions, or questions about drawn pages."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vlmhb.contract.request import GenerationRequest, ImageInput, SamplingParams
from vlmhb.errors import ConfigError, RequestError
from vlmhb.run.keys import digest_file

if TYPE_CHECKING:
    from PIL.Image import Image

    from vlmhb.contract.dataset import Dataset

_MARK = 48
"""The mark of a variation is this fraction of a page's shorter side, at least 8 pixels."""


class Question(msgspec.Struct, frozen=True):
    """One question about some image files."""

    id: str
    text: str
    images: tuple[Path, ...]


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Questions with the most tokens of an answer; decoding is greedy.

    Attributes:
        name: what it is, for people.
        questions: in the order asked.
        max_tokens: most output tokens of an answer. No engine can be made to give more than the model wants to.
        digest: SHA-256 of the questions, the bytes of the images and ``max_tokens``.
    """

    name: str
    questions: tuple[Question, ...]
    max_tokens: int
    digest: str

    @property
    def images(self) -> list[Path]:
        """The image files, each once."""
        return list(dict.fromkeys(path for question in self.questions for path in question.images))

    def requests(self, variation: int, folder: Path, most: int | None = None) -> list[GenerationRequest]:
        """The requests with a variation of each page, written to a folder as PNG.

        The variations differ by a small mark in a corner. So an engine that remembers pages finds those of the same
        pass, as it would in a run, and none of an earlier pass. Every engine gets the same pages.

        Args:
            variation: number of the pass.
            folder: where the pages go; files of an earlier variation are replaced.
            most: only so many of the questions.
        """
        folder.mkdir(parents=True, exist_ok=True)
        questions = self.questions[:most]
        sampling = SamplingParams(max_tokens=self.max_tokens)
        made: dict[Path, ImageInput] = {}
        for path in dict.fromkeys(path for question in questions for path in question.images):
            varied = folder / f"{len(made)}.png"
            _mark(_read(path), variation).save(varied, compress_level=1)
            made[path] = ImageInput(path=str(varied.absolute()), name=path.name)
        return [
            GenerationRequest.ask(q.id, q.text, [made[path] for path in q.images], sampling=sampling) for q in questions
        ]


def of_dataset(dataset: Dataset, limit: int | None, max_tokens: int, say: Callable[[str], None]) -> Workload:
    """A dataset's questions; rows that cannot be asked are left out and named.

    Raises:
        ConfigError: no row can be asked.
    """
    from vlmhb.data.images import page_files

    questions = []
    for sample in itertools.islice(dataset, limit):
        try:
            images = page_files(dataset, sample)
            for path in images:
                _read(path)
        except RequestError as error:
            say(f"row {sample.row} is left out: {error}")
            continue
        questions.append(Question(str(sample.row), sample.question, images))
    if not questions:
        raise ConfigError(f"dataset {dataset.name} has no row that can be asked")
    return _workload(f"{len(questions)} questions of {dataset.name}", questions, max_tokens)


def of_drawn_pages(pages: int, size: tuple[int, int], questions_a_page: int, max_tokens: int, folder: Path) -> Workload:
    """Questions about pages drawn into a folder.

    Args:
        pages: how many.
        size: width and height in pixels.
        questions_a_page: how many questions are asked about each page.
        max_tokens: most output tokens of an answer.
        folder: where the pages go.
    """
    from vlmhb.bench.pages import draw_page, question

    folder.mkdir(parents=True, exist_ok=True)
    questions = []
    for number in range(pages):
        page = draw_page(number, *size)
        path = (folder / f"page-{number}.png").absolute()
        page.image.save(path, compress_level=1)
        questions += [Question(f"{number}-{turn}", question(page, turn), (path,)) for turn in range(questions_a_page)]
    width, height = size
    name = f"{len(questions)} questions about {pages} drawn pages of {width} x {height} pixels"
    return _workload(name, questions, max_tokens)


def _workload(name: str, questions: list[Question], max_tokens: int) -> Workload:
    digests = {path: digest_file(path) for question in questions for path in question.images}
    content = [max_tokens, [[q.text, *(digests[path] for path in q.images)] for q in questions]]
    digest = f"sha256:{hashlib.sha256(msgspec.json.encode(content)).hexdigest()}"
    return Workload(name=name, questions=tuple(questions), max_tokens=max_tokens, digest=digest)


def _read(path: Path) -> Image:
    """The page's pixels as every engine sees them.

    Raises:
        ImageError: the file is damaged.
    """
    from vlmhb.images import open_image

    return open_image(ImageInput(path=str(path))).image


def _mark(page: Image, variation: int) -> Image:
    """A copy of a page with a square of the variation's own colour, one of 512 light ones, in the upper left corner."""
    marked = page.copy()
    side = max(8, min(page.size) // _MARK)
    colour = tuple(255 - 18 * (variation // 8**place % 8) for place in range(3))
    marked.paste(colour, (0, 0, side, side))
    return marked
