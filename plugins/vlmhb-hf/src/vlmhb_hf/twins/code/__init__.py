"""Code that twins' folders bring with them, for families whose published folders bring their own.

transformers has no classes for these. What lies here is written to the documented interface of each family (names of
files, classes and weights, what the processor is given and returns), so that a twin is loaded like a published folder:
with ``trust_remote_code``. It is not the published code, and copied to folders, not imported from here.
"""
