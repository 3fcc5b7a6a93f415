"""NLI in windows, over a tiny model of random weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.errors import ModelError, ModelNotFound
from prime_pipeline.models.nli import NliModel, deciding_window
from prime_pipeline.text.sentences import sentences
from prime_pipeline_tests.fakes import tiny_cross_encoder

Probabilities = NDArray[np.float32]

LABELS = ("Contradiction", "NEUTRAL", "entailment")
PREMISE = "The cat of the dog. The dog ate bread. A query of bread. The section of cats. The document of dogs. It ended."
HYPOTHESIS = "The cat ate bread."


def tiny_nli(folder: Path, labels: tuple[str, ...] = LABELS) -> Path:
    """A model of random weights whose outputs have these names."""
    tiny_cross_encoder(folder, n_outputs=len(labels))
    path = folder / "config.json"
    names = {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | names))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_nli(tmp_path_factory.mktemp("tiny") / "nli")


@pytest.fixture(scope="module")
def model(folder: Path) -> NliModel:
    return NliModel(str(folder), batch_size=3)


def library_probabilities(folder: Path, pairs: list[tuple[str, str]]) -> Probabilities:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    classifier = AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        rows = [classifier(**tokenizer(*pair, return_tensors="pt")).logits[0].softmax(0) for pair in pairs]
    stacked: Probabilities = torch.stack(rows).numpy()
    return stacked


def test_short_pairs_get_the_probability_of_the_library(model: NliModel, folder: Path) -> None:
    pairs = [("the dog.", HYPOTHESIS), ("", HYPOTHESIS), ("a document of bread.", "the query.")]
    found = model.contradiction_probabilities(pairs)
    assert found.dtype == np.float32
    assert found.shape == (3,)
    assert found == pytest.approx(library_probabilities(folder, pairs)[:, 0], abs=1e-5)


def test_the_label_is_found_by_name(tmp_path: Path, model: NliModel, folder: Path) -> None:
    other = NliModel(str(tiny_nli(tmp_path / "other", ("entailment", "neutral", " CONTRADICTION"))))
    pairs = [("the dog.", HYPOTHESIS)]
    assert other.contradiction_probabilities(pairs) == pytest.approx(
        library_probabilities(folder, pairs)[:, 2], abs=1e-5
    )
    assert other.fingerprint != model.fingerprint, "the labels decide what the outputs mean"


@pytest.mark.parametrize(
    "labels", [("LABEL_0", "LABEL_1", "LABEL_2"), ("contradiction", "other"), ("relevant",)], ids=len
)
def test_a_model_that_does_not_name_its_labels_is_refused(tmp_path: Path, labels: tuple[str, ...]) -> None:
    folder = tiny_nli(tmp_path / "unnamed", labels)
    with pytest.raises(ModelError, match=rf"unnamed .*labels: {', '.join(labels)}\).*id2label"):
        NliModel(str(folder))


def test_an_embedder_is_no_classifier() -> None:
    with pytest.raises(ModelError, match="its labels: none"):
        NliModel("all-MiniLM-L6-v2")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no such folder"):
        NliModel(str(tmp_path / "absent"))


def test_windows_are_runs_of_whole_sentences(model: NliModel) -> None:
    windows = model.windows(PREMISE, HYPOTHESIS)
    assert len(windows) > 1
    assert " ".join(windows) == PREMISE
    assert [s for window in windows for s in sentences(window)] == sentences(PREMISE)
    assert max(len(sentences(window)) for window in windows) > 1, "as many as fit"
    assert model.windows("The dog.", HYPOTHESIS) == ["The dog."]


@pytest.mark.parametrize("hypothesis", [HYPOTHESIS, "word " * 50, ""])
def test_every_pair_fits_and_no_word_is_lost(model: NliModel, hypothesis: str) -> None:
    premise = " ".join(f"word{i}" for i in range(40)) + ". " + PREMISE
    hypothesis = model.fit_hypothesis(hypothesis)
    windows = model.windows(premise, hypothesis)
    encode = model.tokenizer._tokenizer.encode
    assert max(len(encode(window, hypothesis)) for window in windows) <= 32
    assert " ".join(windows) == premise


def test_a_long_hypothesis_is_cut_to_half_of_the_window(model: NliModel) -> None:
    long = "the cat and the dog of the document " * 20
    cut = model.fit_hypothesis(long)
    assert long.startswith(cut)
    assert 12 <= model.tokenizer.count([cut])[0] - 2 <= 16
    assert model.is_cut(long)
    assert not model.is_cut(HYPOTHESIS)
    found = model.contradiction_probabilities([(PREMISE, long), (PREMISE, cut)])
    assert found[0] == found[1]


def test_a_long_premise_is_judged_by_the_window_that_decides(model: NliModel, folder: Path) -> None:
    windows = model.windows(PREMISE, HYPOTHESIS)
    rows = library_probabilities(folder, [(window, HYPOTHESIS) for window in windows])
    decides = deciding_window(rows[:, 0], rows[:, 2])
    found = model.contradiction_probabilities([(PREMISE, HYPOTHESIS)])
    assert found[0] == pytest.approx(rows[decides, 0], abs=1e-5)
    assert len(set(rows[:, 0].round(3))) > 1, "windows differ"


@pytest.mark.parametrize(
    ("contradiction", "entailment", "decides"),
    [
        ([0.9, 0.1], [0.05, 0.8], 1),  # supported somewhere
        ([0.1, 0.1, 0.1], [0.6, 0.9, 0.9], 1),  # best support, the earlier of two
        (
            [0.05, 0.9, 0.1],
            [0.3, 0.02, 0.1],
            1,
        ),  # nowhere supported: the least neutral, not the most entailing
        ([0.7, 0.2], [0.1, 0.5], 0),  # one half is no support
        ([0.1, 0.1], [0.2, 0.2], 0),  # all alike
    ],
)
def test_which_window_decides(contradiction: list[float], entailment: list[float], decides: int) -> None:
    rows = np.array([contradiction, entailment], dtype=np.float32)
    assert deciding_window(rows[0], rows[1]) == decides


def test_order_and_batch_size_do_not_matter(model: NliModel, folder: Path) -> None:
    pairs = [(PREMISE, HYPOTHESIS), ("the dog.", "bread."), ("bread.", HYPOTHESIS), (PREMISE, HYPOTHESIS)]
    found = model.contradiction_probabilities(pairs)
    assert found[0] == found[3]
    alone = NliModel(str(folder), batch_size=1).contradiction_probabilities(pairs[::-1])
    assert alone[::-1] == pytest.approx(found, abs=1e-5)
    assert np.array_equal(model.contradiction_probabilities(pairs), found)


def test_no_pairs_give_no_probabilities(model: NliModel) -> None:
    assert model.contradiction_probabilities([]).shape == (0,)


def test_a_batch_of_nothing_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="batch_size is 0"):
        NliModel(str(folder), batch_size=0)


def test_a_local_model_is_named_by_its_folder(model: NliModel) -> None:
    assert model.name == "nli"
