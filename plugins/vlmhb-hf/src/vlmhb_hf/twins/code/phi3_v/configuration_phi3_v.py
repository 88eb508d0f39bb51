"""Phi-3-Vision's config: Phi-3's, and ``img_processor`` and ``embd_layer`` about the vision part."""

from transformers import Phi3Config


class Phi3VConfig(Phi3Config):
    """``img_processor["vision_config"]`` has sizes of CLIP other than those of ViT-L/14 at 336 pixels."""

    model_type = "phi3_v"


Phi3VConfig.register_for_auto_class()
