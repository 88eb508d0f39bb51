"""The contract between the core and its plugins: everything a plugin may import.

The names are re-exported by :mod:`vlmhb`; this package only groups their definitions.
"""

CONTRACT_VERSION = 1
"""Raised when a plugin written for the version before would no longer work."""
