"""Bytes to text: the encodings that are accepted, and the errors for all others. Knows nothing of formats."""

from __future__ import annotations

import codecs
import re

from prime_pipeline.errors import DocumentError

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LINE_END = re.compile(r"\r\n?")
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")


def decoded(data: bytes, source: str) -> str:
    """The text of a file in UTF-8 (with or without byte order mark) or UTF-16 (with one), line ends as LF.

    Raises:
        DocumentError: Another encoding, or NUL bytes; the reason gives the byte offset.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return decoded_as(encoding, data[len(mark) :], source, n_skipped=len(mark))
    return decoded_as("utf-8", data, source)


def decoded_as(encoding: str, data: bytes, source: str, n_skipped: int = 0) -> str:
    """The text of ``data`` in one encoding; ``n_skipped`` bytes stood before it (for the offset in the error).

    Raises:
        DocumentError: See :func:`decoded`.
    """
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        reason = f"byte {error.start + n_skipped} is not {encoding.upper()} ({error.reason}): convert the file to UTF-8"
        raise DocumentError(source, reason) from error
    if "\x00" in text:
        offset = len(text[: text.index("\x00")].encode(encoding)) + n_skipped
        reason = f"byte {offset} is NUL, so this is not text, or UTF-16 without a byte order mark: convert it to UTF-8"
        raise DocumentError(source, reason)
    return with_line_feeds(text)


def with_line_feeds(text: str) -> str:
    """The text with CR and CRLF turned into LF."""
    return _LINE_END.sub("\n", text) if "\r" in text else text


def checked(text: str, source: str) -> str:
    """A string out of a JSON record as text that can be stored: LF line ends.

    Raises:
        DocumentError: It holds NUL or half of a surrogate pair, which UTF-8 cannot express.
    """
    if found := _UNUSABLE.search(text):
        reason = (
            f"character {found.start()} is U+{ord(found[0]):04X}, which no text can hold: repair the record"
        )
        raise DocumentError(source, reason)
    return with_line_feeds(text)


def printable(text: str) -> str:
    r"""The text with each half of a surrogate pair, which UTF-8 cannot express, written out: ``\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def without_byte_order_mark(data: bytes) -> bytes:
    """The bytes behind a UTF-8 byte order mark, if there is one."""
    return data.removeprefix(codecs.BOM_UTF8)
