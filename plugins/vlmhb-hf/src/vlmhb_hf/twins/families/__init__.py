"""One file a family, named after its ``model_type``; ``<model_type>_<that of its vision part>`` goes before it."""
