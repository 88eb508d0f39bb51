"""Environments that hold an engine each, made with uv and kept under the user's data folder.

Engines pin different versions of the same packages, so each gets a virtual environment of its own that also holds
vlmhb and the engine's plugin; a worker is started from it. :mod:`.create` makes one, :mod:`.manage` lists, checks,
removes, registers and finds them.
"""
