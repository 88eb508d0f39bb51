"""Names that the platform and the settings share; nothing is imported here."""

from __future__ import annotations

ATTENTION = "torch_native"
"""SGLang's attention backend made of torch operators."""
