"""Which corpus lies at a location."""

from __future__ import annotations

from pathlib import Path

from prime_pipeline.corpus.beir import BeirCorpus
from prime_pipeline.corpus.bright import BRIGHT, BrightCorpus, bright_location
from prime_pipeline.corpus.folder import FolderCorpus
from prime_pipeline.corpus.installed import InstalledCorpus
from prime_pipeline.corpus.location import corpus_path
from prime_pipeline.corpus.qasper import PARQUET, QasperCorpus, qasper_parts
from prime_pipeline.corpus.source import INSTALLED, CorpusSource
from prime_pipeline.errors import CorpusError, DataFileUnavailable


def open_corpus(location: str) -> CorpusSource:
    """The corpus at a location.

    That is ``installed:``, a task ``bright:<folder>#<task>``, a folder that holds ``corpus.jsonl`` (BEIR) or
    ``test-*.parquet`` (QASPER), a ``.jsonl`` file (BEIR), a ``.json`` or ``.parquet`` file (QASPER), or any other folder.

    Raises:
        CorpusNotFound: There is nothing at the location.
        CorpusError: It is a single document, cannot be reached, or is a link to nothing, a pipe or a device; files of a
            data set are missing, or it names no task of BRIGHT.
    """
    if location == INSTALLED:
        return InstalledCorpus()
    if location.startswith(BRIGHT):
        return _bright(location)
    path = corpus_path(location)
    if path.is_dir():
        return _folder(path, location)
    if path.suffix.lower() == ".jsonl":
        return BeirCorpus(path, location)
    if path.suffix.lower() in {".json", PARQUET}:
        return QasperCorpus(path, location)
    raise CorpusError(f"corpus {location} is a single file: name the folder that holds it")


def _folder(path: Path, location: str) -> CorpusSource:
    records = path / "corpus.jsonl"
    if records.is_file():
        return BeirCorpus(records, location)
    return QasperCorpus(path, location) if _holds_papers(path) else FolderCorpus(path, location)


def _holds_papers(folder: Path) -> bool:
    try:
        return bool(qasper_parts(folder))
    except DataFileUnavailable:  # parts are missing: the corpus itself says which
        return True


def _bright(location: str) -> BrightCorpus:
    try:
        found = bright_location(location)
    except ValueError as error:
        raise CorpusError(f"corpus {location}: {error}") from error
    return BrightCorpus(corpus_path(found.folder), found.task, found.form)
