"""How long work tells that it goes on, without knowing who listens (a terminal, a Dagster log, nobody)."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the state of one activity. Called often; a listener thins out what it shows."""

    def __call__(self, activity: str, done: int, total: int | None) -> None:
        """Report ``done`` of ``total`` items of ``activity``; ``total`` is None while it is unknown."""


def silent(activity: str, done: int, total: int | None) -> None:
    """The listener that shows nothing."""
    del activity, done, total
