"""The platform class that SGLang instantiates in each of its processes when there is no accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang.srt.arg_groups import choices
from sglang.srt.platforms.cpu import CpuDeviceMixin
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform

from vlmhb_sglang.cpu.names import ATTENTION

if TYPE_CHECKING:
    import torch

# Deterministic inference, the mode in which SGLang honours seeds, is refused for attention backends that are
# not on these two lists. Attention by torch's own operators computes each sequence for itself, so it qualifies.
choices.add_deterministic_attention_backend_choices([ATTENTION])
choices.add_radix_supported_deterministic_attention_backend_choices([ATTENTION])


class TorchPlatform(CpuDeviceMixin, SRTPlatform):
    """A CPU that has no kernels but torch's.

    It calls itself out-of-tree: what SGLang keeps for its own CPU platform are C++ operators of a separate build.
    """

    _enum = PlatformEnum.OOT
    capabilities = PlatformCapabilities()

    def get_default_attention_backend(self) -> str:
        """Scaled dot product attention of torch, sequence by sequence."""
        return ATTENTION

    def is_pin_memory_available(self, device: Any = None) -> bool:
        """There is no device that pinned memory would be copied to."""
        return False

    def post_load_model(self, model: torch.nn.Module) -> None:
        """Make deterministic inference work; SGLang switches it on right after this call, in the same process.

        Two parts of it exist only as GPU kernels: matrix products that do not depend on the batch, which are left
        out (seeds do not need them), and the hash that seeded draws are made from, which has a torch form here.
        """
        from sglang.srt.layers import sampler
        from sglang.srt.model_executor.model_runner import ModelRunner

        from vlmhb_sglang.cpu.seeded_hash import seeded_hash

        ModelRunner.maybe_enable_batch_invariant_mode = lambda runner: None
        sampler.murmur_hash32 = seeded_hash
