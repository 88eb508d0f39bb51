"""One model's way from requests to prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlmhb.contract.model import ModelSpec
from vlmhb.contract.request import GenerationRequest, ImagePart, Message, TextPart
from vlmhb.errors import ImageError, ModelLoadError, RequestError
from vlmhb.images import image_size
from vlmhb.prompting.encoding import kept_positions, put_back_literals
from vlmhb.prompting.families import family_of
from vlmhb.prompting.folder import ModelFolder, open_model_folder, stop_token_ids
from vlmhb.prompting.images import ReadyImages
from vlmhb.prompting.literals import MARKER, Literals
from vlmhb.prompting.template import ChatTemplate

if TYPE_CHECKING:
    from PIL import Image

_CHARACTERS_A_TOKEN = 3
"""A rough mean over languages and tokenizers, for sorting only."""


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """A request made ready for an engine.

    Attributes:
        request: what was asked.
        images: its pictures, RGB, at the size that the model's family wants: an engine must not resize them again.
        text: the rendered prompt with one placeholder an image. Words that look like control tokens are replaced by
            a marker in it, so it is for the model's processor only; see ``token_ids``.
        token_ids: the prompt's ids with one placeholder an image, control words of the question as plain text.
        literals: the words that the markers in ``text`` stand for, in order.
        notes: what was changed or left out, one sentence each.
    """

    request: GenerationRequest
    images: tuple[Image.Image, ...]
    text: str
    token_ids: tuple[int, ...]
    literals: tuple[str, ...]
    notes: tuple[str, ...]


class PromptBuilder:
    """Makes prompts for one Hugging Face model folder. Not for use from several threads at once.

    Attributes:
        folder: the model's folder and configs.
        processor: the model's processor; for a text-only model its tokenizer.
        tokenizer: the model's tokenizer, padding on the side that the family says.
        takes_images: whether the model takes images at all.
        max_images: most images in one prompt, by the spec or the model's family; None is no limit.
        stop_ids: ids that end an answer.
        placeholder_id: the id that stands for an image in :attr:`PreparedPrompt.token_ids`, its last where it has
            several; None for a model without images.
        notes: what of the spec could not be followed, one sentence each.
    """

    def __init__(self, spec: ModelSpec, folder: ModelFolder | None = None) -> None:
        """Load the model's processor or tokenizer.

        Args:
            spec: the model.
            folder: its folder, when the engine has opened it already.

        Raises:
            ModelLoadError: the folder, its processor or its tokenizer cannot be used.
        """
        self.folder = folder if folder is not None else open_model_folder(spec)
        self.processor = _load_processor(self.folder, spec)
        self.tokenizer = getattr(self.processor, "tokenizer", self.processor)
        self.takes_images = hasattr(self.processor, "image_processor")
        kind = type(self.processor).__name__
        family = family_of(self.folder.model_type, kind) if self.takes_images else family_of("")
        self.family = family(spec, self.processor)
        self._ready_tokenizer()
        self._places_images = self.takes_images and self.family.places_images
        image_text = self.family.image_text or getattr(self.processor, "image_token", None) or "<image>"
        self._template = ChatTemplate(self.processor, image_text if self._places_images else None)
        patterns = self.family.word_patterns
        self._literals = Literals(self.tokenizer, self.processor, self._template.source, patterns)
        limits = [limit for limit in (spec.max_images, self.family.max_images) if limit is not None]
        self.max_images = min(limits, default=None)
        ends = self.tokenizer.convert_tokens_to_ids(list(self.family.stop_words))
        self.stop_ids = tuple(sorted({*stop_token_ids(self.folder, self.tokenizer), *ends}))
        self._silent = {*self.stop_ids, self.tokenizer.bos_token_id, self.tokenizer.pad_token_id}
        self.notes = self.family.notes
        self.placeholder_id = self._last_id(self._template.image_text)
        self._images = ReadyImages(self.family)

    @property
    def has_template(self) -> bool:
        """Whether the model has a chat template."""
        return bool(self._template.source)

    def prepare(self, request: GenerationRequest) -> PreparedPrompt:
        """Check a request, read its images and render its prompt.

        Raises:
            RequestError: the request cannot be served by this model (kinds ``image``, ``invalid_request``,
                ``unsupported``); the same on every engine.
        """
        self.check(request)
        pictures = [self._images.get(image) for image in request.images]
        text, words, written = self._write(request)
        self._check_placeholders(text, len(pictures))
        text = self.family.numbered(text)
        encoded = self.tokenizer(text, **self._text_options(text))["input_ids"]
        ids = self._literals.put_back(encoded, words)
        if not ids:
            raise RequestError("the prompt is empty.")
        notes = [note for picture in pictures for note in picture.notes]
        return PreparedPrompt(
            request=request,
            images=tuple(picture.image for picture in pictures),
            text=text,
            token_ids=tuple(ids),
            literals=words,
            notes=(*notes, *written),
        )

    def check(self, request: GenerationRequest) -> None:
        """What can be said about a request without reading its images.

        Raises:
            RequestError: see :meth:`prepare`.
        """
        problems = request.sampling.problems()
        if problems:
            raise RequestError("; ".join(problems.values()))
        if not request.messages:
            raise RequestError("the request has no messages.")
        if not request.images and not request.text.strip():
            raise RequestError("the prompt is empty.")
        count = len(request.images)
        if count and not self.takes_images:
            raise RequestError(
                f"{self.folder.path.name} is a text-only model and the request has {count} image(s).", "unsupported"
            )
        if self.max_images is not None and count > self.max_images:
            raise RequestError(f"the request has {count} images and the limit is {self.max_images} in one prompt.")
        if count < self.family.min_images:
            raise RequestError("the request has no image, and this model only reads images.", "unsupported")

    def encode(self, prompts: Sequence[PreparedPrompt]) -> Any:
        """The processor's tensors for a batch, padded, placeholders expanded.

        Args:
            prompts: all with images, or all without.

        Returns:
            A ``BatchFeature``: ``input_ids`` and ``attention_mask`` of shape (batch, tokens), the pixels in the
            processor's own layout, and side arrays; what ``generate`` takes.

        Raises:
            RequestError: the model's processor refuses the batch.
        """
        if prompts[0].images and not self.family.together([prompt.images for prompt in prompts]):
            raise RequestError("these pictures must not share a batch with this model.", kind="unsupported")
        if self.family.same_length and len({len(prompt.token_ids) for prompt in prompts}) > 1:
            raise RequestError("prompts of other lengths must not share a batch with this model.", kind="unsupported")
        texts = [prompt.text for prompt in prompts]
        options = {**self._text_options(texts[0]), "padding": True, "return_tensors": "pt"}
        try:
            if self.takes_images:
                pictures = [prompt.images for prompt in prompts] if prompts[0].images else None
                batch = self.family.encode(self.processor, texts, pictures, options)
            else:
                batch = self.tokenizer(texts, **options)
        except (ValueError, TypeError, IndexError, KeyError, RuntimeError) as error:
            raise RequestError(f"the model's processor refuses the prompt: {error}", kind="unsupported") from error
        if any(prompt.literals for prompt in prompts):
            words = [prompt.literals for prompt in prompts]
            left = self.family.padding_side == "left"
            put_back_literals(batch, words, self._literals, self.tokenizer.pad_token_id, left=left)
        return batch

    def estimate_tokens(self, request: GenerationRequest) -> int:
        """About how long the prompt will be, from the text's length and the images' headers; never raises."""
        total = len(request.text) // _CHARACTERS_A_TOKEN
        for image in request.images:
            try:
                total += self.family.image_tokens(*image_size(image))
            except ImageError:
                continue  # prepare() says so
        return total

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of ids; bytes of an unfinished character become U+FFFD.

        Without special tokens; where the family writes its answers in them, without those that begin, end and pad.
        """
        kept = self.family.tokens_in_answers
        ids = [token for token in token_ids if token not in self._silent] if kept else list(token_ids)
        text: str = self.tokenizer.decode(ids, skip_special_tokens=not kept, clean_up_tokenization_spaces=False)
        return text

    def answer_text(self, token_ids: Sequence[int], stop: Sequence[str] = ()) -> str:
        """The text of an answer's ids, cut before the first stop text in it; the same rule on every engine."""
        text = self.decode(token_ids)
        cuts = [place for place in (text.find(word) for word in stop) if place >= 0]
        return text[: min(cuts)] if cuts else text

    def _write(self, request: GenerationRequest) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The prompt's text, the words that its markers stand for, and notes."""
        arranged, notes = self._template.arrange(request.messages)
        messages, words = self._hide_literals(arranged)
        if not self.has_template and self.family.written_in_tokens(request.text):
            messages = list(arranged)
        text = self._template.render(messages)
        if self.has_template:
            return text, words, notes
        text, notes = self.family.plain_prompt(text, self.folder)
        return text, words if MARKER in text else (), notes

    def _hide_literals(self, messages: Sequence[Message]) -> tuple[list[Message], tuple[str, ...]]:
        hidden: list[Message] = []
        words: list[str] = []
        for message in messages:
            parts: list[TextPart | ImagePart] = []
            for part in _merged(message):
                if isinstance(part, TextPart):
                    text, found = self._literals.hide(part.text)
                    words.extend(found)
                    part = TextPart(text)
                parts.append(part)
            hidden.append(Message(message.role, tuple(parts)))
        return hidden, tuple(words)

    def _check_placeholders(self, text: str, images: int) -> None:
        if not self._places_images:
            return
        written = text.count(self._template.image_text) if self._template.image_text else 0
        if written != images:
            raise RequestError(
                f"the model's chat template wrote {written} image placeholders for {images} images.", "unsupported"
            )

    def _last_id(self, text: str) -> int | None:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
        return ids[-1] if ids else None

    def _text_options(self, text: str) -> dict[str, Any]:
        """Whether the tokenizer adds its own begin token: the rule of transformers' ``apply_chat_template``."""
        if not self._template.source:
            return {} if self.family.adds_begin else {"add_special_tokens": False}
        begin = self.tokenizer.bos_token
        if not self.takes_images or (begin is not None and text.startswith(begin)):
            return {"add_special_tokens": False}
        return {}

    def _ready_tokenizer(self) -> None:
        self.tokenizer.padding_side = self.family.padding_side
        if self.tokenizer.pad_token_id is None:
            # Padding is masked out, so any token will do.
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.convert_ids_to_tokens(0)


