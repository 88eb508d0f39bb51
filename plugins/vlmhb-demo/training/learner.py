"""One step of learning: the losses of a batch, the two optimisers, the learning rate over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from training.batches import IGNORED, SLOTS, START, Batch, blank
from training.model import Parts, Reader, text_angles, vision_angles
from training.sizes import Sizes

LETTERS_WEIGHT = 0.3
"""Of the letters' loss beside the answers'."""
BLANK_WEIGHT, BESIDE_WEIGHT = 0.3, 0.3
"""Of an empty slot, and of a letter of a neighbouring cell, beside a letter of the cell itself."""
CODE = 64
"""Width of the code of a letter."""
CODE_SCALE = 4.0
"""Of the product of two codes in the letters' loss."""
FIELD_WEIGHT = 1.5
"""Of a field's token beside one of the whole text: fields have fewer, and lag."""
LOOKS_WEIGHT = 0.2
"""Of the loss of each layer that is told where to look."""


@dataclass
class Losses:
    """Of one batch: losses, and how much was right (letters of the cells; tokens of whole texts; of fields).

    ``looks`` is the part of the guided heads' attention that is at the letter to say.
    """

    total: Tensor
    letters: float
    whole: float = 0.0
    fields: float = 0.0
    looks: float = 0.0


class Learner:
    """The reader and its optimisers.

    The tower is told which letters stand in the cell of an image token: a linear layer, which is not exported, reads
    the codes of ``SLOTS`` letters from the token. The code of a letter is the same for every slot: the first ``CODE``
    numbers of its embedding. So what the language model learns about copying one letter holds for all of them.

    The language model is told where the letters of the answers stand: some of its heads have to look there.
    """

    def __init__(self, sizes: Sizes, compiled: bool = True) -> None:
        self.sizes = sizes
        self.reader = Reader(sizes)
        self.codes = torch.nn.Linear(sizes.hidden, SLOTS * CODE)
        matrices, others = [], []
        for name, parameter in self.reader.named_parameters():
            inner = parameter.ndim == 2 and "embed" not in name and "patch" not in name
            (matrices if inner else others).append(parameter)
        others += self.codes.parameters()
        self.optimizers: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(matrices, lr=0.0, weight_decay=0.02, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), weight_decay=0.01),
        )
        if compiled:
            self.reader.compile_blocks()

    def step(self, batch: Batch, rate: float, tower_only: bool) -> Losses:
        """Learn from a batch at a learning rate."""
        losses = self.losses(batch, tower_only)
        losses.total.backward()
        torch.nn.utils.clip_grad_norm_([p for p in self.reader.parameters() if p.grad is not None], 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return losses

    def losses(self, batch: Batch, tower_only: bool) -> Losses:
        """What the reader makes of a batch."""
        with torch.autocast("cpu", torch.bfloat16):
            patches = torch.from_numpy(batch.patches).float()
            image = self.reader.visual(patches, vision_angles(self.sizes, batch.rows, batch.columns))
            letters, letters_right = self._letters(image, torch.from_numpy(batch.letters))
            if tower_only:
                return Losses(letters, letters_right)
            answers = self._answers(image, batch)
        return replace(answers, total=answers.total + LETTERS_WEIGHT * letters, letters=letters_right)

    def _letters(self, image: Tensor, wanted: Tensor) -> tuple[Tensor, float]:
        known = wanted[:, 0, 0] != IGNORED
        if not known.any():
            return image.sum() * 0.0, 0.0
        codes = self.codes(image.float()[known]).unflatten(-1, (SLOTS, CODE)).flatten(0, 2)
        names = self.reader.model.embed_tokens.weight[:, :CODE]
        logits = (codes @ names.T).float() * CODE_SCALE
        weights = torch.where(wanted[known] == blank(), BLANK_WEIGHT, 1.0)
        weights[..., 0] *= BESIDE_WEIGHT
        weights[..., -1] *= BESIDE_WEIGHT
        wanted, weights = wanted[known], weights.flatten()
        loss = (F.cross_entropy(logits, wanted.flatten(), reduction="none") * weights).sum() / weights.sum()
        right = (logits.argmax(-1).view_as(wanted) == wanted)[..., 1:-1]
        return loss, _part(right[wanted[..., 1:-1] != blank()])

    def _answers(self, image: Tensor, batch: Batch) -> Losses:
        prefix = START + batch.rows * batch.columns
        branches = (batch.tokens.shape[1] - prefix - batch.long) // batch.short
        angles = text_angles(self.sizes, torch.from_numpy(batch.places))
        parts = Parts(START, prefix, batch.long, branches, batch.short)
        states, looks = self.reader.model(torch.from_numpy(batch.tokens), image, angles, parts)
        targets = torch.from_numpy(batch.targets)
        learnt = targets != IGNORED
        logits = self.reader.model.logits(states[learnt]).float()
        of_field = (torch.arange(targets.shape[1]) >= batch.long).expand_as(targets)[learnt]
        wanted = targets[learnt]
        weights = torch.where(of_field, FIELD_WEIGHT, 1.0)
        loss = (F.cross_entropy(logits, wanted, reduction="none") * weights).sum() / weights.sum()
        now, following = (_looked(*pair) for pair in zip(looks, torch.from_numpy(batch.looks), strict=True))
        loss = loss - LOOKS_WEIGHT * (now.log().mean() + following.log().mean())
        right = logits.argmax(-1) == wanted
        return Losses(loss, 0.0, _part(right[~of_field]), _part(right[of_field]), following.mean().item())

    def state(self) -> dict[str, Any]:
        """Everything that must be kept to go on later."""
        return {
            "reader": self.reader.state_dict(),
            "codes": self.codes.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state`."""
        self.reader.load_state_dict(state["reader"])
        self.codes.load_state_dict(state["codes"])
        for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)


def _looked(looks: Tensor, places: Tensor) -> Tensor:
    """How much of each guided head's attention is where it should be; only of tokens that have such a place."""
    known = places != IGNORED
    at = looks.transpose(1, 2)[known]
    return at.gather(-1, places[known][:, None, None].expand(-1, at.shape[1], 1)).clamp(min=1e-6)


def _part(right: Tensor) -> float:
    return right.float().mean().item() if right.numel() else 0.0
