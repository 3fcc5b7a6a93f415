"""An embedder on ONNX Runtime, for processors: faster than torch, with the same vectors or, in eight bits, almost the same.

The model is exported once, compared with the original, and kept; torch is not imported to encode with what is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from filelock import FileLock

from prime_pipeline.errors import ExportDisagrees, OnnxNotInstalled, StoreUnavailable
from prime_pipeline.models.agreement import Agreement, measure_agreement
from prime_pipeline.models.embedder import SentenceTransformerEmbedder, Vectors, unit_rows
from prime_pipeline.models.location import EMBEDDED_MODEL, resolve_model
from prime_pipeline.models.onnx_export import INPUT, Output, export_float, export_int8
from prime_pipeline.models.processor import processor
from prime_pipeline.progress import Progress, silent
from prime_pipeline.storage.atomic import atomic_path, write_text
from prime_pipeline.storage.fingerprint import file_fingerprint, fingerprint

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Backend = Literal["onnx", "int8"]
"""Numbers in the graph: as in torch, or of eight bits where they are multiplied."""

EXPORT_VERSION: Final = 1
"""Raise it when :mod:`~prime_pipeline.models.onnx_export` makes another graph of the same model."""
LEAST_RANK_CORRELATION: Final = 0.99
"""Below it an export is refused."""

_GRAPH: Final = "model.onnx"
_RECORD: Final = "export.json"
_PACKAGES: Final = ("onnxruntime", "onnx")
_ACTIVITY: Final = "export of the embedder"
_WRITE: Final = {"onnx": export_float, "int8": export_int8}


@dataclass(frozen=True, slots=True)
class Export:
    """A graph that is kept, and what was found when it was made.

    Attributes:
        graph_fingerprint: SHA-256 (hex) of the graph's file.
        rank_correlation: With the original, see :class:`~prime_pipeline.models.agreement.Agreement`.
        max_difference: Likewise.
        processor: On which that was measured, see :func:`~prime_pipeline.models.processor.processor`.
    """

    graph_fingerprint: str
    rank_correlation: float
    max_difference: float
    processor: str


class OnnxEmbedder(SentenceTransformerEmbedder):
    """A model on ONNX Runtime; with ``int8``, weights and what they are multiplied with have eight bits.

    A text's vector depends on the text alone, as the runtime reads one at a time. Its last bits depend on the processor and on
    the number of threads, as in torch; with ``int8``, a rounding that falls to the other side can make a thousandth of it.

    Args:
        model: See :func:`~prime_pipeline.models.location.resolve_model`.
        graph: What :mod:`~prime_pipeline.models.onnx_export` wrote of that model.
        backend: Its form.
        export: What was found when it was written; nothing while that is being found out.

    Attributes:
        fingerprint: Of the model's files, the form of the export, and the runtime's version.
    """

    def __init__(self, model: str, graph: Path, backend: Backend, export: Export | None = None) -> None:
        super().__init__(model)
        self.name = f"{self.name}, {backend}"
        self.fingerprint = onnx_fingerprint(self.fingerprint, backend)
        self._graph, self._backend, self._export = graph, backend, export
        self._session: InferenceSession | None = None

    @property
    def runtime(self) -> Mapping[str, str | float]:
        """See :attr:`Embedder.runtime`; with the agreement with torch, and on which processor it was measured."""
        found = asdict(self._export) if self._export else {}
        found.pop("graph_fingerprint", None)
        return {"backend": self._backend, **found}

    def _infer(self, texts: list[str], prefix: str, output: Output) -> list[Vectors]:
        rows = []
        for text in texts:
            ids = np.array([self.tokenizer.window_ids(prefix + text)], dtype=np.int64)
            with self._lock:  # one text at a time: the runtime uses all cores for it
                (row,) = self._opened().run([output], {INPUT: ids})
            rows.append(unit_rows(row[0]))
        return rows

    def _opened(self) -> InferenceSession:
        if self._session is None:
            from onnxruntime import InferenceSession, SessionOptions

            options = SessionOptions()
            options.log_severity_level = 3  # errors only
            self._session = InferenceSession(self._graph, options, providers=["CPUExecutionProvider"])
        return self._session


def onnx_fingerprint(model_fingerprint: str, backend: Backend) -> str:
    """Of a model's vectors on ONNX Runtime: another one than the model's, for other forms of export, and for other runtimes.

    Raises:
        OnnxNotInstalled: The runtime is not installed.
    """
    versions = {package: _version(package) for package in _PACKAGES}
    return fingerprint(
        {"model": model_fingerprint, backend: EXPORT_VERSION, "onnxruntime": versions["onnxruntime"]}
    )


def open_onnx_embedder(
    exports: Path, model: str = EMBEDDED_MODEL, backend: Backend = "onnx", progress: Progress = silent
) -> OnnxEmbedder:
    """The embedder of a kept export, which is made if it is missing or damaged.

    Several processes may ask at once; one of them makes it.

    Args:
        exports: The folder that holds exports, each in a folder of its own.
        model: See :func:`~prime_pipeline.models.location.resolve_model`.
        backend: The form of the graph.
        progress: Told while an export is made.

    Raises:
        OnnxNotInstalled: The packages are not there.
        ExportFailed: The model cannot be written as a graph.
        ExportDisagrees: It ranks texts too differently.
        ModelError: The model cannot be loaded, or not be found.
        StoreUnavailable: The export cannot be written.
    """
    original = SentenceTransformerEmbedder(model)
    folder = exports / onnx_fingerprint(original.fingerprint, backend)[:16]
    export = _kept(folder) or _made(original, model, backend, folder, progress)
    return OnnxEmbedder(model, folder / _GRAPH, backend, export)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise OnnxNotInstalled(package) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of an export's folder, between processes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = FileLock(folder / ".lock")
        held.acquire()
    except OSError as error:
        raise StoreUnavailable(folder, error.strerror or str(error)) from error
    try:
        yield
    finally:
        held.release()


def _kept(folder: Path) -> Export | None:
    """The record of an export whose graph is whole; None where either is missing or damaged."""
    try:
        export = Export(**json.loads((folder / _RECORD).read_bytes()))
        is_whole = file_fingerprint(folder / _GRAPH) == export.graph_fingerprint
    except (OSError, ValueError, TypeError):
        return None
    return export if is_whole else None


def _made(
    original: SentenceTransformerEmbedder, model: str, backend: Backend, folder: Path, progress: Progress
) -> Export:
    with _locked(folder):
        if export := _kept(folder):  # another process was faster
            return export
        # The record goes last: a graph without it is none.
        with atomic_path(folder / _GRAPH) as temporary:
            progress(_ACTIVITY, 0, 2)
            _WRITE[backend](resolve_model(model), temporary)
            progress(_ACTIVITY, 1, 2)
            export = _checked(original, backend, OnnxEmbedder(model, temporary, backend), temporary)
        write_text(folder / _RECORD, json.dumps(asdict(export), indent=2) + "\n")
        progress(_ACTIVITY, 2, 2)
    return export


def _checked(
    original: SentenceTransformerEmbedder, backend: Backend, exported: OnnxEmbedder, graph: Path
) -> Export:
    found: Agreement = measure_agreement(exported, original)
    if not found.rank_correlation >= LEAST_RANK_CORRELATION:  # false for NaN, too
        raise ExportDisagrees(original.name, backend, found.rank_correlation, LEAST_RANK_CORRELATION)
    return Export(file_fingerprint(graph), **asdict(found), processor=processor())
