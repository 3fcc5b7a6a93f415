"""The embedded model for real, and the fake that stands in for it elsewhere."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from prime_pipeline.errors import ModelError
from prime_pipeline.models.embedder import Embedder, SentenceTransformerEmbedder
from prime_pipeline_tests.fakes import HashingEmbedder, tiny_bert

TEXTS = [
    "Hybrid search fuses lexical and dense rankings.",
    "",
    "Sourdough bread rises slowly in a cool kitchen.",
    "A ranking by keywords and one by embeddings are combined. " * 60,
    "C++ naïve Straße H₂O",
]
BGE_PREFIX = "Represent this sentence for searching relevant passages: "


@pytest.fixture(scope="module")
def real() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder()


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(params=["real", "fake"])
def embedder(request: pytest.FixtureRequest, real: SentenceTransformerEmbedder) -> Embedder:
    """Both embedders keep the protocol's promises."""
    return real if request.param == "real" else HashingEmbedder()


def test_rows_have_unit_length_in_the_order_of_the_texts(embedder: Embedder) -> None:
    rows = embedder.encode(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.dimensions)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)
    for text, row in zip(TEXTS, rows, strict=True):
        assert np.array_equal(embedder.encode([text])[0], row), (
            "a vector depends on its text alone, to the bit"
        )


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.encode([]).shape == (0, embedder.dimensions)
    assert embedder.token_vectors([]) == []


def test_progress_counts_up_to_the_number_of_texts(embedder: Embedder) -> None:
    calls: list[int] = []
    embedder.encode(TEXTS, on_progress=calls.append)
    assert calls == [1, 2, 3, 4, 5]


def test_one_unit_vector_per_token_without_special_tokens(embedder: Embedder) -> None:
    counts = embedder.tokenizer.count(embedder.tokenizer.fit(TEXTS))
    n_special = embedder.tokenizer.count([""])[0]
    vectors = embedder.token_vectors(TEXTS)
    assert [v.shape for v in vectors] == [(n - n_special, embedder.dimensions) for n in counts]
    assert all(np.linalg.norm(v, axis=1) == pytest.approx(1, abs=1e-6) for v in vectors)


def test_query_tokens_cover_the_query(embedder: Embedder) -> None:
    query = "naïve retrieval of\tsections"
    vectors, spans = embedder.query_token_vectors(query)
    assert len(vectors) == len(spans)
    assert "".join(query[start:end] for start, end in spans) == "".join(query.split())


def test_a_long_query_is_cut_at_the_window(embedder: Embedder) -> None:
    vectors, spans = embedder.query_token_vectors("word " * 1000)
    n_content = embedder.window_tokens - embedder.tokenizer.count([""])[0]
    assert len(vectors) == len(spans) == n_content


def test_related_texts_are_closer_than_unrelated_ones(embedder: Embedder) -> None:
    query = embedder.encode_query("fuses lexical and dense search rankings")
    cosines = embedder.encode(TEXTS) @ query
    assert cosines[0] > cosines[2] + 0.3


def test_a_fitted_text_has_the_vector_of_the_whole(embedder: Embedder) -> None:
    (fitted,) = embedder.tokenizer.fit([TEXTS[3]])
    assert len(fitted) < len(TEXTS[3])
    assert np.array_equal(embedder.encode([fitted]), embedder.encode([TEXTS[3]]))


def test_threads_get_the_same_vectors(tmp_path: Path) -> None:
    shared = SentenceTransformerEmbedder()  # a fresh one, so that the threads also race for its loading
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: shared.encode(TEXTS[:3]), range(8)))
    assert all(np.array_equal(each, found[0]) for each in found)


def test_vectors_agree_with_the_library(real: SentenceTransformerEmbedder) -> None:
    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(real._directory), device="cpu")
    assert real.encode(TEXTS) == pytest.approx(library.encode(TEXTS, batch_size=5), abs=1e-6)


def test_larger_batches_give_nearly_the_same(real: SentenceTransformerEmbedder) -> None:
    calls: list[int] = []
    rows = SentenceTransformerEmbedder(batch_size=3).encode(TEXTS, on_progress=calls.append)
    assert rows == pytest.approx(real.encode(TEXTS), abs=1e-6)
    assert calls == [3, 5]


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_of_nothing_is_refused(batch_size: int) -> None:
    with pytest.raises(ValueError, match="batch_size"):
        SentenceTransformerEmbedder(batch_size=batch_size)


