"""Tiny random models of text families, for checking that engines give the same tokens.

One file a family, each with ``make(folder) -> folder``. The sizes are the smallest that every engine's CPU attention
takes (32 numbers a head). Weights are scaled so that the best token is ahead by a clear gap and answers vary.
"""
