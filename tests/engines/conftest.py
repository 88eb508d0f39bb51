"""Engine tests share ``parity_requests`` and ``twins``, which lie beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
