"""Settings: where they come from, what wins, what is refused, and what a home remembers."""

from __future__ import annotations

import re
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.datasets.locations import KNOWN_ITEMS
from prime_pipeline.errors import CorpusNotSet, HomeNotWritable, SettingsError
from prime_pipeline.indexes.vectors import VectorOptions
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.models.location import EMBEDDED_MODEL
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.settings import Settings, load_settings, remember


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which a ``prime.toml`` may lie in."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home that PRIME_HOME names in every test."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def write(folder: Path, text: str) -> None:
    (folder / "prime.toml").write_text(text, encoding="utf-8")


def test_defaults(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRIME_HOME")
    settings = load_settings()
    assert settings.home == here / ".prime"
    assert (settings.profile, settings.embedder_model) == ("embedded", EMBEDDED_MODEL)
    assert settings.retrieval_options == RetrievalOptions()
    assert settings.vector_options == VectorOptions()
    assert settings.metadata.options() == MetadataOptions()
    assert list(here.iterdir()) == []


def test_the_paper_profile_has_the_paper_s_models() -> None:
    settings = load_settings({"profile": "paper"})
    assert settings.embedder_model == "BAAI/bge-small-en-v1.5"
    assert settings.retrieval_options == RetrievalOptions(scorer="cross_encoder")
    assert settings.vector_options == VectorOptions(search="hnsw")


def test_explicit_choices_win_over_the_profile() -> None:
    chosen = {"profile": "paper", "embedder": "mine", "retrieval": {"scorer": "none"}}
    settings = load_settings({**chosen, "index": {"vector_search": "exact", "hnsw_m": 8}})
    assert (settings.embedder_model, settings.retrieval_options.scorer) == ("mine", "none")
    assert settings.vector_options == VectorOptions(search="exact", m=8)


def test_option_over_variable_over_home_over_working_directory(
    here: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def top_k(options: dict[str, Any] | None = None) -> tuple[int, int]:
        retrieval = load_settings(options).retrieval
        return retrieval.top_k, retrieval.rrf_k

    assert top_k() == (5, 60)
    write(here, "[retrieval]\ntop_k = 6\nrrf_k = 10")
    assert top_k() == (6, 10)
    write(home, "[retrieval]\ntop_k = 7")
    assert top_k() == (7, 10)
    monkeypatch.setenv("PRIME_RETRIEVAL__TOP_K", "8")
    assert top_k() == (8, 10)
    assert top_k({"retrieval": {"top_k": 9}}) == (9, 10)
    assert top_k({"retrieval": None}) == (8, 10)


def test_the_home_is_found_before_its_file_is_read(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("option", "variable", "file"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f'embedder = "{name}"')
    monkeypatch.delenv("PRIME_HOME")
    write(here, 'home = "../file"')
    assert load_settings().embedder == "file"
    monkeypatch.setenv("PRIME_HOME", "../variable")
    settings = load_settings()
    assert (settings.embedder, settings.home.resolve()) == ("variable", tmp_path / "variable")
    settings = load_settings({"home": tmp_path / "option"})
    assert (settings.embedder, settings.home) == ("option", tmp_path / "option")


def test_a_tilde_is_the_user_s_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PRIME_HOME", "~/prime")
    settings = load_settings({"corpus": "~/docs"})
    assert (settings.home, settings.corpus) == (tmp_path / "prime", str(tmp_path / "docs"))


def test_paths_are_relative_to_where_they_are_written(
    here: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "models").mkdir()
    write(home, 'corpus = "docs"\ncache_home = "../shared"\nembedder = "models"\ncross_encoder = "some/name"')
    settings = load_settings({"queries": "q.jsonl"})
    assert settings.corpus == str(home / "docs")
    assert settings.queries == str(here / "q.jsonl")
    assert settings.stored.cache_root.resolve() == home.parent / "shared"
    assert (settings.embedder, settings.cross_encoder) == (str(home / "models"), "some/name")
    monkeypatch.setenv("PRIME_CORPUS", "other")
    assert load_settings().corpus == str(here / "other")


def test_installed_is_no_path(home: Path) -> None:
    write(home, f'corpus = "{INSTALLED}"')
    settings = load_settings({"queries": INSTALLED})
    assert settings.corpus == settings.queries == INSTALLED


def test_known_items_are_no_path_and_remembered(home: Path) -> None:
    remember(load_settings({"queries": KNOWN_ITEMS}))
    assert (home / "prime.toml").read_text() == 'queries = "known-items:"\n'
    assert load_settings().queries == KNOWN_ITEMS == "known-items:"


def test_a_file_of_nearly_that_name_is_a_path(here: Path) -> None:
    assert load_settings({"queries": "known-items"}).queries == str(here / "known-items")


def test_a_bright_task_keeps_its_scheme_and_its_folder_becomes_absolute(
    tmp_path: Path, here: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, 'corpus = "bright:../data#x#pony/long"\nqueries = "bright:~/data#pony"')
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load_settings()
    assert settings.corpus == f"bright:{home / '../data#x'}#pony/long"
    assert settings.queries == f"bright:{tmp_path / 'data'}#pony"
    settings = load_settings({"corpus": "bright:near#biology", "queries": "bright:/far#biology/long"})
    assert settings.corpus == f"bright:{here / 'near'}#biology"
    assert settings.queries == "bright:/far#biology/long"
    remember(settings)
    assert load_settings().corpus == settings.corpus


@pytest.mark.parametrize(
    "location", ["bright:data", "bright:#pony", "bright:data#moths", "bright:~nosuchuser#pony"]
)
def test_a_bright_location_that_is_none_is_refused(location: str, here: Path) -> None:
    with pytest.raises(SettingsError, match=r"corpus: .* \(found 'bright:"):
        load_settings({"corpus": location})
    write(here, f'queries = "{location}"')
    with pytest.raises(SettingsError, match=r"queries: .* \(found 'bright:"):
        load_settings()


@pytest.mark.parametrize("corpus", ["", None])
def test_no_corpus_is_an_error_once_it_is_needed(home: Path, corpus: str | None) -> None:
    write(home, 'corpus = ""')
    settings = load_settings({"corpus": corpus})
    assert settings.corpus is None
    with pytest.raises(CorpusNotSet, match="--corpus DIR"):
        _ = settings.corpus_location


def test_lists_in_variables_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_RETRIEVAL__ARMS", '["section_bm25", "metadata_vector"]')
    monkeypatch.setenv("PRIME_EVALUATE", '["bm25"]')
    settings = load_settings()
    assert settings.retrieval.arms == ("section_bm25", "metadata_vector")
    assert settings.evaluate == ("bm25",)


@pytest.mark.parametrize(
    ("name", "field"), [("PRIME_RETRIEVAL__ARMS", "retrieval"), ("PRIME_EVALUATE", "evaluate")]
)
def test_a_list_that_is_no_json_is_explained(name: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "section_bm25")
    with pytest.raises(SettingsError, match=rf'"{field}".*written as JSON'):
        load_settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corpsu = 'x'", r"corpsu: Extra inputs are not permitted \(found 'x'\).*{file}"),
        ("[retrieval]\ntop_kk = 3", r"retrieval\.top_kk: Extra inputs.*{file}"),
        ("[retrieval]\ntop_k = 0", r"retrieval\.top_k: .*greater than or equal to 1 \(found 0\).*{file}"),
        ("[retrieval]\narms = []", r"retrieval\.arms: .*at least 1 item"),
        ("profile = 'papr'", r"profile: .*'embedded' or 'paper' \(found 'papr'\)"),
        ("evaluate = ['bm26']", r"evaluate\.0: .*\(found 'bm26'\)"),
        ("home = 3", r"{file}"),
        ("corpus = ", r"{file} cannot be read: Invalid value"),
        ("home = 'elsewhere'", r"{file} is the file of this home and cannot name another: remove home"),
    ],
)
def test_faults_of_a_file_are_named_with_key_and_file(home: Path, text: str, message: str) -> None:
    write(home, text)
    with pytest.raises(SettingsError, match=message.replace("{file}", str(home / "prime.toml"))):
        load_settings()


def test_a_home_that_cannot_be_one_is_explained(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRIME_HOME")
    write(here, "home = 3")
    with pytest.raises(SettingsError, match=r"home: .*\(found 3\)"):
        load_settings()


def test_a_file_in_the_place_of_the_home_is_found_when_it_is_prepared(here: Path) -> None:
    (here / "file").write_text("")
    settings = load_settings({"home": here / "file"})
    with pytest.raises(HomeNotWritable, match="Make it writable"):
        settings.stored.prepare()


def test_a_file_that_is_not_utf_8_is_named(here: Path) -> None:
    (here / "prime.toml").write_bytes(b"corpus = '\xff'")
    with pytest.raises(SettingsError, match=r"prime\.toml cannot be read"):
        load_settings()


def test_wrong_options_and_variables_are_named_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"profile: .*\(found 'big'\)"):
        load_settings({"profile": "big"})
    with pytest.raises(SettingsError, match="unknown: Extra inputs"):
        load_settings({"unknown": 1})
    monkeypatch.setenv("PRIME_INDEX__KEEP_BUILDS", "many")
    with pytest.raises(SettingsError, match=r"index\.keep_builds: .*\(found 'many'\)"):
        load_settings()


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_PROFILE", "")
    assert load_settings().profile == "embedded"


def test_every_retrieval_and_metadata_setting_reaches_its_stage() -> None:
    retrieval = {
        "arms": ["document_bm25"],
        "arm_depth": 2,
        "rrf_k": 3,
        "n_candidates": 4,
        "scorer": "none",
        "rerank_budget": 5,
        "scorer_weight": 1.5,
        "stage1_weight": 0.25,
        "windows_per_section": 7,
        "top_k": 6,
        "time_limit_ms": 8,
        "section_text": "both",
    }
    metadata = {"reading": "paper_literal", "n_terms": 1, "alpha": 0.5, "beta": 3.0, "max_headings": 2}
    settings = load_settings({"retrieval": retrieval, "metadata": metadata})
    reached = asdict(settings.retrieval_options)
    assert reached == {**retrieval, "arms": ("document_bm25",)}
    assert all(value != getattr(RetrievalOptions(), name) for name, value in reached.items())
    assert settings.metadata.options() == MetadataOptions(1, 0.5, 3.0, "paper_literal", 2)


def test_settings_have_a_description_each() -> None:
    groups = ("metadata", "index", "retrieval", "llm", "restructuring", "answers", "serve")
    fields = {name: field for name, field in Settings.model_fields.items() if name not in groups}
    for group in groups:
        fields |= getattr(load_settings(), group).__class__.model_fields
    assert [name for name, field in fields.items() if not field.description] == []


def test_a_home_remembers_what_it_is_for(home: Path, here: Path) -> None:
    told = {"corpus": "docs", "queries": "q.jsonl", "profile": "paper", "cache_home": here / "shared"}
    first = load_settings({**told, "evaluate": ("bm25",)})
    remember(first)
    assert load_settings() == first


def test_what_was_not_told_is_not_written(home: Path, here: Path) -> None:
    remember(load_settings({"corpus": "docs"}))
    assert (home / "prime.toml").read_text() == f'corpus = "{here / "docs"}"\n'


def test_remembering_keeps_comments_and_other_settings(home: Path, here: Path) -> None:
    text = '# mine\ncorpus = "old" # where\n\n[retrieval]\n# many\ntop_k = 9\n'
    write(home, text)
    remember(load_settings({"corpus": "docs", "queries": "q.jsonl"}))
    kept = (home / "prime.toml").read_text()
    for line in ("# mine", "# where", "# many", "top_k = 9"):
        assert line in kept
    settings = load_settings()
    assert (settings.corpus, settings.queries) == (str(here / "docs"), str(here / "q.jsonl"))
    assert settings.retrieval.top_k == 9


def test_what_the_file_says_already_is_left_as_it_is(home: Path) -> None:
    text = '\ufeffcorpus = "docs"\r\nprofile = "paper"\r\n'
    (home / "prime.toml").write_bytes(text.encode())
    remember(load_settings())
    assert (home / "prime.toml").read_bytes() == text.encode()


def test_a_return_to_the_default_profile_is_remembered(home: Path) -> None:
    write(home, 'profile = "paper"')
    remember(load_settings({"profile": "embedded"}))
    assert load_settings().profile == "embedded"


def test_the_text_that_bm25_reads_is_remembered_beside_what_is_there(home: Path) -> None:
    text = (
        '# mine\n[restructuring] # how\nmethod = "extractive" # by rules\n\n[retrieval]\ntop_k = 9 # many\n'
    )
    write(home, text)
    remember(load_settings({"restructuring": {"lexical_source": "raw"}}))
    kept = (home / "prime.toml").read_text()
    assert kept == text.replace("# by rules\n", '# by rules\nlexical_source = "raw"\n')
    remember(load_settings({"restructuring": {"lexical_source": "both"}}))
    assert (home / "prime.toml").read_text() == kept.replace('"raw"', '"both"')


def test_a_text_for_bm25_that_a_file_names_is_left_to_that_file(
    here: Path, home: Path, tmp_path: Path
) -> None:
    chosen = '[restructuring]\nlexical_source = "raw"\n'
    write(here, chosen)
    remember(load_settings())
    assert not (home / "prime.toml").exists()
    write(here, "")
    write(tmp_path, chosen)
    write(home, 'extends = "../prime.toml"\n')
    settings = load_settings()
    assert settings.lexical_source == "raw"
    remember(settings)
    assert (home / "prime.toml").read_text() == 'extends = "../prime.toml"\n'


# --- files that extend another --------------------------------------------------------------------------------------


def test_an_extended_file_stands_below_the_home_s_and_above_the_working_directory_s(
    here: Path, home: Path, tmp_path: Path
) -> None:
    write(here, "[retrieval]\ntop_k = 6\nrrf_k = 6\narm_depth = 6")
    write(tmp_path, "[retrieval]\ntop_k = 7\nrrf_k = 7")
    write(home, 'extends = "../prime.toml"\n[retrieval]\ntop_k = 8')
    settings = load_settings()
    assert (settings.retrieval.top_k, settings.retrieval.rrf_k, settings.retrieval.arm_depth) == (8, 7, 6)
    assert str(settings.extends) == f"{home}/../prime.toml"


def test_an_extended_file_may_extend_another(home: Path, tmp_path: Path) -> None:
    for name in ("near", "far"):
        (tmp_path / name / "model").mkdir(parents=True)
    write(home, 'extends = "../near/prime.toml"\n[retrieval]\ntop_k = 7')
    write(tmp_path / "near", 'extends = "../far/prime.toml"\n[retrieval]\ntop_k = 8\nrrf_k = 8')
    write(tmp_path / "far", 'embedder = "model"\n[retrieval]\ntop_k = 9\nrrf_k = 9\narm_depth = 9')
    settings = load_settings()
    assert (settings.retrieval.top_k, settings.retrieval.rrf_k, settings.retrieval.arm_depth) == (7, 8, 9)
    assert Path(settings.embedder_model).resolve() == tmp_path / "far" / "model"


def test_what_an_extended_file_says_its_home_is_for_is_not_inherited(home: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    write(
        tmp_path,
        'home = "x"\ncache_home = "x"\ncorpus = "docs"\nqueries = "q.jsonl"\nevaluate = ["bm25"]\nmode = "full"\n'
        'profile = "paper"\n[llm]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n',
    )
    write(home, 'extends = "../prime.toml"')
    settings = load_settings()
    assert (settings.home, settings.cache_home, settings.corpus, settings.queries) == (home, None, None, None)
    assert (settings.evaluate, settings.mode) == (("bm25", "stage1", "default"), "offline")
    assert (settings.profile, settings.method) == ("paper", "llm")


def test_a_file_to_extend_may_be_an_option_or_a_variable(
    here: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("option", "variable", "file"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f'embedder = "{name}"')
    write(home, 'extends = "../file/prime.toml"')
    assert load_settings().embedder == "file"
    monkeypatch.setenv("PRIME_EXTENDS", "../variable/prime.toml")
    assert load_settings().embedder == "variable"
    settings = load_settings({"extends": Path("../option/prime.toml")})
    assert (settings.embedder, str(settings.extends)) == ("option", f"{here}/../option/prime.toml")


def test_the_file_of_the_working_directory_may_extend_another_too(
    here: Path, home: Path, tmp_path: Path
) -> None:
    write(tmp_path, 'corpus = "x"\n[retrieval]\ntop_k = 7\nrrf_k = 7')
    write(here, 'extends = "../prime.toml"\n[retrieval]\ntop_k = 6')
    settings = load_settings()
    assert (settings.retrieval.top_k, settings.retrieval.rrf_k, settings.corpus) == (6, 7, None)
    assert settings.extends is None
    remember(settings)
    assert not (home / "prime.toml").exists()


@pytest.mark.parametrize(
    ("text", "extended", "message"),
    [
        ('extends = "../other.toml"', "", r"{home} is to extend .*/\.\./other\.toml, which is not there"),
        (
            'extends = "other.toml/x"',
            "",
            r"which is not there.*Put the file back, or correct or remove extends",
        ),
        ('extends = "prime.toml"', "", r"{home} extends {home}, which leads back to itself"),
        (
            'extends = "../prime.toml"',
            'extends = "home/prime.toml"',
            r"prime\.toml, which leads back to itself",
        ),
        ('extends = "../prime.toml"', 'extends = "other.toml"', r"{other} is to extend .*other\.toml, which"),
        ('extends = "../prime.toml"', "extends = 3", r"{other}: extends: expected the path .*\(found 3\)"),
        ('extends = ""', "", r"{home}: extends: expected the path .*\(found ''\)"),
        ("extends = 3", "", r"{home}: extends: expected the path .*\(found 3\)"),
        ('extends = ".."', "", "cannot be read"),
        ('extends = "../prime.toml"', "corpus = ", r"{other} cannot be read: Invalid value"),
        ('extends = "../prime.toml"', "top_k = 3", r"top_k: Extra inputs .*, {home}, {other}$"),
    ],
)
def test_faults_of_files_that_extend_another_are_told(
    text: str, extended: str, message: str, home: Path, tmp_path: Path
) -> None:
    write(home, text)
    write(tmp_path, extended)
    paths = {"home": f"{home}/prime.toml", "other": f"{home}/../prime.toml"}
    with pytest.raises(SettingsError, match=message.format(**{k: re.escape(p) for k, p in paths.items()})):
        load_settings()


def test_an_option_that_is_no_file_to_extend_is_explained() -> None:
    with pytest.raises(SettingsError, match=r"extends: .* \(found 3\)"):
        load_settings({"extends": 3})


def test_the_file_to_extend_is_remembered_and_nothing_of_it_copied(home: Path, tmp_path: Path) -> None:
    write(
        tmp_path,
        'profile = "paper"\n[llm]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\napi_key = "sk-secret"\n'
        '[restructuring]\nlexical_source = "raw"\n',
    )
    first = load_settings({"extends": tmp_path / "prime.toml"})
    remember(first)
    assert (home / "prime.toml").read_text() == f'extends = "{tmp_path}/prime.toml"\n'
    again = load_settings()
    assert again == first
    assert (again.profile, again.llm.api_key.get_secret_value()) == ("paper", "sk-secret")


def test_another_profile_than_the_extended_file_s_is_remembered(home: Path, tmp_path: Path) -> None:
    write(tmp_path, 'profile = "paper"')
    write(home, 'extends = "../prime.toml"\n')
    remember(load_settings({"profile": "embedded"}))
    assert load_settings().profile == "embedded"


BAD_PATHS = ["~nosuchuser/x", "a\0b", "a\udcff"]


@pytest.mark.parametrize("path", BAD_PATHS)
@pytest.mark.parametrize(
    "name", ["home", "cache_home", "extends", "corpus", "queries", "embedder", "cross_encoder"]
)
def test_what_can_be_no_path_is_refused_as_an_option(name: str, path: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load_settings({name: path})


@pytest.mark.parametrize("path", ["~nosuchuser/x", "a\udcff"])
@pytest.mark.parametrize("name", ["home", "cache_home", "extends", "corpus", "embedder"])
def test_what_can_be_no_path_is_refused_as_a_variable(
    name: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"PRIME_{name.upper()}", path)
    with pytest.raises(SettingsError, match=name):
        load_settings()


@pytest.mark.parametrize("path", ["~nosuchuser/x", "a\\u0000b"])
@pytest.mark.parametrize("name", ["home", "cache_home", "extends", "corpus", "embedder"])
def test_what_can_be_no_path_is_refused_in_a_file(name: str, path: str, here: Path) -> None:
    write(here, f'{name} = "{path}"')
    with pytest.raises(SettingsError, match=name):
        load_settings({"home": here / "h"} if name != "home" else None)


def test_an_endless_model_name_is_left_to_the_models(here: Path) -> None:
    write(here, f'embedder = "{"a" * 5_000}"')
    assert load_settings().embedder == "a" * 5_000


def test_the_caches_of_a_variable_may_begin_with_a_tilde(
    tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PRIME_CACHE_HOME", "~/shared")
    assert load_settings().stored.cache_root == tmp_path / "shared"
    monkeypatch.setenv("PRIME_CACHE_HOME", "near")
    assert load_settings().stored.cache_root == here / "near"


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5_000])
def test_a_file_without_end_is_refused(here: Path, text: str) -> None:
    write(here, text)
    with pytest.raises(SettingsError, match=r"prime\.toml cannot be read"):
        load_settings()


def test_a_variable_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_EVALUATE", "[" * 100_000)
    with pytest.raises(SettingsError, match="nested too deeply"):
        load_settings()


def test_every_number_has_bounds() -> None:
    settings = load_settings()
    groups = {"metadata": settings.metadata, "index": settings.index, "retrieval": settings.retrieval}
    numbers = [
        (group, name)
        for group, values in groups.items()
        for name, value in values.model_dump().items()
        if isinstance(value, int | float)
    ]
    assert len(numbers) > 10
    for group, name in numbers:
        for value in (-1, 10**10, 10**30, float("inf"), float("nan")):
            with pytest.raises(SettingsError, match=rf"{group}\.{name}"):
                load_settings({group: {name: value}})
    with pytest.raises(SettingsError, match="token_vector_cache_bytes"):
        load_settings({"token_vector_cache_bytes": 10**30})


def test_a_working_directory_that_is_gone(here: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here.rmdir()
    absolute = {"home": home, "corpus": str(home / "docs"), "cache_home": home}
    assert load_settings(absolute).corpus == str(home / "docs")
    for name in absolute:
        with pytest.raises(SettingsError, match=f"{name}: .*working directory is gone"):
            load_settings({**absolute, name: "near"})
    with pytest.raises(SettingsError, match="profile"):
        load_settings({**absolute, "profile": "big"})


def test_what_cannot_be_written_down_is_not_remembered(home: Path) -> None:
    settings = load_settings({"corpus": "docs"}).model_copy(update={"corpus": "/docs\udcff"})
    with pytest.raises(SettingsError, match=r"prime\.toml cannot be brought up to date"):
        remember(settings)
    assert list(home.iterdir()) == []


ENDPOINT = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}


def test_the_method_follows_the_endpoint_unless_it_is_named(home: Path) -> None:
    assert load_settings().method == "extractive"
    assert load_settings({"llm": ENDPOINT}).method == "llm"
    assert load_settings({"llm": ENDPOINT, "restructuring": {"method": "extractive"}}).method == "extractive"


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"llm": {"base_url": "http://127.0.0.1:1/v1"}}, "name the model"),
        ({"llm": {"base_url": "127.0.0.1:1/v1", "model": "m"}}, "llm.base_url"),
        ({"llm": {"base_url": "http://127.0.0.1:1/v1?key=sk-secret", "model": "m"}}, "llm.base_url"),
        ({"llm": {"base_url": "http://user:secret@host/v1", "model": "m"}}, "llm.base_url"),
        ({"llm": {**ENDPOINT, "max_cost": 1.0}}, "llm.prices"),
        ({"llm": {**ENDPOINT, "max_tokens": 0}}, "llm.max_tokens"),
        ({"restructuring": {"method": "llm"}}, "llm.base_url is not set"),
        ({"restructuring": {"gate": {"no_such": 1.0}}}, "no threshold 'no_such'"),
        ({"restructuring": {"router": {"min_words": float("nan")}}}, "restructuring.router.min_words"),
        ({"mode": "both"}, "mode"),
        ({"mode": "full", "profile": "paper"}, "the paper profile restructures by a language model"),
    ],
)
def test_settings_of_restructuring_are_checked(home: Path, options: dict[str, Any], fragment: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(fragment)) as error:
        load_settings(options)
    assert "secret" not in str(error.value)


