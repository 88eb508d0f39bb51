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
from torch.nn.utils.rnn import pad_sequence
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
        tails: for each row, the ids that come after the head, at least one; all its ids where only pictures are shared.
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

    A head holds all images; of a text-only prompt it holds at least a half. It leaves every member at least one token.

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
    cuts = [group.cut for group in groups]
    if _per_token(encoded) - set(PER_TOKEN) or not _can_be_cut(encoded, first, cuts, builder):
        return None
    lengths = [len(prompt.token_ids) - cut for prompt, cut in zip(first, cuts, strict=True)]
    heads = {
        name: [row[: len(row) - length] for row, length in zip(_unpadded(encoded, name), lengths, strict=True)]
        for name in _sides(encoded)
    }
    encoded.update({name: _padded(name, rows, builder) for name, rows in heads.items()})
    head = [0] * len(prompts)
    tails: list[tuple[int, ...]] = [()] * len(prompts)
    for place, group in enumerate(groups):
        for member in group.members:
            head[member], tails[member] = place, prompts[member].token_ids[group.cut :]
    return encoded, Shared(head, tails)


def whole_rows(builder: PromptBuilder, encoded: Any, shared: Shared) -> Any:
    """Heads and tails put together again: one row of tokens for each prompt, but still the pictures of each head once.

    Args:
        builder: the model's.
        encoded: what :func:`encode_shared` returned; not changed.
        shared: the other thing that it returned.
    """
    whole = dict(encoded)
    for name in _sides(encoded):
        heads = _unpadded(encoded, name)
        tails = [heads[0].new_tensor(tail) for tail in shared.tails]
        if name != "input_ids":
            tails = [torch.full_like(tail, int(name == "attention_mask")) for tail in tails]
        rows = [torch.cat([heads[head], tail]) for head, tail in zip(shared.head, tails, strict=True)]
        whole[name] = _padded(name, rows, builder)
    return whole


def encode_pages(builder: PromptBuilder, prompts: Sequence[PreparedPrompt]) -> tuple[Any, Shared | None]:
    """Encode the tokens of every prompt, and the pictures of each page once; for prompts that cannot be cut.

    Args:
        builder: the model's.
        prompts: all with images.

    Returns:
        The batch, and which row is about which page; None where each is about its own.

    Raises:
        RequestError: the model's processor refuses the batch.
    """
    whole = builder.encode(prompts)
    contents = _contents(prompts)
    pages = {content: place for place, content in reversed(list(enumerate(contents)))}
    if len(pages) == len(prompts):
        return whole, None
    first = sorted(pages.values())
    pictures = builder.encode([prompts[place] for place in first])
    tokens = _per_token(whole)
    encoded = {name: (whole if name in tokens else pictures)[name] for name in whole}
    return encoded, Shared([first.index(pages[content]) for content in contents], [p.token_ids for p in prompts])


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
    last = next((place for place in reversed(range(len(ids))) if ids[place] == placeholder), 0)
    return last + 1  # where the processor chooses the images' place, _can_be_cut looks


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    length = min(len(one), len(other))
    return next((place for place in range(length) if one[place] != other[place]), length)


def _can_be_cut(encoded: Any, first: Sequence[PreparedPrompt], cuts: Sequence[int], builder: PromptBuilder) -> bool:
    """Whether the encoded prompts are heads, the images in them, and then the very ids of the tails.

    A head that ends with an image has the last token that stands for it at its end. Only if that is a special token is
    the text after it cut into tokens by itself. And where positions depend on the kinds of tokens, the first after an
    image has one that follows from the image's sides.
    """
    special = set(builder.tokenizer.get_added_vocab().values())
    kinds = _unpadded(encoded, "mm_token_type_ids") if "mm_token_type_ids" in encoded else None
    for place, (row, prompt, cut) in enumerate(zip(_unpadded(encoded, "input_ids"), first, cuts, strict=True)):
        tail = prompt.token_ids[cut:]
        start = len(row) - len(tail)
        if start < 1 or tuple(row[start:].tolist()) != tail:
            return False
        before, last = prompt.token_ids[cut - 1], int(row[start - 1])
        if before != last and (before != builder.placeholder_id or last not in special):
            return False
        if prompt.images and kinds is not None and int(kinds[place][start - 1]) != 0:
            return False
    return True


def picture_bytes(encoded: Any) -> int:
    """Bytes of an encoded batch beside its tokens."""
    arrays = [value for name, value in encoded.items() if isinstance(value, torch.Tensor) and name not in PER_TOKEN]
    return sum(array.nbytes for array in arrays)


def _per_token(encoded: Any) -> set[str]:
    shape = encoded["input_ids"].shape
    return {name for name, value in encoded.items() if isinstance(value, torch.Tensor) and value.shape[:2] == shape}


def _sides(encoded: Any) -> list[str]:
    return [name for name in PER_TOKEN if name in encoded]


def _unpadded(encoded: Any, name: str) -> list[torch.Tensor]:
    return [row[mask.bool()] for row, mask in zip(encoded[name], encoded["attention_mask"], strict=True)]


def _padded(name: str, rows: list[torch.Tensor], builder: PromptBuilder) -> torch.Tensor:
    fill = builder.tokenizer.pad_token_id if name == "input_ids" else 0
    return pad_sequence(rows, batch_first=True, padding_value=fill, padding_side=builder.family.padding_side)
