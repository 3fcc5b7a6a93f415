"""Where published data sets lie in a data folder, and what is said where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import pytest

from prime_pipeline.corpus.bright import BRIGHT_STRUCTURED_TASKS
from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.datasets.published import (
    PUBLICATIONS,
    Dataset,
    bright_locations,
    missing_data_message,
    published_location,
)
from prime_pipeline.datasets.queries import load_query_set
from prime_pipeline.errors import DatasetMissing
from prime_pipeline_tests.papers import PAPERS, write_papers
from prime_pipeline_tests.tables import write_bright, write_papers_as_parquet

EXAMPLE = {"id": "0", "query": "Why?", "gold_ids": ["a"], "gold_ids_long": ["A"], "excluded_ids": ["N/A"]}
HUB_PAPERS = {
    paper_id: {
        **paper,
        "qas": [{"question": "Why?", "question_id": f"{paper_id}-q", "answers": []}],
    }
    for paper_id, paper in PAPERS.items()
}


@pytest.mark.parametrize("below", ["", "qasper"])
@pytest.mark.parametrize(
    "name",
    ["qasper-test-v0.3.json", "test/0000.parquet", "test-00000-of-00001.parquet"],
)
def test_qasper_is_found_in_each_of_its_forms(tmp_path: Path, below: str, name: str) -> None:
    path = tmp_path / below / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        write_papers(path)
    else:
        write_papers_as_parquet(path, HUB_PAPERS)
    location = published_location("qasper", tmp_path)
    assert len(list(open_corpus(location).entries())) == 2
    assert load_query_set(location).relevant_documents == {"alpha", "beta"}


@pytest.mark.parametrize("below", ["", "nfcorpus"])
def test_nfcorpus_is_found_once_all_of_it_is_there(tmp_path: Path, below: str) -> None:
    own = tmp_path / below
    contents = {
        "corpus.jsonl": '{"_id": "MED-1", "title": "", "text": "x"}\n',
        "queries.jsonl": '{"_id": "PLAIN-2", "text": "y"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nPLAIN-2\tMED-1\t2\n",
    }
    for name, content in contents.items():
        with pytest.raises(DatasetMissing):
            published_location("nfcorpus", tmp_path)
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(content)
    location = published_location("nfcorpus", tmp_path)
    assert [item.source_path for item in open_corpus(location).entries()] == ["corpus.jsonl"]
    assert load_query_set(location).qrels == {"PLAIN-2": {"MED-1": 2}}


@pytest.mark.parametrize("below", ["", "bright"])
def test_the_tasks_of_bright_that_are_there_are_found(tmp_path: Path, below: str) -> None:
    for task in ("pony", "biology"):
        write_bright(tmp_path / below, task, {"a": "x"}, [EXAMPLE])
    write_bright(tmp_path / below, "robotics", {}, [EXAMPLE])
    (tmp_path / below / "examples" / "biology-00000-of-00001.parquet").rename(tmp_path / "elsewhere")
    locations = bright_locations(tmp_path)
    assert locations == {"pony": f"bright:{tmp_path / below}#pony"}
    assert [item.source_path for item in open_corpus(locations["pony"]).entries()] == [
        "documents/pony-00000-of-00001.parquet"
    ]
    assert load_query_set(locations["pony"]).qrels == {"0": {"a": 1}}
    with pytest.raises(DatasetMissing):
        bright_locations(tmp_path, "long_documents")
    write_bright(tmp_path / below, "pony", {"a": "x"}, [EXAMPLE], pages={"A": "x"})
    assert bright_locations(tmp_path, "long_documents") == {"pony": f"bright:{tmp_path / below}#pony/long"}


@pytest.mark.parametrize("dataset", get_args(Dataset))
def test_what_is_missing_is_told_by_folder_file_and_source(dataset: Dataset) -> None:
    message = missing_data_message(dataset, Path("/data"))
    assert f"put into /data/{dataset}: " in message
    for way in PUBLICATIONS[dataset]:
        assert f"{', '.join(way.files)} ({way.source})" in message


def test_the_files_of_the_structured_tasks_are_named() -> None:
    message = missing_data_message("bright", Path("/data"))
    for task in BRIGHT_STRUCTURED_TASKS:
        assert f"documents/{task}-00000-of-00001.parquet, examples/{task}-00000-of-00001.parquet" in message
    assert "xlangai/BRIGHT" in message


@pytest.mark.parametrize("dataset", ["qasper", "nfcorpus"])
def test_an_empty_or_missing_folder_is_an_error_that_says_what_to_do(
    tmp_path: Path, dataset: Literal["qasper", "nfcorpus"]
) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(DatasetMissing) as raised:
            published_location(dataset, folder)
        assert str(raised.value) == missing_data_message(dataset, folder)
    with pytest.raises(DatasetMissing, match="data set bright is not in"):
        bright_locations(tmp_path / "gone")
