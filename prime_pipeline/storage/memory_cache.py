"""A cache in memory before another one, for what is looked up again and again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from prime_pipeline.storage.blob_cache import Cache


class MemoryCache:
    """Keeps the values that were looked up or stored last in memory, and all others where they are. Safe for several threads.

    Args:
        below: Asked for what is not in memory, and given all that is stored.
        limit_bytes: When the values in memory exceed it together, those unused for longest go.
    """

    def __init__(self, below: Cache, limit_bytes: int) -> None:
        self._below = below
        self._limit_bytes = limit_bytes
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._total_bytes = 0
        self._lock = threading.Lock()

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that are present, in memory or below."""
        wanted = list(dict.fromkeys(keys))
        found = self._remembered(wanted)
        if missing := [key for key in wanted if key not in found]:
            fetched = self._below.lookup(missing)
            self._remember(fetched)
            found.update(fetched)
        return found

    def present(self, keys: Iterable[str]) -> dict[str, int]:
        """The sizes in bytes of those keys' values that are present below, without reading any."""
        return self._below.present(keys)

    @property
    def capacity_bytes(self) -> float:
        """That of what is below."""
        return self._below.capacity_bytes

    def store(self, values: Mapping[str, bytes]) -> None:
        """Add values, in memory and below."""
        self._remember(values)
        self._below.store(values)

    def close(self) -> None:
        """Forget what is in memory, and close what is below."""
        with self._lock:
            self._values.clear()
            self._total_bytes = 0
        self._below.close()

    def _remembered(self, keys: Iterable[str]) -> dict[str, bytes]:
        found = {}
        with self._lock:
            for key in keys:
                if (value := self._values.get(key)) is not None:
                    self._values.move_to_end(key)
                    found[key] = value
        return found

    def _remember(self, values: Mapping[str, bytes]) -> None:
        with self._lock:
            for key, value in values.items():
                if key not in self._values:
                    self._values[key] = value
                    self._total_bytes += len(value)
            while self._total_bytes > self._limit_bytes:
                _, oldest = self._values.popitem(last=False)
                self._total_bytes -= len(oldest)
