"""The page images of a report: small upright copies under names of our own, and where on them the answers stand."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vlmhb.contract.report import ReportEntry
from vlmhb.contract.request import ImageInput
from vlmhb.data.embedded import embedded_file
from vlmhb.data.images import resolve_image
from vlmhb.errors import ImageError
from vlmhb.images.decode import ImageLimits, open_image
from vlmhb.report.boxes import Quad, box_on_page, box_order, parse_box
from vlmhb.run.folder import RunFolder
from vlmhb.whole import written_whole

if TYPE_CHECKING:
    from PIL.Image import Image

    from vlmhb.report.view import RunsView

FOLDER = "images"
LONGEST, THUMB = 1600, 96
"""Pixels of the longer side of a page and of its thumbnail."""
_LIMITS = ImageLimits(max_pixels=60_000_000)
_THREADS = 4


class Page(NamedTuple):
    """An image file by what it is called in the report; ``file`` is None where it cannot be found any more."""

    name: str
    file: Path | None


class Pages:
    """Gathers the pages of all samples, then makes the images that the report holds."""

    def __init__(self, view: RunsView) -> None:
        self._view = view
        self._folder = view.folder / FOLDER
        self._pages: dict[str, Page] = {}
        self._of_sample: dict[int, list[str]] = {}
        self._boxes: dict[int, tuple[str, Quad]] = {}
        self._sizes: dict[str, tuple[int, int]] = {}

    def add(self, sample: int, entry: ReportEntry, text: dict[str, Any]) -> None:
        """Note a sample's images and the box of its answer."""
        pages = [self._page(entry, *one) for one in _files(entry, text)]
        self._pages |= {page.name: page for page in pages}
        self._of_sample[sample] = [page.name for page in pages]
        box = parse_box(text["answer_bbox"])
        if box is not None:
            self._boxes[sample] = (entry.dataset, box)

    def _page(self, entry: ReportEntry, written: str, file: Path | None) -> Page:
        digest = self._view.image_digests(entry).get(str(file)) if file else None
        own = digest or hashlib.sha256(f"{entry.description['dataset_path']}\0{written}".encode()).hexdigest()
        return Page(own[:20], file)

    def make(self, wrong: Sequence[bool]) -> list[str]:
        """Make the images, those of samples with a wrong answer first, as many as the report takes.

        Args:
            wrong: for each sample whether any entry has it wrong.

        Returns:
            What is not shown, in sentences.
        """
        order = sorted(self._of_sample, key=lambda sample: (not wrong[sample], sample))
        names = list(dict.fromkeys(name for sample in order for name in self._of_sample[sample]))
        taken = names[: self._view.most_pages]
        self._folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as threads:
            sizes = list(threads.map(lambda name: self._make(self._pages[name]), taken))
        self._sizes = {name: size for name, size in zip(taken, sizes, strict=True) if size is not None}
        self._remove_others()
        notes = []
        if len(taken) < len(names):
            notes.append(self._view.text("samples.pages_left_out", shown=len(taken), all=len(names)))
        if len(self._sizes) < len(taken):
            notes.append(self._view.text("samples.pages_unreadable", count=len(taken) - len(self._sizes)))
        return notes

    def _make(self, page: Page) -> tuple[int, int] | None:
        """Make one page's files if they are not there; its full size in pixels, None when it cannot be shown."""
        large, small = self._folder / f"{page.name}.jpg", self._folder / f"{page.name}.t.jpg"
        for folder in (self._folder, *(RunFolder(run).report / FOLDER for run in self._view.manifests)):
            kept = folder / large.name
            if kept.is_file() and (folder / small.name).is_file() and not _newer(page.file, kept):
                if folder != self._folder:
                    shutil.copyfile(kept, large)
                    shutil.copyfile(folder / small.name, small)
                return _full_size(large)
        if page.file is None:
            return None
        try:
            picture = open_image(ImageInput(path=str(page.file)), _LIMITS).image
        except ImageError:
            return None  # the row itself says what is wrong with its image
        _save(picture, LONGEST, large, quality=80)
        _save(picture, THUMB, small, quality=70)
        return picture.size

    def _remove_others(self) -> None:
        for file in self._folder.iterdir():
            if file.name.split(".")[0] not in self._sizes:
                file.unlink()

    def index(self) -> dict[str, Any]:
        """What the viewer's index holds about pages: their names, those of each sample, and its box on the first."""
        names = list(self._sizes)
        place = {name: at for at, name in enumerate(names)}
        shown = {
            sample: [place[name] for name in some if name in place] for sample, some in sorted(self._of_sample.items())
        }
        boxes: dict[int, list[float]] = {}
        for dataset in self._view.datasets:
            placed = {
                sample: (box, self._sizes[self._of_sample[sample][0]])
                for sample, (of, box) in self._boxes.items()
                if of == dataset and self._of_sample[sample] and self._of_sample[sample][0] in self._sizes
            }
            order = box_order(placed.values())
            found = {sample: box_on_page(box, size, order) for sample, (box, size) in placed.items()}
            boxes |= {sample: box for sample, box in found.items() if box is not None}
        return {"pages": names, "images": list(shown.values()), "boxes": {str(at): box for at, box in boxes.items()}}


def _files(entry: ReportEntry, text: dict[str, Any]) -> Iterable[tuple[str, Path | None]]:
    """A row's images as written, and the file of each: as the run found it, else looked for in the dataset."""
    written = [part for part in text["image_path"].split("|") if part.strip()]
    stored = json.loads(text["images"])
    if len(stored) == len(written):
        return [(name, Path(path)) for name, path in zip(written, stored, strict=True)]
    return [(name, _found(Path(entry.description["dataset_path"]), name)) for name in written]


def _found(root: Path, written: str) -> Path | None:
    try:
        return embedded_file(written) or resolve_image(root, written)
    except ImageError:
        return None


def _newer(file: Path | None, kept: Path) -> bool:
    try:
        return file is not None and file.stat().st_mtime_ns > kept.stat().st_mtime_ns
    except OSError:
        return False


def _save(picture: Image, longest: int, path: Path, quality: int) -> None:
    """Save a smaller copy; the full size goes with it as the file's comment."""
    copy = picture.copy()
    copy.thumbnail((longest, longest))
    with written_whole(path) as beside:
        copy.save(beside, "JPEG", quality=quality, comment=f"{picture.width}x{picture.height}")


def _full_size(path: Path) -> tuple[int, int] | None:
    from PIL import Image

    with Image.open(path) as picture:
        comment = picture.info.get("comment", b"").decode("ascii", "replace")
    width, _, height = comment.partition("x")
    return (int(width), int(height)) if width.isdigit() and height.isdigit() else None
