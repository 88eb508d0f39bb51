"""JSON by a schema has no spaces between its parts, as on vLLM."""

from __future__ import annotations

import functools


def write_compact_json() -> None:
    """Let xgrammar, in this process, allow JSON only as ``json.dumps(..., separators=(",", ":"))`` writes it.

    SGLang can switch off that spaces are free; xgrammar then wants one after each comma and colon.
    """
    from xgrammar import GrammarCompiler

    compile_schema = functools.partialmethod(GrammarCompiler.compile_json_schema, separators=(",", ":"))
    GrammarCompiler.compile_json_schema = compile_schema