def test_everything_but_the_vectors_is_known_without_torch() -> None:
    program = (
        "import sys; from prime_pipeline.models.embedder import SentenceTransformerEmbedder as E; e = E();"
        "print(e.name, e.dimensions, e.window_tokens, len(e.fingerprint), e.tokenizer.count(['hello']));"
        "print([m for m in ('torch', 'transformers', 'sentence_transformers') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "all-MiniLM-L6-v2 384 256 64 [3]\n[]\n"


def test_loading_and_encoding_say_nothing(
    tiny_folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    SentenceTransformerEmbedder(str(tiny_folder)).encode(["the cat"])
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_a_folder_gives_its_name_and_dimensions(tiny_folder: Path) -> None:
    tiny = SentenceTransformerEmbedder(str(tiny_folder))
    assert (tiny.name, tiny.dimensions, tiny.window_tokens, tiny.query_prefix) == ("tiny-bert", 16, 32, "")
    assert tiny.encode(["the cat"]).shape == (1, 16)


def test_damaged_weights_are_named_at_the_first_encoding(tiny_folder: Path, tmp_path: Path) -> None:
    for path in tiny_folder.rglob("*.json"):
        copy = tmp_path / path.relative_to(tiny_folder)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"broken off")
    damaged = SentenceTransformerEmbedder(str(tmp_path))
    with pytest.raises(ModelError, match="cannot be loaded"):
        damaged.encode(["the cat"])


class TestPrefixes:
    """Instructions that some models want in front of queries."""

    @pytest.fixture
    def folder(self, tiny_folder: Path, tmp_path: Path) -> Path:
        """The tiny model under the name of a BGE model."""
        link = tmp_path / "bge-small-en-v1.5"
        link.mkdir()
        for path in tiny_folder.iterdir():
            (link / path.name).symlink_to(path)
        return link

    def set_prompts(self, folder: Path, prompts: dict[str, str]) -> None:
        path = folder / "config_sentence_transformers.json"
        path.unlink()
        path.write_text(json.dumps({"prompts": prompts, "default_prompt_name": "query"}))

    def test_bge_has_its_instruction_on_queries_only(self, folder: Path) -> None:
        bge = SentenceTransformerEmbedder(str(folder))
        assert (bge.query_prefix, bge.document_prefix) == (BGE_PREFIX, "")
        assert not np.array_equal(bge.encode_query("a cat"), bge.encode(["a cat"])[0])

    def test_prompts_of_the_model_go_first_and_a_given_prefix_before_them(self, folder: Path) -> None:
        self.set_prompts(folder, {"query": "query: ", "passage": "text: "})
        own = SentenceTransformerEmbedder(str(folder))
        assert (own.query_prefix, own.document_prefix) == ("query: ", "text: ")
        assert SentenceTransformerEmbedder(str(folder), query_prefix="").query_prefix == ""

    def test_each_prefix_is_what_the_encoder_reads_in_front_of_the_text(self, folder: Path) -> None:
        self.set_prompts(folder, {"query": "query: ", "passage": "dog: "})
        prefixed = SentenceTransformerEmbedder(str(folder))
        self.set_prompts(folder, {})
        plain = SentenceTransformerEmbedder(str(folder), query_prefix="")
        assert np.array_equal(prefixed.encode_query("a cat"), plain.encode_query("query: a cat"))
        assert np.array_equal(prefixed.encode(["a cat"]), plain.encode(["dog: a cat"]))

    def test_the_prefix_has_no_token_vectors_of_its_own(self, folder: Path) -> None:
        self.set_prompts(folder, {})
        plain = SentenceTransformerEmbedder(str(folder), query_prefix="")
        prefixed = SentenceTransformerEmbedder(str(folder), query_prefix="query: ")
        vectors, spans = prefixed.query_token_vectors("a cat")
        whole, _ = plain.query_token_vectors("query: a cat")
        assert spans == [(0, 1), (2, 5)]
        assert np.array_equal(vectors, whole[-2:])


def test_fakes_with_other_settings_are_other_models() -> None:
    fakes = [
        HashingEmbedder(),
        HashingEmbedder("other"),
        HashingEmbedder(dimensions=32),
        HashingEmbedder(window_tokens=8),
    ]
    assert len({fake.fingerprint for fake in fakes}) == 4
    assert HashingEmbedder().fingerprint == fakes[0].fingerprint


def test_the_fake_remembers_what_it_encoded() -> None:
    fake = HashingEmbedder()
    fake.encode(["a", "b"])
    fake.encode_query("c")
    assert fake.texts_encoded == ["a", "b"]


def test_a_query_that_was_asked_before_is_not_encoded_again(real: SentenceTransformerEmbedder) -> None:
    first = real.encode_query("a query that is asked twice")
    again = real.encode_query("a query that is asked twice")
    assert again is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.0
