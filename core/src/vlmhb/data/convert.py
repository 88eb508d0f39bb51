"""Writing any dataset as a VLMHyperBench folder: ``annotation.csv`` and ``images/``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from vlmhb.contract.dataset import Dataset, Sample
from vlmhb.data.embedded import PREFIX
from vlmhb.data.images import find_image
from vlmhb.data.lists import write_list
from vlmhb.data.tables import write_table
from vlmhb.data.vlmhyperbench import ANNOTATION, COLUMNS
from vlmhb.errors import DatasetError, ImageError

_IMAGES = "images"
_LOOKED_AT = 200
_PAGE = re.compile(r"\.pdf#page=(\d+)$", re.IGNORECASE)


class Converted(msgspec.Struct, frozen=True):
    """How many rows were written, and how many were left out because they cannot be asked."""

    rows: int
    left_out: int


class _Converter:
    def __init__(self, dataset: Dataset, folder: Path, say: Callable[[str], None]) -> None:
        self._dataset = dataset
        self._folder = folder
        self._say = say
        self.rows = 0
        self.left_out = 0
        seen = dict.fromkeys(name for sample in islice(dataset, _LOOKED_AT) for name in sample.fields)
        self.further = tuple(name for name in seen if name not in COLUMNS)

    def lines(self) -> Iterator[Sequence[str]]:
        """The lines of the annotation; the images are copied on the way."""
        for sample in self._dataset:
            try:
                if sample.problem:
                    raise ImageError(sample.problem)
                images = [self._copy(written) for written in sample.images]
            except ImageError as error:
                self.left_out += 1
                self._say(f"row {sample.row} is left out: {error}")
                continue
            self.rows += 1
            unknown = [name for name in sample.fields if name not in (*self.further, *COLUMNS)]
            if unknown:
                self._say(f"row {sample.row}: {', '.join(unknown)} is left out, which the first {_LOOKED_AT} rows lack")
            yield [*_line(sample, images), *(sample.fields.get(name, "") for name in self.further)]

    def _copy(self, written: str) -> str:
        """Copy an image, unless it is there, and return its path in the new folder."""
        path = find_image(self._dataset, written)
        name = _name_of(written, path)
        target = self._folder / name
        if not target.is_file():
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            except OSError as error:
                raise DatasetError(f"{target} cannot be written: {error.strerror or error}") from error
        return name


def convert_dataset(dataset: Dataset, folder: Path, say: Callable[[str], None]) -> Converted:
    """Write a dataset as a folder of its own; several answers, options, schemas and further values become columns.

    Args:
        dataset: what to write, as a stream.
        folder: where to; it must not exist, or be empty.
        say: told about each row that is left out.

    Raises:
        DatasetError: the folder holds something, cannot be written, or the dataset cannot be read to its end.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(f"{folder} is not empty; name a new folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(f"{folder} cannot be written: {error.strerror or error}") from error
    converter = _Converter(dataset, folder, say)
    write_table(folder / ANNOTATION, (*COLUMNS, *converter.further), converter.lines())
    return Converted(converter.rows, converter.left_out)


def _line(sample: Sample, images: Sequence[str]) -> Sequence[str]:
    cells = {
        "data_index": sample.data_index,
        "image_path": images[0] if len(images) == 1 else write_list(images),
        "question": sample.question,
        "answer": sample.reference,
        "split": sample.split,
        "doc_class": sample.doc_class,
        "question_type": sample.question_type,
        "answer_bbox": sample.answer_bbox,
        "other_answers": write_list(sample.other_references),
        "choices": write_list(sample.choices),
        "json_schema": sample.json_schema,
    }
    return [cells[column] for column in COLUMNS]


def _name_of(written: str, path: Path) -> str:
    """Where an image goes, from its name in the dataset alone, so that equal names mean equal files."""
    name = written.strip().replace("\\", "/").removeprefix("./")
    if name.startswith(PREFIX):
        name = path.name
    elif match := _PAGE.search(name):
        name = f"{name[: match.start()]}-page{match[1]}{path.suffix}"
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return "/".join(parts if parts[0] == _IMAGES else [_IMAGES, *parts])
