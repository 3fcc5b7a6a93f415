"""Cross-encoder scoring in windows, over a tiny model of random weights."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.errors import ModelError, ModelNotFound
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline_tests.fakes import tiny_cross_encoder

Scores = NDArray[np.float32]

QUERY = "the cat"
FILLER = "of bread and the dog " * 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("tiny") / "cross")


@pytest.fixture(scope="module")
def scorer(folder: Path) -> CrossEncoderScorer:
    return CrossEncoderScorer(str(folder), overlap_tokens=4)


def library_scores(folder: Path, pairs: list[tuple[str, str]]) -> Scores:
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    scores: Scores = CrossEncoder(str(folder), device="cpu", activation_fn=Identity()).predict(pairs)
    return scores


def test_short_texts_get_the_raw_logits_of_the_library(scorer: CrossEncoderScorer, folder: Path) -> None:
    texts = ["the dog", "", "a document of bread", "section query"]
    scores = scorer.score(QUERY, texts, batch_size=3)
    assert scores.dtype == np.float32
    assert scores.shape == (4,)
    assert scores == pytest.approx(library_scores(folder, [(QUERY, text) for text in texts]), abs=1e-5)
    assert scores.min() < 0 or scores.max() > 1, "logits, not probabilities"


def test_a_long_text_scores_as_its_best_window(scorer: CrossEncoderScorer, folder: Path) -> None:
    phrases = ["query document section ", "of bread and the dog "]
    scores = scorer.score(QUERY, [phrase * 4 for phrase in phrases])
    worse, better = (phrases[i] for i in scores.argsort())
    text = worse * 30 + better * 12
    windows = scorer.windows(QUERY, text)
    by_window = library_scores(folder, [(QUERY, window) for window in windows])
    assert len(windows) > 3
    assert scorer.score(QUERY, [text])[0] == pytest.approx(by_window.max(), abs=1e-5)
    assert by_window.argmax() > 2, "the best part lies behind what the model would read at once"
    assert scorer.score(QUERY, [text])[0] > library_scores(folder, [(QUERY, text)])[0] + 0.01


def test_every_pair_fits_and_no_word_is_lost(scorer: CrossEncoderScorer) -> None:
    text = " ".join(f"word{i}" for i in range(200))
    windows = scorer.windows(QUERY, text)
    pairs = [scorer.tokenizer._tokenizer.encode(QUERY, window) for window in windows]
    assert 26 < max(len(pair) for pair in pairs) <= 32, "cut between words of six tokens"
    assert {word for window in windows for word in window.split()} == set(text.split())


def test_a_long_query_is_cut_to_half_of_the_window(scorer: CrossEncoderScorer) -> None:
    long_query = "the cat and the dog of the document " * 20
    cut = scorer.fit_query(long_query)
    assert long_query.startswith(cut)
    assert 12 <= scorer.tokenizer.count([cut])[0] - 2 <= 16
    assert np.array_equal(scorer.score(long_query, [FILLER]), scorer.score(cut, [FILLER]))
    assert scorer.fit_query(QUERY) == QUERY


def test_equal_texts_get_equal_scores(scorer: CrossEncoderScorer) -> None:
    texts = ["the dog", FILLER, "bread", "the dog", FILLER]
    scores = scorer.score(QUERY, texts, batch_size=2)
    assert scores[0] == scores[3]
    assert scores[1] == scores[4]


def test_order_and_batch_size_do_not_matter(scorer: CrossEncoderScorer) -> None:
    texts = ["the dog", FILLER, "bread of the cat", "document"]
    scores = scorer.score(QUERY, texts)
    assert scorer.score(QUERY, texts[::-1], batch_size=1)[::-1] == pytest.approx(scores, abs=1e-5)


def test_no_texts_give_no_scores(scorer: CrossEncoderScorer) -> None:
    assert scorer.score(QUERY, []).shape == (0,)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_of_nothing_is_refused(scorer: CrossEncoderScorer, batch_size: int) -> None:
    with pytest.raises(ValueError, match="batch_size"):
        scorer.score(QUERY, ["the dog"], batch_size=batch_size)


def test_threads_get_the_same_scores(folder: Path) -> None:
    shared = CrossEncoderScorer(str(folder))
    texts = ["the dog", FILLER, "bread"]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: shared.score(QUERY, texts), range(8)))
    assert all(np.array_equal(each, found[0]) for each in found)


def test_other_weights_have_another_fingerprint(scorer: CrossEncoderScorer, tmp_path: Path) -> None:
    other = CrossEncoderScorer(str(tiny_cross_encoder(tmp_path / "other", seed=1)))
    same = CrossEncoderScorer(str(tiny_cross_encoder(tmp_path / "same", seed=0)))
    assert other.fingerprint != scorer.fingerprint == same.fingerprint
    assert (scorer.name, other.name) == ("cross", "other")


def test_a_model_of_several_outputs_is_refused(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "nli", n_outputs=3)
    with pytest.raises(ModelError, match="has 3 outputs per pair, a reranker has one"):
        CrossEncoderScorer(str(folder))


def test_an_embedder_is_no_reranker() -> None:
    with pytest.raises(ModelError, match="a reranker has one"):
        CrossEncoderScorer("all-MiniLM-L6-v2")


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no such folder"):
        CrossEncoderScorer(str(tmp_path / "absent"))
