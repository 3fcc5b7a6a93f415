"""PDF files made by hand."""

from __future__ import annotations

import io
import sys

import pytest

from prime_pipeline.corpus.pdf import parse_pdf
from prime_pipeline.errors import DocumentError


def pdf(*pages: str, password: str = "") -> bytes:
    """A PDF with one line of text on each page."""
    pypdf = pytest.importorskip("pypdf")
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(key): NameObject(value) for key, value in names.items()})
    for words in pages:
        page = writer.add_blank_page(300, 300)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({words}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(out := io.BytesIO())
    return out.getvalue()


def test_pages_are_one_section() -> None:
    document = parse_pdf(pdf("First page", "", "Second page"), "a.pdf", "docs/my_report.pdf")
    (section,) = document.sections
    assert section.text == "First page\n\nSecond page"
    assert (section.kind, section.start_line, document.title) == ("whole", None, "my report")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.4 broken", "no readable PDF"),
        (pdf("x", password="secret"), "encrypted"),
        (pdf(""), "holds no text"),
    ],
)
def test_unreadable_files_say_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        parse_pdf(data, "a.pdf", "a.pdf")


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(DocumentError, match=r"pip install 'prime-pipeline\[pdf\]'"):
        parse_pdf(b"", "a.pdf", "a.pdf")


def test_warnings_without_a_file_name_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    damaged = pdf("words").replace(b"startxref\n", b"startxref\n9")
    assert parse_pdf(damaged, "a.pdf", "a.pdf").text == "words"
    assert caplog.records == []
    pypdf = pytest.importorskip("pypdf")
    pypdf.PdfReader(io.BytesIO(damaged))
    assert caplog.records  # as loud as before for all others
