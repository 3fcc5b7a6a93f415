"""Dagster's event log in SQLite, with one engine per file.

Dagster makes an engine of SQLAlchemy for each of the three to six connections that one event takes, and an engine compiles every statement
anew: most of what an event costs. Files and schema are Dagster's own, so that its UI reads them as ever.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from dagster._core.storage.event_log.sqlite.sqlite_event_log import (  # public nowhere
    SqliteEventLogStorage,
)
from dagster._core.storage.sql import create_engine
from dagster._serdes import ConfigurableClassData
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

_BUSY_TIMEOUT_S = 30


class SqliteEventLog(SqliteEventLogStorage):
    """For runs in this process; opened by :func:`prime_pipeline.defs.instance.open_instance`."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: dict[str, Engine] = {}
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        """Called by Dagster with what the instance's configuration says."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine(shard).connect() as connection, connection.begin():
            yield connection

    def _engine(self, shard: str) -> Engine:
        if shard not in self._engines:
            # Without a pool: a connection is closed after use, so that a file can be removed at any time.
            engine = create_engine(
                self.conn_string_for_shard(shard),
                poolclass=NullPool,
                connect_args={"timeout": _BUSY_TIMEOUT_S},
            )
            self._initdb(engine)
            self._engines[shard] = engine
        return self._engines[shard]
