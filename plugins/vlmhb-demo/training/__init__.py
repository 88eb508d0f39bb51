"""Training of ``vlmhb-reader`` from nothing: ``python -m training OUT`` beside this folder. No part of any wheel."""
