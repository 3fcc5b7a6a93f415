"""BEIR records (JSON Lines with ``_id``, ``title``, ``text``, ``metadata``) to documents, one for each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from prime_pipeline.corpus.decoding import checked, decoded, without_byte_order_mark
from prime_pipeline.corpus.location import unreadable
from prime_pipeline.corpus.source import SourceEntry, SourceFailure, SourceItem, unique
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document, Section
from prime_pipeline.storage.fingerprint import fingerprint

_MEDIA_TYPE = "application/x-beir"
_MAX_LINE_BYTES = 32 * 1024 * 1024
_N_LINES_TO_TRY = 5


class BeirCorpus:
    """One JSON Lines file of BEIR records."""

    def __init__(self, path: Path, location: str) -> None:
        self.location = location
        self.ignored: Mapping[str, int] = {}
        self._path = path

    def entries(self) -> Iterator[SourceItem]:
        """Every record by line; one that is malformed, or whose id was seen before, fails alone."""
        return unique(beir_entries(self._path, self._path.name))


def beir_entries(path: Path, source_path: str, id_prefix: str = "") -> Iterator[SourceItem]:
    """The records of a file, read line by line.

    Args:
        path: The file, in UTF-8.
        source_path: Its name in the corpus.
        id_prefix: Put in front of each ``_id``.
    """
    try:
        with path.open("rb") as file:
            for number, line in _lines(file):
                if line.strip():
                    yield _entry(line, number, source_path, id_prefix)
    except OSError as error:
        yield SourceFailure(source_path, unreadable(error), None)


def is_beir(path: Path) -> bool:
    """Whether one of the first lines is a record with ``_id`` and ``text``; queries beside a corpus are none."""
    if path.name == "queries.jsonl" and path.with_name("corpus.jsonl").exists():
        return False
    with path.open("rb") as file:
        return any(_is_record(line) for _, line in islice(_lines(file), _N_LINES_TO_TRY))


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Lines by 1-based number; of one above the limit only as much as shows that it is too long."""
    number, line = 1, without_byte_order_mark(file.readline(_MAX_LINE_BYTES + 1))
    while line:
        yield number, line
        while line and not line.endswith(b"\n"):
            line = file.readline(_MAX_LINE_BYTES + 1)
        number, line = number + 1, file.readline(_MAX_LINE_BYTES + 1)


def _is_record(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and {"_id", "text"} <= record.keys()


def _entry(line: bytes, number: int, source_path: str, id_prefix: str) -> SourceItem:
    place = f"{source_path}:{number}"
    doc_id = None
    try:
        record = _record(line, place)
        doc_id = id_prefix + _identifier(record, place)
        document = _document(record, doc_id, source_path, number)
        digest = fingerprint([record.get("title"), record["text"], record.get("metadata")])
    except DocumentError as error:
        return SourceFailure(place, error.reason, doc_id)
    except (ValueError, RecursionError) as error:
        return SourceFailure(place, f"is no JSON record ({error}): repair the line", doc_id)
    return SourceEntry(doc_id, source_path, _MEDIA_TYPE, digest, partial(_same, document), f":{number}")


def _same(document: Document) -> Document:
    return document


def _record(line: bytes, place: str) -> dict[str, Any]:
    if len(line) > _MAX_LINE_BYTES:
        raise DocumentError(place, f"the line is longer than {_MAX_LINE_BYTES >> 20} MiB: split the record")
    record = json.loads(decoded(line, place))
    if not isinstance(record, dict):
        raise DocumentError(place, 'is no record: expected {"_id": ..., "title": ..., "text": ...}')
    return record


def _identifier(record: Mapping[str, Any], place: str) -> str:
    value = record.get("_id")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise DocumentError(place, "has no _id: give it one")
    return checked(str(value), place)


def _text(record: Mapping[str, Any], name: str, place: str) -> str:
    value = record.get(name, "")
    if not isinstance(value, str | None):
        raise DocumentError(place, f"{name} is no string: expected the {name} as one string")
    return checked(value or "", place)


def _document(record: Mapping[str, Any], doc_id: str, source_path: str, number: int) -> Document:
    """One ``whole`` section: the text, or the title where there is no text."""
    place = f"{source_path}:{number}"
    if "text" not in record:
        raise DocumentError(place, 'has no text: expected {"_id": ..., "title": ..., "text": ...}')
    own_title = " ".join(_text(record, "title", place).split())
    text = _text(record, "text", place)
    text = text if text.strip() else own_title
    if not text:
        raise DocumentError(place, "title and text are empty: fill the record or remove it")
    title = own_title or doc_id
    section = Section(0, "whole", title, (), text, start_line=number, end_line=number)
    return Document(
        doc_id=doc_id,
        title=title,
        title_origin="dataset" if own_title else "file-name",
        sections=(section,),
        source_path=source_path,
        media_type=_MEDIA_TYPE,
        properties=_properties(record.get("metadata"), place),
    )


def _properties(metadata: object, place: str) -> dict[str, str]:
    if not isinstance(metadata, dict):
        return {}
    scalars = {k: str(v) for k, v in metadata.items() if isinstance(v, (str, int, float)) and str(v).strip()}
    return {checked(key, place): checked(value, place) for key, value in scalars.items()}
