"""What comes off an answer, and what must stay."""

from __future__ import annotations

import pytest

from prime_pipeline.llm.cleaning import cleaned


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("  plain \n", "plain"),
        ("<think>first\n\nthis</think>\n\nThen that.", "Then that."),
        ("\n<think></think>Then that.", "Then that."),
        ("<think>a</think><think>b</think>c", "<think>b</think>c"),
        ("A section about the </think> tag keeps it.", "A section about the </think> tag keeps it."),
        (
            "It opens with <think> and closes with </think>.",
            "It opens with <think> and closes with </think>.",
        ),
        ("<think>never closed", ""),
        ("```\nall of it\n```", "all of it"),
        ("```markdown\nall\n\nof it\n```\n", "all\n\nof it"),
        ("~~~~\na ``` b\n~~~~", "a ``` b"),
        ("```\none\n```\n\n```\ntwo\n```", "```\none\n```\n\n```\ntwo\n```"),
        ("Before\n```\ncode\n```", "Before\n```\ncode\n```"),
        ("```\ncode\n```\nAfter", "```\ncode\n```\nAfter"),
        ("```inline``` code", "```inline``` code"),
        ("", ""),
    ],
)
def test_cleaned(answer: str, text: str) -> None:
    assert cleaned(answer) == text


def test_cleaning_takes_linear_time() -> None:
    for answer in ("<think>" * 50_000, "```\n" * 50_000, "<think>" + "`" * 200_000, "\n" * 200_000 + "x"):
        cleaned(answer)
