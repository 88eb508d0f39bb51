"""From a request to a prompt, once and the same way for every engine that serves Hugging Face model folders.

An engine makes one :class:`PromptBuilder` for its model and, for each request, calls

- :meth:`PromptBuilder.prepare`: the chat template rendered, the pixels resized, and the prompt's token ids with one
  placeholder an image (what an engine takes that expands placeholders itself);
- :meth:`PromptBuilder.encode`: tensors for a batch of prepared prompts, placeholders expanded (what
  ``transformers``' ``generate`` takes);
- :meth:`PromptBuilder.answer_text`: the text of output ids, cut before a stop text.

``transformers`` is imported from the engine's own environment when a builder is made; the core does not depend on it.
"""

from __future__ import annotations

from vlmhb.prompting.builder import PreparedPrompt, PromptBuilder, prompt_ids
from vlmhb.prompting.families import ModelFamily, register_family
from vlmhb.prompting.folder import ModelFolder, open_model_folder, sampling_defaults_of, stop_token_ids
from vlmhb.prompting.limits import context_length, fit_to_context

__all__ = [
    "ModelFamily",
    "ModelFolder",
    "PreparedPrompt",
    "PromptBuilder",
    "context_length",
    "fit_to_context",
    "open_model_folder",
    "prompt_ids",
    "register_family",
    "sampling_defaults_of",
    "stop_token_ids",
]
