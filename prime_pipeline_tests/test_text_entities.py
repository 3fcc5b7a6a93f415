from __future__ import annotations

import importlib.util

import pytest

from prime_pipeline.errors import ModelNotFound
from prime_pipeline.text import entities
from prime_pipeline.text.entities import RuleEntityFinder, SpacyEntityFinder, entity_finder, is_coined
from prime_pipeline_tests.conftest import missing


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We compare with Johanna Keller of Berlin.", ["Johanna Keller", "Berlin"]),
        ("Models are trained. Results follow: Good ones.", []),
        ("The SAMSum Corpus is new.", ["SAMSum Corpus"]),
        ("We use word2vec and FastText.", ["word2vec", "FastText"]),
        ("FastText is used.", ["FastText"]),
        ("Keller et al. use it.", ["Keller"]),
        ("Twitter users like Twitter.", ["Twitter"]),
        ('It has the platforms "Plotly" and "Bokeh".', ["Plotly", "Bokeh"]),
        ('They say: "Hello world".', []),
        ("It uses ModelDB                   Kubeflow; others do not.", ["ModelDB", "Kubeflow"]),
    ],
)
def test_names_by_rule(text: str, names: list[str]) -> None:
    assert RuleEntityFinder().find(text) == names


def test_coined_words() -> None:
    assert [
        word
        for word in ["YouTube", "word2vec", "Berlin", "12Hidden", "8th", "50ms", "corpus"]
        if is_coined(word)
    ] == [
        "YouTube",
        "word2vec",
    ]


def test_rule_finder_on_request() -> None:
    assert entity_finder("rule").name.startswith("rule-")


def test_spacy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entities._spacy_model.cache_clear()
    monkeypatch.setattr(entities, "find_spec", lambda _: None)
    assert entity_finder("auto").name.startswith("rule-")
    with pytest.raises(ModelNotFound, match="extra `fidelity`"):
        entity_finder("spacy")


def test_spacy_adds_names_to_those_of_the_rules() -> None:
    if importlib.util.find_spec("spacy") is None or not SpacyEntityFinder.available():
        missing("spaCy or its small English model is not installed")
    finder = entity_finder("auto")
    assert finder.name.startswith("spacy-")
    found = finder.find("Angela Merkel visited Paris. We use word2vec.")
    assert {"Angela Merkel", "Paris", "word2vec"} <= set(found)
    assert found == finder.find("Angela Merkel visited Paris. We use word2vec.")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Following Keller et al., inputs are cut.", ["Keller"]),
        ("Unlike Marian, it is slow.", ["Marian"]),
        ("Following the others, it stops.", []),
    ],
)
def test_a_word_in_front_of_a_name_is_no_part_of_it(text: str, names: list[str]) -> None:
    assert RuleEntityFinder().find(text) == names
