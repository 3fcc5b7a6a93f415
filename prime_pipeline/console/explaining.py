"""What commands about single queries show: what stands ready for the next one."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from prime_pipeline.console.parts import counts_table, message
from prime_pipeline.reports import wording

if TYPE_CHECKING:
    from prime_pipeline.retrieval.warming import Warmed

_HEADROOM = 1.25
"""How much larger a limit is advised than the values take: a tenth is freed when it is passed, and estimates err."""


def warmed_view(warmed: Warmed, limit_bytes: int) -> Group:
    """What filling the cache of token vectors came to.

    Args:
        warmed: What it came to.
        limit_bytes: The setting ``token_vector_cache_bytes``.
    """
    if warmed.scorer != "late_interaction":
        return Group(
            Text(
                f"Nothing to do: retrieval.scorer is {warmed.scorer}, and only late_interaction keeps token vectors."
            )
        )
    counts = {
        "windows": warmed.n_windows,
        "there already": f"{warmed.n_present:,} ({wording.byte_size(warmed.bytes_present)})",
        "made": f"{warmed.n_made:,} ({wording.byte_size(warmed.bytes_made)})",
    }
    if not warmed.n_left:
        return Group(counts_table("Token vectors", counts))
    advised = 1_000_000 * ceil(_HEADROOM * warmed.bytes_of_all / 1_000_000)
    note = (
        f"{warmed.n_left:,} were left out: the cache, limited to {wording.byte_size(limit_bytes)}, would have dropped "
        f"others of them. All take about {wording.byte_size(warmed.bytes_of_all)}: set "
        f"token_vector_cache_bytes = {advised:_} or more."
    )
    return Group(counts_table("Token vectors", counts | {"left out": warmed.n_left}), message("note:", note))