def test_a_key_is_never_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_LLM__API_KEY", "sk-secret")
    settings = load_settings({"llm": ENDPOINT, "mode": "full"})
    assert settings.llm.api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(settings)
    remember(settings)
    assert "sk-secret" not in (home / "prime.toml").read_text()
    for mistyped in ({"api_kye": "sk-secret"}, {"api_key": ["sk-secret"]}):
        with pytest.raises(SettingsError) as error:
            load_settings({"llm": mistyped})
        assert "sk-secret" not in str(error.value)


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_LLM__API_KEY", " sk-secret\r\n")
    assert load_settings({"llm": ENDPOINT}).llm.api_key.get_secret_value() == "sk-secret"
    for key in ("sk-secret\rx", "sk-sécret", "sk\x7fsecret", "sk-secret\u200b"):
        monkeypatch.setenv("PRIME_LLM__API_KEY", key)
        with pytest.raises(SettingsError, match=r"llm\.api_key: it holds control characters") as error:
            load_settings({"llm": ENDPOINT})
        assert "secret" not in "".join(traceback.format_exception(error.value))


def test_prices_and_thresholds_arrive_where_they_are_used(home: Path) -> None:
    llm = {
        **ENDPOINT,
        "max_cost": 2.0,
        "prices": {"m": {"prompt": 1.0, "completion": 3.0, "currency": "EUR"}},
    }
    restructuring = {"gate": {"max_loop": 3, "max_length_ratio": 1.5}, "router": {"min_words": 20}}
    settings = load_settings({"llm": llm, "restructuring": restructuring})
    assert settings.llm.price is not None
    assert settings.llm.price.cost(1_000_000, 2_000_000) == 7.0
    assert settings.rewriting_options.router.min_words == 20
    assert settings.restructuring.gate_options.max_loop == 3
    assert isinstance(settings.restructuring.gate_options.max_loop, int)
    assert settings.restructuring.gate_options.max_length_ratio == 1.5


