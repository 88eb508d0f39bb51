"""Donut: Swin in stages over a page, then mBART's decoder; tasks and answers are written in tokens of their own."""

from __future__ import annotations

from typing import Any

from vlmhb_hf.twins.reader import Reader

_HEIGHT, _WIDTH = 160, 128


class Donut(Reader):
    """Pages of 160 x 128 pixels, of which 5 x 4 patches are left."""

    picture = 0.3
    tokens = ("<s_docvqa>", "<s_question>", "</s_question>", "<s_answer>", "</s_answer>")

    def shrink(self, config: dict[str, Any]) -> None:
        """Four stages of one layer each; the width doubles from one to the next."""
        config["encoder"].update(
            embed_dim=16, hidden_size=128, num_layers=4, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4], window_size=4
        )

    def small_pictures(self, config: dict[str, Any]) -> None:
        """Height and width, in patches of 4."""
        config["encoder"].update(image_size=[_HEIGHT, _WIDTH], patch_size=4)

    def processor(self, tokenizer: Any, config: dict[str, Any]) -> Any:
        """The page is shrunk and filled up, not stretched."""
        from transformers import DonutImageProcessor, DonutProcessor

        return DonutProcessor(DonutImageProcessor(size={"height": _HEIGHT, "width": _WIDTH}), tokenizer)


FAMILY = Donut()
