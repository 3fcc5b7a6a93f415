"""Dagster's event log in SQLite, with one open connection per file.

Dagster makes an engine of SQLAlchemy for each of the three to six connections that one event takes: each compiles every statement anew,
and each close of a connection writes the file's log back. Files and schema are Dagster's own, so that its UI reads them as
ever.
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
from sqlalchemy.pool import QueuePool

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

    def dispose(self) -> None:
        """Close all connections."""
        super().dispose()
        for engine in self._engines.values():
            engine.dispose()

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine(shard).connect() as connection, connection.begin():
            yield connection

    def _engine(self, shard: str) -> Engine:
        if shard not in self._engines:
            engine = create_engine(
                self.conn_string_for_shard(shard),
                poolclass=QueuePool,
                pool_size=1,
                connect_args={"timeout": _BUSY_TIMEOUT_S},
            )
            self._initdb(engine)
            self._engines[shard] = engine
        return self._engines[shard]
