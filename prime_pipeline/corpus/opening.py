"""Which corpus lies at a location."""

from __future__ import annotations

from prime_pipeline.corpus.beir import BeirCorpus
from prime_pipeline.corpus.folder import FolderCorpus
from prime_pipeline.corpus.installed import InstalledCorpus
from prime_pipeline.corpus.location import corpus_path
from prime_pipeline.corpus.qasper import QasperCorpus
from prime_pipeline.corpus.source import INSTALLED, CorpusSource
from prime_pipeline.errors import CorpusError


def open_corpus(location: str) -> CorpusSource:
    """The corpus at a location.

    That is ``installed:``, a folder that holds ``corpus.jsonl`` (BEIR), a ``.jsonl`` file (BEIR), a ``.json`` file
    (QASPER), or any other folder.

    Raises:
        CorpusNotFound: There is nothing at the location.
        CorpusError: It is a single document, cannot be reached, or is a link to nothing, a pipe or a device.
    """
    if location == INSTALLED:
        return InstalledCorpus()
    path = corpus_path(location)
    records = path / "corpus.jsonl"
    if path.is_dir():
        return BeirCorpus(records, location) if records.is_file() else FolderCorpus(path, location)
    if path.suffix.lower() == ".jsonl":
        return BeirCorpus(path, location)
    if path.suffix.lower() == ".json":
        return QasperCorpus(path, location)
    raise CorpusError(f"corpus {location} is a single file: name the folder that holds it")
