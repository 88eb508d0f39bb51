"""Tiny random models of an architecture: the same classes, few and narrow layers, weights that are drawn.

A twin is made from a folder's config alone (:func:`.build.make_twin`). Its config is shrunk by rules that hold for
every architecture (:mod:`.shrink`); what a family needs besides stands in a file of its own below ``families``, named
after the family's ``model_type``. Tokenizer and processor are the folder's own where it has them, else generated.
"""
