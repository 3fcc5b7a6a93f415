"""Encodings that are read, and those that make a file fail alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.corpus.decoding import checked, decoded
from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.corpus.source import bytes_fingerprint
from prime_pipeline.errors import DocumentError

TEXT = "# Tïtle\n\n## Ä\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_headings_are_seen_in_every_accepted_encoding(encoding: str, line_end: str) -> None:
    text = decoded(TEXT.replace("\n", line_end).encode(encoding), "a.md")
    assert text == TEXT
    assert [h.text for s in parse_markdown(text, "a", "a.md").sections for h in s.headings] == ["Tïtle", "Ä"]


def test_byte_order_mark_does_not_change_the_fingerprint() -> None:
    assert bytes_fingerprint(TEXT.encode("utf-8-sig")) == bytes_fingerprint(TEXT.encode())
    assert bytes_fingerprint(TEXT.encode()) != bytes_fingerprint(TEXT.encode() + b"\n")


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        ("中文".encode("gbk"), 0),
        (b"good \xff bad", 5),
        (b"\xef\xbb\xbfgood \xff", 8),
        (b"ab\xc3\xa4\x00", 4),
        (b"\xff\xfea\x00b", 4),
        (b"\xff\xfea\x00\x00\x00", 4),
    ],
)
def test_other_bytes_are_refused_with_their_offset(data: bytes, offset: int) -> None:
    with pytest.raises(DocumentError, match=rf"^a\.md: byte {offset} .*convert") as caught:
        decoded(data, "a.md")
    assert caught.value.source == "a.md"


@pytest.mark.parametrize("text", ["a\x00", "a\ud800"])
def test_unstorable_strings_are_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="character 1 is U"):
        checked(text, "x")


@given(st.text(st.characters(exclude_characters="\x00\r", exclude_categories=["Cs"])))
def test_round_trip(text: str) -> None:
    assert decoded(text.encode("utf-8-sig"), "x") == text
    assert decoded(text.encode("utf-16"), "x") == text
