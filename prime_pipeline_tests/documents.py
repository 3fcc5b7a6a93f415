"""Hand-made documents, as a Markdown reader would make them."""

from __future__ import annotations

from prime_pipeline.records import Document, Heading, Section


def make_document(
    doc_id: str, *sections: tuple[str, str] | str, title: str = "", source_path: str = ""
) -> Document:
    """A document of sections given as (heading, body); a bare text is the preamble, or alone the ``whole`` text.

    Without a title of its own it is titled by its id.
    """
    whole = len(sections) == 1 and isinstance(sections[0], str)
    first_ordinal = 0 if sections and isinstance(sections[0], str) else 1
    made: list[Section] = []
    line = 1
    for ordinal, section in enumerate(sections, start=first_ordinal):
        made.append(_section(ordinal, section, title or doc_id, line, whole=whole))
        line += made[-1].text.count("\n")
    return Document(
        doc_id=doc_id,
        title=title or doc_id,
        title_origin="heading" if title else "file-name",
        sections=tuple(made),
        source_path=source_path or doc_id,
        media_type="text/markdown",
    )


def _section(ordinal: int, section: tuple[str, str] | str, title: str, line: int, *, whole: bool) -> Section:
    if isinstance(section, str):
        text = f"{section}\n"
        kind, heading, path = ("whole", title, ()) if whole else ("preamble", "", ())
        return Section(ordinal, kind, heading, path, text, 0, (), line, line + text.count("\n") - 1)  # type: ignore[arg-type]
    heading, body = section
    head = f"## {heading}\n"
    text = f"{head}{body}\n"
    last_line = line + text.count("\n") - 1
    return Section(
        ordinal, "section", heading, (heading,), text, len(head), (Heading(2, heading, line),), line, last_line
    )
