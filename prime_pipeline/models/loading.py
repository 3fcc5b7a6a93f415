"""Loading weights without noise: no progress bars, no notices, and damage told as an error of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_pipeline.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


@contextmanager
def quiet_loading(directory: Path) -> Generator[None]:
    """Silence the model libraries while a model is loaded, then put their settings back.

    Raises:
        ModelError: The folder's files cannot be loaded.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging as library_logging

    logging: Any = library_logging  # its functions have no annotations
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        message = f"model folder {directory} cannot be loaded ({error}): download the model again"
        raise ModelError(message) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def load_pair_model(directory: Path, device: str, window: int) -> CrossEncoder:
    """A model that reads pairs of texts, of at most ``window`` tokens together, and gives raw logits.

    Raises:
        ModelError: See :func:`quiet_loading`.
    """
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    with quiet_loading(directory):
        model: CrossEncoder = CrossEncoder(
            str(directory), device=device, local_files_only=True, activation_fn=Identity()
        )
    model.max_seq_length = window
    return model
