"""The instance of a home, and what the home's own dagster.yaml may say."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml
from sqlalchemy.exc import SQLAlchemyError

from prime_pipeline.defs.event_log import SqliteEventLog
from prime_pipeline.defs.instance import INSTANCE_SETTINGS, open_instance, storage_errors, ui_command
from prime_pipeline.errors import DagsterDatabaseUnusable, DagsterStorageUnusable, SettingsError
from prime_pipeline.storage.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    home.prepare()
    return home


def written(home: Home) -> dict[str, object]:
    """What Dagster's own processes read."""
    found = yaml.safe_load((home.dagster / "dagster.yaml").read_text())
    assert isinstance(found, dict)
    return found


def test_a_home_without_a_file_of_its_own_has_our_settings(home: Home) -> None:
    with open_instance(home) as instance:
        assert isinstance(instance.event_log_storage, SqliteEventLog)
    assert written(home) == dict(INSTANCE_SETTINGS)


def test_the_homes_own_file_stands_over_our_settings_value_by_value(home: Home) -> None:
    home.dagster_settings.write_text("concurrency: {runs: {max_concurrent_runs: 9}}\n")
    with open_instance(home) as instance:
        assert isinstance(instance.event_log_storage, SqliteEventLog)
    assert written(home) == {
        **INSTANCE_SETTINGS,
        "concurrency": {"pools": {"default_limit": 1}, "runs": {"max_concurrent_runs": 9}},
    }
    home.dagster_settings.unlink()
    ui_command(home, "127.0.0.1", 3000)
    assert written(home) == dict(INSTANCE_SETTINGS)


def test_storage_that_it_names_is_the_storage_of_runs_in_this_process(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    home.dagster_settings.write_text(yaml.safe_dump({"storage": {"sqlite": {"base_dir": str(elsewhere)}}}))
    with open_instance(home) as instance:
        assert not isinstance(instance.event_log_storage, SqliteEventLog)
        assert instance.get_runs() == []
    assert elsewhere.is_dir()
    assert not (home.dagster / "history").exists()


def test_what_only_its_owner_may_read_stays_so(home: Home) -> None:
    home.dagster_settings.write_text("telemetry: {enabled: false}\n")
    open_instance(home).dispose()
    home.dagster_settings.chmod(0o600)
    open_instance(home).dispose()
    assert stat.S_IMODE((home.dagster / "dagster.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "storage: {postgres: [secret",
        "- a list",
        "\0",
        "storage: {postgres: {postgres_url: {env: NOT_SET_ANYWHERE}}}",
        "storage: {postgres: {pasword: secret}}",
        "no_such_setting: secret",
        "storage: {custom: {module: not_installed, class: Storage, config: {password: secret}}}",
    ],
)
def test_a_file_that_cannot_be_followed_is_named_and_not_repeated(home: Home, text: str) -> None:
    home.dagster_settings.write_text(text)
    with pytest.raises(SettingsError, match=r"home/dagster\.yaml says") as raised:
        open_instance(home)
    assert "secret" not in str(raised.value)


def test_a_database_that_is_named_there_and_fails_is_told_with_the_file(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    home.dagster_settings.write_text(yaml.safe_dump({"storage": {"sqlite": {"base_dir": str(elsewhere)}}}))
    open_instance(home).dispose()
    (elsewhere / "history" / "runs.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(DagsterDatabaseUnusable, match=r"home/dagster\.yaml names .* is not a database"):
        open_instance(home)


def test_the_failure_of_a_driver_that_wraps_it_is_told_likewise(home: Home) -> None:
    with pytest.raises(DagsterStorageUnusable, match="no such host"), storage_errors(home):
        raise RuntimeError("too many retries") from SQLAlchemyError("no such host")
    with pytest.raises(RuntimeError, match="something else"), storage_errors(home):
        raise RuntimeError("something else")
