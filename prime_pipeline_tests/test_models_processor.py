"""What is recorded of the processor."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from prime_pipeline.models.processor import processor

X86 = """processor	: 0
model name	: Some Processor
flags		: fpu sse2 avx2 avx512_vnni fma aes avx2x
bogomips	: 4890.80

processor	: 1
flags		: fpu sse2 avx2 fma
"""


@pytest.mark.parametrize(
    ("description", "sets"),
    [
        (X86, " avx2 fma avx512_vnni"),
        ("Features\t: fp asimd asimddp i8mm sve2\n", " asimddp i8mm"),
        ("processor: 0\n", ""),
    ],
    ids=["x86", "ARM", "no list"],
)
def test_only_decisive_instruction_sets_are_named(description: str, sets: str, tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(description)
    assert processor(path) == platform.machine() + sets


def test_without_a_description_the_architecture_is_left(tmp_path: Path) -> None:
    assert processor(tmp_path / "none") == platform.machine()
