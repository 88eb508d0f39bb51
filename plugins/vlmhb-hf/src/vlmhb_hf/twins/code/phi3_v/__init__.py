"""Phi-3-Vision: what a folder of it brings."""
