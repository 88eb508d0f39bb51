"""The pages of the dataset ``demo-documents``: what is on them, how they are drawn, how they are written out.

All persons, firms, places and numbers are invented.
"""
