"""GOT-OCR 2: one page a prompt, which its processor takes as a plain list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from vlmhb.prompting.families.base import ModelFamily

if TYPE_CHECKING:
    from PIL import Image


class GotOcr2(ModelFamily):
    """Its processor takes lists of pictures in lists for the pages of one document."""

    model_types: ClassVar[tuple[str, ...]] = ("got_ocr2",)
    max_images: ClassVar[int | None] = 1

    def batched(self, pictures: Sequence[Sequence[Image.Image]]) -> Any:
        """One picture a prompt."""
        return [picture for row in pictures for picture in row]
