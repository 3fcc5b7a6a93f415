"""An embedder's model as an ONNX graph whose weights have eight bits.

The graph reads one text at a time, of any length up to the model's window, so that nothing is padded and every text is
quantised on scales of its own.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from prime_pipeline.errors import ExportFailed
from prime_pipeline.models.loading import quiet_loading
from prime_pipeline.models.location import read_config

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Output = Literal["sentence_embedding", "token_embeddings"]
INPUT: Final = "input_ids"
OUTPUTS: Final[tuple[Output, ...]] = ("sentence_embedding", "token_embeddings")

_OPSET: Final = 17
_N_TRACED: Final = 8
"""Tokens of the text with which the graph is traced; it takes any number."""


def export_int8(directory: Path, target: Path) -> None:
    """Write a model as a graph from ``input_ids``, (1, n_tokens) int64, to the ``OUTPUTS``, (1, dim) and (1, n_tokens, dim).

    Weights of matrix products are quantised by output channel, to seven of the eight bits: with all eight, sums of two products
    overflow 16 bits on processors without VNNI, and vectors would depend on the processor. What they are multiplied with is
    quantised when a text is read. Embedding tables, products of tokens with one another and normalisations stay in float.

    Args:
        directory: Of a sentence-transformers model.
        target: The file.

    Raises:
        ModelError: The model cannot be loaded.
        ExportFailed: The libraries cannot write it as such a graph.
    """
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "float.onnx"
        export_float(directory, graph)
        with _failures_of(directory):
            _quantise(graph, target)


def export_float(directory: Path, target: Path) -> None:
    """As :func:`export_int8`, without quantising."""
    from sentence_transformers import SentenceTransformer

    with quiet_loading(directory):  # with the attention whose graph can be fused
        model = SentenceTransformer(
            str(directory), device="cpu", local_files_only=True, model_kwargs={"attn_implementation": "eager"}
        )
    with _failures_of(directory):
        _trace(model, target)
        _fuse(target, read_config(directory, "config.json"))


def _trace(model: SentenceTransformer, target: Path) -> None:
    import torch

    class OneText(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
            features = self.model({INPUT: input_ids, "attention_mask": torch.ones_like(input_ids)})
            return tuple(features[name] for name in OUTPUTS)

    with torch.inference_mode():
        # The tracing exporter: the newer one takes eight times as long and one package more, for the same graph.
        torch.onnx.export(
            OneText().eval(),
            (torch.arange(_N_TRACED)[None],),
            str(target),
            dynamo=False,
            opset_version=_OPSET,
            input_names=[INPUT],
            output_names=list(OUTPUTS),
            dynamic_axes={INPUT: {1: "n_tokens"}, "token_embeddings": {1: "n_tokens"}},
        )


def _fuse(graph: Path, config: Mapping[str, Any]) -> None:
    """Replace what the runtime knows as one operation, such as attention; what it does not know stays as it is."""
    from onnxruntime.transformers.optimizer import optimize_model

    n_heads, width = (int(config.get(name) or 0) for name in ("num_attention_heads", "hidden_size"))
    if n_heads and width:
        fused = optimize_model(
            str(graph), model_type="bert", num_heads=n_heads, hidden_size=width, opt_level=0
        )
        fused.save_model_to_file(str(graph))


def _quantise(graph: Path, target: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(graph)
    # Or the library warns that it was not preprocessed, which means the fusions above.
    onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    quantize_dynamic(
        model,
        target,
        op_types_to_quantize=["MatMul", "Attention"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        # Of what comes out of fused operations, whose types are not inferred.
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )


@contextmanager
def _failures_of(directory: Path) -> Iterator[None]:
    """Silence the libraries' warnings, and tell their errors as one of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # three libraries, each with errors of its own
        raise ExportFailed(directory, f"{type(error).__name__}: {error}") from error
