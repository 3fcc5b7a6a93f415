"""What the doctor shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from prime_pipeline.console.parts import printable

if TYPE_CHECKING:
    from prime_pipeline.reporting.health import Check

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def checks_view(checks: Sequence[Check]) -> Table:
    """A row for each check; what to do stands below what was found."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for check in checks:
        found = Text(printable(check.found))
        if check.remedy and check.state != "ok":
            found.append(f"\n→ {printable(check.remedy)}", style="bold")
        table.add_row(
            Text(check.state, style=_STYLES[check.state]),
            Text(check.area),
            Text(printable(check.name)),
            found,
        )
    return table
