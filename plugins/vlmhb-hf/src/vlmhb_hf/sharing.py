"""Prompts that begin alike: their common beginning is encoded, and later computed, once.

Several questions are usually asked about one page. Their prompts are the same ids up to and past the images (system
prompt, image placeholders, the opening of the question), so a batch can hold one *head* for each page and one *tail*
for each question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from vlmhb.prompting import PreparedPrompt, PromptBuilder

if TYPE_CHECKING:
    from PIL import Image

PER_TOKEN = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
"""Arrays of shape (batch, tokens) whose values for a tail are known without the processor."""

Contents = tuple[Any, ...]


class Shared(NamedTuple):
    """How the rows of a batch follow from its encoded heads.

    Attributes:
        head: for each row, the place of its head in the encoded batch.
        tails: for each row, the ids that come after the head, at least one.
    """

    head: list[int]
    tails: list[tuple[int, ...]]

    def sample(self) -> list[int]:
        """Places of up to four rows to try sharing on: of two heads each the shortest and the longest tail."""
        members = [[row for row, head in enumerate(self.head) if head == place] for place in sorted(set(self.head))]
        members.sort(key=len, reverse=True)
        chosen: list[int] = []
        for rows in members[:2]:
            rows.sort(key=lambda row: len(self.tails[row]))
            chosen += sorted({rows[0], rows[-1]})
        return chosen


class Group(NamedTuple):
    """Prompts with one head: their places in the batch, and how many of their (unexpanded) ids the head has."""

    members: list[int]
    cut: int


def find_groups(prompts: Sequence[PreparedPrompt], placeholder: int | None) -> list[Group]:
    """Put prompts together that begin alike.

    A head holds all images and at least one token after them; of a text-only prompt it holds at least a half. It leaves
    every member at least one token.

    Args:
        prompts: all with images, or all without.
        placeholder: the id that stands for an image in ``token_ids`` (its last one, where several do).
    """
    contents = _contents(prompts)
    least = [_least(prompt, placeholder) for prompt in prompts]
    order = sorted(range(len(prompts)), key=lambda place: (contents[place], prompts[place].token_ids))
    groups: list[Group] = []
    for place in order:
        ids = prompts[place].token_ids
        if groups:
            members, cut = groups[-1]
            first = members[0]
            common = min(cut, len(ids) - 1, _common(prompts[first].token_ids, ids))
            if contents[first] == contents[place] and common >= max(least[first], least[place]):
                groups[-1] = Group([*members, place], common)
                continue
        groups.append(Group([place], len(ids) - 1))
    return groups


def encode_shared(builder: PromptBuilder, prompts: Sequence[PreparedPrompt]) -> tuple[Any, Shared] | None:
    """Encode a batch as heads and tails; None where no two prompts begin alike, or heads cannot be told from tails.

    Args:
        builder: the model's.
        prompts: all with images, or all without.

    Raises:
        RequestError: the model's processor refuses the batch.
    """
    groups = find_groups(prompts, builder.placeholder_id)
    if len(groups) == len(prompts) or any(group.cut < 1 for group in groups):
        return None
    first = [prompts[group.members[0]] for group in groups]
    encoded = builder.encode(first)
    ends = [prompt.token_ids[group.cut :] for prompt, group in zip(first, groups, strict=True)]
    if not _ends_with(encoded, ends) or _per_token(encoded) - set(PER_TOKEN):
        return None
    _cut_ends(encoded, [len(end) for end in ends], builder.tokenizer.pad_token_id)
    head = [0] * len(prompts)
    tails: list[tuple[int, ...]] = [()] * len(prompts)
    for place, group in enumerate(groups):
        for member in group.members:
            head[member], tails[member] = place, prompts[member].token_ids[group.cut :]
    return encoded, Shared(head, tails)


def padded_tails(tails: Sequence[tuple[int, ...]], pad: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Tails as a tensor padded on the left, and its mask; both of shape (rows, longest tail)."""
    longest = max(len(tail) for tail in tails)
    ids = [[pad] * (longest - len(tail)) + list(tail) for tail in tails]
    mask = [[0] * (longest - len(tail)) + [1] * len(tail) for tail in tails]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _contents(prompts: Sequence[PreparedPrompt]) -> list[Contents]:
    """What tells the images of each prompt: equal for equal pixels, whichever file they came from."""
    by_size: dict[tuple[int, int], set[int]] = {}
    for prompt in prompts:
        for image in prompt.images:
            by_size.setdefault(image.size, set()).add(id(image))
    known: dict[int, Contents] = {}

    def content(image: Image.Image) -> Contents:
        if id(image) not in known:
            alone = len(by_size[image.size]) == 1
            known[id(image)] = (image.size, b"" if alone else hashlib.sha256(image.tobytes()).digest())
        return known[id(image)]

    return [tuple(content(image) for image in prompt.images) for prompt in prompts]


def _least(prompt: PreparedPrompt, placeholder: int | None) -> int:
    """The fewest ids that a head of this prompt may have."""
    ids = prompt.token_ids
    if not prompt.images:
        return len(ids) // 2 + 1
    last = next((place for place in reversed(range(len(ids))) if ids[place] == placeholder), len(ids))
    return last + 2


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    length = min(len(one), len(other))
    return next((place for place in range(length) if one[place] != other[place]), length)


def _ends_with(encoded: Any, ends: Sequence[tuple[int, ...]]) -> bool:
    """Whether the encoded rows end with these ids: whether the processor changed nothing but the images' places."""
    ids = encoded["input_ids"]
    return all(tuple(row[-len(end) :].tolist()) == end for row, end in zip(ids, ends, strict=True))


def picture_bytes(encoded: Any) -> int:
    """Bytes of an encoded batch beside its tokens."""
    arrays = [value for name, value in encoded.items() if isinstance(value, torch.Tensor) and name not in PER_TOKEN]
    return sum(array.nbytes for array in arrays)


def _per_token(encoded: Any) -> set[str]:
    shape = encoded["input_ids"].shape
    return {name for name, value in encoded.items() if isinstance(value, torch.Tensor) and value.shape[:2] == shape}


def _cut_ends(encoded: Any, counts: Sequence[int], pad: int) -> None:
    """Take that many tokens from the end of each row of a left-padded batch, in place; ``pad`` fills what is free."""
    lengths = encoded["attention_mask"].sum(-1).tolist()
    longest = max(length - count for length, count in zip(lengths, counts, strict=True))
    total = encoded["input_ids"].shape[1]
    for name in PER_TOKEN:
        if name not in encoded:
            continue
        old = encoded[name]
        new = old.new_full((len(old), longest), pad if name == "input_ids" else 0)
        for row, count in enumerate(counts):
            kept = min(longest, total - count)
            new[row, longest - kept :] = old[row, total - count - kept : total - count]
        encoded[name] = new