def prompt_ids(encoded: Any, row: int) -> list[int]:
    """The ids of one row of an encoded batch, without its padding."""
    ids: list[int] = encoded["input_ids"][row, kept_positions(encoded, row)].tolist()
    return ids


def _merged(message: Message) -> list[TextPart | ImagePart]:
    """Neighbouring texts joined, so that no control word hides in the seam between two of them."""
    merged: list[TextPart | ImagePart] = []
    for part in message.content:
        last = merged[-1] if merged else None
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            merged[-1] = TextPart(last.text + part.text)
        else:
            merged.append(part)
    return merged


def _load_processor(folder: ModelFolder, spec: ModelSpec) -> Any:
    from transformers import AutoProcessor, AutoTokenizer

    auto = AutoProcessor if folder.has_processor else AutoTokenizer
    try:
        loaded = auto.from_pretrained(str(folder.path), trust_remote_code=spec.trust_remote_code)
    except Exception as error:  # the processor's own code runs in there, and tokenizers raises plain Exception
        what = "processor" if folder.has_processor else "tokenizer"
        raise ModelLoadError(f"the {what} of {Path(folder.path).name} cannot be loaded: {error}") from error
    # What is not known is silently the tokenizer alone. Own code that may not run is refused with the config.
    unknown = folder.has_processor and not hasattr(loaded, "image_processor")
    if unknown and (spec.trust_remote_code or not folder.own_code):
        raise ModelLoadError(
            f"the processor of {folder.path.name} cannot be loaded: the installed transformers does not know "
            f"{folder.processor_class or 'its class'}, and the folder brings no code for it."
        )
    return loaded
