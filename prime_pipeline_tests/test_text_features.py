"""The smaller readings of text that the fidelity gate rests on: stems, acronyms, negations, references, languages."""

from __future__ import annotations

import pytest

from prime_pipeline.text.acronyms import acronyms, definitions, initials, is_spelled_out
from prime_pipeline.text.language import language, script
from prime_pipeline.text.negations import negation_cues
from prime_pipeline.text.references import is_road_map, references, without_references
from prime_pipeline.text.stems import content_stems, stem


@pytest.mark.parametrize(
    "family",
    [
        "evaluate evaluates evaluation evaluators",
        "compute computation computable",
        "annotate annotation annotators",
        "study studies",
        "class classes classify classification",
    ],
)
def test_families_meet_in_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_unrelated_words_keep_apart() -> None:
    words = [
        "character",
        "charge",
        "train",
        "translation",
        "model",
        "mode",
        "corpus",
        "correct",
        "speech",
        "speaker",
    ]
    assert len({stem(word) for word in words}) == len(words)


def test_content_stems_leave_out_stop_words_and_numbers() -> None:
    assert content_stems("The 12 state-of-the-art models are not trained") == [
        "stat",
        "art",
        "model",
        "train",
    ]


def test_acronyms_without_plurals_and_dots() -> None:
    assert acronyms("CNNs and SI-RNN in the U.S., Q&A; Section IV, A cat") == [
        "CNN",
        "SI",
        "RNN",
        "US",
        "Q&A",
    ]


def test_definitions_are_the_words_with_the_initials() -> None:
    text = "We use a gated recurrent unit (GRU) and natural language inference (NLI)."
    assert definitions(text) == {"GRU": "gated recurrent unit", "NLI": "natural language inference"}


def test_spelled_out_needs_three_letters() -> None:
    letters = initials(["a", "new", "gated", "recurrent", "unit", "of", "reinforcement", "learning"])
    assert is_spelled_out("GRU", letters)
    assert not is_spelled_out("RL", letters)


@pytest.mark.parametrize(
    ("text", "cues"),
    [
        ("It does not converge without warm-up.", [("not", "strong"), ("without", "strong")]),
        ("They can't, cannot and don't.", [("can't", "strong"), ("cannot", "strong"), ("don't", "strong")]),
        ("It fails to converge.", [("fails", "verb")]),
        ("Neither A nor B.", [("neither", "strong")]),
        ("Not only A but B, no doubt; No-RL is No. 3.", []),
        ("Labels are unavailable.", [("unavailable", "weak")]),
    ],
)
def test_negation_cues(text: str, cues: list[tuple[str, str]]) -> None:
    assert [(cue.word, cue.strength) for cue in negation_cues(text) if cue.strength != "prefix"] == cues


@pytest.mark.parametrize(
    "text",
    [
        "see BIBREF12",
        "see [3, 5-7]",
        "see (Smith et al., 2019; Lee and Kim, 2018)",
        "see Table 3",
        "see Tables 1 , 2 , 3",
        "see Fig 7, 8 and 9",
        "see Section SECREF4",
    ],
)
def test_references_hold_no_numbers(text: str) -> None:
    bare = without_references(text)
    assert bare.split() == ["see"]
    assert len(bare) == len(text)


def test_numbers_beside_references_stay() -> None:
    assert "74,000" in without_references("(sections 21-22, 74,000 words)")
    assert references("Table 3 has 5 rows") == ["Table 3"]


def test_road_maps() -> None:
    assert is_road_map("The rest of this paper is organized as follows.")
    assert is_road_map("The statistics are shown in Table 3.")
    assert not is_road_map("The table holds 5 rows.")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The model is trained on the data that we have.", "en"),
        ("Das Modell wird mit den Daten trainiert, die wir haben.", "de"),
        ("Le modèle est entraîné sur les données que nous avons.", "fr"),
        ("Модель обучена на данных", "ru-or-none"),
        ("模型在数据上训练", "CJK"),
        ("LSTM, GRU, CNN", None),
    ],
)
def test_language(text: str, code: str | None) -> None:
    assert language(text) == code or (code == "ru-or-none" and script(text) == "CYRILLIC")
