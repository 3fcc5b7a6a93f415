"""Which processor this is, as far as it matters for the speed of small integers."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Final

_DECISIVE: Final = (
    *("avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "amx_int8"),
    *("asimddp", "i8mm", "sve"),
)
_LISTS: Final = ("flags", "Features")
"""How the list is headed: on x86, and on ARM."""


def processor(description: Path = Path("/proc/cpuinfo")) -> str:
    """Architecture and decisive instruction sets of this machine, such as ``x86_64 avx2 fma``.

    Args:
        description: Where Linux describes its processors; where there is no such file, only the architecture is known.
    """
    return " ".join((platform.machine(), *_instruction_sets(description)))


def _instruction_sets(description: Path) -> list[str]:
    try:
        lines = description.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    named = (line.partition(":") for line in lines)
    found = next((set(flags.split()) for name, _, flags in named if name.strip() in _LISTS), set())
    return [flag for flag in _DECISIVE if flag in found]
