"""The command line: ``vlmhb``. One module a command; nothing heavy is imported before a command runs."""

from __future__ import annotations

from vlmhb.cli.app import main

__all__ = ["main"]
