"""The data sets that the PRIME paper measures: which of their files are needed, where they are published, where they lie.

Nothing is fetched here, and no file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from prime_pipeline.corpus.bright import BRIGHT_STRUCTURED_TASKS, BRIGHT_TASKS, BrightForm, BrightLocation
from prime_pipeline.datasets.bright import EXAMPLES
from prime_pipeline.errors import DataFileUnavailable, DatasetMissing
from prime_pipeline.storage.parquet import parquet_parts

Dataset = Literal["qasper", "nfcorpus", "bright"]


@dataclass(frozen=True, slots=True)
class Publication:
    """One of the ways in which a data set is published.

    Attributes:
        files: Paths below the data set's folder; all of them are needed.
        source: Where they come from.
        location: What of it a corpus and a query set are opened by, below the data set's folder.
    """

    files: tuple[str, ...]
    source: str
    location: str


def _bright_files(task: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{task}-00000-of-00001.parquet" for folder in ("documents", EXAMPLES))


PUBLICATIONS: Final[Mapping[Dataset, Sequence[Publication]]] = {
    "qasper": (
        Publication(
            ("qasper-test-v0.3.json",),
            "from https://qasper-dataset.s3.us-west-2.amazonaws.com/qasper-test-and-evaluator-v0.3.tgz",
            "qasper-test-v0.3.json",
        ),
        Publication(
            ("test/0000.parquet",),
            "qasper/test/0000.parquet in the branch refs/convert/parquet of the hub's data set allenai/qasper",
            "test/0000.parquet",
        ),
    ),
    "nfcorpus": (
        Publication(
            ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"),
            "from https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/nfcorpus.zip; the hub's BeIR/nfcorpus has "
            "the same records as parquet, which is not read",
            "",
        ),
    ),
    "bright": (
        Publication(
            tuple(path for task in BRIGHT_STRUCTURED_TASKS for path in _bright_files(task)),
            "from the hub's data set xlangai/BRIGHT, by the same names; a task for which both are there is enough, and so is "
            f"one of {', '.join(task for task in BRIGHT_TASKS if task not in BRIGHT_STRUCTURED_TASKS)}; whole pages are in "
            "long_documents",
            "",
        ),
    ),
}
"""The ways of each data set, the one that is looked for first in front."""


def published_location(dataset: Literal["qasper", "nfcorpus"], folder: Path) -> str:
    """Where a data set lies, for both its corpus and its queries.

    It may lie in the folder itself or in one of its name below. QASPER's test split may also be there as
    ``test-00000-of-00001.parquet``.

    Raises:
        DatasetMissing: It is not there, or not all of it.
    """
    for own in _own_folders(dataset, folder):
        for publication in PUBLICATIONS[dataset]:
            if all((own / path).is_file() for path in publication.files):
                return str(own / publication.location)
        if dataset == "qasper" and _are_there(own, "test"):
            return str(own)
    raise DatasetMissing(missing_data_message(dataset, folder))


def bright_locations(folder: Path, form: BrightForm = "documents") -> dict[str, str]:
    """Locations of those tasks of BRIGHT that are there, queries included, by task.

    They may lie in the folder itself or in ``bright`` below it.

    Raises:
        DatasetMissing: No task is there.
    """
    for own in _own_folders("bright", folder):
        found = [t for t in BRIGHT_TASKS if _are_there(own / form, t) and _are_there(own / EXAMPLES, t)]
        if found:
            return {task: str(BrightLocation(str(own), task, form)) for task in found}
    raise DatasetMissing(missing_data_message("bright", folder))


def missing_data_message(dataset: Dataset, folder: Path) -> str:
    """Which files of a data set to put where."""
    ways = [f"{', '.join(way.files)} ({way.source})" for way in PUBLICATIONS[dataset]]
    return f"data set {dataset} is not in {folder}, or not all of it: put into {folder / dataset}: {'; or '.join(ways)}"


def _own_folders(dataset: Dataset, folder: Path) -> tuple[Path, Path]:
    return folder / dataset, folder


def _are_there(folder: Path, name: str) -> bool:
    try:
        return bool(parquet_parts(folder, name))
    except DataFileUnavailable:
        return False
