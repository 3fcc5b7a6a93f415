"""What people see of warming, printed to a console of eighty columns."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from prime_pipeline.console.explaining import warmed_view
from prime_pipeline.retrieval.warming import Warmed


def shown(view: Any, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(view)
    return file.getvalue()


DONE = Warmed("late_interaction", 3_000, 1_000, 2_000, 60_000_000, 120_000_000)


def test_warming_tells_what_was_there_and_what_was_made() -> None:
    text = shown(warmed_view(DONE, 1 << 30))
    assert re.search(r"windows +3,000\n", re.sub(" +\n", "\n", text))
    assert re.search(r"there already +1,000 \(60\.0 MB\)", text)
    assert re.search(r"made +2,000 \(120\.0 MB\)", text)
    assert "left out" not in text


def test_what_was_left_out_is_told_with_the_setting_that_helps() -> None:
    text = " ".join(shown(warmed_view(replace(DONE, n_windows=6_000), 200_000_000), width=400).split())
    assert "3,000 were left out: the cache, limited to 200.0 MB, would have dropped others of them." in text
    assert "All take about 360.0 MB: set token_vector_cache_bytes = 450_000_000 or more." in text


@pytest.mark.parametrize("scorer", ["none", "cross_encoder"])
def test_nothing_to_do_is_said(scorer: Any) -> None:
    assert shown(warmed_view(Warmed(scorer), 1 << 30), width=200) == (
        f"Nothing to do: retrieval.scorer is {scorer}, and only late_interaction keeps token vectors.\n"
    )