def test_the_paper_profile_reads_restructured_text_as_the_paper_does(home: Path) -> None:
    assert load_settings().lexical_source == "both"
    assert load_settings({"profile": "paper"}).lexical_source == "restructured"
    chosen = {"profile": "paper", "restructuring": {"lexical_source": "both"}}
    assert load_settings(chosen).lexical_source == "both"


@pytest.mark.parametrize(
    "address", ["s3://bucket/prime", "file:///mnt/share", "sftp://someone@host/folder", "memory://x"]
)
def test_an_address_of_object_storage_is_taken(address: str) -> None:
    assert load_settings({"publish_to": address}).publish_to == address


@pytest.mark.parametrize(
    "address", ["bucket/prime", "s3://", "s3://key:secret@bucket", "s3://a b", "s3://b?secret"]
)
def test_an_address_that_is_none_or_holds_a_password_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(SettingsError, match="publish_to") as raised:
        load_settings({"publish_to": address})
    assert "secret" not in str(raised.value)


def test_where_a_home_publishes_is_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "main.toml").write_text('publish_to = "s3://bucket/main"\n')
    assert load_settings({"extends": tmp_path / "main.toml"}).publish_to is None
    Path("prime.toml").write_text('publish_to = "s3://bucket/main"\n')
    assert load_settings().publish_to == "s3://bucket/main"
    assert load_settings({"publish_to": ""}).publish_to is None  # as prime demo and prime reproduce say
